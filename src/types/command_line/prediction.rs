//! Predicts in a dry run whether a command could be started.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::CommandLine;
use crate::{
    host::{
        files::{Entry, FileKind, Predicted},
        process::{ProcessError, Prospect},
    },
    resource::{self, AccountLeft, Context, Error},
};

/// Prediction for a command that does not certainly fail.
pub(in crate::types) enum Readiness {
    /// The command can be started.
    Clear,
    /// The command cannot be started now, but after the predicted changes of earlier resources.
    Predicted(Error),
    /// The command cannot be started now, but an earlier command might change that.
    Open(Error),
}

impl CommandLine<'_> {
    /// Predicts whether the command can be started; an error if it certainly cannot.
    pub(in crate::types) fn readiness(&self, cx: &Context) -> Result<Readiness, Error> {
        let may_change = cx.may_differ();
        let is_predicted = |error: &Error| match &error.kind {
            resource::ErrorKind::UnknownAccount { kind, name } => {
                matches!(cx.predicted_account(*kind, name), Some(AccountLeft::Present(_)))
            }
            _ => false,
        };
        let command = match self.command(cx) {
            Err(error) if is_predicted(&error) => return Ok(Readiness::Predicted(error)),
            Err(error) if may_change && matches!(error.kind, resource::ErrorKind::UnknownAccount { .. }) => {
                return Ok(Readiness::Open(error));
            }
            command => command?,
        };
        let told = |error| self.did_not_end(error, cx);
        let Prospect { directory, program } = command.prospect().map_err(told)?;
        let (mut now, mut open) = (None, None);
        for (found, need) in [(directory, DIRECTORY), (program, PROGRAM)] {
            match self.by_then(found, &need, cx) {
                Ok(obstacle) => now = now.or(obstacle),
                Err(error) if may_change && !places(&error).is_empty() => open = Some(error),
                Err(error) => return Err(told(error)),
            }
        }
        Ok(match (open, now) {
            (Some(error), _) => Readiness::Open(told(error)),
            (None, Some(error)) => Readiness::Predicted(told(error)),
            (None, None) => Readiness::Clear,
        })
    }

    /// Returns the error as predicted: it remains, or earlier resources resolve it.
    fn by_then(
        &self,
        found: Result<PathBuf, ProcessError>,
        need: &Need,
        cx: &Context,
    ) -> Result<Option<ProcessError>, ProcessError> {
        let predicted = |path: &Path| cx.prediction.borrow().files.follow(path).ok().flatten();
        let is_met = |predicted: &Predicted| match predicted {
            Predicted::Nothing => false,
            Predicted::Entry(digested) => (need.is_met)(&digested.entry),
            Predicted::Something { .. } | Predicted::Perhaps => true,
        };
        let unmet = |path, kind| Err((need.error)(self.program_name().unwrap_or_default(), path, kind));
        match found {
            Err(error)
                if places(&error)
                    .iter()
                    .filter_map(|path| predicted(path))
                    .any(|predicted| is_met(&predicted)) =>
            {
                Ok(Some(error))
            }
            Err(error) => Err(error),
            Ok(path) => match predicted(&path) {
                Some(Predicted::Nothing) => unmet(path, ErrorKind::NotFound),
                Some(predicted) if !is_met(&predicted) => unmet(path, need.fault),
                _ => Ok(None),
            },
        }
    }
}

/// Requirement on a path.
struct Need {
    is_met: fn(&Entry) -> bool,
    /// Error for any other entry.
    fault: ErrorKind,
    /// Creates the error of a program that is not found.
    error: fn(String, PathBuf, ErrorKind) -> ProcessError,
}

const DIRECTORY: Need = Need {
    is_met: |entry| entry.kind == FileKind::Directory,
    fault: ErrorKind::NotADirectory,
    error: |program, directory, kind| ProcessError::Directory { program, directory, source: kind.into() },
};

const PROGRAM: Need = Need {
    is_met: |entry| entry.kind == FileKind::File && entry.mode & 0o111 != 0,
    fault: ErrorKind::PermissionDenied,
    error: |_, program, kind| match kind {
        ErrorKind::NotFound => ProcessError::Missing { program },
        kind => ProcessError::NotExecutable { program, source: kind.into() },
    },
};

/// Returns the paths of which one would have to change for the command to start.
fn places(error: &ProcessError) -> Vec<PathBuf> {
    match error {
        ProcessError::Directory { directory, .. } => vec![directory.clone()],
        ProcessError::Missing { program } | ProcessError::NotExecutable { program, .. } => {
            vec![program.clone()]
        }
        ProcessError::NotFound { program, searched } => {
            std::env::split_paths(searched).map(|directory| directory.join(program)).collect()
        }
        _ => Vec::new(),
    }
}
