//! Package managers as programs: how they are called, and what their failures are in words.

use std::{path::PathBuf, time::Duration};

use super::error::PackageError;
use crate::{
    host::process::{self, Cause, Command, Exit, Finished, Keep, ProcessError},
    resource::Context,
};

/// How long a question may take to be answered.
const ANSWER: Duration = Duration::from_mins(5);

/// More than the books of any machine hold.
const MOST_OUTPUT: usize = 256 * 1024 * 1024;

/// Where maintainers' scripts find programs, whatever ccm was started with: dpkg refuses to work without these.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How many lines of what a program said are shown.
const LINES: usize = 20;

/// A program of a package system.
pub(super) struct Tool {
    name: &'static str,
    path: PathBuf,
    variables: &'static [(&'static str, &'static str)],
}

impl Tool {
    /// Finds a program, or says why it cannot be used.
    pub(super) fn find(
        name: &'static str,
        variables: &'static [(&'static str, &'static str)],
    ) -> Result<Self, String> {
        let path = process::locate(name).map_err(|error| error.to_string())?;
        Ok(Self { name, path, variables })
    }

    fn command<A: AsRef<str>>(&self, arguments: &[A]) -> Command<'static> {
        let mut command = Command::new(&self.path)
            .arguments(arguments.iter().map(|argument| argument.as_ref().to_owned()))
            .search_path(SEARCH_PATH)
            // Its words are read, and must be the same everywhere.
            .variable("LC_ALL", "C");
        for (name, value) in self.variables {
            command = command.variable(name, value);
        }
        command
    }

    /// Runs it for its answer, for no longer than an answer should take.
    pub(super) fn ask<A: AsRef<str>>(&self, arguments: &[A], cx: &Context) -> Result<Finished, PackageError> {
        let limit = cx.time_left().map_or(ANSWER, |left| left.min(ANSWER));
        self.run(arguments, Some(limit), cx)
    }

    /// Has it fetch something, which may take its time. It can be ended at any moment without harm.
    pub(super) fn fetch<A: AsRef<str>>(&self, arguments: &[A], cx: &Context) -> Result<(), PackageError> {
        let finished = self.run(arguments, cx.time_left(), cx)?;
        self.judge(&finished, arguments, cx)
    }

    fn run<A: AsRef<str>>(
        &self,
        arguments: &[A],
        limit: Option<Duration>,
        cx: &Context,
    ) -> Result<Finished, PackageError> {
        let mut command = self.command(arguments).keep(Keep::Whole(MOST_OUTPUT));
        if let Some(limit) = limit {
            command = command.timeout(limit);
        }
        command.run(&cx.host.runner, cx.interrupt()).map_err(|error| self.stopped(error, cx))
    }

    /// Runs it for its answer, which must be one.
    pub(super) fn answer<A: AsRef<str>>(
        &self,
        arguments: &[A],
        cx: &Context,
    ) -> Result<String, PackageError> {
        let finished = self.ask(arguments, cx)?;
        self.judge(&finished, arguments, cx)?;
        Ok(finished.stdout.text().into_owned())
    }

    /// Runs it to its end, whatever happens meanwhile: one that is ended half-way leaves a broken machine.
    pub(super) fn work<A: AsRef<str>>(
        &self,
        arguments: &[A],
        cx: &Context,
    ) -> Result<Finished, PackageError> {
        let mut command = self.command(arguments).uninterrupted();
        if let Some(left) = cx.time_left() {
            command = command.timeout(left);
        }
        let finished =
            command.run(&cx.host.runner, cx.interrupt()).map_err(|error| self.stopped(error, cx))?;
        match finished.overdue {
            Some(Cause::Interrupt(signal)) => {
                cx.warn(format!("{} was at work when {signal} came, and was waited for", self.name));
            }
            Some(_) => cx.warn(format!(
                "{} took longer than `timeout`: it was at work, and was waited for",
                self.name
            )),
            None => {}
        }
        Ok(finished)
    }

    /// Runs it to its end, which must be a good one.
    pub(super) fn succeed<A: AsRef<str>>(&self, arguments: &[A], cx: &Context) -> Result<(), PackageError> {
        let finished = self.work(arguments, cx)?;
        self.judge(&finished, arguments, cx)
    }

    /// Turns an exit code into success or failure.
    pub(super) fn judge<A: AsRef<str>>(
        &self,
        finished: &Finished,
        arguments: &[A],
        cx: &Context,
    ) -> Result<(), PackageError> {
        match finished.exit {
            Exit::Code(0) => Ok(()),
            exit => Err(self.failed(arguments, exit, finished, cx)),
        }
    }

    /// Says in the program's own words why it failed.
    pub(super) fn failed<A: AsRef<str>>(
        &self,
        arguments: &[A],
        exit: Exit,
        finished: &Finished,
        cx: &Context,
    ) -> PackageError {
        let verb =
            arguments.iter().map(AsRef::as_ref).find(|word| !word.starts_with('-') && !word.contains("::"));
        let command = format!("{} {}", self.name, verb.unwrap_or_default());
        let told = || told(&finished.stdout.text(), &finished.stderr.text());
        let lines = if cx.is_sensitive() { Vec::new() } else { told() };
        PackageError::Failed { command, exit, lines }
    }

    fn stopped(&self, error: ProcessError, cx: &Context) -> PackageError {
        match error {
            ProcessError::Stopped(stopped) => match stopped.cause {
                Cause::Interrupt(_) => PackageError::Interrupted,
                Cause::Timeout(limit) => {
                    PackageError::NoAnswer { program: self.name, limit: cx.timeout().unwrap_or(limit).into() }
                }
                Cause::TooMuchOutput { .. } => PackageError::Process { reason: stopped.to_string() },
            },
            other => PackageError::Process { reason: other.to_string() },
        }
    }
}

