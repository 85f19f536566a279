//! Observed states and the reasons for changes, for `-vv`.

use serde_json::{Map, Value};

use super::line::{length, shortened};
use crate::{
    engine::{Report, RunMode},
    resource::Difference,
    visible::visible_line,
};

/// Maximum width of a value.
const LONGEST_VALUE: usize = 64;

/// Keys that the line of the resource already shows.
const SAID: [&str; 4] = ["name", "protocol", "type", "provider"];

/// Returns the lines about a resource, each with its heading.
pub(super) fn explained(report: &Report, mode: RunMode, width: usize) -> Vec<String> {
    let event = &report.event;
    let mut lines: Vec<String> =
        why(report).map(|why| format!("why: {}", visible_line(&why))).into_iter().collect();
    lines.extend(listed("asked for", &event.properties, width));
    if let Some(status) = &event.status {
        let metadata = status.get("metadata").and_then(Value::as_object).unwrap_or(status);
        let heading = if event.changed && mode == RunMode::Real { "left as" } else { "found" };
        lines.extend(listed(heading, metadata, width));
    }
    lines
}

/// Returns why something was done or not, if the line of the resource does not say it.
fn why(report: &Report) -> Option<String> {
    let event = &report.event;
    let sensitive = report.resource.is_sensitive();
    let differs = |difference: &Difference| match &difference.values {
        Some(values) if !sensitive => {
            format!("{} was {}, wanted {}", difference.property, values.have, values.want)
        }
        _ => format!("{} differed", difference.property),
    };
    let mut reasons: Vec<String> = report.differences.iter().map(differs).collect();
    reasons.extend(report.causes.iter().map(|cause| format!("{cause} changed")));
    match report.before.as_deref() {
        _ if !reasons.is_empty() => Some(reasons.join("; ")),
        // A command is nothing that is there or not.
        Some(before) if event.changed && !report.resource.kind.behavior().refreshes => {
            Some(format!("it was {before}, wanted {}", event.requested_ensure))
        }
        Some(_) if !event.changed && !event.failed => Some("nothing differs".to_owned()),
        _ => None,
    }
}

/// Returns what a map holds, in as many lines as the width needs.
fn listed(heading: &str, map: &Map<String, Value>, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = format!("{heading}:");
    for (key, value) in map.iter().filter(|(key, _)| !SAID.contains(&key.as_str())) {
        let text = match value {
            Value::Null => continue,
            Value::String(text) if text.is_empty() => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let pair = format!(" {key}={}", shortened(&visible_line(&text), LONGEST_VALUE));
        if length(&line) + length(&pair) > width {
            lines.push(std::mem::replace(&mut line, " ".to_owned()));
        }
        line.push_str(&pair);
    }
    lines.push(line);
    // A heading with nothing below it says nothing.
    if lines.iter().any(|line| line.contains('=')) { lines } else { Vec::new() }
}
