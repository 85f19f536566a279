//! `systemctl` as a program: how it is called, and what its failures are in words.
//!
//! The process runner lets one program run at a time in the whole process, so no two calls ever overlap.

use std::time::{Duration, SystemTime};

use super::{
    Verb,
    journal::LastLines,
    unit::{PROPERTIES, Unit, unit_name},
    words::{Activity, Enablement},
};
use crate::{
    host::process::{Cause, Command, Exit, Finished, Keep, ProcessError},
    resource::{Context, Error},
};

/// How long a question may take to be answered. A manager that is busy for longer is in trouble.
const ANSWER: Duration = Duration::from_mins(1);

/// How long a service may take to start when the resource does not say.
pub(super) const START: Duration = Duration::from_secs(30);

/// How long a service may take to stop when the resource does not say: what systemd allows by default, and a little.
const STOP: Duration = Duration::from_secs(100);

/// More than any number of units needs.
const MOST_OUTPUT: usize = 64 * 1024 * 1024;

impl Verb {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Start => &["start", "--system"],
            Self::Stop => &["stop", "--system"],
            Self::Restart => &["restart", "--system"],
            Self::Reload => &["reload-or-restart", "--system"],
            Self::Enable => &["enable", "--system"],
            Self::Disable => &["disable", "--system"],
            Self::DisableForNow => &["disable", "--system", "--runtime"],
        }
    }

    fn limit(self) -> Duration {
        match self {
            Self::Start => START,
            Self::Stop => STOP,
            Self::Restart | Self::Reload => START + STOP,
            Self::Enable | Self::Disable | Self::DisableForNow => ANSWER,
        }
    }
}

/// The units with these names, in this order; `None` from a systemctl that cannot describe them.
pub(super) fn show(names: &[String], cx: &Context) -> Result<Option<Vec<Unit>>, Error> {
    let finished = systemctl(&[&["show", "--system", PROPERTIES], &*borrowed(names)].concat(), ANSWER, cx)?;
    let units = Unit::read_all(&finished.stdout.text());
    let is_answer =
        finished.exit == Exit::Code(0) && units.len() == names.len() && units.iter().all(Unit::is_described);
    Ok(is_answer.then_some(units))
}

/// What `systemctl is-active` says about one unit, which is all that is then known of it.
pub(super) fn is_active(name: &str, cx: &Context) -> Result<Unit, Error> {
    let finished = systemctl(&["is-active", "--system", name], ANSWER, cx)?;
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    match (stdout.trim(), stderr.trim()) {
        ("", said) if !said.is_empty() => {
            Err(Error::new(format!("systemctl is-active {name} failed: {said}")))
        }
        (word, _) => Activity::from_word(word).map(|_| Unit::of_word(name, word)),
    }
}

/// What `systemctl is-enabled` prints for these units, in this order. Nothing for one that has to be asked about alone:
/// at a unit that it cannot read, it stops.
pub(super) fn are_enabled(names: &[String], cx: &Context) -> Result<Vec<Option<String>>, Error> {
    let mut answers = Vec::new();
    while answers.len() < names.len() {
        let left = &names[answers.len()..];
        // Its exit code only repeats what the words say.
        let finished = systemctl(&[&["is-enabled", "--system"], &*borrowed(left)].concat(), ANSWER, cx)?;
        let output = finished.stdout.text();
        let said: Vec<&str> = output.lines().map(str::trim).collect();
        if said.len() > left.len() {
            answers.resize(names.len(), None);
        } else {
            let usable = |word: &str| (!matches!(word, "" | "not-found")).then(|| word.to_owned());
            answers.extend(said.into_iter().map(usable));
            answers.resize(names.len().min(answers.len() + 1), None);
        }
    }
    Ok(answers)
}

/// What `systemctl is-enabled` says about one unit; `None` when it knows no file of it.
pub(super) fn is_enabled(name: &str, cx: &Context) -> Result<Option<String>, Error> {
    let finished = systemctl(&["is-enabled", "--system", name], ANSWER, cx)?;
    enablement_word(&finished.stdout.text(), &finished.stderr.text(), name)
}

