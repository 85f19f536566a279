//! Calls of the machine's own programs, with their messages as errors.

use std::time::Duration;

use rustix::process::geteuid;

use crate::{
    host::process::{Cause, Command, Exit, Finished, Keep, ProcessError},
    resource::{Context, Error},
};

/// Time limit of one call. The time limit of the resource can be shorter.
const PATIENCE: Duration = Duration::from_mins(2);
/// Amount of output that is kept.
const MOST_OUTPUT: usize = 1 << 20;

/// Runs a program to its end, with messages in English.
pub(super) fn run(name: &str, command: Command, cx: &Context) -> Result<Finished, Error> {
    let limit = cx.time_left().map_or(PATIENCE, |left| left.min(PATIENCE));
    let command = command.variable("LC_ALL", "C").keep(Keep::Tail(MOST_OUTPUT)).timeout(limit);
    command.run(&cx.host.runner, cx.interrupt()).map_err(|error| match error {
        ProcessError::Stopped(stopped) => match stopped.cause {
            Cause::Interrupt(_) => Error::interrupted(),
            Cause::Timeout(_) => {
                Error::new(format!("{name} took longer than {} s", limit.as_secs())).on("timeout")
            }
            Cause::TooMuchOutput { .. } => Error::new(stopped.to_string()),
        },
        other => Error::new(other.to_string()),
    })
}

/// As [`run`]. A failure of the program is an error with its message.
pub(super) fn succeed(name: &str, command: Command, cx: &Context) -> Result<String, Error> {
    let finished = run(name, command, cx)?;
    if finished.exit == Exit::Code(0) {
        return Ok(finished.stdout.text().into_owned());
    }
    Err(failure(name, &finished))
}

/// Returns the error of a program that failed.
pub(super) fn failure(name: &str, finished: &Finished) -> Error {
    let words = finished.stderr.text().trim().to_owned();
    let words = if words.is_empty() { finished.exit.to_string() } else { words };
    let error = Error::new(format!("{name} failed: {words}"));
    if geteuid().is_root() { error } else { error.with_help("run ccm as root") }
}
