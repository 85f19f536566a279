//! Asks the guards and runs the command, with a shell in between or without.

use std::{
    collections::BTreeSet,
    fs, io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Properties, state::ExecState};
use crate::{
    host::{
        files::Predicted,
        process::{Exit, Finished},
    },
    resource::{Context, Error, ErrorKind, Trigger},
    types::command_line::{CommandLine, Readiness, Role, Through},
    vocabulary::RunMode,
};

/// Runs commands, and remembers which of them failed in this run.
pub(crate) struct Executor {
    through: Through,
    /// A later attempt at one of these runs it again, whatever the failed one left behind.
    failed: Mutex<BTreeSet<String>>,
}

impl Executor {
    pub(super) fn new(through: Through) -> Self {
        Self { through, failed: Mutex::default() }
    }

    fn line<'a>(&self, role: Role, text: &'a str, want: &'a Properties) -> CommandLine<'a> {
        CommandLine { role, text, through: self.through, settings: want.settings() }
    }

    /// Looks for what the command creates, and asks the guards if there is nothing and they have a say.
    pub(super) fn inspect(&self, want: &Properties, cx: &Context) -> Result<ExecState, Error> {
        let failed_before = self.failed().contains(&want.name);
        if cx.trigger() == Trigger::Refresh {
            // It happens whatever these say, so nobody waits for a guard that hangs or minds what cannot be looked at.
            let creates_satisfied = is_created(want, cx).unwrap_or(false);
            return Ok(ExecState { creates_satisfied, failed_before, ..ExecState::default() });
        }
        let creates_satisfied = is_created(want, cx)?;
        let mut state = ExecState { creates_satisfied, failed_before, ..ExecState::default() };
        if !creates_satisfied && !failed_before {
            state.doubt = self.ask_guards(want, &mut state, cx).err();
        }
        Ok(state)
    }

    fn ask_guards(&self, want: &Properties, state: &mut ExecState, cx: &Context) -> Result<(), Error> {
        if let Some(text) = &want.onlyif {
            let answer = self.ask(Role::Onlyif, text, want, cx)?;
            (state.onlyif_satisfied, state.onlyif_unasked) = (answer == Some(true), answer.is_none());
        }
        if let Some(text) = &want.unless {
            state.unless_satisfied = self.ask(Role::Unless, text, want, cx)? == Some(true);
        }
        Ok(())
    }

    /// The answer of a guard; none when it cannot be asked before earlier resources of a dry run have done their work.
    fn ask(&self, role: Role, text: &str, want: &Properties, cx: &Context) -> Result<Option<bool>, Error> {
        let line = self.line(role, text, want);
        let follows = cx.mode() == RunMode::Noop && !cx.prediction.borrow().is_empty();
        if follows && let Readiness::Predicted(error) | Readiness::Open(error) = line.readiness(cx)? {
            return Ok(unanswered(&error, cx));
        }
        let finished = line.run(cx)?;
        match finished.exit {
            Exit::Code(0) => Ok(Some(true)),
            // As `command -v` of some shells says that there is no such program.
            Exit::Code(126 | 127) if self.through == Through::Shell && finished.stderr.is_empty() => {
                Ok(Some(false))
            }
            Exit::Code(126 | 127) if follows && line.may_be_brought(cx) => {
                Ok(unanswered(&line.gave_no_answer(&finished, cx), cx))
            }
            Exit::Code(126 | 127) | Exit::Signal(_) => Err(line.gave_no_answer(&finished, cx)),
            Exit::Code(_) => Ok(Some(false)),
        }
    }

    /// Fails as the command would if it certainly could not be started.
    pub(super) fn simulate(&self, want: &Properties, cx: &Context) -> Result<(), Error> {
        let line = self.line(Role::Command, want.command(), want);
        if let Readiness::Open(error) = line.readiness(cx)? {
            cx.assume(format!("{}; assuming {} changes that", error.message, cx.suspects()));
        }
        Ok(())
    }

    /// Runs the command. That it failed is part of the state that it leaves.
    pub(super) fn execute(&self, want: &Properties, have: &ExecState, cx: &Context) -> ExecState {
        let line = self.line(Role::Command, want.command(), want);
        let finished = line.run(cx);
        let exitcode = match finished {
            Ok(Finished { exit: Exit::Code(code), .. }) => Some(code),
            _ => None,
        };
        let was_started = match &finished {
            Ok(_) => true,
            Err(error) => !matches!(error.kind, ErrorKind::NotStarted | ErrorKind::UnknownAccount { .. }),
        };
        let outcome = finished.and_then(|finished| match exitcode {
            Some(code) if want.accepts(code) => Ok(()),
            _ => Err(line.failed(&finished, &want.returns, cx)),
        });
        match outcome {
            Ok(()) => self.failed().remove(&want.name),
            Err(_) => self.failed().insert(want.name.clone()),
        };
        let creates_satisfied = is_created(want, cx).unwrap_or_else(|error| {
            cx.warn(error.message);
            false
        });
        if let (Ok(()), false, Some(path)) = (&outcome, creates_satisfied, &want.creates) {
            cx.warn(format!("the command succeeded, but {path} does not exist: it will run again next time"));
        }
        let &ExecState { onlyif_satisfied, unless_satisfied, .. } = have;
        let outcome = Some(outcome);
        ExecState {
            exitcode,
            creates_satisfied,
            onlyif_satisfied,
            unless_satisfied,
            was_started,
            outcome,
            ..ExecState::default()
        }
    }

    fn failed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a guard that cannot be asked is taken to say.
fn unanswered(error: &Error, cx: &Context) -> Option<bool> {
    let reason = error.message.lines().next().unwrap_or_default();
    cx.assume(format!("{reason}; assuming {} changes that, and the command is needed", cx.suspects()));
    None
}

/// Whether anything is at the path that the command is to create. Looking is all that is done there, so links on the
/// way are followed whoever made them.
#[expect(clippy::disallowed_methods, reason = "links are followed as the command would follow them")]
fn is_created(want: &Properties, cx: &Context) -> Result<bool, Error> {
    let Some(path) = &want.creates else { return Ok(false) };
    let untold = |error: &dyn std::error::Error| {
        Error::new(format!("cannot tell whether {path} exists: {error}")).on("creates")
    };
    if let Some(predicted) =
        cx.prediction.borrow().files.look(path.as_path()).map_err(|error| untold(&error))?
    {
        return Ok(matches!(predicted, Predicted::Entry(_) | Predicted::Something { .. }));
    }
    match fs::symlink_metadata(path.as_path()) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(untold(&error)),
    }
}