/// The word that `systemctl is-enabled` answers with. Before systemd 253 it has none for a unit that does not exist, only
/// a message.
pub(super) fn enablement_word(stdout: &str, stderr: &str, name: &str) -> Result<Option<String>, Error> {
    // A script of another init system may have been asked, and may have talked before it answered.
    let word = stdout.lines().last().map_or("", str::trim);
    match (word, stderr.trim()) {
        ("not-found", _) => Ok(None),
        ("", said) if said.contains("No such file or directory") || said.contains("does not exist") => {
            Ok(None)
        }
        ("", said) if !said.is_empty() => {
            Err(Error::new(format!("systemctl is-enabled {name} failed: {said}")))
        }
        (word, _) => Enablement::from_word(word).map(|_| Some(word.to_owned())),
    }
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

pub(super) fn not_found(name: &str) -> Error {
    Error::new(format!("service not found: systemd knows no unit {}", unit_name(name)))
        .on("name")
        .with_help("install what brings the unit, or write its file, with a resource before this one")
}

/// Makes systemd read the files of all units again.
pub(super) fn daemon_reload(cx: &Context) -> Result<(), Error> {
    let finished = systemctl(&["daemon-reload", "--system"], ANSWER, cx)?;
    match finished.exit {
        Exit::Code(0) => Ok(()),
        exit => Err(Error::new(format!("systemctl daemon-reload failed: {}", said(&finished, exit)))),
    }
}

/// Does something to a unit.
pub(super) fn perform(verb: Verb, name: &str, cx: &Context) -> Result<(), Error> {
    let started = SystemTime::now();
    let arguments: Vec<&str> = verb.arguments().iter().copied().chain([name]).collect();
    let limit = cx.timeout().map_or(verb.limit(), |_| Duration::MAX);
    let finished = systemctl(&arguments, limit, cx).map_err(|error| match error.property {
        Some("timeout") => LastLines::of(name, started, cx).add_to(error),
        _ => error,
    })?;
    match finished.exit {
        Exit::Code(0) => Ok(()),
        exit => {
            let message =
                format!("systemctl {} {name} failed: {}", verb.arguments()[0], said(&finished, exit));
            Err(LastLines::of(name, started, cx).add_to(Error::new(message)))
        }
    }
}

fn said(finished: &Finished, exit: Exit) -> String {
    match finished.stderr.text().trim() {
        "" => exit.to_string(),
        words => words.to_owned(),
    }
}

/// Runs systemctl to its end, but for no longer than the limit and what is left of the resource's own time.
fn systemctl(arguments: &[&str], limit: Duration, cx: &Context) -> Result<Finished, Error> {
    let limit = cx.time_left().map_or(limit, |left| left.min(limit));
    let command = Command::new("systemctl")
        .arguments(arguments)
        // Its words are read, not shown: they must be the same everywhere.
        .variable("LC_ALL", "C")
        .variable("SYSTEMD_COLORS", "0")
        .variable("SYSTEMD_PAGER", "")
        .keep(Keep::Whole(MOST_OUTPUT))
        .timeout(limit);
    command.run(cx.interrupt()).map_err(|error| match error {
        ProcessError::Stopped(stopped) => match stopped.cause {
            Cause::Interrupt(_) => Error::interrupted(),
            Cause::Timeout(_) => {
                let verb = arguments.first().copied().unwrap_or_default();
                let limit = crate::vocabulary::Duration::from(cx.timeout().unwrap_or(limit));
                Error::new(format!("timed out after {limit}: systemctl {verb} was not done"))
                    .on("timeout")
                    .with_help("give it more time with `timeout`, or see `systemctl status` for what it waits for")
            }
            Cause::TooMuchOutput { .. } => Error::new(stopped.to_string()),
        },
        other => Error::new(other.to_string()),
    })
}
