//! Runs that are undone unless they are confirmed.
//!
//! The undo is armed right before the first change: a record in the state directory, and a guard that undoes the run if its
//! process dies, or if no confirmation arrives in time. Whatever takes the run lock checks the record first ([`settle`]).

mod answer;
mod guard;
mod undoing;

use std::{cell::RefCell, ffi::OsString, rc::Rc, time::Duration, time::Instant};

use jiff::{SignedDuration, Timestamp};

pub(crate) use self::{
    answer::{Answer, Awaited, confirm, note_undone, status, undo_now, wait},
    guard::guard,
    undoing::UndoneRun,
};
use super::{Machine, Origin, Refused, lock};
use crate::{
    engine::{Observer, Report},
    host::{
        guard::{Guard, is_service_possible, running_program},
        process::since_boot,
    },
    state::{
        Confirmation, ConfirmationStore, Moment, Patience, Phase, StateDirectory, StateError,
        history::RunKind,
    },
};

/// How long a guard may take to start.
const START: Duration = Duration::from_secs(30);
/// Interval of checks whether it has started.
const PULSE: Duration = Duration::from_millis(10);
/// The record of the progress of a run is at most this old.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// How a run is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmSettings {
    /// How long to wait for the confirmation.
    pub(crate) timeout: Duration,
    /// Whether the machine has to boot before.
    pub(crate) after_boot: bool,
}

/// What remains of a confirmation at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// When the run is undone if it is not confirmed: RFC 3339.
    pub(crate) deadline: Option<String>,
    /// The undo of the run, if it failed.
    pub(crate) undone: Option<UndoneRun>,
}

/// The confirmation of a run in progress.
pub(super) struct Confirming {
    run: String,
    /// Set once the undo is armed.
    store: Rc<RefCell<Option<ConfirmationStore>>>,
    beat: Instant,
}

impl Confirming {
    /// Prepares a run, and returns the action that arms the undo before its first change.
    pub(super) fn prepare(
        machine: &Machine,
        run: &str,
        settings: ConfirmSettings,
    ) -> (Self, impl Fn() -> Result<(), String> + 'static) {
        let store: Rc<RefCell<Option<ConfirmationStore>>> = Rc::default();
        let (armed, state, id) = (Rc::clone(&store), machine.state.directory.clone(), run.to_owned());
        let arm = move || {
            if armed.borrow().is_none() {
                *armed.borrow_mut() = Some(arm(&state, &id, settings)?);
            }
            Ok(())
        };
        (Self { run: run.to_owned(), store, beat: Instant::now() }, arm)
    }

    /// Ends the run: undoes it if it failed, or begins to wait for the confirmation. The run lock is held.
    pub(super) fn end(
        &self,
        machine: &Machine,
        origin: &Origin,
        has_failed: bool,
    ) -> Result<Ending, Refused> {
        let Some(store) = self.store.take() else { return Ok(Ending::default()) };
        let pending = store.pending().map_err(Refused::State)?.filter(|pending| pending.run == self.run);
        let Some(pending) = pending else { return Ok(Ending::default()) };
        if has_failed {
            let undone = undoing::undo(machine, &store, pending, origin)?;
            undone.report(machine);
            return Ok(Ending { undone: Some(undone), ..Ending::default() });
        }
        let moment = moment()?;
        let pending = pending.waiting(&moment);
        let _change = store.lock().map_err(Refused::State)?;
        store.put(&pending).map_err(Refused::State)?;
        Ok(Ending { deadline: Some(deadline(pending.timeout)), undone: None })
    }
}

/// Notes when resources are finished, because the time counts from then.
pub(super) struct Heartbeat<'o> {
    pub(super) observer: &'o mut dyn Observer,
    pub(super) confirming: &'o mut Confirming,
}

impl Observer for Heartbeat<'_> {
    fn rest(&mut self) -> Option<&mut dyn Observer> {
        Some(&mut *self.observer)
    }

    fn finished(&mut self, report: &Report) {
        let Confirming { store, beat, .. } = &mut *self.confirming;
        if beat.elapsed() >= HEARTBEAT
            && let Some(store) = &*store.borrow()
        {
            // Without the record, the time counts from an earlier resource.
            let _ = store.progressed(since_boot());
            *beat = Instant::now();
        }
        self.observer.finished(report);
    }
}

/// Returns a time in the future as a string.
fn deadline(left: Duration) -> String {
    let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::MAX);
    let at = Timestamp::now().checked_add(left).unwrap_or(Timestamp::MAX);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn moment() -> Result<Moment, Refused> {
    Moment::now()
        .ok_or_else(|| Refused::Unguarded("/proc does not show when the machine was booted".to_owned()))
}

