//! Two runs never overlap: others are kept out while something is changed.

use super::{
    Observer,
    converge::{Attempts, Outcome},
};
use crate::{
    resource::{Error, ErrorKind},
    state::{Held, Patience, RunLock, StateError},
};

/// How other runs are kept out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exclusion {
    /// For the whole run: whoever began it holds the lock.
    WholeRun(Patience),
    /// From the first change of a resource until it is done with: one that is as desired leaves no trace.
    WhileChanging(Patience),
}

impl Attempts<'_> {
    /// Waits for the end of another run, or gives up if that is wanted.
    pub(super) fn wait(&self, outcome: &mut Outcome, observer: &mut dyn Observer) -> Result<(), Error> {
        let patience = match self.place.settings.exclusion {
            Exclusion::WholeRun(_) => return Ok(()),
            Exclusion::WhileChanging(patience) => patience,
        };
        match self.lock(patience, |holder| observer.waiting(holder))? {
            Ok(lock) => outcome.lock = Some(self.refuse_pending(lock)?),
            Err(held) => {
                return Err(ErrorKind::AnotherRun { who: held.who }.into());
            }
        }
        Ok(())
    }

    /// Takes the run lock if it is free, until the resource is done with. Returns whether the resource can be changed: the
    /// lock is held, or its holder waits for this process.
    pub(super) fn try_lock(&self, outcome: &mut Outcome) -> Result<bool, Error> {
        if matches!(self.place.settings.exclusion, Exclusion::WholeRun(_)) || outcome.lock.is_some() {
            return Ok(true);
        }
        match self.lock(Patience::GiveUp, |_| {})? {
            Ok(lock) => outcome.lock = Some(self.refuse_pending(lock)?),
            // What a resource of the other run started is part of that run.
            Err(held) => return Ok(held.waits_for_us),
        }
        Ok(true)
    }

    /// Releases the lock if a run awaits confirmation.
    fn refuse_pending(&self, lock: RunLock) -> Result<RunLock, Error> {
        match self.state.directory.awaiting_confirmation() {
            Ok(None) => Ok(lock),
            Ok(Some(pending)) => {
                let who = format!("run {}, which awaits confirmation", pending.run);
                Err(ErrorKind::AnotherRun { who }.into())
            }
            Err(error) => Err(Error::new(error.to_string())),
        }
    }

    fn lock(&self, patience: Patience, waiting: impl FnMut(&str)) -> Result<Result<RunLock, Held>, Error> {
        self.state.directory.lock("ccm ensure", patience, &self.host.interrupt, waiting).map_err(|error| {
            match error {
                StateError::Interrupted => Error::interrupted(),
                error => Error::new(error.to_string()).with_help("name another place with --state-dir"),
            }
        })
    }
}
