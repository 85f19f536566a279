//! Whether systemd has read the files of units as they are now.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use crate::{resource::Context, vocabulary::Reference};

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

/// What could have happened to units since systemd last read their files. Moments are numbers of resources that the run
/// had touched by then.
#[derive(Default)]
pub(super) struct ReloadTracker {
    /// Up to when it is known what the run has done.
    noted: usize,
    /// When units were last read from disk.
    reloaded: Option<usize>,
    /// When the directories of units were last changed, as far as that is known to be of no concern.
    directories: Option<Vec<Option<(i64, i64)>>>,
}

/// What the invalidation of other resources mean for what is known about units.
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
        let invalidation = cx.touched().iter().skip(self.noted).map(|touched| match touched.kind.as_str() {
            "service" => Invalidation::None,
            "file" if is_of_units(Path::new(&touched.name)) => Invalidation::Files,
            "file" => Invalidation::Activity,
            _ => Invalidation::Anything,
        });
        match invalidation.max() {
            Some(Invalidation::Anything) if changed() => Invalidation::Files,
            invalidation => invalidation.unwrap_or(Invalidation::None),
        }
    }

    /// Whatever the run has done so far has been taken into account.
    pub(super) fn note(&mut self, cx: &Context) {
        self.noted = cx.touched().len();
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
        let since = |moment| cx.touched().iter().skip(moment).any(is_of_unknown_effect);
        self.reloaded.is_none_or(since)
    }
}

/// Whether a resource may do more than its name tells.
pub(super) fn is_of_unknown_effect(touched: &Reference) -> bool {
    !matches!(touched.kind.as_str(), "file" | "service")
}

/// Whether a file is one that units are made of.
pub(super) fn is_of_units(path: &Path) -> bool {
    REALMS.iter().any(|realm| path.starts_with(realm))
}

/// When something last came to the directories of units or left them. A file that was written in place is noticed by
/// systemd itself, once it has read it.
fn directories() -> Vec<Option<(i64, i64)>> {
    let changed = |path: &&str| fs::metadata(path).ok().map(|found| (found.mtime(), found.mtime_nsec()));
    UNIT_DIRECTORIES.iter().map(changed).collect()
}
