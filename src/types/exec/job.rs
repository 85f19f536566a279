//! A command line on its way to the runner.

use super::{Properties, executor::Through, identity, prediction::ExecPrediction, unusable, words};
use crate::{
    host::process::{Command, Finished},
    resource::{Context, Error},
};

/// A command line that a resource needs run: its command, or one of its guards.
pub(super) struct Job<'a> {
    pub(super) role: Role,
    pub(super) text: &'a str,
    pub(super) want: &'a Properties,
    pub(super) through: Through,
}

/// What a command line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Command,
    Onlyif,
    Unless,
}

impl Role {
    /// The property that holds it.
    pub(super) fn property(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Onlyif => "onlyif",
            Self::Unless => "unless",
        }
    }
}

impl<'a> Job<'a> {
    /// The command line with everything that the resource says about how it is run.
    pub(super) fn command(&self, cx: &Context) -> Result<Command<'a>, Error> {
        let want = self.want;
        let mut command = identity::assume(self.program()?, want, &cx.host.users)?.redactor(&cx.redactor);
        for variable in &want.environment {
            command = command.variable(&variable.name, variable.value.reveal());
        }
        if let Some(directory) = &want.cwd {
            command = command.directory(directory.as_path());
        }
        if let Some(path) = &want.path {
            command = command.search_path(path.as_str());
        }
        if let Some(mask) = want.umask {
            command = command.umask(mask.bits());
        }
        if let (Role::Command, Some(input)) = (self.role, &want.stdin) {
            command = command.input(input.reveal().as_bytes());
        }
        if let Some(timeout) = cx.timeout() {
            command = command.timeout(timeout);
        }
        Ok(command)
    }

    /// Runs it to its end. Each guard and the command have the whole time limit of the resource.
    pub(super) fn run(&self, cx: &Context) -> Result<Finished, Error> {
        let (command, host) = (self.command(cx)?, cx.host);
        let finished = if self.role == Role::Command && self.want.logoutput {
            command.run_watched(&host.runner, &host.interrupt, &mut |_, line| cx.show(line))
        } else {
            command.run(&host.runner, &host.interrupt)
        };
        cx.restart_time();
        finished.map_err(|error| self.did_not_end(error, cx))
    }

    /// Whether an earlier resource of a dry run may bring a program that a text for the shell names.
    pub(super) fn may_be_brought(&self, cx: &Context) -> bool {
        let is_brought = |word: &str| {
            let text = shell_words::quote(word);
            let job = Job { text: &text, through: Through::Nothing, ..*self };
            matches!(job.prediction(cx), Ok(ExecPrediction::Predicted(_) | ExecPrediction::Open(_)))
        };
        let words = self.text.split(|c: char| c.is_whitespace() || ";|&()<>`'\"".contains(c));
        words.filter(|word| !word.is_empty()).any(is_brought)
    }

    fn program(&self) -> Result<Command<'a>, Error> {
        if self.through == Through::Shell {
            return Ok(Command::shell(self.text));
        }
        let mut words =
            words::split(self.text).map_err(|reason| unusable(self.role.property(), &reason))?.into_iter();
        Ok(Command::new(words.next().unwrap_or_default()).arguments(words))
    }
}
