//! The result of a host, made from the events of its run.

use serde::Serialize;
use serde_json::{Map, Value};

use super::protocol::{End, Stream};

/// Bytes of changes that are kept for each host to find equal ones. Beyond that, diffs are left out.
const KEPT: usize = 2 << 20;

/// Bytes of other output that are kept for each host.
const OUTPUT: usize = 16 << 20;

/// Lines on standard error that are kept for each host.
const MESSAGES: usize = 50;

/// How it went on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Ok,
    /// A resource or the run failed.
    Failed,
    /// Only health checks failed.
    Unhealthy,
    /// The host was reached, and nothing was attempted.
    Refused,
    Unreachable,
    /// The host's turn did not come.
    Untouched,
}

impl Outcome {
    pub(crate) const ALL: [Self; 6] =
        [Self::Ok, Self::Failed, Self::Unhealthy, Self::Refused, Self::Unreachable, Self::Untouched];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Unhealthy => "unhealthy",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Untouched => "untouched",
        }
    }
}

/// A change, as far as hosts with the same change agree on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Change {
    pub(crate) resource: String,
    pub(crate) message: String,
    pub(crate) diff: Option<String>,
}

/// Everything that is known about a host at the end.
#[derive(Clone, Debug)]
pub(crate) struct HostResult {
    pub(crate) host: String,
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<String>,
    /// Id of the run in the history of the host.
    pub(crate) run: Option<String>,
    pub(crate) batch: Option<usize>,
    pub(crate) exit: Option<u8>,
    pub(crate) summary: Option<Value>,
    /// Output of a command that is not a run.
    pub(crate) output: Option<Value>,
    pub(crate) changes: Vec<Change>,
}

impl HostResult {
    /// Makes the result of a host on which nothing happened.
    pub(crate) fn without_run(host: &str, outcome: Outcome, reason: Option<String>) -> Self {
        Self {
            host: host.to_owned(),
            outcome,
            reason,
            run: None,
            batch: None,
            exit: None,
            summary: None,
            output: None,
            changes: Vec::new(),
        }
    }
}

/// Events and messages of a run so far.
#[derive(Default)]
pub(super) struct Collected {
    changes: Vec<Change>,
    kept: usize,
    failures: Vec<(String, String)>,
    /// Whether each failure so far is one of a health check.
    only_unhealthy: bool,
    has_failures: bool,
    summary: Option<Value>,
    output: String,
    messages: Vec<String>,
    /// Lines that continue in the next event.
    partial: [String; 2],
}

/// A line that is complete.
pub(super) enum Line {
    /// An event of the run.
    Event(Map<String, Value>),
    /// A message on standard error.
    Message(String),
    Other,
}

