//! Confirms a run, or undoes it on request.

use std::time::Duration;

use super::{
    super::{Machine, Origin, Refused, lock, recover},
    UndoneRun, deadline, moment, undoing,
};
use crate::{
    host::journal,
    state::{Outcome, Patience, Phase, Resolved, StateDirectory},
};

/// Interval of checks whether a run was confirmed.
const PULSE: Duration = Duration::from_millis(100);

/// The answer to a request to confirm or to undo.
pub(crate) enum Answer {
    Confirmed {
        run: String,
    },
    /// The undo has begun, or the time is over.
    TooLate {
        run: String,
    },
    Undone {
        run: String,
        undone: UndoneRun,
    },
    Refused(String),
}

/// The result of waiting for a confirmation.
pub(crate) enum Awaited {
    Confirmed,
    Undone,
    Refused(String),
    Interrupted,
}

/// A run that awaits confirmation.
pub(crate) struct Status {
    pub(crate) run: String,
    /// RFC 3339.
    pub(crate) deadline: String,
    pub(crate) left: Duration,
    pub(crate) phase: Phase,
    /// Resources that could not be undone.
    pub(crate) failed: Vec<String>,
}

const NOTHING: &str = "no run awaits confirmation";

/// Returns why a request names another run than the pending one, if it does.
fn mismatch(requested: Option<&str>, pending: &str) -> Option<String> {
    let requested = requested.filter(|requested| requested.is_empty() || !pending.starts_with(requested))?;
    Some(format!("run `{requested}` does not await confirmation; `{pending}` does"))
}

/// Returns the run that awaits confirmation.
pub(crate) fn status(state: &StateDirectory) -> Result<Option<Status>, Refused> {
    let Some(store) = state.confirmations().map_err(Refused::State)? else { return Ok(None) };
    let Some(pending) = store.pending().map_err(Refused::State)? else { return Ok(None) };
    let left = pending.left(&moment()?, store.progress()).unwrap_or_default();
    Ok(Some(Status {
        deadline: deadline(left),
        left,
        phase: pending.phase,
        failed: pending.left,
        run: pending.run,
    }))
}

/// Confirms the run that awaits confirmation.
pub(crate) fn confirm(state: &StateDirectory, requested: Option<&str>) -> Result<Answer, Refused> {
    let nothing = || Ok(Answer::Refused(NOTHING.to_owned()));
    let Some(store) = state.confirmations().map_err(Refused::State)? else { return nothing() };
    let _change = store.lock().map_err(Refused::State)?;
    let Some(pending) = store.pending().map_err(Refused::State)? else { return nothing() };
    let moment = moment()?;
    let run = pending.run.clone();
    if let Some(reason) = mismatch(requested, &run) {
        return Ok(Answer::Refused(reason));
    }
    if pending.phase == Phase::Applying && pending.is_of(&moment) {
        return Ok(Answer::Refused(format!("run `{run}` is in progress; confirm it after its end")));
    }
    let pending = pending.after_boot(&moment);
    if pending.phase != Phase::Waiting || pending.left(&moment, None) == Some(Duration::ZERO) {
        return Ok(Answer::TooLate { run });
    }
    if pending.after_boot {
        return Ok(Answer::Refused(format!("run `{run}` can be confirmed after the next boot")));
    }
    store.resolve(&Resolved { run: run.clone(), outcome: Outcome::Confirmed }).map_err(Refused::State)?;
    journal::write(journal::Priority::Info, &format!("run {run} is confirmed"), &[("CCM_RUN", &run)]);
    Ok(Answer::Confirmed { run })
}

/// Undoes the run that awaits confirmation. A run in progress is stopped first.
pub(crate) fn undo_now(
    machine: &Machine,
    origin: &Origin,
    requested: Option<&str>,
) -> Result<Answer, Refused> {
    let nothing = || Ok(Answer::Refused(NOTHING.to_owned()));
    let state = &machine.state.directory;
    let Some(store) = state.confirmations().map_err(Refused::State)? else { return nothing() };
    let Some(pending) = store.pending().map_err(Refused::State)? else { return nothing() };
    if let Some(reason) = mismatch(requested, &pending.run) {
        return Ok(Answer::Refused(reason));
    }
    if pending.phase == Phase::Applying
        && let Some(runner) = pending.runner()
    {
        runner.stop(false);
    }
    let _lock = lock(machine, &origin.name, Patience::Wait)?;
    let now = store.pending().map_err(Refused::State)?.filter(|now| now.run == pending.run);
    let run = pending.run;
    let Some(pending) = now else {
        let undone = store.last().map_err(Refused::State)?.filter(|last| last.run == run);
        return Ok(match undone.map(|last| last.outcome) {
            Some(Outcome::Undone(by)) => Answer::Undone {
                run,
                undone: UndoneRun { run: by, not_undone: Vec::new(), is_complete: true },
            },
            _ => Answer::Refused(NOTHING.to_owned()),
        });
    };
    recover(machine);
    let undone = undoing::undo(machine, &store, pending, origin)?;
    Ok(Answer::Undone { run, undone })
}

/// Notes that a run was undone completely. If it awaits confirmation, that is over.
pub(crate) fn note_undone(state: &StateDirectory, run: &str, by: &str) -> Result<(), Refused> {
    let Some(store) = state.confirmations().map_err(Refused::State)? else { return Ok(()) };
    let _change = store.lock().map_err(Refused::State)?;
    let pending = store.pending().map_err(Refused::State)?;
    if !pending.is_some_and(|pending| pending.run == run && pending.phase != Phase::Undoing) {
        return Ok(());
    }
    let outcome = Outcome::Undone(by.to_owned());
    store.resolve(&Resolved { run: run.to_owned(), outcome }).map_err(Refused::State)
}

/// Waits until the run is confirmed or undone.
pub(crate) fn wait(machine: &Machine, requested: Option<&str>) -> Result<Awaited, Refused> {
    let nothing = || Ok(Awaited::Refused(NOTHING.to_owned()));
    let Some(store) = machine.state.directory.confirmations().map_err(Refused::State)? else {
        return nothing();
    };
    let mut awaited: Option<String> = None;
    loop {
        let pending = store.pending().map_err(Refused::State)?;
        let is_same = |run: &str| awaited.as_deref().is_none_or(|awaited| awaited == run);
        match pending.filter(|pending| is_same(&pending.run)) {
            Some(pending) => {
                if let Some(reason) = mismatch(requested, &pending.run) {
                    return Ok(Awaited::Refused(reason));
                }
                if pending.phase == Phase::Stuck {
                    return Ok(Awaited::Undone);
                }
                awaited = Some(pending.run);
            }
            None => {
                let name = awaited.as_deref().or(requested);
                let last = store.last().map_err(Refused::State)?;
                let last = last
                    .filter(|last| name.is_some_and(|name| !name.is_empty() && last.run.starts_with(name)));
                return Ok(match last.map(|last| last.outcome) {
                    Some(Outcome::Confirmed) => Awaited::Confirmed,
                    Some(Outcome::Undone(_)) => Awaited::Undone,
                    None => Awaited::Refused(NOTHING.to_owned()),
                });
            }
        }
        if machine.host.interrupt.pause(PULSE).is_some() {
            return Ok(Awaited::Interrupted);
        }
    }
}
