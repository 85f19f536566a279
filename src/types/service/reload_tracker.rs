//! Whether systemd has read the files of units as they are now.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use crate::resource::{Context, Effects, History, Moment, PathEffect, Unknown};

/// Below these is everything that systemd and its generators make units of.
const REALMS: [&str; 6] = [
    "/etc/systemd",
    "/run/systemd",
    "/usr/lib/systemd",
    "/lib/systemd",
    "/usr/local/lib/systemd",
    "/etc/init.d",
];

/// The units themselves are in these.
pub(super) const UNIT_DIRECTORIES: [&str; 6] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/usr/local/lib/systemd/system",
    "/etc/init.d",
];

/// What could have happened to units since systemd last read their files.
#[derive(Default)]
pub(super) struct ReloadTracker {
    /// Up to when it is known what the run has done.
    noted: Moment,
    /// When units were last read from disk.
    reloaded: Option<Moment>,
    /// When the directories of units were last changed, as far as that is known to be of no concern.
    directories: Option<Vec<Option<(i64, i64)>>>,
}

/// What the actions on other resources mean for what is known about units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invalidation {
    None,
    /// A unit may have been started or stopped.
    Activity,
    /// A unit may also have been enabled or disabled.
    Anything,
    /// A file of a unit may have been changed.
    Files,
}

impl ReloadTracker {
    /// What the run has done to other resources since this was last asked and [`ReloadTracker::note`]d.
    pub(super) fn invalidation(&self, cx: &Context) -> Invalidation {
        let changed = || self.directories.as_ref() != Some(&directories());
        let since = cx.history().map(|history| history.since(self.noted)).unwrap_or_default();
        let invalidation = since.into_iter().map(Invalidation::by);
        match invalidation.max() {
            Some(Invalidation::Anything) if changed() => Invalidation::Files,
            invalidation => invalidation.unwrap_or(Invalidation::None),
        }
    }

    /// Whatever the run has done so far has been taken into account.
    pub(super) fn note(&mut self, cx: &Context) {
        self.noted = cx.history().map(History::now).unwrap_or_default();
        self.directories = Some(directories());
    }

    /// Units have been read from disk, or could not be.
    pub(super) fn note_reload(&mut self, cx: &Context) {
        self.note(cx);
        self.reloaded = Some(self.noted);
    }

    pub(super) fn has_reloaded(&self) -> bool {
        self.reloaded.is_some()
    }

    /// Whether to read units from disk could bring one that systemd does not know.
    pub(super) fn could_bring_one(&self, cx: &Context) -> bool {
        let happened = |moment| {
            cx.history().is_some_and(|history| history.since(moment).into_iter().any(may_bring_units))
        };
        self.reloaded.is_none_or(happened)
    }
}

impl Invalidation {
    /// What one action means. Other units than the one that a service asked for are that service's own business.
    fn by(effects: &Effects) -> Self {
        if may_bring_units(effects) {
            Self::Anything
        } else if effects.paths.iter().any(|effect| is_of_units(effect.path())) {
            Self::Files
        } else if effects.paths.is_empty() {
            Self::None
        } else {
            // A path unit may watch it.
            Self::Activity
        }
    }
}

/// Whether an action may leave units that it does not name.
fn may_bring_units(effects: &Effects) -> bool {
    let fills = |effect: &PathEffect| matches!(effect, PathEffect::Filled { .. });
    effects.unknown > Unknown::Nothing || effects.paths.iter().any(fills)
}

/// Whether a file is one that units are made of.
pub(super) fn is_of_units(path: &Path) -> bool {
    REALMS.iter().any(|realm| path.starts_with(realm))
}

/// When something last came to the directories of units or left them. A file that was written in place is noticed by
/// systemd itself, once it has read it.
#[expect(clippy::disallowed_methods, reason = "only the time of the directory is asked for")]
fn directories() -> Vec<Option<(i64, i64)>> {
    let changed = |path: &&str| fs::metadata(path).ok().map(|found| (found.mtime(), found.mtime_nsec()));
    UNIT_DIRECTORIES.iter().map(changed).collect()
}