/// Arms the undo of a run that is in progress in this process.
fn arm(state: &StateDirectory, run: &str, settings: ConfirmSettings) -> Result<ConfirmationStore, String> {
    let text = |error: StateError| error.to_string();
    let ConfirmSettings { timeout, after_boot } = settings;
    let store = state.make_confirmations().map_err(text)?;
    let moment = moment().map_err(|error| error.to_string())?;
    store.put(&Confirmation::begin(run.to_owned(), timeout, after_boot, &moment)).map_err(text)?;
    match start_guard(state, &store, run) {
        Ok(()) => {
            // The time does not count while the guard starts.
            let _ = store.progressed(since_boot());
            Ok(store)
        }
        Err(error) => {
            let _ = store.discard();
            Err(error)
        }
    }
}

/// Starts a guard and waits until it works.
fn start_guard(state: &StateDirectory, store: &ConfirmationStore, run: &str) -> Result<(), String> {
    let copied =
        running_program().map_err(StateError::from_program).and_then(|program| store.keep_program(&program));
    let program = copied.map_err(|error| format!("cannot copy ccm for the guard: {error}"))?;
    let path = state.to_path().map_err(|error| error.to_string())?;
    let mut arguments: Vec<OsString> = ["confirm", "--guard", "--state-dir"].map(OsString::from).into();
    arguments.push(path.into());
    let failed = |reason: String| format!("cannot start the guard: {reason}");
    let mut guard = Guard::start(&program, &arguments, &format!("ccm-confirm-{run}"))
        .map_err(|error| failed(error.to_string()))?;
    let began = Instant::now();
    loop {
        match store.has_guard() {
            Ok(true) => return Ok(()),
            Ok(false) if guard.has_ended() => return Err(failed("it ended immediately".to_owned())),
            Ok(false) if began.elapsed() >= START => {
                return Err(failed(format!("it did not start within {} seconds", START.as_secs())));
            }
            Ok(false) => std::thread::sleep(PULSE),
            Err(error) => return Err(failed(error.to_string())),
        }
    }
}

/// Undoes a run whose time is over, if there is one. A run that can still be confirmed stays.
pub(crate) fn complete_overdue(machine: &Machine, origin: &Origin) -> Result<(), Refused> {
    match settle(machine, origin, false) {
        Err(Refused::AwaitsConfirmation { .. } | Refused::PartlyUndone { .. }) => Ok(()),
        other => other,
    }
}

/// Checks whether a run awaits confirmation before another one begins. Completes an overdue undo, or refuses the run and
/// starts a missing guard.
pub(super) fn settle(machine: &Machine, origin: &Origin, has_lock: bool) -> Result<(), Refused> {
    let state = &machine.state.directory;
    let Some(store) = state.confirmations().map_err(Refused::State)? else { return Ok(()) };
    if store.pending().map_err(Refused::State)?.is_none() {
        return Ok(());
    }
    let _lock = match (!has_lock).then(|| lock(machine, &origin.name, Patience::GiveUp)) {
        None => None,
        Some(Ok(lock)) => Some(lock),
        // The change itself takes the lock, and checks again.
        Some(Err(Refused::Nested { .. } | Refused::AnotherRun { .. })) => return Ok(()),
        Some(Err(error)) => return Err(error),
    };
    let Some(pending) = store.pending().map_err(Refused::State)? else { return Ok(()) };
    let run = pending.run.clone();
    let is_undo = origin.kind == RunKind::Undo || origin.undo_of.is_some();
    let left = pending.left(&moment()?, store.progress());
    // With the run lock here, a run in progress is one that was killed.
    if pending.phase == Phase::Applying || left == Some(Duration::ZERO) {
        machine.notices.warning(&format!("run {run} was not confirmed and is undone first"));
        let undone = undoing::undo(machine, &store, pending, origin)?;
        undone.report(machine);
        return if undone.is_complete || is_undo { Ok(()) } else { Err(Refused::PartlyUndone { run }) };
    }
    if pending.phase == Phase::Waiting && matches!(store.has_guard(), Ok(false)) {
        start_guard(state, &store, &run).unwrap_or_else(|error| machine.notices.warning(&error));
    }
    match pending.phase {
        _ if is_undo => Ok(()),
        Phase::Stuck => Err(Refused::PartlyUndone { run }),
        _ => Err(Refused::AwaitsConfirmation { run }),
    }
}

/// Returns why nothing undoes a run right after a reboot, if that is so.
pub(crate) fn unguarded_boot(state: &StateDirectory) -> Option<String> {
    const UNITS: [&str; 3] = ["/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/system"];
    let is_usual = state.to_path().is_ok_and(|path| path == std::path::Path::new("/var/lib/ccm"));
    let is_installed = || {
        UNITS.iter().any(|folder| {
            crate::host::look::is_there(&std::path::Path::new(folder).join("ccm-confirm.service"))
        })
    };
    if !is_service_possible() || is_usual && is_installed() {
        return None;
    }
    let reason = if is_usual {
        "ccm-confirm.service is not installed"
    } else {
        "the state directory is not /var/lib/ccm"
    };
    Some(format!("{reason}: after a reboot, only the next run of ccm undoes this run"))
}
