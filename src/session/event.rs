//! Events: the record of one resource in one run.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::Ids;
use crate::{checks::CheckResult, vocabulary::RunMode};

const PROTOCOL: &str = "io.choria.ccm.v1.transaction.event";

/// The record of one resource in one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "the protocol names its fields"
)]
pub(crate) struct Event {
    /// Always `io.choria.ccm.v1.transaction.event`.
    #[schemars(extend("const" = PROTOCOL))]
    pub(crate) protocol: String,
    /// Unique id. Ids sort by the second of their creation, and within a run by the order of events.
    pub(crate) event_id: String,
    /// Time of the record: RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub(crate) timestamp: String,
    /// Type of the resource.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Provider that was used; empty if none was selected.
    pub(crate) provider: String,
    /// Name of the resource.
    pub(crate) name: String,
    /// Alias of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) alias: Option<String>,
    /// Alias of a sensitive resource. Later resources of the same process can refer to it, but it is never shown.
    #[serde(skip)]
    pub(crate) hidden_alias: Option<String>,
    /// Requested state.
    pub(crate) requested_ensure: String,
    /// Observed state at the end; empty if it is not known. For an `exec`, `absent` only means that no file of `creates`
    /// exists.
    pub(crate) final_ensure: String,
    /// Duration in nanoseconds.
    pub(crate) duration: u64,
    /// Requested properties; for a sensitive resource only its name and desired state.
    pub(crate) properties: Map<String, Value>,
    /// Observed state at the end, with all attributes.
    pub(crate) status: Option<Map<String, Value>>,
    /// Action that a real run would have performed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) noop_message: Option<String>,
    /// Change of the content as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) diff: Option<String>,
    /// Reasons of the failure, and advice.
    pub(crate) error: Vec<String>,
    /// Whether the resource was changed; in a dry run, whether it would be.
    pub(crate) changed: bool,
    /// Whether the resource was refreshed because a subscribed resource changed.
    pub(crate) refreshed: bool,
    /// Whether the desired state could not be reached.
    pub(crate) failed: bool,
    /// Whether the resource was skipped: because of `control`, a failed requirement, or the selection.
    pub(crate) skipped: bool,
    /// Reason for skipping, except a failed requirement: the condition of `control`, or `not selected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) skip_reason: Option<String>,
    /// Whether this was a dry run.
    pub(crate) noop: bool,
    /// Required resources that failed or were skipped.
    pub(crate) unmet_requirements: Vec<String>,
    /// Results of health checks; omitted if none ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) health_check: Vec<CheckResult>,
    /// Whether only health checks were requested; omitted otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) health_check_only: bool,
}

impl Event {
    /// Returns whether a run in this mode considers the event. Predictions of a dry run do not count in a real run.
    pub(crate) fn counts(&self, mode: RunMode) -> bool {
        mode == RunMode::Noop || !self.noop
    }

    /// Returns the event without properties, state and diff, which can be large.
    pub(crate) fn outline(&self) -> Self {
        let text = String::clone;
        Self {
            protocol: text(&self.protocol),
            event_id: text(&self.event_id),
            timestamp: text(&self.timestamp),
            kind: text(&self.kind),
            provider: text(&self.provider),
            name: text(&self.name),
            alias: self.alias.clone(),
            hidden_alias: self.hidden_alias.clone(),
            requested_ensure: text(&self.requested_ensure),
            final_ensure: text(&self.final_ensure),
            noop_message: self.noop_message.clone(),
            error: self.error.clone(),
            unmet_requirements: self.unmet_requirements.clone(),
            skip_reason: self.skip_reason.clone(),
            properties: Map::new(),
            status: None,
            diff: None,
            health_check: self.health_check.clone(),
            ..*self
        }
    }

    /// Creates an event for a resource, with nothing else set.
    pub(super) fn begin(kind: &str, name: &str, ids: &mut Ids) -> Self {
        let now = Timestamp::now();
        Self {
            protocol: PROTOCOL.to_owned(),
            event_id: ids.give(now),
            timestamp: now.to_string(),
            kind: kind.to_owned(),
            provider: String::new(),
            name: name.to_owned(),
            alias: None,
            hidden_alias: None,
            requested_ensure: String::new(),
            final_ensure: String::new(),
            duration: 0,
            properties: Map::new(),
            status: None,
            noop_message: None,
            diff: None,
            error: Vec::new(),
            changed: false,
            refreshed: false,
            failed: false,
            skipped: false,
            skip_reason: None,
            noop: false,
            unmet_requirements: Vec::new(),
            health_check: Vec::new(),
            health_check_only: false,
        }
    }
}