impl Collected {
    /// Adds a piece of a line; returns the line if it is complete, and an error if it is too long.
    pub(super) fn add(
        &mut self,
        stream: Stream,
        text: &str,
        more: bool,
    ) -> Result<Option<Line>, &'static str> {
        let partial = &mut self.partial[usize::from(stream == Stream::Err)];
        if partial.len() + text.len() > OUTPUT {
            return Err("a line is too long");
        }
        partial.push_str(text);
        if more {
            return Ok(None);
        }
        let line = std::mem::take(partial);
        match stream {
            Stream::Err => {
                let line = line.strip_prefix("ccm: ").unwrap_or(&line).to_owned();
                if self.messages.len() == MESSAGES {
                    self.messages.remove(0);
                }
                self.messages.push(line.clone());
                Ok(Some(Line::Message(line)))
            }
            Stream::Out => self.out(&line).map(Some),
        }
    }

    fn out(&mut self, line: &str) -> Result<Line, &'static str> {
        let parsed = serde_json::from_str(line).ok();
        let protocol = |object: &Map<String, Value>| object.get("protocol")?.as_str().map(str::to_owned);
        if let Some(Value::Object(object)) = parsed {
            match protocol(&object).as_deref() {
                Some("io.choria.ccm.v1.transaction.event") => {
                    if object.contains_key("host") {
                        return Err("an event names a host");
                    }
                    self.event(&object);
                    return Ok(Line::Event(object));
                }
                Some("io.choria.ccm.v1.session.summary") => {
                    self.summary = Some(Value::Object(object));
                    return Ok(Line::Other);
                }
                _ => {}
            }
        }
        if self.output.len() + line.len() > OUTPUT {
            return Err("the output is too long");
        }
        self.output.push_str(line);
        self.output.push('\n');
        Ok(Line::Other)
    }

    fn event(&mut self, event: &Map<String, Value>) {
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        let is = |key: &str| event.get(key).and_then(Value::as_bool).unwrap_or_default();
        let resource = format!("{}#{}", text("type"), text("name"));
        if is("failed") {
            let errors = event.get("error").and_then(Value::as_array).into_iter().flatten();
            let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
            let is_unhealthy =
                event.get("health_check").and_then(Value::as_array).is_some_and(|checks| !checks.is_empty())
                    && !is("changed")
                    && text("final_ensure") == text("requested_ensure");
            self.only_unhealthy = (self.only_unhealthy || !self.has_failures) && is_unhealthy;
            self.has_failures = true;
            self.failures.push((resource.clone(), errors.join(", ")));
        }
        if !is("changed") && !is("refreshed") {
            return;
        }
        let message = match (event.get("message"), text("noop_message")) {
            (Some(Value::String(message)), _) => message.clone(),
            (_, "") => if is("refreshed") { "refreshed" } else { "changed" }.to_owned(),
            (_, message) => message.to_owned(),
        };
        let diff = event.get("diff").and_then(Value::as_str).map(str::to_owned);
        let size = resource.len() + message.len() + diff.as_ref().map_or(0, String::len);
        let diff = if self.kept + size > KEPT { None } else { diff };
        self.kept += size;
        if self.kept < 2 * KEPT {
            self.changes.push(Change { resource, message, diff });
        }
    }

    /// Returns the id of the run in the history of the host.
    pub(super) fn run(&self) -> Option<String> {
        self.summary.as_ref()?.get("run")?.as_str().map(str::to_owned)
    }

    /// Makes the result of a run that has ended.
    pub(super) fn end(self, host: &str, end: &End) -> HostResult {
        let run = self.run();
        let unmet =
            self.summary.as_ref().and_then(|summary| summary.get("requirements_unmet_count")?.as_u64());
        let last = self.messages.last().cloned();
        let (outcome, reason) = match end.exit {
            _ if end.lost > 0 => (
                Outcome::Failed,
                Some(format!("{} events were lost: no space for them on the host", end.lost)),
            ),
            Some(0 | 3) => (Outcome::Ok, None),
            Some(2) => (Outcome::Refused, Some(last.unwrap_or_else(|| "nothing was attempted".to_owned()))),
            Some(_) => {
                let first = self.failures.first().map(|(resource, error)| format!("{resource}: {error}"));
                let is_unhealthy = self.has_failures && self.only_unhealthy && unmet.unwrap_or(0) == 0;
                let outcome = if is_unhealthy { Outcome::Unhealthy } else { Outcome::Failed };
                (outcome, first.or(last))
            }
            None => (Outcome::Failed, Some("the run was killed".to_owned())),
        };
        let output = self.output.trim();
        let output = (!output.is_empty()).then(|| parsed(output));
        HostResult {
            host: host.to_owned(),
            outcome,
            reason,
            run,
            batch: None,
            exit: end.exit,
            summary: self.summary,
            output,
            changes: self.changes,
        }
    }

    /// Makes the result of a run whose end is not known.
    pub(super) fn cut_off(self, host: &str, outcome: Outcome, reason: String) -> HostResult {
        let run = self.run();
        let changes = self.changes;
        HostResult { run, changes, ..HostResult::without_run(host, outcome, Some(reason)) }
    }
}

/// Reads output as one JSON document, as a list of one document on each line, or as text.
fn parsed(output: &str) -> Value {
    if let Ok(document) = serde_json::from_str(output) {
        return document;
    }
    let lines: Result<Vec<Value>, _> = output.lines().map(serde_json::from_str).collect();
    lines.map_or_else(|_| output.into(), Value::Array)
}
