//! The result of a host, made from the events of its run.

use std::{sync::LazyLock, time::Duration};

use jiff::Timestamp;
use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    plans,
    protocol::{End, Stream},
};

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
    /// The reason without the address of the host, to find equal ones.
    pub(crate) common: Option<String>,
    /// Id of the run in the history of the host.
    pub(crate) run: Option<String>,
    pub(crate) batch: Option<usize>,
    pub(crate) exit: Option<u8>,
    pub(crate) summary: Option<Value>,
    /// Output of a command that is not a run.
    pub(crate) output: Option<Value>,
    /// Why the connection broke during the run.
    pub(crate) lost: Option<String>,
    /// The plan that the host made.
    pub(crate) plan: Option<Vec<u8>>,
    pub(crate) changes: Vec<Change>,
}

impl HostResult {
    /// Makes the result of a host on which nothing happened.
    pub(crate) fn without_run(host: &str, outcome: Outcome, reason: Option<String>) -> Self {
        Self {
            host: host.to_owned(),
            outcome,
            reason,
            common: None,
            run: None,
            batch: None,
            exit: None,
            summary: None,
            output: None,
            lost: None,
            plan: None,
            changes: Vec::new(),
        }
    }

    /// Returns the id of a run that the host undoes unless it is confirmed, and how long it waits for that.
    pub(crate) fn awaited(&self) -> Option<(&str, Duration)> {
        let summary = self.summary.as_ref()?;
        let time = |key: &str| summary.get(key)?.as_str()?.parse::<Timestamp>().ok();
        let left = time("end_time")?.duration_until(time("confirm_deadline")?);
        Some((self.run.as_deref()?, Duration::try_from(left).unwrap_or_default()))
    }

    /// Leaves the address out of the reason, for groups of hosts.
    pub(super) fn without_address(self, address: &str) -> Self {
        let is_address = |word: &str| {
            let word = word.trim_matches([':', ',', '.', '[', ']', '\'']);
            word == address || word.rsplit_once('@').is_some_and(|(_, host)| host == address)
        };
        let word = |word: &str| if is_address(word) { "…".to_owned() } else { word.to_owned() };
        let common =
            self.reason.as_ref().map(|reason| reason.split(' ').map(word).collect::<Vec<_>>().join(" "));
        Self { common, ..self }
    }

    /// Replaces the result of a run that was undone.
    pub(crate) fn fail(&mut self, reason: String) {
        (self.outcome, self.reason, self.common) = (Outcome::Failed, Some(reason), None);
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
    plan: Option<Vec<u8>>,
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
        let line = without_workspace(std::mem::take(partial));
        match stream {
            Stream::Err => {
                if self.messages.len() == MESSAGES {
                    self.messages.remove(0);
                }
                self.messages.push(line.clone());
                // The reason of the result has it.
                let is_reason = line.starts_with("error: ");
                Ok(Some(if is_reason { Line::Other } else { Line::Message(line) }))
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
                Some(plans::PROTOCOL) => {
                    plans::add(self.plan.get_or_insert_default(), &object)?;
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

    /// Returns the reason of an error on standard error: the first one with a position, else the last one, else the last line.
    fn problem(&self) -> Option<String> {
        let located = self.messages.iter().find(|line| line.starts_with("error["));
        let error = || self.messages.iter().rev().find(|line| line.starts_with("error"));
        let line = located.or_else(error).or(self.messages.last())?;
        let is_level = |word: &str| word.starts_with("error") || word == "warning";
        let text = line.split_once(": ").filter(|(word, _)| is_level(word)).map(|(_, text)| text);
        let differences = self.differences().map(|differences| format!(": {differences}"));
        Some(format!("{}{}", text.unwrap_or(line), differences.unwrap_or_default()))
    }

    /// Describes the differences from a plan.
    fn differences(&self) -> Option<String> {
        let refusal: Value = serde_json::from_str(&self.output).ok()?;
        let one = |found: &Value| {
            let text = |key: &str| found[key].as_str().unwrap_or_default();
            format!(
                "{}: {} {} (planned: {})",
                text("resource"),
                text("field"),
                text("found"),
                text("planned")
            )
        };
        let found: Vec<String> = refusal["differences"].as_array()?.iter().map(one).collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    /// Makes the result of a run that has ended.
    pub(super) fn end(self, host: &str, end: &End) -> HostResult {
        let run = self.run();
        let unmet =
            self.summary.as_ref().and_then(|summary| summary.get("requirements_unmet_count")?.as_u64());
        let last = self.problem();
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
            common: None,
            run,
            batch: None,
            exit: end.exit,
            summary: self.summary,
            output,
            lost: None,
            plan: self.plan,
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

/// Leaves out the directory of the run's input, whose name is random, so that equal messages of hosts stay equal.
fn without_workspace(line: String) -> String {
    static WORKSPACE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(/[A-Za-z0-9._-]+)+/ccm-push-\d+/\.ccm-[a-z0-9]+\.tmp/(\d+/)?").ok());
    match WORKSPACE.as_ref().filter(|_| line.contains("/ccm-push-")) {
        Some(workspace) => workspace.replace_all(&line, "").into_owned(),
        None => line,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_temporary_directories_are_left_out() {
        for (line, expected) in [
            (
                "cannot read /run/ccm-push-0/.ccm-a7siiz4v2oad.tmp/0/files/motd: gone",
                "cannot read files/motd: gone",
            ),
            ("cannot read /run/user/7/ccm-push-7/.ccm-x1.tmp/plan", "cannot read plan"),
            ("cannot read /run/ccm-push-0/other", "cannot read /run/ccm-push-0/other"),
        ] {
            assert_eq!(without_workspace(line.to_owned()), expected);
        }
    }

    #[test]
    fn reason_is_the_first_error_with_a_position() {
        let mut collected = Collected::default();
        for line in
            ["warning: w", "error[no-identity]: no identity", " --> a.yaml:1:1", "error: 1 error in a.yaml"]
        {
            collected.add(Stream::Err, line, false).unwrap();
        }
        let end = End { n: 5, exit: Some(2), lost: 0 };
        let result = collected.end("web1", &end);
        assert_eq!((result.outcome, result.reason.as_deref()), (Outcome::Refused, Some("no identity")));
    }
}
