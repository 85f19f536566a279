//! Counters and measurements in the text format of Prometheus.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Upper bounds of the buckets of a histogram, in seconds.
const BUCKETS: [f64; 9] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// A counter, gauge, summary or histogram.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: Kind,
    pub(crate) labels: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Summary,
    Histogram,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
        }
    }
}

/// Describes a metric.
pub(crate) const fn metric(
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
) -> Metric {
    Metric { name, help, kind, labels }
}

/// Values of metrics. Nothing is counted unless the metrics will be read.
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
    /// Value of a counter or gauge; sum of a summary or histogram.
    value: f64,
    /// Number of observations in the sum.
    count: u64,
    buckets: [u64; BUCKETS.len()],
}

impl Metrics {
    /// Creates metrics that count.
    pub(crate) fn counting() -> Self {
        Self { families: Some(Mutex::default()) }
    }

    /// Creates metrics that do not count.
    pub(crate) fn idle() -> Self {
        Self { families: None }
    }

    /// Returns whether metrics are counted.
    pub(crate) fn is_counting(&self) -> bool {
        self.families.is_some()
    }

    /// Shows a metric even without a value.
    pub(crate) fn declare(&self, metric: &Metric) {
        self.with(metric, |_| {});
    }

    /// Adds to a counter. Adding 0 creates the counter.
    pub(crate) fn add(&self, metric: &Metric, labels: &[&str], count: u32) {
        self.change(metric, labels, |sample| sample.value += f64::from(count));
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, metric: &Metric, labels: &[&str], value: f64) {
        self.change(metric, labels, |sample| sample.value = value);
    }

    /// Records a duration in a summary or histogram.
    pub(crate) fn observe(&self, metric: &Metric, labels: &[&str], took: Duration) {
        let seconds = took.as_secs_f64();
        self.change(metric, labels, |sample| {
            sample.value += seconds;
            sample.count += 1;
            for (bucket, bound) in sample.buckets.iter_mut().zip(BUCKETS) {
                *bucket += u64::from(seconds <= bound);
            }
        });
    }

    /// Removes all values of a gauge.
    pub(crate) fn clear(&self, metric: &Metric) {
        self.with(metric, |family| family.samples.clear());
    }

    fn change(&self, metric: &Metric, labels: &[&str], change: impl FnOnce(&mut Sample)) {
        self.with(metric, |family| {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            change(family.samples.entry(labels).or_default());
        });
    }

    fn with(&self, metric: &Metric, act: impl FnOnce(&mut Family)) {
        let Some(families) = &self.families else { return };
        let mut families = families.lock().unwrap_or_else(PoisonError::into_inner);
        let Metric { name, help, kind, labels } = *metric;
        act(families.entry(name).or_insert(Family { help, kind, labels, samples: BTreeMap::new() }));
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let Some(families) = &self.families else { return String::new() };
        let families = families.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (name, family) in families.iter() {
            let _ = writeln!(text, "# HELP {name} {}", family.help);
            let _ = writeln!(text, "# TYPE {name} {}", family.kind.word());
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
        if self.kind == Kind::Histogram {
            for (bound, count) in BUCKETS.iter().zip(sample.buckets) {
                let bucket = braced(Some(format!("le=\"{bound}\"")));
                let _ = writeln!(out, "{name}_bucket{bucket} {count}");
            }
            let all = braced(Some("le=\"+Inf\"".to_owned()));
            let _ = writeln!(out, "{name}_bucket{all} {}", sample.count);
        }
        let _ = match self.kind {
            Kind::Counter | Kind::Gauge => writeln!(out, "{name}{own} {}", sample.value),
            Kind::Summary | Kind::Histogram => {
                writeln!(out, "{name}_sum{own} {}\n{name}_count{own} {}", sample.value, sample.count)
            }
        };
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_prometheus_reads_them() {
        const FETCHED: Metric = metric("fetch_count", "Fetches", Kind::Counter, &["from"]);
        const TOOK: Metric = metric("apply_seconds", "Runs", Kind::Summary, &["of"]);
        const LATENCY: Metric = metric("latency_seconds", "Latency", Kind::Histogram, &[]);
        const PAUSE: Metric = metric("pause", "Pauses", Kind::Gauge, &["name"]);
        let metrics = Metrics::counting();
        metrics.add(&FETCHED, &["a \"b\"\n\\"], 2);
        metrics.add(&FETCHED, &["none"], 0);
        metrics.observe(&TOOK, &["x"], Duration::from_millis(1500));
        metrics.observe(&LATENCY, &[], Duration::from_millis(30));
        metrics.set(&PAUSE, &["/x"], 60.0);
        metrics.clear(&PAUSE);
        let text = metrics.text();
        for line in [
            "# TYPE fetch_count counter",
            "fetch_count{from=\"a \\\"b\\\"\\n\\\\\"} 2",
            "fetch_count{from=\"none\"} 0",
            "apply_seconds_sum{of=\"x\"} 1.5",
            "apply_seconds_count{of=\"x\"} 1",
            "latency_seconds_bucket{le=\"0.025\"} 0",
            "latency_seconds_bucket{le=\"0.05\"} 1",
            "latency_seconds_bucket{le=\"+Inf\"} 1",
            "latency_seconds_count 1",
            "# HELP pause Pauses",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("/x"));
        assert_eq!(Metrics::idle().text(), "");
    }
}
