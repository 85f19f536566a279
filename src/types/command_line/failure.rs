//! Reasons why a command or guard failed, without secrets.

use std::fmt::Write;

use super::{CommandLine, Role, Through};
use crate::{
    host::process::{Cause, Exit, Finished, Output, ProcessError, Remains, Stopped},
    resource::{Context, Error, ErrorKind},
    vocabulary::command_words as words,
};

/// Maximum number of output lines in a message. Of long lines, mostly the end is shown, because programs report errors
/// there.
const LINES: usize = 10;
const COLUMNS: usize = 500;
const FIRST_COLUMNS: usize = 100;

impl CommandLine<'_> {
    /// Returns the error of a command with an exit status that does not mean success.
    pub(in crate::types) fn failed(&self, finished: &Finished, returns: &[u8], cx: &Context) -> Error {
        let exit = exit(finished.exit);
        let kind = ErrorKind::NotReached { what: format!("{exit} (expected {})", expected(returns)) };
        let message = self.with_output(kind.to_string(), &finished.stderr, &finished.stdout, cx);
        self.error(message, cx).of_kind(kind)
    }

    /// Returns the error of a guard that gave no answer.
    pub(in crate::types) fn gave_no_answer(&self, finished: &Finished, cx: &Context) -> Error {
        let message = format!("{} gave no answer: {}", self.role.property(), exit(finished.exit));
        let message = self.with_output(message, &finished.stderr, &finished.stdout, cx);
        let error = self.error(message, cx);
        let help = error.help.clone().unwrap_or_else(|| {
            "exit status 0 means yes; 126 and 127 mean that the guard did not run; all others mean no"
                .to_owned()
        });
        error.with_help(help)
    }

    /// Returns the error of a command or guard that could not be started or was terminated.
    pub(super) fn did_not_end(&self, error: ProcessError, cx: &Context) -> Error {
        let property = match &error {
            ProcessError::Directory { .. } => "cwd",
            ProcessError::Identity { .. } => "user",
            ProcessError::SearchPath { .. } => "environment",
            ProcessError::Stopped(stopped) if matches!(stopped.cause, Cause::Timeout(_)) => "timeout",
            _ => self.role.property(),
        };
        let kind = match &error {
            ProcessError::Stopped(stopped) => match stopped.cause {
                Cause::Interrupt(_) => ErrorKind::Interrupted,
                Cause::Timeout(limit) => {
                    ErrorKind::TimedOut { limit: cx.timeout().unwrap_or(limit).into(), during: None }
                }
                Cause::TooMuchOutput { .. } => ErrorKind::Failed,
            },
            ProcessError::Follow { .. } => ErrorKind::Failed,
            _ => ErrorKind::NotStarted,
        };
        let message = match error {
            ProcessError::Stopped(ended) => self.stopped(&ended, cx),
            error if cx.is_sensitive() => discreet(&error).to_owned(),
            error => error.to_string(),
        };
        let message = match self.role {
            Role::Command | Role::Post => message,
            guard => format!("{} gave no answer: {message}", guard.property()),
        };
        self.error(message, cx).of_kind(kind).on(property)
    }

    /// Describes the progress of a command before it was terminated.
    fn stopped(&self, stopped: &Stopped, cx: &Context) -> String {
        let mut message = match (self.role, cx.is_sensitive()) {
            (Role::Command | Role::Post, true) => format!("the command {}", stopped.cause),
            (Role::Command | Role::Post, false) => format!("the command {stopped}"),
            (_, true) => format!("it {}", stopped.cause),
            (_, false) => stopped.to_string(),
        };
        if !stopped.running.is_empty() {
            message.push_str(match stopped.remains {
                Remains::Nothing => "; all its processes were terminated",
                Remains::Some(_) => "",
                Remains::Unknown => "; some of its processes might be left",
            });
        }
        self.with_output(message, &stopped.stderr, &stopped.stdout, cx)
    }

    /// Returns the message, followed by the command line and the last lines of the output.
    fn with_output(&self, message: String, stderr: &Output, stdout: &Output, cx: &Context) -> String {
        if cx.is_sensitive() {
            return message;
        }
        let text = cx.redactor.redact(self.text).into_owned();
        let mut lines = text.trim().lines();
        let first = shortened(lines.next().unwrap_or_default());
        let more = if lines.next().is_some() { " …" } else { "" };
        with_output(format!("{message}\ncommand: {first}{more}"), stderr, stdout, cx)
    }

    /// Returns the name of the program for messages.
    pub(super) fn program_name(&self) -> Option<String> {
        match self.through {
            Through::Shell => Some("/bin/sh".to_owned()),
            Through::Nothing => words::split(self.text).ok()?.into_iter().next(),
        }
    }

    /// Returns the error, with a hint if the command seems to need a shell.
    fn error(&self, message: String, cx: &Context) -> Error {
        let error = Error::new(message).on(self.role.property());
        if self.through == Through::Shell || cx.is_sensitive() {
            return error;
        }
        let words = words::split(self.text).unwrap_or_default();
        match words::meant_for_a_shell(&words) {
            Some(word) => error.with_help(format!(
                "`{word}` means nothing without a shell: set `provider: shell` to run this through /bin/sh"
            )),
            None => error,
        }
    }
}

/// Describes the end of a command.
fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(_) => exit.to_string(),
        Exit::Signal(_) => format!("terminated by {exit}"),
    }
}

/// Lists the exit statuses that mean success.
fn expected(returns: &[u8]) -> String {
    match returns {
        [] => "0".to_owned(),
        [one] => one.to_string(),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(ToString::to_string).collect();
            format!("{} or {last}", first.join(", "))
        }
    }
}

/// Returns the message, followed by the last lines of the output, set apart from the words of ccm.
fn with_output(mut message: String, stderr: &Output, stdout: &Output, cx: &Context) -> String {
    if cx.is_sensitive() {
        return message;
    }
    for (name, output) in [("stderr", stderr), ("stdout", stdout)] {
        // Output that is read completely was not redacted before.
        let text = cx.redactor.redact(&output.text()).into_owned();
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let hidden = lines.len().saturating_sub(LINES);
        if lines.is_empty() {
            continue;
        }
        let which = if hidden > 0 || output.dropped > 0 { ", its end" } else { "" };
        let _ = write!(message, "\n{name}{which}:");
        for line in &lines[hidden..] {
            let _ = write!(message, "\n  | {}", shortened(line));
        }
    }
    message
}

/// Describes the error without any word of the command.
fn discreet(error: &ProcessError) -> &'static str {
    match error {
        ProcessError::NotFound { .. } | ProcessError::Missing { .. } => {
            "the command's program does not exist"
        }
        ProcessError::NotExecutable { .. } | ProcessError::Interpreter { .. } => {
            "the command's program cannot be executed"
        }
        ProcessError::Directory { .. } => "the command cannot run in its directory",
        ProcessError::Identity { .. } => "the command cannot run as its user and group",
        _ => "the command cannot be started",
    }
}

fn shortened(line: &str) -> String {
    let count = line.chars().count();
    if count <= COLUMNS {
        return line.to_owned();
    }
    let first: String = line.chars().take(FIRST_COLUMNS).collect();
    let last: String = line.chars().skip(count - (COLUMNS - FIRST_COLUMNS)).collect();
    format!("{first} … {last}")
}
