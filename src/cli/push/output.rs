//! Output of a push: failures immediately, and at the end one diff for each group of hosts.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    super::{
        failure::{error, plain, warn},
        output::Output,
        progress::Progress,
        report::{Format, Verbosity, diff_line},
    },
    live::Live,
};
use crate::{
    push::{Finished, HostResult, Outcome, groups, ranges},
    secrets::{check_recipient, normal},
    visible::visible_line,
};

/// Prints a push as it happens.
pub(super) struct Show<'o> {
    output: &'o mut Output,
    format: Format,
    verbosity: Verbosity,
    kind: Kind,
    live: Option<Live>,
}

/// What a command prints on each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The events of a run.
    Run,
    Document,
    /// A list of documents.
    List,
    /// Recipients of encrypted data.
    Recipients,
}

impl<'o> Show<'o> {
    pub(super) fn new(
        output: &'o mut Output,
        format: Format,
        verbosity: Verbosity,
        total: usize,
        kind: Kind,
    ) -> Self {
        let is_live = format == Format::Text && verbosity > Verbosity::Quiet;
        let live = is_live.then(|| Live::begin(total, &output.progress));
        Self { output, format, verbosity, kind, live }
    }

    /// Returns the lines that give way to questions.
    pub(super) fn progress_line(&self) -> &Arc<Progress> {
        &self.output.progress
    }

    fn json(&mut self, document: &Value) {
        self.output.line(&document.to_string());
        self.output.flush();
    }

    /// Prints groups and counts. `run` is the id of the push in the history, `resume` the command that continues, and `plans` the
    /// directory of the plans.
    pub(super) fn end(
        mut self,
        finished: &Finished,
        run: Option<&str>,
        resume: Option<&str>,
        plans: Option<&Path>,
    ) {
        self.live = None;
        self.output.progress.end();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for result in &finished.results {
            *counts.entry(result.outcome.name()).or_default() += 1;
        }
        if self.format == Format::Json {
            return self.summary(finished, &counts, run, resume);
        }
        if self.kind == Kind::Recipients {
            return self.recipients(finished);
        }
        self.groups(finished);
        let listed: Vec<String> = Outcome::ALL
            .into_iter()
            .filter_map(|outcome| Some(format!("{} {}", counts.get(outcome.name())?, outcome.name())))
            .collect();
        let total = finished.results.len();
        let noun = if total == 1 { "host" } else { "hosts" };
        if self.verbosity > Verbosity::Quiet {
            self.output.styled(&format!("{total} {noun}: {}", listed.join(", ")));
        }
        if let Some(directory) = plans {
            self.output.message(&format!("plans written to {}", directory.display()));
        }
        if let Some(reason) = &finished.stopped {
            self.output.message(&format!("stopped: {reason}"));
        }
        if let Some(resume) = resume {
            self.output.message(&format!("continue with: {resume}"));
        }
        self.output.flush();
    }

    fn summary(
        &mut self,
        finished: &Finished,
        counts: &BTreeMap<&str, usize>,
        run: Option<&str>,
        resume: Option<&str>,
    ) {
        let is_open = |result: &&HostResult| result.outcome == Outcome::Untouched && result.reason.is_none();
        for result in finished.results.iter().filter(is_open) {
            self.json(&host(result, self.kind));
        }
        let mut all: Map<String, Value> = Map::new();
        all.insert("total".to_owned(), finished.results.len().into());
        for outcome in Outcome::ALL {
            all.insert(outcome.name().to_owned(), counts.get(outcome.name()).copied().unwrap_or(0).into());
        }
        let groups: Vec<Value> = groups(&finished.results)
            .iter()
            .map(|group| {
                let change = |change: &crate::push::Change| json!({ "resource": change.resource, "message": change.message });
                let mut document = json!({
                    "hosts": group.hosts,
                    "range": group.range(),
                    "result": group.outcome,
                });
                if let Some(reason) = group.reason {
                    document["reason"] = reason.into();
                }
                document["changes"] = group.changes.iter().map(change).collect();
                document
            })
            .collect();
        let mut summary = json!({ "protocol": "io.choria.ccm.v1.push.summary", "run": run, "counts": all, "groups": groups });
        if let Some(resume) = resume {
            summary["resume"] = resume.into();
        }
        self.json(&summary);
    }

    fn groups(&mut self, finished: &Finished) {
        if self.kind != Kind::Run {
            return self.outputs(finished);
        }
        for group in groups(&finished.results) {
            let (name, range) = (group.outcome.name(), visible_line(&group.range()).into_owned());
            let is_changed = !group.changes.is_empty();
            if group.outcome == Outcome::Ok && (self.verbosity == Verbosity::Quiet || !is_changed) {
                if self.verbosity > Verbosity::Quiet {
                    self.output.styled(&format!("{range}: unchanged"));
                }
                continue;
            }
            let count = group.hosts.len();
            let heading = if count == 1 { range } else { format!("{range} ({count} hosts)") };
            let heading = if group.outcome == Outcome::Ok { heading } else { format!("{heading}: {name}") };
            self.output.styled(&heading);
            if let Some(reason) = group.reason {
                self.output.styled(&format!("      {}", visible_line(reason)));
            }
            for change in group.changes {
                let (resource, message) = (visible_line(&change.resource), visible_line(&change.message));
                self.output.styled(&format!("~ {resource} {message}"));
                for line in change.diff.as_deref().unwrap_or_default().split_terminator('\n') {
                    self.output.styled(&diff_line(line));
                }
            }
            self.output.styled("");
        }
    }

