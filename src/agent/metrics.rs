//! What the agent counts and measures, under the names that the Go original uses, so that dashboards go on working.

use std::time::Duration;

use crate::{
    metrics::{Kind, Metric, Metrics, metric},
    session::{self, Event},
};

pub(crate) const MANIFEST_APPLY: Metric = metric(
    "choria_ccm_manifest_apply_duration_seconds",
    "How long manifests took to apply",
    Kind::Summary,
    &["source"],
);
pub(crate) const RESOURCE_APPLY: Metric = metric(
    "choria_ccm_resource_apply_duration_seconds",
    "How long resources took to apply",
    Kind::Summary,
    &["type", "provider", "name"],
);
pub(crate) const AGENT_APPLY: Metric = metric(
    "choria_ccm_agent_apply_duration_seconds",
    "How long the agent took to apply a manifest",
    Kind::Summary,
    &["manifest"],
);
pub(crate) const HEALTH_CHECKS: Metric = metric(
    "choria_ccm_agent_healthcheck_duration_seconds",
    "How long the health checks of a manifest took",
    Kind::Summary,
    &["manifests"],
);
pub(crate) const REMEDIES: Metric = metric(
    "choria_ccm_agent_healthcheck_remediations_count",
    "How often a manifest was applied because a health check was critical",
    Kind::Counter,
    &["manifest"],
);
pub(crate) const FACTS_GATHER: Metric = metric(
    "choria_ccm_facts_gather_duration_seconds",
    "How long facts took to gather while manifests were loaded",
    Kind::Summary,
    &[],
);
pub(crate) const DATA_RESOLVE: Metric = metric(
    "choria_ccm_agent_data_resolve_duration_seconds",
    "How long manifests and their data took to load",
    Kind::Summary,
    &[],
);
pub(crate) const DATA_RESOLVE_ERROR: Metric = metric(
    "choria_ccm_agent_data_resolve_error_count",
    "How often data could not be fetched",
    Kind::Counter,
    &["url"],
);
pub(crate) const FACTS_RESOLVE: Metric = metric(
    "choria_ccm_agent_facts_resolve_duration_seconds",
    "How long a run took to find out where facts and data are",
    Kind::Summary,
    &[],
);
pub(crate) const FACTS_RESOLVE_ERROR: Metric = metric(
    "choria_ccm_agent_facts_resolve_error_count",
    "How often facts could not be gathered",
    Kind::Counter,
    &[],
);
pub(crate) const FETCH: Metric = metric(
    "choria_ccm_agent_manifest_fetch_count",
    "How often new content was fetched",
    Kind::Counter,
    &["manifest"],
);
pub(crate) const FETCH_ERROR: Metric = metric(
    "choria_ccm_agent_manifest_fetch_error_count",
    "How often a source had no answer or bad content",
    Kind::Counter,
    &["manifest"],
);
pub(crate) const SOURCE_AGE: Metric = metric(
    "choria_ccm_agent_source_age_seconds",
    "How long ago the content in force was fetched",
    Kind::Gauge,
    &["source"],
);
pub(crate) const SOURCE_STALE: Metric = metric(
    "choria_ccm_agent_source_stale",
    "Whether the content in force may be older than the source's",
    Kind::Gauge,
    &["source"],
);
pub(crate) const NOT_APPLIED: Metric = metric(
    "choria_ccm_agent_manifest_not_applied",
    "Whether the last run could not load the manifest, for example because no key decrypts its data",
    Kind::Gauge,
    &["manifest"],
);
pub(crate) const REPAIR_LATENCY: Metric = metric(
    "choria_ccm_agent_repair_latency_seconds",
    "How long it took from noticing drift to having repaired it",
    Kind::Histogram,
    &[],
);
pub(crate) const BACKOFF: Metric = metric(
    "choria_ccm_agent_backoff",
    "Resources that are left alone for a while",
    Kind::Gauge,
    &["type", "name"],
);
pub(crate) const LAST_RUN: Metric =
    metric("choria_ccm_agent_last_run_timestamp_seconds", "When the last run ended", Kind::Gauge, &[]);
pub(crate) const BUILD: Metric =
    metric("choria_ccm_build_info", "The version of the program", Kind::Gauge, &["version"]);

const STATES: [Metric; 8] = [
    metric(
        "choria_ccm_resource_state_changed_count",
        "Resources that were changed",
        Kind::Counter,
        &["type", "name"],
    ),
    metric(
        "choria_ccm_resource_state_refreshed_count",
        "Resources that acted because others changed",
        Kind::Counter,
        &["type", "name"],
    ),
    metric(
        "choria_ccm_resource_state_failed_count",
        "Resources whose state could not be reached",
        Kind::Counter,
        &["type", "name"],
    ),
    metric("choria_ccm_resource_state_error_count", "Errors of resources", Kind::Counter, &["type", "name"]),
    metric(
        "choria_ccm_resource_state_skipped_count",
        "Resources that were passed over",
        Kind::Counter,
        &["type", "name"],
    ),
    metric(
        "choria_ccm_resource_state_noop_count",
        "Resources that were only looked at",
        Kind::Counter,
        &["type", "name"],
    ),
    metric(
        "choria_ccm_resource_state_total_count",
        "Resources that had a turn",
        Kind::Counter,
        &["type", "name"],
    ),
    metric(
        "choria_ccm_resource_state_stable_count",
        "Resources that were as desired",
        Kind::Counter,
        &["type", "name"],
    ),
];

/// Returns everything that can be counted: its name, kind, labels and meaning.
#[cfg(test)]
pub(crate) fn described() -> Vec<&'static Metric> {
    let all = [
        &MANIFEST_APPLY,
        &RESOURCE_APPLY,
        &AGENT_APPLY,
        &HEALTH_CHECKS,
        &REMEDIES,
        &FACTS_GATHER,
        &DATA_RESOLVE,
        &DATA_RESOLVE_ERROR,
        &FACTS_RESOLVE,
        &FACTS_RESOLVE_ERROR,
        &FETCH,
        &FETCH_ERROR,
        &SOURCE_AGE,
        &SOURCE_STALE,
        &NOT_APPLIED,
        &REPAIR_LATENCY,
        &BACKOFF,
        &LAST_RUN,
        &BUILD,
    ];
    all.into_iter().chain(&STATES).chain(session::CHECK_METRICS).collect()
}

/// Counts what became of a resource. The name of a sensitive one is not told.
pub(crate) fn count_event(metrics: &Metrics, event: &Event, sensitive: bool) {
    if !metrics.is_counting() {
        return;
    }
    let name = shown_name(event, sensitive);
    let took = Duration::from_nanos(event.duration);
    metrics.observe(&RESOURCE_APPLY, &[&event.kind, &event.provider, name], took);
    let is_stable = !event.changed && !event.failed && !event.skipped;
    let counts = [
        event.changed,
        event.refreshed,
        event.failed,
        !event.error.is_empty(),
        event.skipped,
        event.noop,
        true,
        is_stable,
    ];
    for (metric, _) in STATES.iter().zip(counts).filter(|(_, counts)| *counts) {
        metrics.add(metric, &[&event.kind, name], 1);
    }
    count_checks(metrics, event, sensitive);
}

/// Counts what came of the health checks of a resource.
pub(crate) fn count_checks(metrics: &Metrics, event: &Event, sensitive: bool) {
    if metrics.is_counting() {
        session::count_checks(metrics, event, shown_name(event, sensitive));
    }
}

fn shown_name(event: &Event, sensitive: bool) -> &str {
    if sensitive { "hidden" } else { &event.name }
}
