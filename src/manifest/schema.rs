//! JSON Schema of manifests, for editors.

use serde_json::{Map, Value, json};

use super::{ManifestSettings, repetition::KEY as FOR_EACH};
use crate::{
    document::{Source, parse, to_value},
    resource::{AnyType, declaration_schema},
    types::TYPES,
    vocabulary::schema::inlined,
};

/// Id of the schema. It changes when documents that were valid are no longer valid.
const ID: &str = "urn:ccm:schema:manifest:1";

/// Returns the schema of a manifest.
pub(crate) fn manifest_schema() -> Value {
    let resources = json!({ "type": "array", "items": { "$ref": "#/definitions/resource" } });
    let mut definitions = Map::new();
    let mut entries = Map::new();
    for kind in TYPES {
        let mut declaration = declaration_schema(*kind);
        // Conditions are expressions as they are.
        let templated = properties_of(&mut declaration).filter(|(key, _)| *key != "control");
        templated.for_each(|(_, property)| allow_templates(property));
        declaration["properties"][FOR_EACH] = json!({ "$ref": "#/definitions/for_each" });
        definitions.insert(kind.name().to_owned(), declaration);
        entries.insert(kind.name().to_owned(), forms(kind.name()));
    }
    definitions.insert(
        "resource".to_owned(),
        json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": entries, "defaultSnippets": snippets() }),
    );
    let template =
        json!({ "type": "string", "pattern": r"\{\{|\$\{", "description": "Text with a template in it." });
    definitions.insert("template".to_owned(), template);
    definitions.insert(FOR_EACH.to_owned(), for_each());
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ID,
        "title": "ccm manifest",
        "anyOf": [
            { "$ref": "#/definitions/manifest" },
            resources,
        ],
        "definitions": with_manifest(definitions, &resources),
    });
    finish(&mut schema);
    schema
}

/// Prepares a schema for editors: removes ccm's own keywords, keeps to draft 7, and marks descriptions as Markdown.
fn finish(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    keywords.retain(|keyword, value| {
        let is_width = keyword == "format" && value.as_str().is_some_and(|format| format.contains("int"));
        !keyword.starts_with("x-") && keyword != "deprecated" && !is_width
    });
    if let Some(description) = keywords.get("description").cloned() {
        keywords.insert("markdownDescription".to_owned(), description);
    }
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" | "patternProperties" | "definitions" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| finish(schema));
            }
            "anyOf" | "oneOf" | "allOf" => value.as_array_mut().into_iter().flatten().for_each(finish),
            "items" | "additionalProperties" | "if" | "then" | "else" => finish(value),
            _ => {}
        }
    }
}

/// Returns examples of all types, which an editor can insert as resources.
fn snippets() -> Value {
    let of_type =
        |kind: &&dyn AnyType| {
            kind.examples().iter().filter_map(|example| {
            let source = Source { name: String::new(), text: example.manifest.to_owned() };
            let manifest = serde_json::to_value(to_value(&parse(&source).ok()?)).ok()?;
            let [resource] = manifest.as_array()?.as_slice() else { return None };
            Some(json!({ "label": example.title, "description": kind.name(), "body": literal(resource) }))
        }).collect::<Vec<_>>()
        };
    TYPES.iter().flat_map(of_type).collect()
}

/// Escapes a value, so that editors find no placeholders or variables in it.
fn literal(value: &Value) -> Value {
    let text = |text: &str| text.replace('\\', "\\\\").replace('$', "\\$");
    match value {
        Value::String(value) => text(value).into(),
        Value::Array(items) => items.iter().map(literal).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (text(key), literal(value))).collect(),
        other => other.clone(),
    }
}

fn for_each() -> Value {
    json!({
        "description": "Repeats the resource for each element of a list or map, which templates see as `each`, and its place as `index`: an expression, or the list or map itself.",
        "type": ["string", "array", "object"],
    })
}

fn with_manifest(mut definitions: Map<String, Value>, resources: &Value) -> Map<String, Value> {
    let mut ccm = inlined::<ManifestSettings>().clone().to_value();
    properties_of(&mut ccm).for_each(|(_, setting)| allow_templates(setting));
    ccm["properties"]["resources"] = resources.clone();
    let maps = json!({ "type": "object" });
    definitions.insert(
        "manifest".to_owned(),
        json!({
            "type": "object",
            "additionalProperties": false,
            "patternProperties": { "^x-": true },
            "properties": {
                "$schema": { "type": "string" },
                "data": { "type": ["object", "null"], "description": "Data that resources are made from." },
                "hierarchy": {
                    "type": "object",
                    "description": "In which order overrides apply to the data.",
                    "additionalProperties": false,
                    "properties": {
                        "order": { "type": "array", "items": { "type": "string" } },
                        "merge": { "enum": ["first", "deep", "keys"] },
                        "lists": { "enum": ["append", "replace", "unique"] },
                        "directory": {
                            "type": "string",
                            "description": "Directory with a data file for each entry: `role/web.yaml` for `role:web`.",
                        },
                        "folder": { "type": "string", "description": "Old name of `directory`." },
                    },
                },
                "overrides": {
                    "type": "object",
                    "description": "Data that replaces other data on some machines.",
                    "additionalProperties": maps,
                },
                "ccm": {
                    "type": "object",
                    "required": ["resources"],
                    "additionalProperties": false,
                    "properties": ccm["properties"],
                },
            },
            "required": ["ccm"],
        }),
    );
    definitions
}

fn properties_of(schema: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
}

/// Accepts strings with templates for properties whose type is not a string.
fn allow_templates(schema: &mut Value) {
    for part in ["items", "additionalProperties"] {
        schema.get_mut(part).filter(|part| part.is_object()).map(allow_templates);
    }
    let Some(given) = schema.as_object_mut() else { return };
    let is_free_text = !given.contains_key("pattern")
        && given.get("type").is_some_and(|of| {
            *of == "string" || of.as_array().is_some_and(|all| all.contains(&"string".into()))
        });
    if is_free_text {
        return;
    }
    let (about, value): (Map<_, _>, Map<_, _>) = std::mem::take(given)
        .into_iter()
        .partition(|(key, _)| ["description", "default", "deprecated"].contains(&key.as_str()));
    *given = about;
    given.insert("anyOf".to_owned(), json!([value, { "$ref": "#/definitions/template" }]));
}

/// Returns the three ways to write resources of a type.
fn forms(kind: &str) -> Value {
    let named = json!({ "$ref": format!("#/definitions/{kind}") });
    let unnamed = json!({ "allOf": [named, { "properties": { "name": false, FOR_EACH: false } }] });
    let properties = json!({ "anyOf": [unnamed, { "type": "null" }] });
    json!({
        "anyOf": [
            {
                "description": "One item per resource: its name over its properties. An item `defaults` holds what the others share.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { FOR_EACH: { "$ref": "#/definitions/for_each" } },
                    "minProperties": 1,
                    "if": { "required": [FOR_EACH] },
                    "then": { "minProperties": 2, "maxProperties": 2 },
                    "else": { "maxProperties": 1 },
                    "additionalProperties": properties,
                },
            },
            {
                "description": "Names over properties, or one resource with a `name` key.",
                "type": "object",
                "if": { "properties": { "name": { "type": "string" } }, "required": ["name"] },
                "then": named,
                "else": { "properties": { FOR_EACH: false }, "additionalProperties": properties },
            },
        ],
    })
}
