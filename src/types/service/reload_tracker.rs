//! Tracks whether systemd has loaded the current unit files.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use crate::resource::{Context, Effects, History, Moment, PathEffect, Unknown};

/// Directories with all files that systemd and its generators read for units.
const REALMS: [&str; 6] = [
    "/etc/systemd",
    "/run/systemd",
    "/usr/lib/systemd",
    "/lib/systemd",
    "/usr/local/lib/systemd",
    "/etc/init.d",
];

/// Directories of unit files.
pub(super) const UNIT_DIRECTORIES: [&str; 6] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/usr/local/lib/systemd/system",
    "/etc/init.d",
];

/// Changes to units since systemd last loaded their files.
#[derive(Default)]
pub(super) struct ReloadTracker {
    /// Time up to which the changes of the run are known.
    noted: Moment,
    /// Time of the last daemon-reload.
    reloaded: Option<Moment>,
    /// Change times of the unit directories that need no reload.
    directories: Option<Vec<Option<(i64, i64)>>>,
}

/// Effect of other resources on the known state of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invalidation {
    None,
    /// Units might have been started or stopped.
    Activity,
    /// Units might also have been enabled or disabled.
    Anything,
    /// Unit files might have changed.
    Files,
}

impl ReloadTracker {
    /// Returns the effect of all changes of the run since the last [`ReloadTracker::note`].
    pub(super) fn invalidation(&self, cx: &Context) -> Invalidation {
        let changed = || self.directories.as_ref() != Some(&directories());
        let since = cx.history().map(|history| history.since(self.noted)).unwrap_or_default();
        let invalidation = since.into_iter().map(Invalidation::by);
        match invalidation.max() {
            Some(Invalidation::Anything) if changed() => Invalidation::Files,
            invalidation => invalidation.unwrap_or(Invalidation::None),
        }
    }

    /// Marks all changes of the run so far as considered.
    pub(super) fn note(&mut self, cx: &Context) {
        self.noted = cx.history().map(History::now).unwrap_or_default();
        self.directories = Some(directories());
    }

    /// Records a daemon-reload, or a failed one.
    pub(super) fn note_reload(&mut self, cx: &Context) {
        self.note(cx);
        self.reloaded = Some(self.noted);
    }

    pub(super) fn has_reloaded(&self) -> bool {
        self.reloaded.is_some()
    }

    /// Returns whether a daemon-reload could load a unit that systemd does not know.
    pub(super) fn could_bring_one(&self, cx: &Context) -> bool {
        let happened = |moment| {
            cx.history().is_some_and(|history| history.since(moment).into_iter().any(may_bring_units))
        };
        self.reloaded.is_none_or(happened)
    }
}

impl Invalidation {
    /// Returns the effect of one action. Other units than that of the service are the concern of their own resources.
    fn by(effects: &Effects) -> Self {
        if may_bring_units(effects) {
            Self::Anything
        } else if effects.paths.iter().any(|effect| is_of_units(effect.path())) {
            Self::Files
        } else if effects.paths.is_empty() {
            Self::None
        } else {
            // A path unit might watch the path.
            Self::Activity
        }
    }
}

/// Returns whether an action might create units that it does not name.
fn may_bring_units(effects: &Effects) -> bool {
    let fills = |effect: &PathEffect| matches!(effect, PathEffect::Filled { .. });
    effects.unknown > Unknown::Nothing || effects.paths.iter().any(fills)
}

/// Returns whether units are made from a file.
pub(super) fn is_of_units(path: &Path) -> bool {
    REALMS.iter().any(|realm| path.starts_with(realm))
}

/// Returns the times of the last changes of the unit directories. Once loaded, systemd notices files that are written
/// in place itself.
#[expect(clippy::disallowed_methods, reason = "only the time of the directory is asked for")]
fn directories() -> Vec<Option<(i64, i64)>> {
    let changed = |path: &&str| fs::metadata(path).ok().map(|found| (found.mtime(), found.mtime_nsec()));
    UNIT_DIRECTORIES.iter().map(changed).collect()
}
