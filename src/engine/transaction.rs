//! Manifests whose changes are undone after a failure in them.

use std::fmt;

use jiff::Timestamp;

use super::{Engine, Finished, KeepPolicy, Observer, Recording, Report, RunMode, Selected};
use crate::{
    resource::{ErrorKind, OnFailure},
    session::{Session, new_id},
    state::history::{Change, Done, End, Recorder, RunKind, Start},
    template::Scope,
    undo::{NotUndone, Reason, Request},
};

/// The beginning of a manifest whose changes are undone after a failure.
#[derive(Clone, Copy)]
pub(super) struct Transaction {
    first: usize,
    policy: KeepPolicy,
}

/// Changes that were undone.
#[derive(Clone, Debug)]
pub(crate) struct Undone {
    /// The run that undid them.
    pub(crate) run: String,
    pub(crate) not_undone: Vec<NotUndone>,
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "its changes were undone by run {}", self.run)?;
        let left: Vec<&str> = self.not_undone.iter().map(|left| left.resource.as_str()).collect();
        if left.is_empty() { Ok(()) } else { write!(f, ", except those of {}", left.join(", ")) }
    }
}

impl Engine<'_> {
    /// Begins to remember changes, if a failure undoes them.
    pub(super) fn begin_transaction(&mut self, on_failure: OnFailure) -> Option<Transaction> {
        if on_failure != OnFailure::Undo || self.settings.mode != RunMode::Real {
            return None;
        }
        let recording = self.recording()?;
        let policy = std::mem::replace(&mut recording.policy, KeepPolicy::Required);
        Some(Transaction { first: recording.remembered.len(), policy })
    }

    /// Undoes the changes of a transaction if one of the events since `before` is a failure.
    pub(super) fn end_transaction(
        &mut self,
        transaction: Transaction,
        before: usize,
        observer: &mut dyn Observer,
    ) -> Option<Undone> {
        let has_failed = self.session.events()[before..].iter().any(|event| event.failed);
        let recording = self.recording()?;
        recording.policy = transaction.policy;
        let changes: Vec<(Change, Option<Done>)> = if recording.policy == KeepPolicy::Required {
            // An outer transaction could have to undo them, too.
            recording.remembered[transaction.first..].to_vec()
        } else {
            recording.remembered.split_off(transaction.first)
        };
        has_failed.then(|| self.undo(&changes, observer))
    }

    /// Undoes changes of the current run. That is a run of its own in the history.
    fn undo(&mut self, changes: &[(Change, Option<Done>)], observer: &mut dyn Observer) -> Undone {
        let undo_of = self.recording().map(|recording| recording.run().to_owned()).unwrap_or_default();
        let request = Request { changes, is_over: false, only: &[], force: false, begun: &[] };
        let mut reversal = request.reversal(&self.state.directory, &format!("undo of {undo_of}"));
        let now = Timestamp::now();
        let start =
            self.recording().map(|recording| recording.recorder().start().clone()).unwrap_or_default();
        let start = Start {
            run: new_id(now),
            start: now.to_string(),
            kind: RunKind::Undo,
            undo_of: Some(undo_of),
            ..start
        };
        let run = start.run.clone();
        let recorder = Recorder::new(self.state.directory.clone(), start);
        let scope = Scope::new(
            ccm_expr::Map::new().into(),
            ccm_expr::Map::new().into(),
            std::path::PathBuf::from("/"),
        );
        let not_undone = std::mem::take(&mut reversal.not_undone);
        let manifest = reversal.into_manifest(scope);
        let mut witness = UndoWitness { observer, not_undone };
        // A signal that stopped the manifest must not stop the undo, too.
        let calm = self.host.interrupt.requested().and_then(|_| self.host.uninterrupted().ok());
        let host = calm.as_ref().unwrap_or(self.host);
        // The events of the run name the failure. Those of its undo are only reported.
        let mut engine = Engine::new(host, self.state, self.settings, Session::begin());
        engine.record_in(Some(Recording::new(recorder, KeepPolicy::Large)));
        let finished = engine.apply(&manifest, &Selected::default(), None, &mut witness);
        let not_undone = witness.not_undone;
        if let Some(recording) = engine.recording() {
            // The record of the outer run tells which changes it made, and these are undone.
            let _ = recording.recorder().finish(end(&finished));
            let _ = recording.recorder().mark_undone();
        }
        Undone { run, not_undone }
    }
}

fn end(finished: &Finished) -> End {
    let summary = &finished.summary;
    End {
        exit_status: u8::from(summary.failed_resources > 0),
        total: summary.unique_resources,
        changed: summary.changed_resources,
        failed: summary.failed_resources,
        ..End::default()
    }
}

/// Notes which resources are not undone.
pub(crate) struct UndoWitness<'o> {
    observer: &'o mut dyn Observer,
    not_undone: Vec<NotUndone>,
}

impl<'o> UndoWitness<'o> {
    pub(crate) fn new(observer: &'o mut dyn Observer, not_undone: Vec<NotUndone>) -> Self {
        Self { observer, not_undone }
    }

    pub(crate) fn not_undone(self) -> Vec<NotUndone> {
        self.not_undone
    }
}

impl Observer for UndoWitness<'_> {
    fn rest(&mut self) -> Option<&mut dyn Observer> {
        Some(&mut *self.observer)
    }

    fn finished(&mut self, report: &Report) {
        self.not_undone.extend(report.not_undone());
        self.observer.finished(report);
    }
}

impl Report<'_> {
    /// Returns why the resource was not undone, in a run that undoes another.
    pub(crate) fn not_undone(&self) -> Option<NotUndone> {
        let error = self.errors.first()?;
        let reason = match error.kind {
            ErrorKind::ChangedSince { .. } | ErrorKind::StillInUse { .. } => Reason::Changed,
            ErrorKind::NotKept { .. } => Reason::NotKept,
            _ => Reason::Failed,
        };
        Some(NotUndone { resource: self.resource.to_string(), reason, detail: error.to_string() })
    }
}
