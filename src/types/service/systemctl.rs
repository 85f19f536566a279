//! `systemctl` as a program: how it is called, and what its failures are in words.
//!
//! The process runner lets one program run at a time in the whole process, so no two calls ever overlap.

use std::time::{Duration, SystemTime};

use super::{
    Verb,
    error::ServiceError,
    journal::LastLines,
    unit::{PROPERTIES, Unit, unit_name},
    words::{Activity, Enablement, NOT_FOUND},
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

/// Maximum number of errors in a unit file that a message shows.
const MOST_FAULTS: usize = 5;

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
            Self::Mask => &["mask", "--system"],
            Self::Unmask => &["unmask", "--system"],
            Self::UnmaskForNow => &["unmask", "--system", "--runtime"],
        }
    }

    /// Returns how long the verb may take. The user's own `timeout` counts alone, also when it is longer.
    fn limit(self, timeout: Option<Duration>) -> Duration {
        timeout.unwrap_or(match self {
            Self::Start => START,
            Self::Stop => STOP,
            Self::Restart | Self::Reload => START + STOP,
            _ => ANSWER,
        })
    }
}

/// Returns the units with these names, in this order; `None` from a systemctl that cannot describe them.
pub(super) fn show(names: &[String], cx: &Context) -> Result<Option<Vec<Unit>>, ServiceError> {
    let finished = systemctl(&[&["show", "--system", PROPERTIES], &*borrowed(names)].concat(), ANSWER, cx)?;
    let units = Unit::read_all(&finished.stdout.text());
    let is_answer =
        finished.exit == Exit::Code(0) && units.len() == names.len() && units.iter().all(Unit::is_described);
    Ok(is_answer.then_some(units))
}

/// Returns what `systemctl is-active` says about one unit, which is all that is then known of it.
pub(super) fn is_active(name: &str, cx: &Context) -> Result<Unit, ServiceError> {
    let finished = systemctl(&["is-active", "--system", name], ANSWER, cx)?;
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    match (stdout.trim(), stderr.trim()) {
        ("", said) if !said.is_empty() => Err(failed(&["is-active", name], said)),
        (word, _) => Activity::from_word(word).map(|_| Unit::of_word(name, word)),
    }
}

/// Returns what `systemctl is-enabled` prints for these units, in this order. Nothing for one that has to be asked
/// about alone: at a unit that it cannot read, it stops.
pub(super) fn are_enabled(names: &[String], cx: &Context) -> Result<Vec<Option<String>>, ServiceError> {
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
            let usable = |word: &str| (!matches!(word, "" | NOT_FOUND)).then(|| word.to_owned());
            answers.extend(said.into_iter().map(usable));
            answers.resize(names.len().min(answers.len() + 1), None);
        }
    }
    Ok(answers)
}

/// Returns what `systemctl is-enabled` says about one unit; `None` when it knows no file of it.
pub(super) fn is_enabled(name: &str, cx: &Context) -> Result<Option<String>, ServiceError> {
    let finished = systemctl(&["is-enabled", "--system", name], ANSWER, cx)?;
    enablement_word(&finished.stdout.text(), &finished.stderr.text(), name)
}

