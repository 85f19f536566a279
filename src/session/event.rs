//! The record of one resource in one run.

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
    /// A unique id. Ids sort by the second that they were given in, and those of one run by the order of its events.
    pub(crate) event_id: String,
    /// When it was recorded: RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub(crate) timestamp: String,
    /// The resource's type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The provider that was used; empty when it did not come to that.
    pub(crate) provider: String,
    /// The resource's name.
    pub(crate) name: String,
    /// The resource's second name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) alias: Option<String>,
    /// The second name of a sensitive resource: later resources of the same process refer to it, and nobody sees it.
    #[serde(skip)]
    pub(crate) hidden_alias: Option<String>,
    /// The state that was asked for.
    pub(crate) requested_ensure: String,
    /// The state that was observed at the end; empty when it is not known.
    pub(crate) final_ensure: String,
    /// How long it took, in nanoseconds.
    pub(crate) duration: u64,
    /// The properties that were asked for; of a sensitive resource only its name and desired state.
    pub(crate) properties: Map<String, Value>,
    /// What was observed at the end.
    pub(crate) status: Option<Map<String, Value>>,
    /// What a real run would have done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) noop_message: Option<String>,
    /// The change of content as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) diff: Option<String>,
    /// Why it failed, and what to do about it.
    pub(crate) error: Vec<String>,
    /// Whether something was changed; in a dry run, whether something would have been.
    pub(crate) changed: bool,
    /// Whether it acted because a subscribed resource changed.
    pub(crate) refreshed: bool,
    /// Whether the desired state could not be reached.
    pub(crate) failed: bool,
    /// Whether it was passed over: by its `control`, for an unmet requirement, or because it was not selected.
    pub(crate) skipped: bool,
    /// Why it was passed over other than for an unmet requirement: the condition of its `control`, or `not selected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) skip_reason: Option<String>,
    /// Whether this was a dry run.
    pub(crate) noop: bool,
    /// The required resources that failed or were skipped.
    pub(crate) unmet_requirements: Vec<String>,
    /// What came of its health checks; left out when none were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) health_check: Vec<CheckResult>,
    /// Whether nothing but health checks was asked for; left out when more was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) health_check_only: bool,
}

impl Event {
    /// Whether it is to be taken into account in such a run: what a dry run foresaw did not happen.
    pub(crate) fn counts(&self, mode: RunMode) -> bool {
        mode == RunMode::Noop || !self.noop
    }

    /// The same event without properties, state and diff, which may be large.
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

    /// An event of which nothing is known yet but whom it is about.
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
