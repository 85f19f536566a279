//! The life of a run, written once for `apply`, `ensure`, the API, scripts with a session, and the agent.
//!
//! ```text
//! Machine::new              host, environment and state, made once per process
//! load                      the front end loads manifests, or makes one resource from flags or JSON
//! Run::begin                1  close inherited file descriptors
//!                           2  take the run lock (`ccm ensure` and the API take it per change, in the engine)
//!                           3  recover from killed runs, and record the commands of this run
//!                           4  open the history: `history.rs`
//!   Run::apply              5  read the pending refreshes, for each manifest
//!                           6  drive the engine: events go to the observer and into the session
//! Run::finish               7  save the digests of unchanged files
//!                           8  complete the history, apply its limits, write the journal entry
//!                           9  release the run lock
//! report                    the front end prints the summary and chooses the exit status
//! ```
//!
//! Steps 2 to 4, 7 and 8 happen only if the run may change something (`Settings::may_change`): dry runs and health checks
//! leave no trace in the state directory.

mod environment;
mod history;
mod machine;

pub(crate) use environment::Environment;
pub(crate) use history::{HistorySettings, Origin, manifest_digest, who};
pub(crate) use machine::{Machine, Notices};

use crate::{
    engine::{Engine, Exclusion, Finished, Observer, Selected, Task},
    host::process::{Recovered, close_inherited},
    resource::{Error, Manifest, Resource, flattened},
    session::Session,
    state::{Held, Patience, RefreshStore, RunLock, StateDirectory, StateError},
};
use history::Total;

/// A run of an engine that other runs are kept out of.
pub(crate) struct Run<'r, 'm> {
    machine: &'m Machine,
    engine: &'r mut Engine<'m>,
    history: HistorySettings,
    /// Sums of all manifests that were applied.
    total: Total,
    /// Released when the run is over.
    _lock: Option<RunLock>,
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
            let session = engine.session().name();
            engine.record_in(origin.recording(machine, session));
        }
        Ok(Self { machine, engine, history: origin.history, total: Total::default(), _lock: lock })
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
            recording.recorder().add_manifests(history::manifests(manifests));
        }
        let mut finished = self.engine.apply_all(manifests, refresh_store, observer);
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

    pub(crate) fn session(&self) -> &Session {
        self.engine.session()
    }

    /// Saves what the run learned, and lets other runs begin.
    pub(crate) fn finish(self) {
        let Self { machine, engine, history, total, .. } = self;
        if engine.settings().may_change() {
            machine.state.digests.save();
        }
        if let Some(recording) = engine.recording() {
            for warning in history::complete(recording, &total, history.limits) {
                machine.notices.warning(&warning);
            }
        }
        engine.record_in(None);
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
    let recovered = journal.recover(&host.interrupt);
    recovered.iter().filter_map(Recovered::warning).for_each(|text| notices.warning(&text));
    host.runner.record_in(journal);
}
