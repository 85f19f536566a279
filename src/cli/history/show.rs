//! Runs and changes as text and as JSON.

use serde_json::{Map, Value, json};

use crate::{
    cli::output::Output,
    state::history::{Change, Done, Objects, RunRecord, Snapshot, SnapshotKind, Undo, Who},
};

/// A change of a run that was made, or was interrupted.
pub(super) struct Listed<'a> {
    run: &'a RunRecord,
    change: &'a Change,
    done: Option<&'a Done>,
    objects: &'a Objects,
}

impl<'a> Listed<'a> {
    /// Returns the changes of a run.
    pub(super) fn of(
        run: &'a RunRecord,
        objects: &'a Objects,
    ) -> impl DoubleEndedIterator<Item = Listed<'a>> {
        run.made().map(move |(change, done)| Listed { run, change, done: done.as_ref(), objects })
    }

    pub(super) fn concerns(&self, path: Option<&str>, resource: Option<&str>) -> bool {
        path.is_none_or(|path| self.change.paths.iter().any(|known| known.path == path))
            && resource.is_none_or(|resource| self.change.resource == resource)
    }

    pub(super) fn line(&self, is_json: bool, output: &mut Output) {
        let start = &self.run.start;
        if is_json {
            let mut document = Map::new();
            document.insert("run".to_owned(), start.run.clone().into());
            document.insert("start".to_owned(), start.start.clone().into());
            document.extend(self.to_json());
            output.line(&Value::Object(document).to_string());
            return;
        }
        let Change { resource, action, position, .. } = self.change;
        let time = time(&start.start);
        output.message(format!("{}  {time}  {resource}  {action}  {position}", start.run).trim_end());
    }

    fn to_json(&self) -> Map<String, Value> {
        let Change { resource, position, action, differences, diff, refreshes, .. } = self.change;
        let mut document = Map::new();
        let mut set = |key: &str, value: Value| drop(document.insert(key.to_owned(), value));
        set("resource", resource.clone().into());
        set("position", position.clone().into());
        set("action", action.clone().into());
        set("differences", json!(differences));
        if let Some(diff) = diff {
            set("diff", diff.clone().into());
        }
        set("before", self.before());
        set("refreshes", json!(refreshes));
        if self.done.is_none() {
            set("interrupted", true.into());
        }
        document
    }

    /// Describes the state that undo restores.
    fn before(&self) -> Value {
        let Change { paths, undo, .. } = self.change;
        let (existed, reason) = match undo {
            Undo::Paths | Undo::PathsAndResource(_) => {
                let existed = paths.last().is_some_and(|path| path.before.existed());
                let reasons = paths.iter().enumerate().filter_map(|(at, path)| {
                    let unknown = Snapshot { kind: SnapshotKind::Special, ..Snapshot::default() };
                    let after = self.done.and_then(|done| done.paths.get(at)).unwrap_or(&unknown);
                    path.before.not_kept(after, self.objects)
                });
                (existed, reasons.into_iter().next())
            }
            Undo::Resource(properties) => {
                let is_absent = properties.get("ensure").is_some_and(|ensure| ensure == "absent");
                (!is_absent, None)
            }
            Undo::Command(Some(_)) => (false, None),
            Undo::Command(None) => (false, Some("the effects of a command are unknown".to_owned())),
        };
        let mut before = json!({ "existed": existed, "kept": reason.is_none() });
        if let Some(reason) = reason {
            before["reason"] = reason.into();
        }
        before
    }

    fn describe(&self, with_diff: bool, output: &mut Output) {
        let Change { resource, action, position, differences, diff, refreshes, .. } = self.change;
        let interrupted = if self.done.is_none() { " (interrupted)" } else { "" };
        let failed = if self.done.is_some_and(|done| done.failed) { " (failed)" } else { "" };
        output.message(&format!("{resource}  {action}{interrupted}{failed}"));
        if !position.is_empty() {
            output.message(&format!("    at {position}"));
        }
        for difference in differences {
            if let (Some(have), Some(want)) = (&difference.have, &difference.want) {
                output.message(&format!("    {}: {have} -> {want}", difference.property));
            }
        }
        let before = self.before();
        if let Some(reason) = before["reason"].as_str() {
            output.message(&format!("    not kept: {reason}"));
        }
        if !refreshes.is_empty() {
            output.message(&format!("    refreshes {}", refreshes.join(", ")));
        }
        if let Some(diff) = diff.as_ref().filter(|_| with_diff) {
            for line in diff.lines() {
                output.message(&format!("    {line}"));
            }
        }
    }
}

