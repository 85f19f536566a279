//! What came of health checks, as Prometheus reads it.

use std::fmt::Write;

use jiff::Timestamp;

use super::Event;
use crate::checks::{CheckResult, CheckState};

/// Returns the metrics of the checks in these events, in the text format of Prometheus.
pub(crate) fn metrics(events: &[Event]) -> String {
    let checks: Vec<(&Event, &CheckResult)> =
        events.iter().flat_map(|event| event.health_check.iter().map(move |check| (event, check))).collect();
    let mut text = String::new();
    family(&mut text, "duration_seconds", "gauge", "How long the last health check took.");
    for (event, check) in &checks {
        let seconds = std::time::Duration::from_nanos(check.duration).as_secs_f64();
        line(&mut text, "duration_seconds", &labels(event, check), seconds);
    }
    family(&mut text, "status_count", "counter", "How many health checks ended with a status.");
    for (event, check) in &checks {
        for state in CheckState::ALL {
            let labels = format!("{},status=\"{}\"", labels(event, check), state.word());
            line(&mut text, "status_count", &labels, if check.state == state { 1.0 } else { 0.0 });
        }
    }
    family(&mut text, "status", "gauge", "The last status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.");
    for (event, check) in &checks {
        line(&mut text, "status", &labels(event, check), f64::from(check.status));
    }
    family(&mut text, "tries", "gauge", "How many attempts the last health check took.");
    for (event, check) in &checks {
        line(&mut text, "tries", &labels(event, check), f64::from(check.tries));
    }
    family(&mut text, "last_run_timestamp_seconds", "gauge", "When the last health check was made.");
    for (event, check) in &checks {
        let at = event.timestamp.parse::<Timestamp>().map_or(0.0, |at| at.as_duration().as_secs_f64());
        line(&mut text, "last_run_timestamp_seconds", &labels(event, check), at);
    }
    family(
        &mut text,
        "perfdata",
        "gauge",
        "What the last health check measured, in seconds, bytes or as a ratio.",
    );
    for (event, check) in &checks {
        for (item, (value, unit)) in check.perfdata.iter().filter_map(|item| Some((item, item.normalised()?)))
        {
            let labels = format!(
                "{},label=\"{}\",uom=\"{}\"",
                labels(event, check),
                escaped(&item.label),
                escaped(unit)
            );
            line(&mut text, "perfdata", &labels, value);
        }
    }
    text
}

const PREFIX: &str = "choria_ccm_healthcheck_";

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(text, "{PREFIX}{name}{{{labels}}} {value}");
}

fn labels(event: &Event, check: &CheckResult) -> String {
    let [kind, name, check] = [&event.kind, &event.name, &check.name].map(|text| escaped(text));
    format!("type=\"{kind}\",name=\"{name}\",check=\"{check}\"")
}

/// Escapes what would end a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
