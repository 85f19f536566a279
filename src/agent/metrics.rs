//! What is counted and measured, under the names that the Go original uses, so that dashboards go on working.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::session::Event;

const PREFIX: &str = "choria_ccm_";

/// The bounds of the histogram's buckets, in seconds.
const BUCKETS: [f64; 9] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Something that is counted or measured.
pub(crate) struct Metric {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Summary,
    Histogram,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
        }
    }
}

const fn metric(
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
) -> Metric {
    Metric { name, help, kind, labels }
}

pub(crate) const MANIFEST_APPLY: Metric =
    metric("manifest_apply_duration_seconds", "How long manifests took to apply", Kind::Summary, &["source"]);
pub(crate) const RESOURCE_APPLY: Metric = metric(
    "resource_apply_duration_seconds",
    "How long resources took to apply",
    Kind::Summary,
    &["type", "provider", "name"],
);
pub(crate) const AGENT_APPLY: Metric = metric(
    "agent_apply_duration_seconds",
    "How long the agent took to apply a manifest",
    Kind::Summary,
    &["manifest"],
);
pub(crate) const DATA_RESOLVE: Metric = metric(
    "agent_data_resolve_duration_seconds",
    "How long manifests and their data took to load",
    Kind::Summary,
    &[],
);
pub(crate) const DATA_RESOLVE_ERROR: Metric =
    metric("agent_data_resolve_error_count", "How often data could not be fetched", Kind::Counter, &["url"]);
pub(crate) const FACTS_RESOLVE: Metric =
    metric("agent_facts_resolve_duration_seconds", "How long facts took to gather", Kind::Summary, &[]);
pub(crate) const FACTS_RESOLVE_ERROR: Metric =
    metric("agent_facts_resolve_error_count", "How often facts could not be gathered", Kind::Counter, &[]);
pub(crate) const FETCH: Metric =
    metric("agent_manifest_fetch_count", "How often new content was fetched", Kind::Counter, &["manifest"]);
pub(crate) const FETCH_ERROR: Metric = metric(
    "agent_manifest_fetch_error_count",
    "How often a source had no answer or bad content",
    Kind::Counter,
    &["manifest"],
);
pub(crate) const SOURCE_AGE: Metric = metric(
    "agent_source_age_seconds",
    "How long ago the content in force was fetched",
    Kind::Gauge,
    &["source"],
);
pub(crate) const SOURCE_STALE: Metric = metric(
    "agent_source_stale",
    "Whether the content in force may be older than the source's",
    Kind::Gauge,
    &["source"],
);
pub(crate) const REPAIR_LATENCY: Metric = metric(
    "agent_repair_latency_seconds",
    "How long it took from noticing drift to having repaired it",
    Kind::Histogram,
    &[],
);
pub(crate) const BACKOFF: Metric =
    metric("agent_backoff", "Resources that are left alone for a while", Kind::Gauge, &["type", "name"]);
pub(crate) const LAST_RUN: Metric =
    metric("agent_last_run_timestamp_seconds", "When the last run ended", Kind::Gauge, &[]);
pub(crate) const BUILD: Metric =
    metric("build_info", "The version of the program", Kind::Gauge, &["version"]);

const STATES: [Metric; 8] = [
    metric("resource_state_changed_count", "Resources that were changed", Kind::Counter, &["type", "name"]),
    metric(
        "resource_state_refreshed_count",
        "Resources that acted because others changed",
        Kind::Counter,
        &["type", "name"],
    ),
    metric(
        "resource_state_failed_count",
        "Resources whose state could not be reached",
        Kind::Counter,
        &["type", "name"],
    ),
    metric("resource_state_error_count", "Errors of resources", Kind::Counter, &["type", "name"]),
    metric(
        "resource_state_skipped_count",
        "Resources that were passed over",
        Kind::Counter,
        &["type", "name"],
    ),
    metric(
        "resource_state_noop_count",
        "Resources that were only looked at",
        Kind::Counter,
        &["type", "name"],
    ),
    metric("resource_state_total_count", "Resources that had a turn", Kind::Counter, &["type", "name"]),
    metric("resource_state_stable_count", "Resources that were as desired", Kind::Counter, &["type", "name"]),
];

