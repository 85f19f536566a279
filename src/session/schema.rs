//! JSON Schemas of events and summaries.

use schemars::Schema;
use serde_json::{Value, json};

use super::{Event, Summary};
use crate::vocabulary::schema::{document, written};

/// Returns the schema of an event, whose `status` is the state of one of these types.
pub(crate) fn event_schema(states: impl Iterator<Item = (&'static str, Schema)>) -> Value {
    let mut schema = written::<Event>().to_value();
    schema["oneOf"] = states.map(|(kind, state)| of_type(kind, state.to_value())).collect();
    document("ccm event", &schema)
}

/// Returns the schema of a summary.
pub(crate) fn summary_schema() -> Value {
    document("ccm summary", &written::<Summary>().to_value())
}

fn of_type(kind: &str, mut state: Value) -> Value {
    let text = json!({ "type": "string" });
    let head = [
        ("protocol", json!({ "const": format!("io.choria.ccm.v1.resource.{kind}.state") })),
        ("type", json!({ "const": kind })),
        ("name", text.clone()),
        ("ensure", text),
    ];
    for (key, schema) in head {
        state["properties"][key] = schema;
        if let Some(required) = state["required"].as_array_mut() {
            required.push(key.into());
        }
    }
    let status = json!({ "anyOf": [state, { "type": "null" }] });
    json!({ "properties": { "type": { "const": kind }, "status": status } })
}
