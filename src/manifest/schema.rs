//! The JSON Schema of a manifest, for editors.

use serde_json::{Map, Value, json};

use crate::{resource::declaration_schema, types::TYPES};

/// The schema of a whole manifest.
pub(crate) fn manifest_schema() -> Value {
    let resources = json!({ "type": "array", "items": { "$ref": "#/$defs/resource" } });
    let mut definitions = Map::new();
    let mut entries = Map::new();
    for kind in TYPES {
        definitions.insert(kind.name().to_owned(), declaration_schema(*kind));
        entries.insert(kind.name().to_owned(), forms(kind.name()));
    }
    definitions.insert(
        "resource".to_owned(),
        json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": entries }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ccm manifest",
        "anyOf": [
            { "$ref": "#/$defs/manifest" },
            resources,
            { "type": "null" },
        ],
        "$defs": with_manifest(definitions, &resources),
    })
}

fn with_manifest(mut definitions: Map<String, Value>, resources: &Value) -> Map<String, Value> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    definitions.insert(
        "manifest".to_owned(),
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "data": { "type": ["object", "null"], "description": "Data that resources are made from." },
                "hierarchy": { "type": "object", "description": "In which order overrides apply to the data." },
                "overrides": { "type": "object", "description": "Data that replaces other data on some machines." },
                "ccm": {
                    "type": ["object", "null"],
                    "additionalProperties": false,
                    "properties": {
                        "fail_on_error": { "type": "boolean", "description": "Stop at the first failed resource." },
                        "pre_message": text("Printed before the run."),
                        "post_message": text("Printed after the run when nothing failed."),
                        "resources": resources,
                    },
                },
            },
        }),
    );
    definitions
}

/// The three ways to write resources of a type.
fn forms(kind: &str) -> Value {
    let named = json!({ "$ref": format!("#/$defs/{kind}") });
    let unnamed = json!({ "allOf": [named, { "properties": { "name": false } }] });
    let properties = json!({ "anyOf": [unnamed, { "type": "null" }] });
    json!({
        "anyOf": [
            {
                "description": "One item per resource: its name over its properties. An item `defaults` holds what the others share.",
                "type": "array",
                "items": { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": properties },
            },
            {
                "description": "Names over properties, or one resource with a `name` key.",
                "type": "object",
                "if": { "properties": { "name": { "type": "string" } }, "required": ["name"] },
                "then": named,
                "else": { "additionalProperties": properties },
            },
        ],
    })
}
