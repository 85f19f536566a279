//! `ccm blame`

use std::{collections::BTreeMap, io::Read};

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::{
    Exit,
    failure::Failure,
    history::{self, absolute},
    machine::StateFolder,
    output::Output,
};
use crate::{
    host::files,
    state::history::{Camera, Change, Depth, Done, Keeping, Kept, Objects, RunRecord, Snapshot, from_text},
    vocabulary::Reference,
};

/// Lines of larger files are not attributed.
const LARGEST: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  ccm blame /etc/nginx/nginx.conf
  ccm blame service#nginx --json";

/// Arguments of `ccm blame`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A path, or a resource such as `service#nginx`
    #[arg(value_name = "PATH|REF", value_hint = ValueHint::AnyPath)]
    subject: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateFolder,
}

/// A completed change of the subject.
struct Version<'a> {
    run: &'a RunRecord,
    change: &'a Change,
    before: Option<&'a Snapshot>,
    after: Option<&'a Snapshot>,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let subject = &arguments.subject;
    let path = match subject.parse::<Reference>() {
        Ok(_) if !subject.starts_with(['/', '.']) => None,
        _ => Some(absolute(subject)?),
    };
    let unknown = || Failure::new(format!("the history has no change of `{subject}`"));
    let store = history::open(&arguments.state)?.ok_or_else(unknown)?;
    let (log, objects) = history::read(&store)?;
    let versions: Vec<Version> = log
        .runs
        .iter()
        .flat_map(|run| run.made().map(move |(change, done)| (run, change, done)))
        .filter_map(|(run, change, done)| version(run, change, done.as_ref(), subject, path.as_deref()))
        .collect();
    let Some(Version { run, change, .. }) = versions.last() else { return Err(unknown()) };
    let path = path.or_else(|| change.paths.last().map(|path| path.path.clone()));
    let lines = path.as_deref().and_then(|path| attribute(path, &versions, &objects));
    if arguments.json {
        let mut document = json!({
            "resource": change.resource,
            "run": run.start.run,
            "time": run.start.start,
            "who": history::who_json(&run.start.who),
            "position": change.position,
        });
        if let Some(lines) = &lines {
            let numbered = lines.iter().enumerate();
            document["lines"] = numbered
                .map(|(at, (run, _))| json!({ "line": at + 1, "run": run }))
                .collect::<Vec<Value>>()
                .into();
        }
        output.line(&document.to_string());
        return Ok(Exit::Success);
    }
    output.message(format!("{}  {}  {}", change.resource, change.action, change.position).trim_end());
    output.message(&history::describe(run));
    let runs: BTreeMap<&str, &RunRecord> = log.runs.iter().map(|run| (run.start.run.as_str(), run)).collect();
    for (run, text) in lines.into_iter().flatten() {
        let origin = run.as_deref().and_then(|run| runs.get(run)).map_or_else(
            || format!("{:<44}", "unknown"),
            |run| {
                format!(
                    "{}  {}  {:<12}",
                    &run.start.run[..12],
                    run.start.start.get(..16).unwrap_or_default(),
                    history::who(&run.start.who)
                )
            },
        );
        output.message(&format!("{origin}  {text}"));
    }
    Ok(Exit::Success)
}

fn version<'a>(
    run: &'a RunRecord,
    change: &'a Change,
    done: Option<&'a Done>,
    subject: &str,
    path: Option<&str>,
) -> Option<Version<'a>> {
    let done = done?;
    let at = match path {
        Some(path) => Some(change.paths.iter().position(|known| known.path == path)?),
        None if change.resource == subject => change.paths.len().checked_sub(1),
        None => return None,
    };
    let before = at.map(|at| &change.paths[at].before);
    Some(Version { run, change, before, after: at.and_then(|at| done.paths.get(at)) })
}

/// Returns each line of a text file with the run that wrote it, as far as the history has the versions of the file.
fn attribute(path: &str, versions: &[Version], objects: &Objects) -> Option<Vec<(Option<String>, String)>> {
    let path = from_text(path)?;
    let camera = Camera { objects, keeping: Keeping::Nothing, tick: &|| Ok(()) };
    let is_sensitive = versions.iter().any(|version| version.change.sensitive);
    let now = camera.take(&path, Depth::Content).ok()?;
    if is_sensitive || now.size.is_none_or(|size| size > LARGEST) {
        return None;
    }
    let current = text_of(files::original(&path).ok()??.file?)?;
    let mut known: Option<(String, Vec<Option<String>>)> = None;
    for (at, version) in versions.iter().enumerate() {
        let before = version.before.and_then(|before| content(before, objects));
        // The content before this run is that of an earlier run, unless something else changed the file.
        known = before.map(|before| relabel(known.take(), before, None));
        let after = match versions.get(at + 1) {
            Some(next) => next
                .before
                .filter(|next| is_same(version.after, next))
                .and_then(|next| content(next, objects)),
            None => is_same(version.after, &now).then(|| current.clone()),
        };
        known = after.map(|after| relabel(known.take(), after, Some(&version.run.start.run)));
    }
    let (_, labels) = relabel(known, current.clone(), None);
    Some(labels.into_iter().zip(current.lines().map(str::to_owned)).collect())
}

fn is_same(after: Option<&Snapshot>, found: &Snapshot) -> bool {
    after.is_some_and(|after| after.digest.is_some() && after.digest == found.digest)
}

/// Returns a new text with the labels of lines that it shares with the old one.
fn relabel(
    old: Option<(String, Vec<Option<String>>)>,
    new: String,
    run: Option<&str>,
) -> (String, Vec<Option<String>>) {
    let Some((old, labels)) = old else {
        let count = new.lines().count();
        return (new, vec![None; count]);
    };
    let mut relabeled = Vec::new();
    for change in TextDiff::from_lines(old.as_str(), new.as_str()).iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => {
                relabeled.push(change.old_index().and_then(|at| labels.get(at).cloned()).flatten());
            }
            ChangeTag::Insert => relabeled.push(run.map(str::to_owned)),
            ChangeTag::Delete => {}
        }
    }
    (new, relabeled)
}

/// Returns the kept content of a file; an empty text if the file did not exist.
fn content(snapshot: &Snapshot, objects: &Objects) -> Option<String> {
    if !snapshot.existed() {
        return Some(String::new());
    }
    if snapshot.kept != Kept::Copy || snapshot.size.is_none_or(|size| size > LARGEST) {
        return None;
    }
    text_of(objects.open(snapshot.digest.as_ref()?).ok()??)
}

fn text_of(mut file: std::fs::File) -> Option<String> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_run_until_they_change() {
        let first = relabel(Some((String::new(), Vec::new())), "a\nb\n".to_owned(), Some("1"));
        let second = relabel(Some(first), "a\nc\nb\n".to_owned(), Some("2"));
        let labels: Vec<&str> = second.1.iter().map(|run| run.as_deref().unwrap_or("?")).collect();
        assert_eq!(labels, ["1", "2", "1"]);
        let outside = relabel(Some(second), "a\nc\nx\n".to_owned(), None);
        assert_eq!(outside.1[2], None);
        assert_eq!(relabel(None, "a\n".to_owned(), Some("3")).1, [None]);
    }
}
