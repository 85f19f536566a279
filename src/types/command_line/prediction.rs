//! Whether a command could be started when its turn comes in a real run: what a dry run has to tell without starting it.

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

/// What a dry run can say of starting a command line that does not certainly fail.
pub(in crate::types) enum Readiness {
    /// It can be started now, and then.
    Clear,
    /// It cannot be started now. Then it can: earlier resources see to that.
    Predicted(Error),
    /// It cannot be started now. An earlier command may change that.
    Open(Error),
}

impl CommandLine<'_> {
    /// Whether it could be started when its turn comes; an error when it certainly could not.
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

    /// What is found now, as it would be by then: an error that stands, or one that earlier resources take care of.
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

/// What is needed of a path.
struct Need {
    is_met: fn(&Entry) -> bool,
    /// What is wrong with anything else.
    fault: ErrorKind,
    /// The error of a program that does not find it.
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

/// The paths of which one would have to be something else for the command to be started.
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
