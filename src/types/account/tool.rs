//! The programs that change accounts: `useradd`, `usermod` and their relatives.

use std::{path::Path, time::Duration};

use rustix::process::geteuid;

use crate::{
    host::{
        files,
        process::{self, Cause, Command, Exit, Keep, ProcessError},
        system_file,
    },
    resource::{Context, Error},
};

/// How long a program may take that waits for the lock of the account files.
const PATIENCE: Duration = Duration::from_mins(1);

/// How much of what it prints is kept.
const MOST_OUTPUT: usize = 64 * 1024;

/// A call of one of the programs.
pub(super) struct Tool<'a> {
    program: &'static str,
    arguments: Vec<String>,
    input: &'a str,
}

impl<'a> Tool<'a> {
    pub(super) fn new(program: &'static str) -> Self {
        Self { program, arguments: Vec::new(), input: "" }
    }

    /// Adds a flag.
    pub(super) fn flag(mut self, flag: &str) -> Self {
        self.arguments.push(flag.to_owned());
        self
    }

    /// Adds an option and its value in one word, so that no value is taken for an option.
    pub(super) fn option(mut self, option: &str, value: impl std::fmt::Display) -> Self {
        self.arguments.push(format!("{option}={value}"));
        self
    }

    /// Gives this to read: what is secret must not be an argument.
    pub(super) fn input(mut self, input: &'a str) -> Self {
        self.input = input;
        self
    }

    /// Whether nothing was asked of the program.
    pub(super) fn is_idle(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Runs the program for an account.
    pub(super) fn run(mut self, account: Option<&str>, cx: &Context) -> Result<(), Error> {
        if let Some(account) = account {
            self.arguments.extend(["--".to_owned(), account.to_owned()]);
        }
        remove_stale_locks();
        let limit = cx.time_left().map_or(PATIENCE, |left| left.min(PATIENCE));
        let command = Command::new(self.program)
            .arguments(self.arguments)
            .variable("LC_ALL", "C")
            .input(self.input.as_bytes())
            .awaited()
            .keep(Keep::Tail(MOST_OUTPUT))
            .timeout(limit);
        let finished = command.run(&cx.host.runner, cx.interrupt()).map_err(|error| match error {
            ProcessError::Stopped(stopped) => match stopped.cause {
                Cause::Interrupt(_) => Error::interrupted(),
                Cause::Timeout(_) => {
                    let limit = crate::vocabulary::Duration::from(limit);
                    Error::new(format!("timed out after {limit}: {} was not done", self.program))
                        .on("timeout")
                }
                Cause::TooMuchOutput { .. } => Error::new(stopped.to_string()),
            },
            other => Error::new(other.to_string()),
        })?;
        match finished.exit {
            Exit::Code(0) => Ok(()),
            exit => {
                let words = finished.stderr.text().trim().to_owned();
                let words = if words.is_empty() { exit.to_string() } else { words };
                let error = Error::new(format!("{} failed: {words}", self.program));
                Err(if geteuid().is_root() { error } else { error.with_help("run ccm as root") })
            }
        }
    }
}

/// Removes the lock files of tools that were killed and not reaped. The tools themselves remove only those of processes that
/// no longer exist, and would wait for such a process in vain.
fn remove_stale_locks() {
    for file in ["passwd", "shadow", "group", "gshadow", "subuid", "subgid"] {
        let lock = format!("/etc/{file}.lock");
        let holder = system_file::read(&lock).unwrap_or_default();
        let holder = holder.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        if holder.parse().is_ok_and(process::is_unreaped) {
            let _ = files::remove(Path::new(&lock));
        }
    }
}
