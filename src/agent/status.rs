//! What `ccm agent status` shows.

use jiff::Timestamp;
use serde::Serialize;

use super::{intake::Slot, round::Outcome};
use crate::checks::CheckState;

pub(crate) const PROTOCOL: &str = "io.choria.ccm.v1.agent.status";

/// How an agent is doing.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    pub(crate) protocol: &'static str,
    pub(crate) version: &'static str,
    pub(crate) pid: u32,
    pub(crate) started: Timestamp,
    /// The file that the configuration was read from.
    pub(crate) config: String,
    pub(crate) manifests: Vec<SourceStatus>,
    /// The data that goes over that of the manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<SourceStatus>,
    pub(crate) next_run: Option<Timestamp>,
    pub(crate) nats: Option<NatsStatus>,
    /// How many directories are watched.
    pub(crate) watching: usize,
    pub(crate) pauses: Vec<PauseStatus>,
}

/// How a source and what is in force of it are doing.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SourceStatus {
    pub(crate) source: String,
    pub(crate) digest: Option<String>,
    pub(crate) fetched: Option<Timestamp>,
    /// Whether what is in force may be older than what the source has.
    pub(crate) stale: bool,
    /// Why it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    pub(crate) last_run: Option<Timestamp>,
    /// How many resources failed in the last run.
    pub(crate) failed: usize,
    /// The worst state of its health checks when they were made last between runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) health: Option<CheckState>,
    /// Why it was not applied at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// Whether there is a connection to NATS.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NatsStatus {
    pub(crate) connected: bool,
    pub(crate) server: String,
}

/// A resource that is left alone for a while.
#[derive(Debug, Serialize)]
pub(crate) struct PauseStatus {
    pub(crate) resource: String,
    pub(crate) manifest: String,
    pub(crate) until: Timestamp,
}

impl SourceStatus {
    pub(super) fn of(slot: &Slot, last: Option<&(Timestamp, Outcome)>, health: Option<CheckState>) -> Self {
        let outcome = last.map(|(_, outcome)| outcome);
        Self {
            source: slot.address.to_string(),
            digest: slot.digest().map(str::to_owned),
            fetched: slot.fetched(),
            stale: slot.is_stale(),
            problem: slot.problem(),
            last_run: last.map(|(at, _)| *at),
            failed: outcome.map(|outcome| outcome.failed).unwrap_or_default(),
            health,
            error: outcome.and_then(|outcome| outcome.error.clone()),
        }
    }
}