/// Returns everything that can be counted: its name, kind, labels and meaning.
#[cfg(test)]
pub(crate) fn described() -> Vec<(String, &'static str, &'static [&'static str], &'static str)> {
    let all = [
        &MANIFEST_APPLY,
        &RESOURCE_APPLY,
        &AGENT_APPLY,
        &DATA_RESOLVE,
        &DATA_RESOLVE_ERROR,
        &FACTS_RESOLVE,
        &FACTS_RESOLVE_ERROR,
        &FETCH,
        &FETCH_ERROR,
        &SOURCE_AGE,
        &SOURCE_STALE,
        &REPAIR_LATENCY,
        &BACKOFF,
        &LAST_RUN,
        &BUILD,
    ];
    let all = all.into_iter().chain(&STATES);
    all.map(|metric| (format!("{PREFIX}{}", metric.name), metric.kind.word(), metric.labels, metric.help))
        .collect()
}

/// What is counted so far. Nothing is, unless somebody will ask for it.
pub(crate) struct Metrics {
    families: Option<Mutex<BTreeMap<&'static str, Family>>>,
}

struct Family {
    help: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    samples: BTreeMap<Vec<String>, Sample>,
}

#[derive(Clone, Default)]
struct Sample {
    sum: f64,
    count: u64,
    buckets: [u64; BUCKETS.len()],
}

impl Metrics {
    /// Counts from now on.
    pub(crate) fn counting() -> Self {
        let metrics = Self { families: Some(Mutex::default()) };
        metrics.set(&BUILD, &[env!("CARGO_PKG_VERSION")], 1.0);
        metrics
    }

    /// Counts nothing.
    pub(crate) fn idle() -> Self {
        Self { families: None }
    }

    pub(crate) fn add(&self, metric: &Metric, labels: &[&str], count: u64) {
        self.change(metric, labels, |sample| sample.count += count);
    }

    pub(crate) fn set(&self, metric: &Metric, labels: &[&str], value: f64) {
        self.change(metric, labels, |sample| sample.sum = value);
    }

    pub(crate) fn observe(&self, metric: &Metric, labels: &[&str], took: Duration) {
        let seconds = took.as_secs_f64();
        self.change(metric, labels, |sample| {
            sample.sum += seconds;
            sample.count += 1;
            for (bucket, bound) in sample.buckets.iter_mut().zip(BUCKETS) {
                *bucket += u64::from(seconds <= bound);
            }
        });
    }

    /// Forgets all values of a gauge.
    pub(crate) fn clear(&self, metric: &Metric) {
        let Some(families) = &self.families else { return };
        let mut families = families.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(family) = families.get_mut(metric.name) {
            family.samples.clear();
        }
    }

    /// Counts what became of a resource. The name of a sensitive one is not told.
    pub(crate) fn count_event(&self, event: &Event, sensitive: bool) {
        if self.families.is_none() {
            return;
        }
        let name = if sensitive { "hidden" } else { event.name.as_str() };
        let took = Duration::from_nanos(event.duration);
        self.observe(&RESOURCE_APPLY, &[&event.kind, &event.provider, name], took);
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
            self.add(metric, &[&event.kind, name], 1);
        }
    }

    fn change(&self, metric: &Metric, labels: &[&str], change: impl FnOnce(&mut Sample)) {
        let Some(families) = &self.families else { return };
        let mut families = families.lock().unwrap_or_else(PoisonError::into_inner);
        let Metric { name, help, kind, labels: names } = *metric;
        let family =
            families.entry(name).or_insert(Family { help, kind, labels: names, samples: BTreeMap::new() });
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        change(family.samples.entry(labels).or_default());
    }

    /// Returns everything in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let Some(families) = &self.families else { return String::new() };
        let families = families.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (name, family) in families.iter() {
            let _ = writeln!(text, "# HELP {PREFIX}{name} {}", family.help);
            let _ = writeln!(text, "# TYPE {PREFIX}{name} {}", family.kind.word());
            for (values, sample) in &family.samples {
                family.write(name, values, sample, &mut text);
            }
        }
        text
    }
}

impl Family {
    fn write(&self, name: &str, values: &[String], sample: &Sample, out: &mut String) {
        let labels: Vec<String> = self
            .labels
            .iter()
            .zip(values)
            .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
            .collect();
        let braced = |more: Option<String>| {
            let all: Vec<String> = labels.iter().cloned().chain(more).collect();
            if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
        };
        let own = braced(None);
        let _ = match self.kind {
            Kind::Counter => writeln!(out, "{PREFIX}{name}{own} {}", sample.count),
            Kind::Gauge => writeln!(out, "{PREFIX}{name}{own} {}", sample.sum),
            Kind::Summary | Kind::Histogram => {
                if self.kind == Kind::Histogram {
                    for (bound, count) in BUCKETS.iter().zip(sample.buckets) {
                        let bucket = braced(Some(format!("le=\"{bound}\"")));
                        let _ = writeln!(out, "{PREFIX}{name}_bucket{bucket} {count}");
                    }
                    let all = braced(Some("le=\"+Inf\"".to_owned()));
                    let _ = writeln!(out, "{PREFIX}{name}_bucket{all} {}", sample.count);
                }
                writeln!(out, "{PREFIX}{name}_sum{own} {}", sample.sum)
                    .and_then(|()| writeln!(out, "{PREFIX}{name}_count{own} {}", sample.count))
            }
        };
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::counting();
        metrics.add(&FETCH, &["a \"b\"\n\\"], 2);
        metrics.observe(&AGENT_APPLY, &["x"], Duration::from_millis(1500));
        metrics.observe(&REPAIR_LATENCY, &[], Duration::from_millis(30));
        metrics.set(&BACKOFF, &["file", "/x"], 60.0);
        metrics.clear(&BACKOFF);
        let text = metrics.text();
        for line in [
            "# TYPE choria_ccm_agent_manifest_fetch_count counter",
            "choria_ccm_agent_manifest_fetch_count{manifest=\"a \\\"b\\\"\\n\\\\\"} 2",
            "choria_ccm_agent_apply_duration_seconds_sum{manifest=\"x\"} 1.5",
            "choria_ccm_agent_apply_duration_seconds_count{manifest=\"x\"} 1",
            "choria_ccm_agent_repair_latency_seconds_bucket{le=\"0.025\"} 0",
            "choria_ccm_agent_repair_latency_seconds_bucket{le=\"0.05\"} 1",
            "choria_ccm_agent_repair_latency_seconds_bucket{le=\"+Inf\"} 1",
            "choria_ccm_agent_repair_latency_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("/x"));
        assert_eq!(Metrics::idle().text(), "");
    }
}
