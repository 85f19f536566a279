//! Responses of `ccm ensure api`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value as Json;

use crate::{cli::schema::event_schema, session::Event, vocabulary::schema};

pub(super) const RESPONSE: &str = "io.choria.ccm.v1.resource.ensure.response";

/// Response to a request: the result, or the reason why nothing was attempted.
#[derive(Serialize, JsonSchema)]
pub(super) struct Response {
    /// Always `io.choria.ccm.v1.resource.ensure.response`.
    #[schemars(extend("const" = RESPONSE))]
    pub(super) protocol: &'static str,
    /// Id of the request, so that a program can match responses with requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "id_schema")]
    pub(super) id: Option<Json>,
    /// Event of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Event")]
    pub(super) state: Option<Json>,
    /// Reason why nothing was attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) error: Option<String>,
    /// Probable errors in the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

impl Response {
    pub(super) fn refusal(error: String) -> Self {
        Self { protocol: RESPONSE, id: None, state: None, error: Some(error), warnings: Vec::new() }
    }
}

/// Returns an event whose status also has the result of the resource, where programs written for the Go original expect
/// it.
pub(super) fn state_of(event: &Event) -> Result<Json, String> {
    let mut state = serde_json::to_value(event).map_err(|error| error.to_string())?;
    if let Some(status) = state.get_mut("status").and_then(Json::as_object_mut) {
        let stable = !(event.changed || event.failed || event.skipped);
        for (key, value) in [
            ("stable", Json::from(stable)),
            ("changed", event.changed.into()),
            ("refreshed", event.refreshed.into()),
            ("noop", event.noop.into()),
            ("noop_message", event.noop_message.clone().unwrap_or_default().into()),
            ("timestamp", event.timestamp.clone().into()),
        ] {
            status.insert(key.to_owned(), value);
        }
    }
    Ok(state)
}

fn id_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number"] })
}

/// Returns the schema of a response.
pub(in crate::cli) fn response_schema() -> Json {
    let mut event = event_schema();
    if let Some(event) = event.as_object_mut() {
        event.shift_remove("$schema");
    }
    let mut schema = schema::written::<Response>().to_value();
    // What the state of each type has besides.
    let outcome = serde_json::json!({
        "stable": { "type": "boolean" },
        "changed": { "type": "boolean" },
        "refreshed": { "type": "boolean" },
        "noop": { "type": "boolean" },
        "noop_message": { "type": "string" },
        "timestamp": { "type": "string" },
    });
    for state in event["oneOf"].as_array_mut().into_iter().flatten() {
        let Some(known) = state["properties"]["status"]["anyOf"][0]["properties"].as_object_mut() else {
            continue;
        };
        known.extend(outcome.as_object().cloned().unwrap_or_default());
    }
    schema["properties"]["state"] = event;
    schema["oneOf"] = serde_json::json!([{ "required": ["state"] }, { "required": ["error"] }]);
    schema::document("ccm response", &schema)
}