    /// Prints the outputs of commands, equal ones once.
    fn outputs(&mut self, finished: &Finished) {
        let mut same: Vec<(Vec<String>, String)> = Vec::new();
        for result in &finished.results {
            let text = match (&result.output, &result.reason) {
                (Some(Value::String(text)), _) => text.clone(),
                (Some(output), _) => serde_saphyr::to_string(output).unwrap_or_else(|_| output.to_string()),
                (None, Some(reason)) => format!("{}: {reason}", result.outcome.name()),
                (None, None) => result.outcome.name().to_owned(),
            };
            match same.iter_mut().find(|(_, other)| *other == text) {
                Some((hosts, _)) => hosts.push(result.host.clone()),
                None => same.push((vec![result.host.clone()], text)),
            }
        }
        for (hosts, text) in same {
            self.output.styled(&format!("{}:", visible_line(&ranges(&hosts))));
            for line in text.lines() {
                self.output.styled(&format!("  {}", visible_line(line)));
            }
        }
    }

    /// Prints the recipients of hosts as `.sops.yaml` lists them, each with the name of its host.
    fn recipients(&mut self, finished: &Finished) {
        for HostResult { host, outcome, reason, output, .. } in &finished.results {
            let found = output.as_ref().and_then(|output| output["recipients"].as_array());
            let found: Vec<String> =
                found.into_iter().flatten().filter_map(Value::as_str).filter_map(recipient).collect();
            if found.is_empty() {
                let reason = reason.as_deref().unwrap_or("the host has no recipient");
                warn(&format!("{host}: {}: {}", outcome.name(), visible_line(reason)));
            }
            for recipient in found {
                self.output.line(&visible_line(&format!("{recipient} {host}")));
            }
        }
        self.output.flush();
    }
}

impl Show<'_> {
    pub(super) fn started(&mut self, host: &str) {
        if let Some(live) = &self.live {
            live.started(host);
        }
    }

    pub(super) fn event(&mut self, host: &str, mut event: Map<String, Value>) {
        if self.format == Format::Json {
            event.remove("message");
            event.insert("host".to_owned(), host.into());
            return self.json(&Value::Object(event));
        }
        let is_failed = event.get("failed") == Some(&true.into());
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(live) = &self.live {
            live.resource(host, &format!("{}#{}", text("type"), text("name")));
        }
        if is_failed {
            let errors = event.get("error").and_then(Value::as_array).cloned().unwrap_or_default();
            let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
            let line = format!("{host}: {}#{} failed: {}", text("type"), text("name"), errors.join(", "));
            self.output.styled(&visible_line(&line));
            self.output.flush();
            self.output.progress.resume();
        }
    }

    /// Prints a line that the host printed on standard error.
    pub(super) fn message(&mut self, host: &str, text: &str) {
        self.output.progress.hide();
        if text.trim().is_empty() {
            return;
        }
        match text.split_once(": ") {
            Some(("warning", text)) => warn(&format!("{host}: {text}")),
            Some(("error", text)) => error(&format!("{host}: {text}")),
            _ => plain(&format!("{host}: {text}")),
        }
    }

    pub(super) fn finished(&mut self, result: &HostResult) {
        if let Some(live) = &self.live {
            live.finished(&result.host, result.outcome);
        }
        if self.format == Format::Json {
            self.json(&host(result, self.kind));
        }
    }

    pub(super) fn notice(&mut self, text: &str) {
        self.output.progress.hide();
        warn(text);
    }
}

/// Returns what a host sent as a recipient, if it is one.
fn recipient(text: &str) -> Option<String> {
    let recipient = normal(text);
    check_recipient(&recipient).is_ok().then_some(recipient)
}

/// Returns the object of a host.
fn host(result: &HostResult, kind: Kind) -> Value {
    let HostResult { host, outcome, reason, run, batch, exit, summary, output, .. } = result;
    let mut document = json!({ "protocol": "io.choria.ccm.v1.push.host", "host": host, "result": outcome });
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            document[key] = value;
        }
    };
    set("reason", reason.clone().map(Value::from));
    set("run", run.clone().map(Value::from));
    set("batch", batch.map(Value::from));
    set("exit", exit.map(Value::from));
    set("summary", summary.clone());
    let listed = match output {
        Some(Value::Array(_)) | None => output.clone(),
        Some(one) => Some(Value::Array(vec![one.clone()])),
    };
    let none = || (*outcome == Outcome::Ok).then(|| Value::Array(Vec::new()));
    set("output", if kind == Kind::List { listed.or_else(none) } else { output.clone() });
    document
}
