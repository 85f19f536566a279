//! The life of a run, written once for `apply`, `ensure`, the API, scripts with a session, and the agent.
//!
//! ```text
//! Machine::new              host, environment and state, made once per process
//! load                      the front end loads manifests, or makes one resource from flags or JSON
//! Run::begin                1  close inherited file descriptors
//!                           2  take the run lock (`ccm ensure` and the API take it per change, in the engine)
//!                           3  recover from killed runs, and record the commands of this run
//!                           4  undo an earlier run that was not confirmed in time: `confirmation/`
//!                           5  open the history: `history.rs`
//!   Run::apply              6  read the pending refreshes, for each manifest
//!                           7  drive the engine: events go to the observer and into the session
//! Run::finish               8  save the digests of unchanged files
//!                           9  complete the history, apply its limits, write the journal entry
//!                          10  undo a failed run that needs a confirmation, or begin to wait for the confirmation
//!                          11  release the run lock
//! report                    the front end prints the summary and chooses the exit status
//! ```
//!
//! Steps 2 to 5 and 8 to 10 happen only if the run may change something (`Settings::may_change`): dry runs and health checks
//! leave no trace in the state directory.

mod confirmation;
mod environment;
mod history;
mod machine;

pub(crate) use confirmation::{
    Answer, Awaited, ConfirmSettings, Ending, UndoneRun, complete_overdue, confirm, guard, note_undone,
    status, undo_now, unguarded_boot, wait,
};
pub(crate) use environment::Environment;
pub(crate) use history::{HistorySettings, Origin, manifest_digest, who};
pub(crate) use machine::{Given, Machine, Notices};

use crate::{
    engine::{Engine, Exclusion, Finished, Observer, Selected, Task},
    host::{
        memory,
        process::{Recovered, close_inherited},
    },
    resource::{Error, Manifest, Resource, flattened},
    session::Session,
    state::{Held, Patience, RefreshStore, RunLock, StateDirectory, StateError},
};
use confirmation::{Confirming, Heartbeat};
use history::Total;

/// A run of an engine that other runs are kept out of.
pub(crate) struct Run<'r, 'm> {
    machine: &'m Machine,
    engine: &'r mut Engine<'m>,
    origin: Origin,
    /// The confirmation that the run needs.
    confirming: Option<Confirming>,
    /// Sums of all manifests that were applied.
    total: Total,
    /// Released when the run is over.
    lock: Option<RunLock>,
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("this run was started by one that is in progress: {who}; inside of it, use `ccm ensure`")]
    Nested { who: String },
    #[error("another run is in progress: {who}")]
    AnotherRun { who: String },
    #[error(transparent)]
    Interrupted(StateError),
    #[error("{0}; another place can be named with --state-dir")]
    State(StateError),
    #[error("run `{run}` awaits confirmation; use `ccm confirm {run}` or `ccm confirm --undo`")]
    AwaitsConfirmation { run: String },
    #[error("run `{run}` is not undone completely; fix the cause and use `ccm confirm --undo`")]
    PartlyUndone { run: String },
    #[error("interrupted before run `{run}` was undone")]
    UndoInterrupted { run: String },
    #[error("cannot guard the undo of the run: {0}")]
    Unguarded(String),
    #[error("cannot undo the run: {0}")]
    Interrupt(std::io::Error),
}

impl<'r, 'm> Run<'r, 'm> {
    /// Begins a run of an engine.
    pub(crate) fn begin(
        machine: &'m Machine,
        engine: &'r mut Engine<'m>,
        origin: &Origin,
    ) -> Result<Self, Refused> {
        // A manifest may have been read from an inherited file descriptor: only now is none of them needed.
        close_inherited();
        let settings = engine.settings();
        let lock = match settings.exclusion {
            Exclusion::WholeRun(patience) if settings.may_change() => {
                Some(lock(machine, &origin.name, patience)?)
            }
            _ => None,
        };
        if settings.may_change() {
            recover(machine);
            confirmation::settle(machine, origin, lock.is_some())?;
        }
        Ok(Self { lock, ..Self::within_lock(machine, engine, origin) })
    }

    /// Begins a run while the caller holds the run lock.
    fn within_lock(machine: &'m Machine, engine: &'r mut Engine<'m>, origin: &Origin) -> Self {
        let mut confirming = None;
        if engine.settings().may_change() {
            let mut recording = origin.recording(machine, engine.session().name());
            if let (Some(recording), Some(settings)) = (&mut recording, origin.confirm) {
                let (confirmation, arm) = Confirming::prepare(machine, recording.run(), settings);
                recording.require_undo(Box::new(arm));
                confirming = Some(confirmation);
            }
            engine.record_in(recording);
        }
        Self { machine, engine, origin: origin.clone(), confirming, total: Total::default(), lock: None }
    }

