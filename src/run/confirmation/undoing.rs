//! Undoes a run that was not confirmed.

use std::path::PathBuf;

use super::{
    super::{Machine, Origin, Refused, Run},
    moment,
};
use crate::{
    engine::{
        Detail, Diffs, Engine, Exclusion, Finished, Observer, Registrations, Report, RunMode, Selected,
        Settings, Task, UndoWitness,
    },
    host::journal,
    session::Session,
    state::{
        Confirmation, ConfirmationStore, Outcome, Patience, Resolved,
        history::{Log, RunKind},
    },
    template::Scope,
    undo::{NotUndone, Reason, Request, Reversal},
};

/// A run that was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndoneRun {
    /// Id of the run that undid it; empty if there was nothing to undo.
    pub(crate) run: String,
    pub(crate) not_undone: Vec<NotUndone>,
    /// Whether nothing failed. Otherwise the run still awaits its undo.
    pub(crate) is_complete: bool,
}

impl UndoneRun {
    /// Whether everything is back. Commands stay.
    pub(crate) fn is_everything_back(&self) -> bool {
        self.is_complete && self.not_undone.iter().all(|left| left.reason == Reason::Command)
    }

    /// Shows what is not undone.
    pub(crate) fn report(&self, machine: &Machine) {
        for NotUndone { resource, reason, detail } in &self.not_undone {
            let what = if *reason == Reason::Command { "stays" } else { "not undone" };
            machine.notices.warning(&format!("{what}: {resource}: {detail}"));
        }
    }
}

/// Observes nothing.
struct Silent;

impl Observer for Silent {
    fn finished(&mut self, _: &Report) {}
}

/// Undoes the run that awaits confirmation. The run lock is held.
pub(super) fn undo(
    machine: &Machine,
    store: &ConfirmationStore,
    pending: Confirmation,
    origin: &Origin,
) -> Result<UndoneRun, Refused> {
    let moment = moment()?;
    let pending = pending.undoing(&moment);
    {
        let _change = store.lock().map_err(Refused::State)?;
        store.put(&pending).map_err(Refused::State)?;
    }
    let run = pending.run.clone();
    log(&format!("run {run} was not confirmed and is undone"), &run);
    let undone = if machine.host.interrupt.requested().is_some() {
        // The signal stopped the run. It must not stop the undo, too.
        let calm = machine.uninterrupted().map_err(Refused::Interrupt)?;
        reverse(&calm, &run, origin)?
    } else {
        reverse(machine, &run, origin)?
    };
    let Some((undone, finished)) = undone else {
        // The run was killed before its first change.
        store.resolve(&resolved(&run, "")).map_err(Refused::State)?;
        return Ok(UndoneRun { run: String::new(), not_undone: Vec::new(), is_complete: true });
    };
    if finished.stopped.is_some() {
        return Err(Refused::UndoInterrupted { run });
    }
    let _change = store.lock().map_err(Refused::State)?;
    if undone.is_complete {
        store.resolve(&resolved(&run, &undone.run)).map_err(Refused::State)?;
    } else {
        let failed = undone.not_undone.iter().filter(|left| left.reason == Reason::Failed);
        let left = failed.map(|left| left.resource.clone()).collect();
        store.put(&pending.stuck(left)).map_err(Refused::State)?;
        log(&format!("run {run} is not undone completely"), &run);
    }
    Ok(undone)
}

fn log(text: &str, run: &str) {
    journal::write(journal::Priority::Error, text, &[("CCM_RUN", run)]);
}

fn resolved(run: &str, by: &str) -> Resolved {
    Resolved { run: run.to_owned(), outcome: Outcome::Undone(by.to_owned()) }
}

/// Applies the resources that undo a run; `None` if the history does not have the run.
fn reverse(machine: &Machine, id: &str, origin: &Origin) -> Result<Option<(UndoneRun, Finished)>, Refused> {
    let directory = &machine.state.directory;
    let Some(history) = directory.history().map_err(Refused::State)? else { return Ok(None) };
    let Log { runs, .. } = history.read().map_err(Refused::State)?;
    let Some(record) = runs.iter().find(|run| run.start.run == id) else { return Ok(None) };
    let name = format!("undo of {id}");
    let begun = Request::begun(&runs, id);
    let request = Request { begun: &begun, ..Request::of(record, &[], false) };
    let mut reversal: Reversal = request.reversal(directory, &name);
    let not_undone = std::mem::take(&mut reversal.not_undone);
    let scope = Scope::new(ccm_expr::Map::new().into(), ccm_expr::Map::new().into(), PathBuf::from("/"));
    let manifest = reversal.into_manifest(scope);
    let origin = Origin {
        kind: RunKind::Undo,
        undo_of: Some(id.to_owned()),
        plan: None,
        confirm: None,
        ..origin.clone()
    };
    let mut engine = Engine::new(&machine.host, &machine.state, settings(machine), Session::begin());
    let mut run = Run::within_lock(machine, &mut engine, &origin);
    let mut silent = Silent;
    let mut witness = UndoWitness::new(&mut silent, not_undone);
    let finished = run.apply(&[(&manifest, &Selected::default())], &mut witness);
    let not_undone = witness.not_undone();
    let _ = run.finish();
    let is_complete = !finished.is_kept_out && not_undone.iter().all(|left| left.reason != Reason::Failed);
    let run = finished.summary.run.clone().unwrap_or_default();
    Ok(Some((UndoneRun { run, not_undone, is_complete }, finished)))
}

fn settings(machine: &Machine) -> Settings {
    Settings {
        mode: RunMode::Real,
        diffs: Diffs::Unwanted,
        detail: Detail::Outline,
        exclusion: Exclusion::WholeRun(Patience::Wait),
        read_ahead: machine.environment.read_ahead(),
        registrations: Registrations::Unwanted,
        task: Task::Apply,
        ignores_failures: true,
    }
}