/// Prints a run on one line.
pub(super) fn run_line(run: &RunRecord, is_json: bool, output: &mut Output) {
    if is_json {
        output.line(&Value::Object(to_json(run)).to_string());
    } else {
        output.message(&describe(run));
    }
}

/// Returns a run as one line of text.
pub(in crate::cli) fn describe(run: &RunRecord) -> String {
    let start = &run.start;
    if let Some(format) = run.newer {
        return format!("{}  {}  recorded by a newer ccm (format {format})", start.run, time(&start.start));
    }
    let outcome = match &run.end {
        None => "interrupted".to_owned(),
        Some(end) if end.failed > 0 => {
            format!("changed {} of {}, {} failed", end.changed, end.total, end.failed)
        }
        Some(end) => format!("changed {} of {}", end.changed, end.total),
    };
    let who = who(&start.who);
    let command = shell_words::join(&start.command);
    let reason = start.reason.as_ref().map(|reason| format!("  # {reason}")).unwrap_or_default();
    format!(
        "{}  {}  {:<7}  {outcome}  {who}  {command}{reason}",
        start.run,
        time(&start.start),
        start.kind.name()
    )
}

pub(in crate::cli) fn who(who: &Who) -> String {
    match (&who.sudo_user, who.login_uid) {
        (Some(user), _) => user.clone(),
        (None, Some(uid)) => format!("uid {uid}"),
        (None, None) => format!("uid {}", who.uid),
    }
}

pub(in crate::cli) fn who_json(who: &Who) -> Value {
    json!({ "uid": who.uid, "login_uid": who.login_uid, "sudo_user": who.sudo_user })
}

/// Prints one run with all its changes.
pub(super) fn run(run: &RunRecord, objects: &Objects, diff: bool, is_json: bool, output: &mut Output) {
    if is_json {
        let mut document = to_json(run);
        let changes: Vec<Value> = Listed::of(run, objects).map(|listed| listed.to_json().into()).collect();
        document.insert("changes".to_owned(), changes.into());
        if !run.hosts.is_empty() {
            document.insert("hosts".to_owned(), json!(run.hosts));
        }
        output.line(&Value::Object(document).to_string());
        return;
    }
    output.message(&describe(run));
    for manifest in &run.start.manifests {
        output.message(&format!("manifest {} (sha256 {})", manifest.path, manifest.digest));
    }
    for host in &run.hosts {
        let of_host = host.run.as_ref().map(|run| format!("  run {run}")).unwrap_or_default();
        let reason = host.reason.as_ref().map(|reason| format!("  {reason}")).unwrap_or_default();
        output.message(&format!("{}  {}{of_host}{reason}", host.host, host.result));
    }
    for listed in Listed::of(run, objects) {
        output.message("");
        listed.describe(diff, output);
    }
}

fn to_json(run: &RunRecord) -> Map<String, Value> {
    let (start, end) = (&run.start, &run.end);
    let changed = run.changed();
    let document = json!({
        "run": start.run,
        "start": start.start,
        "end": end.as_ref().map(|end| &end.end),
        "exit_status": end.as_ref().map(|end| end.exit_status),
        "kind": start.kind,
        "command": start.command,
        "who": who_json(&start.who),
        "reason": start.reason,
        "manifests": start.manifests,
        "plan": start.plan,
        "undo_of": start.undo_of,
        "total": end.as_ref().map_or(changed, |end| end.total),
        "changed": changed,
        "failed": end.as_ref().map_or(0, |end| end.failed),
    });
    match document {
        Value::Object(document) => document,
        _ => Map::new(),
    }
}

/// A time to the second, for people.
fn time(text: &str) -> String {
    text.get(..19).unwrap_or(text).replace('T', " ")
}
