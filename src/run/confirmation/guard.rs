//! The guard: a process that undoes a run if it is not confirmed.

use std::time::{Duration, Instant};

use super::{
    super::{Machine, Origin, Refused, lock, recover},
    moment, undoing,
};
use crate::{
    host::process::{close_inherited, leave_session},
    state::{Confirmation, ConfirmationStore, Patience, Phase},
};

/// Interval of checks during a run.
const DURING_RUN: Duration = Duration::from_millis(200);
/// Interval of checks while nothing but the time can end the wait.
const AFTER_RUN: Duration = Duration::from_secs(1);
/// How long a run may take to stop after the request.
const GRACE: Duration = Duration::from_mins(1);

/// Waits until the run is confirmed or undone. Returns at once if there is nothing to guard, or if there is a guard.
pub(crate) fn guard(machine: &Machine, origin: &Origin) -> Result<(), Refused> {
    close_inherited();
    leave_session();
    let state = &machine.state.directory;
    let Some(store) = state.confirmations().map_err(Refused::State)? else { return Ok(()) };
    let Some(_guard) = store.become_guard().map_err(Refused::State)? else { return Ok(()) };
    let Some(first) = store.pending().map_err(Refused::State)? else { return Ok(()) };
    let mut watch = Watch { machine, store: &store, origin, requested: None, is_killed: false };
    loop {
        let pending = store.pending().map_err(Refused::State)?.filter(|pending| pending.run == first.run);
        let Some(pending) = pending else { return Ok(()) };
        let Some(pause) = watch.check(pending)? else { return Ok(()) };
        if machine.host.interrupt.pause(pause).is_some() {
            // A failure, so that systemd starts the guard again unless it stops the guard itself.
            return Err(Refused::UndoInterrupted { run: first.run });
        }
    }
}

struct Watch<'w> {
    machine: &'w Machine,
    store: &'w ConfirmationStore,
    origin: &'w Origin,
    /// When the run was requested to stop.
    requested: Option<Instant>,
    is_killed: bool,
}

impl Watch<'_> {
    /// Does what is due. Returns how long to wait; `None` at the end.
    fn check(&mut self, pending: Confirmation) -> Result<Option<Duration>, Refused> {
        let moment = moment()?;
        let pending = self.after_boot(pending)?;
        let Some(left) = pending.left(&moment, self.store.progress()) else { return Ok(None) };
        match pending.phase {
            // Another process that has the lock makes the run or undoes it.
            Phase::Applying | Phase::Undoing => {
                if self.undo(&pending, Patience::GiveUp)? {
                    return Ok(None);
                }
                if pending.phase == Phase::Applying && left.is_zero() {
                    self.stop(&pending);
                }
                Ok(Some(DURING_RUN))
            }
            Phase::Waiting | Phase::Stuck if left.is_zero() => {
                Ok(if self.undo(&pending, Patience::Wait)? { None } else { Some(DURING_RUN) })
            }
            _ => Ok(Some(left.clamp(Duration::from_millis(1), AFTER_RUN))),
        }
    }

    /// Lets the time count from the boot that a confirmation requires.
    fn after_boot(&self, pending: Confirmation) -> Result<Confirmation, Refused> {
        let moment = moment()?;
        let counted = pending.clone().after_boot(&moment);
        if counted == pending {
            return Ok(pending);
        }
        let _change = self.store.lock().map_err(Refused::State)?;
        if self.store.pending().map_err(Refused::State)? == Some(pending) {
            self.store.put(&counted).map_err(Refused::State)?;
        }
        Ok(counted)
    }

    /// Undoes the run if the run lock is free and nothing changed meanwhile. Returns whether the guard is at its end.
    fn undo(&self, pending: &Confirmation, patience: Patience) -> Result<bool, Refused> {
        let _lock = match lock(self.machine, &self.origin.name, patience) {
            Ok(lock) => lock,
            Err(Refused::AnotherRun { .. } | Refused::Nested { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        if self.store.pending().map_err(Refused::State)?.as_ref() != Some(pending) {
            return Ok(false);
        }
        recover(self.machine);
        let undone = undoing::undo(self.machine, self.store, pending.clone(), self.origin)?;
        undone.report(self.machine);
        Ok(true)
    }

    /// Stops a run that takes too long: at its next safe point, and if it does not get there, by SIGKILL.
    fn stop(&mut self, pending: &Confirmation) {
        let Some(runner) = pending.runner() else { return };
        match self.requested {
            None => {
                runner.stop(false);
                self.requested = Some(Instant::now());
            }
            Some(at) if at.elapsed() >= GRACE && !self.is_killed => {
                self.is_killed = runner.stop(true);
            }
            Some(_) => {}
        }
    }
}
