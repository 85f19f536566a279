//! Metrics of health checks for Prometheus.

use std::time::Duration;

use jiff::Timestamp;

use super::Event;
use crate::{
    checks::{CheckResult, CheckState},
    metrics::{Kind, Metric, Metrics, metric},
};

const DURATION: Metric = metric(
    "choria_ccm_healthcheck_duration_seconds",
    "How long health checks took",
    Kind::Summary,
    &["type", "name", "check"],
);
const STATUS_COUNT: Metric = metric(
    "choria_ccm_healthcheck_status_count",
    "How many health checks ended with a status",
    Kind::Counter,
    &["type", "name", "check", "status"],
);
const STATUS: Metric = metric(
    "choria_ccm_healthcheck_status",
    "The last status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN",
    Kind::Gauge,
    &["type", "name", "check"],
);
const TRIES: Metric = metric(
    "choria_ccm_healthcheck_tries",
    "How many attempts the last health check took",
    Kind::Gauge,
    &["type", "name", "check"],
);
const LAST_RUN: Metric = metric(
    "choria_ccm_healthcheck_last_run_timestamp_seconds",
    "When the last health check was made",
    Kind::Gauge,
    &["type", "name", "check"],
);
const PERFDATA: Metric = metric(
    "choria_ccm_healthcheck_perfdata",
    "What the last health check measured, in seconds, bytes or as a ratio",
    Kind::Gauge,
    &["type", "name", "check", "label", "uom"],
);

/// All metrics of health checks.
pub(crate) const CHECK_METRICS: [&Metric; 6] =
    [&DURATION, &STATUS_COUNT, &STATUS, &TRIES, &LAST_RUN, &PERFDATA];

/// Returns the metrics of the checks in these events, in the text format of Prometheus.
pub(crate) fn metrics(events: &[Event]) -> String {
    let metrics = Metrics::counting();
    for metric in CHECK_METRICS {
        metrics.declare(metric);
    }
    for event in events {
        count_checks(&metrics, event, &event.name);
    }
    metrics.text()
}

/// Counts the results of the checks of the resource called `name`.
pub(crate) fn count_checks(metrics: &Metrics, event: &Event, name: &str) {
    let at = event.timestamp.parse::<Timestamp>().map_or(0.0, |at| at.as_duration().as_secs_f64());
    for result in &event.health_check {
        let CheckResult { name: check, state, status, tries, duration, perfdata, .. } = result;
        let labels @ [kind, name, check] = [event.kind.as_str(), name, check.as_str()];
        metrics.observe(&DURATION, &labels, Duration::from_nanos(*duration));
        for known in CheckState::ALL {
            metrics.add(&STATUS_COUNT, &[kind, name, check, known.word()], u32::from(known == *state));
        }
        metrics.set(&STATUS, &labels, f64::from(*status));
        metrics.set(&TRIES, &labels, f64::from(*tries));
        metrics.set(&LAST_RUN, &labels, at);
        for (item, (value, unit)) in perfdata.iter().filter_map(|item| Some((item, item.normalised()?))) {
            metrics.set(&PERFDATA, &[kind, name, check, &item.label, unit], value);
        }
    }
}