    /// Applies the selected resources of manifests, one manifest after the other.
    pub(crate) fn apply(
        &mut self,
        manifests: &[(&Manifest, &Selected)],
        observer: &mut dyn Observer,
    ) -> Finished {
        let Machine { state, notices, .. } = self.machine;
        let settings = self.engine.settings();
        let is_whole = matches!(settings.exclusion, Exclusion::WholeRun(_));
        let is_scripted = self.engine.session().name().is_some();
        let refresh_store = |manifest: &Manifest| {
            let subscribes = || {
                flattened(&manifest.resources).iter().any(|resource| !resource.common.subscribe.is_empty())
            };
            // One resource on its own that subscribes to nothing does not read the journal.
            let is_needed = settings.task == Task::Apply && (is_whole || is_scripted || subscribes());
            is_needed.then(|| refresh_store(&state.directory, &**notices))
        };
        if let Some(recording) = self.engine.recording() {
            recording.recorder().add_manifests(history::manifests(self.origin.kind, manifests));
        }
        memory::begin_to_attempt();
        let mut finished = match &mut self.confirming {
            Some(confirming) => {
                let mut observer = Heartbeat { observer, confirming };
                self.engine.apply_all(manifests, refresh_store, &mut observer)
            }
            None => self.engine.apply_all(manifests, refresh_store, observer),
        };
        finished.summary.run = self.engine.recording().map(|recording| recording.run().to_owned());
        finished.summary.undo_run = finished.undone.last().map(|undone| undone.run.clone());
        self.total.add(&finished);
        finished
    }

    /// Checks the preconditions of the resources of a plan, and returns the resources that differ.
    pub(crate) fn check_preconditions<'a>(
        &'a mut self,
        manifest: &'a Manifest,
        selected: &'a Selected,
    ) -> Vec<(&'a Resource, Error)> {
        self.engine.check_preconditions(manifest, selected)
    }

    /// Returns the id of the run in the history.
    pub(crate) fn id(&mut self) -> Option<String> {
        self.engine.recording().map(|recording| recording.run().to_owned())
    }

    pub(crate) fn session(&self) -> &Session {
        self.engine.session()
    }

    /// Saves what the run learned, and lets other runs begin. Returns what remains of a confirmation.
    pub(crate) fn finish(self) -> Ending {
        let Self { machine, engine, origin, confirming, total, lock } = self;
        if engine.settings().may_change() {
            machine.state.digests.save();
        }
        if let Some(recording) = engine.recording() {
            for warning in history::complete(recording, &total, origin.history.limits) {
                machine.notices.warning(&warning);
            }
        }
        engine.record_in(None);
        let ending = confirming.map(|confirming| confirming.end(machine, &origin, total.has_failed()));
        drop(lock);
        ending.unwrap_or_else(|| Ok(Ending::default())).unwrap_or_else(|refused| {
            machine.notices.warning(&refused.to_string());
            Ending::default()
        })
    }
}

/// Opens the pending refreshes. A corrupt journal costs a warning and perhaps a restart, never the run.
pub(crate) fn refresh_store(state: &StateDirectory, notices: &dyn Notices) -> RefreshStore {
    state.refresh_store().unwrap_or_else(|error| {
        notices.warning(&format!("{error}; refreshes that earlier runs owe are not known"));
        state.empty_refresh_store()
    })
}

/// Makes sure that no other run is in progress.
fn lock(machine: &Machine, command: &str, patience: Patience) -> Result<RunLock, Refused> {
    let Machine { host, state, notices, .. } = machine;
    let waiting = |holder: &str| notices.waiting(holder);
    match state.directory.lock(command, patience, &host.interrupt, waiting) {
        Ok(Ok(lock)) => Ok(lock),
        Ok(Err(Held { who, waits_for_us: true })) => Err(Refused::Nested { who }),
        Ok(Err(Held { who, .. })) => Err(Refused::AnotherRun { who }),
        Err(error @ StateError::Interrupted) => Err(Refused::Interrupted(error)),
        Err(error) => Err(Refused::State(error)),
    }
}

/// Cleans up after runs that were killed, and records the commands of this run for the next one.
fn recover(machine: &Machine) {
    let Machine { host, state, notices, .. } = machine;
    state.write_journal.recover(&host.interrupt);
    let journal = state.directory.command_journal();
    let recovered = journal.recover(&host.interrupt, &mut |text| notices.warning(text));
    recovered.iter().filter_map(Recovered::warning).for_each(|text| notices.warning(&text));
    host.runner.record_in(journal);
}