/// Returns what a program said about its failure: what it complained about, with what scripts of packages said before;
/// or else its last words.
fn told(stdout: &str, stderr: &str) -> Vec<String> {
    let complaints = last_lines(stderr);
    if complaints.is_empty() {
        return last_lines(stdout);
    }
    // dnf prints what scripts say between its own progress, and that on its standard output.
    let scripts = stdout.split_once("Running transaction\n").map_or("", |(_, after)| after);
    let scripts = scripts.split("\nFailed:").next().unwrap_or_default();
    let is_progress = |line: &String| {
        let count = line.rsplit(' ').next().unwrap_or_default();
        line.starts_with("  ")
            && count.split_once('/').is_some_and(|(done, all)| is_number(done) && is_number(all))
    };
    let mut lines = last_lines(scripts);
    lines.retain(|line| !is_progress(line));
    lines.extend(complaints);
    lines
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the last lines of a text, without warnings, progress and noise.
fn last_lines(text: &str) -> Vec<String> {
    let is_noise = |line: &str| {
        line.trim().is_empty()
            || line.starts_with("W: ")
            || line.starts_with("debconf: delaying package configuration")
    };
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.rsplit('\r').next().unwrap_or_default().trim_end().to_owned())
        .filter(|line| !is_noise(line))
        .collect();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_without_noise() {
        let text = "W: slow\ndebconf: delaying package configuration, since apt-utils is not installed\n(1%\r(5%\rdone\n\n\
                    E: broken \n";
        assert_eq!(last_lines(text), ["done", "E: broken"]);
        assert_eq!(last_lines(&"x\n".repeat(100)).len(), LINES);
    }

    #[test]
    fn what_a_script_said_belongs_to_the_reason() {
        let stdout = "Running transaction check\nRunning transaction\n  Preparing        :        1/1 \n  Running scriptlet: \
                      stubborn-1.0-1.noarch  1/1 \nnot yet\nerror: %prein(stubborn-1.0-1.noarch) scriptlet failed\n\n  \
                      Verifying        : stubborn-1.0-1.noarch   1/1 \n\nFailed:\n  stubborn-1.0-1.noarch\n";
        assert_eq!(
            told(stdout, "Error: Transaction failed\n"),
            ["not yet", "error: %prein(stubborn-1.0-1.noarch) scriptlet failed", "Error: Transaction failed"]
        );
        assert_eq!(told("last words\n", "W: a warning\n"), ["last words"]);
    }
}
