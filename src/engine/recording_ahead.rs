//! Records the changes of the next files together with the current one, so that all of them share a sync.
//!
//! A change that is recorded and not made does no harm: undo finds the earlier state in place. When ccm reaches the
//! resource, the record counts only if the change and the entry at the path are still the same.

use super::{
    converge::Attempts,
    pending_refreshes::{PendingRefreshes, Recorded},
    recording::{Recording, Subject},
};
use crate::{
    host::files::{self, Entry, Intent},
    resource::{Context, Difference, Effects, PathEffect, Resource, Trigger, Unknown},
    state::history::{Change, Depth, from_text},
};

/// Maximum number of changes that are recorded together.
const MOST: usize = 256;
/// Number of unchanged resources in a row after which ccm stops searching for changes.
const PATIENCE: usize = 16;
/// Copying a larger file takes longer than a sync.
const LARGEST: u64 = 64 << 10;

/// A change that is recorded before ccm reaches its resource.
pub(super) struct Ahead {
    pub(super) change: Change,
    depths: Vec<Depth>,
    summary: String,
    differences: Vec<Difference>,
    effects: Effects,
    /// Entries at the paths of the change.
    entries: Vec<Option<Entry>>,
}

impl Attempts<'_> {
    /// Returns the change that was recorded for a resource, if nothing differs since.
    pub(super) fn take_recorded(
        recording: &mut Recording,
        subject: &Subject,
    ) -> Option<(Change, Vec<Depth>)> {
        let ahead = recording.ahead.remove(&subject.resource.reference())?;
        let is_same = subject.causes.is_empty()
            && ahead.summary == subject.pending.summary
            && ahead.differences == subject.pending.differences
            && ahead.effects == subject.effects.clone().without_texts()
            && ahead.entries == entries(&ahead.change);
        is_same.then_some((ahead.change, ahead.depths))
    }

    /// Describes the changes of the files that follow the resource, as far as they are certain.
    pub(super) fn describe_next(
        &self,
        recording: &mut Recording,
        refreshes: &PendingRefreshes,
    ) -> Vec<Ahead> {
        let mut found = Vec::new();
        let common = &self.resource.common;
        if self.wanted.preparation().is_none() || common.timeout.is_some() || !self.causes.is_empty() {
            return found;
        }
        let mut patience = PATIENCE;
        for next in self.next.iter().take_while(|next| self.is_certain(next)) {
            if patience == 0 || found.len() == MOST || next.kind.name() != self.resource.kind.name() {
                break;
            }
            match self.describe_early(next, recording, refreshes) {
                Some(ahead) => {
                    found.push(ahead);
                    patience = PATIENCE;
                }
                None => patience -= 1,
            }
        }
        found
    }

    fn describe_early(
        &self,
        next: &Resource,
        recording: &mut Recording,
        refreshes: &PendingRefreshes,
    ) -> Option<Ahead> {
        if next.hides_anything() || refreshes.has_subscribers(next, &self.place.within) {
            return None;
        }
        let late = next.wanted_now(&self.place.scope, &self.place.manifest.source).ok()?;
        let wanted = late.as_deref().unwrap_or(next.wanted.as_ref());
        let mut silent = |_: &str| {};
        let own = next.own_scope(&self.place.scope);
        let directory = &self.place.manifest.working_directory;
        let cx = Context::new(self.host, self.state, &self.place.prediction, directory, None, &mut silent)
            .within(self.place.settings.mode, self.history)
            .among(self.resources)
            .seeing(own.as_ref().unwrap_or(&self.place.scope))
            .about(next)
            .triggered_by(Trigger::Turn);
        let have = wanted.inspect(self.provider, &cx).ok()?;
        let pending = wanted.compare(&have, Trigger::Turn).ok()??;
        if wanted.joint_validation().is_some_and(|joint| joint.concerns(&pending)) {
            return None;
        }
        let effects = wanted.effects(&have, &pending, &cx);
        if !is_small(&effects) {
            return None;
        }
        let subject = Subject {
            resource: next,
            wanted,
            provider: self.provider,
            have: &have,
            pending: &pending,
            effects: &effects,
            causes: &[],
            diff: None,
        };
        let (mut change, depths) = self.describe(recording, &subject, &Recorded::default(), &cx).ok()?;
        change.is_ahead = true;
        let entries = entries(&change);
        let (summary, differences) = (pending.summary.clone(), pending.differences.clone());
        Some(Ahead { change, depths, summary, differences, effects: effects.without_texts(), entries })
    }
}

/// Whether an action writes only small files: each write is complete or has no effect.
fn is_small(effects: &Effects) -> bool {
    let is_small = |effect: &PathEffect| {
        let PathEffect::Operation { path, intent: Intent::Write(_), .. } = effect else { return false };
        files::inspect(path).is_ok_and(|entry| entry.is_none_or(|entry| entry.size <= LARGEST))
    };
    effects.unknown == Unknown::Nothing && effects.paths.iter().all(is_small)
}

fn entries(change: &Change) -> Vec<Option<Entry>> {
    let entry = |path: &str| files::inspect(&from_text(path)?).ok().flatten();
    change.paths.iter().map(|path| entry(&path.path)).collect()
}