/// Returns the word that `systemctl is-enabled` answers with. Before systemd 253 it has none for a unit that does not
/// exist, only a message.
pub(super) fn enablement_word(
    stdout: &str,
    stderr: &str,
    name: &str,
) -> Result<Option<String>, ServiceError> {
    // A script of another init system may have been asked, and may have talked before it answered.
    let word = stdout.lines().last().map_or("", str::trim);
    match (word, stderr.trim()) {
        (NOT_FOUND, _) => Ok(None),
        ("", said) if said.contains("No such file or directory") || said.contains("does not exist") => {
            Ok(None)
        }
        ("", said) if !said.is_empty() => Err(failed(&["is-enabled", name], said)),
        (word, _) => Enablement::from_word(word).map(|_| Some(word.to_owned())),
    }
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn failed(arguments: &[&str], said: &str) -> ServiceError {
    ServiceError::Systemctl { arguments: arguments.join(" "), said: said.to_owned() }
}

pub(super) fn not_found(name: &str) -> ServiceError {
    ServiceError::NotFound { unit: unit_name(name) }
}

/// Makes systemd read the files of all units again.
pub(super) fn daemon_reload(cx: &Context) -> Result<(), ServiceError> {
    let finished = systemctl(&["daemon-reload", "--system"], ANSWER, cx)?;
    match finished.exit {
        Exit::Code(0) => Ok(()),
        exit => Err(failed(&["daemon-reload"], &said(&finished, exit))),
    }
}

/// Does something to a unit.
pub(super) fn perform(verb: Verb, name: &str, cx: &Context) -> Result<(), Error> {
    let started = SystemTime::now();
    let arguments: Vec<&str> = verb.arguments().iter().copied().chain([name]).collect();
    let limit = verb.limit(cx.timeout());
    let error = match systemctl(&arguments, limit, cx) {
        Ok(Finished { exit: Exit::Code(0), .. }) => return Ok(()),
        Ok(finished) => {
            let said = said(&finished, finished.exit);
            let faults = faults_of_file(&said, name, cx).map(|faults| format!("{said}; {faults}"));
            failed(&[verb.arguments()[0], name], &faults.unwrap_or(said))
        }
        Err(error @ ServiceError::SystemctlTimeout { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    Err(LastLines::of(name, started, cx).add_to(error.into()))
}

/// Returns what `systemd-analyze` reports about the file of a unit that systemd rejects, with the lines of the errors.
fn faults_of_file(said: &str, name: &str, cx: &Context) -> Option<String> {
    if !said.contains("bad unit file setting") {
        return None;
    }
    let unit = unit_name(name);
    let command = Command::new("systemd-analyze")
        .arguments(["verify", "--man=no", &unit])
        .variable("LC_ALL", "C")
        .variable("SYSTEMD_COLORS", "0")
        .timeout(ANSWER);
    // Without the report, the error of systemctl has to do.
    let finished = command.run(&cx.host.runner, cx.interrupt()).ok()?;
    let text = finished.stderr.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(&unit)).take(MOST_FAULTS).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

fn said(finished: &Finished, exit: Exit) -> String {
    match finished.stderr.text().trim() {
        "" => exit.to_string(),
        words => words.to_owned(),
    }
}

/// Runs systemctl to its end, but for no longer than the limit and what is left of the resource's own time.
fn systemctl(arguments: &[&str], limit: Duration, cx: &Context) -> Result<Finished, ServiceError> {
    let limit = cx.time_left().map_or(limit, |left| left.min(limit));
    let command = Command::new("systemctl")
        .arguments(arguments)
        // Its words are read, not shown: they must be the same everywhere.
        .variable("LC_ALL", "C")
        .variable("SYSTEMD_COLORS", "0")
        .variable("SYSTEMD_PAGER", "")
        .keep(Keep::Whole(MOST_OUTPUT))
        .timeout(limit);
    command.run(&cx.host.runner, cx.interrupt()).map_err(|error| match error {
        ProcessError::Stopped(stopped) => match stopped.cause {
            Cause::Interrupt(_) => ServiceError::Interrupted,
            Cause::Timeout(_) => ServiceError::SystemctlTimeout {
                verb: arguments.first().copied().unwrap_or_default().to_owned(),
                limit: crate::vocabulary::Duration::from(cx.timeout().unwrap_or(limit)),
            },
            Cause::TooMuchOutput { .. } => ServiceError::Process { reason: stopped.to_string() },
        },
        other => ServiceError::Process { reason: other.to_string() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_time_limit_is_not_capped() {
        let hour = Duration::from_hours(1);
        for verb in [Verb::Start, Verb::Stop, Verb::Restart, Verb::Reload, Verb::Enable, Verb::Disable] {
            assert!(verb.limit(None) < hour, "{verb:?}");
            assert_eq!(verb.limit(Some(hour)), hour, "{verb:?}");
            assert_eq!(verb.limit(Some(Duration::from_secs(1))), Duration::from_secs(1), "{verb:?}");
        }
    }
}
