//! Summary of a session.

use std::collections::HashMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Event;
use crate::checks::CheckState;

const PROTOCOL: &str = "io.choria.ccm.v1.session.summary";

/// Summary of a session. Each resource counts once, by its last event: as failed, else skipped, else changed, else
/// stable.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Summary {
    /// Always `io.choria.ccm.v1.session.summary`.
    #[schemars(extend("const" = PROTOCOL))]
    pub(crate) protocol: &'static str,
    /// Id of the run in the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) run: Option<String>,
    /// Until when the run has to be confirmed: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) confirm_deadline: Option<String>,
    /// The run that undid changes of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) undo_run: Option<String>,
    /// The run that this run undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) undo_of: Option<String>,
    /// Resources that this run did not undo: maps with `resource` and `reason`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_undone: Vec<Value>,
    /// Start of the session: RFC 3339, UTC.
    pub(crate) start_time: String,
    /// End of the session.
    pub(crate) end_time: String,
    /// Duration in nanoseconds.
    pub(crate) total_duration: u64,
    /// Number of events.
    pub(crate) total_resources: usize,
    /// Number of different resources.
    pub(crate) unique_resources: usize,
    /// Number of resources that were in the desired state.
    pub(crate) stable_resources: usize,
    /// Number of resources that were changed, or would be.
    pub(crate) changed_resources: usize,
    /// Number of resources that failed.
    pub(crate) failed_resources: usize,
    /// Number of resources that were skipped.
    pub(crate) skipped_resources: usize,
    /// Number of resources that were refreshed because a subscribed resource changed.
    pub(crate) refreshed_count: usize,
    /// Number of resources that were skipped because of a failed requirement.
    pub(crate) requirements_unmet_count: usize,
    /// Number of errors in the events.
    pub(crate) total_errors: usize,
    /// Number of resources with health checks.
    pub(crate) health_checked_count: usize,
    /// Number of health checks with status OK.
    pub(crate) health_check_ok_count: usize,
    /// Number of health checks with status WARNING.
    pub(crate) health_check_warning_count: usize,
    /// Number of health checks with status CRITICAL.
    pub(crate) health_check_critical_count: usize,
    /// Number of health checks with status UNKNOWN.
    pub(crate) health_check_unknown_count: usize,
}

impl Summary {
    pub(super) fn of(events: &[Event], started: Timestamp) -> Self {
        let now = Timestamp::now();
        let mut last: HashMap<(&str, &str), &Event> = HashMap::with_capacity(events.len());
        for event in events {
            last.insert((&event.kind, &event.name), event);
        }
        let count = |holds: fn(&Event) -> bool| last.values().filter(|event| holds(event)).count();
        let checks = |state: CheckState| {
            let all = last.values().flat_map(|event| &event.health_check);
            all.filter(|check| check.state == state).count()
        };
        Self {
            protocol: PROTOCOL,
            run: None,
            confirm_deadline: None,
            undo_run: None,
            undo_of: None,
            not_undone: Vec::new(),
            start_time: started.to_string(),
            end_time: now.to_string(),
            total_duration: u64::try_from(now.duration_since(started).as_nanos()).unwrap_or_default(),
            total_resources: events.len(),
            unique_resources: last.len(),
            stable_resources: count(|event| !event.failed && !event.skipped && !event.changed),
            changed_resources: count(|event| !event.failed && !event.skipped && event.changed),
            failed_resources: count(|event| event.failed),
            skipped_resources: count(|event| !event.failed && event.skipped),
            refreshed_count: count(|event| event.refreshed),
            requirements_unmet_count: count(|event| !event.unmet_requirements.is_empty()),
            total_errors: events.iter().map(|event| event.error.len()).sum(),
            health_checked_count: count(|event| !event.health_check.is_empty()),
            health_check_ok_count: checks(CheckState::Ok),
            health_check_warning_count: checks(CheckState::Warning),
            health_check_critical_count: checks(CheckState::Critical),
            health_check_unknown_count: checks(CheckState::Unknown),
        }
    }
}
