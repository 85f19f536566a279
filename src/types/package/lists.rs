//! How old the lists of what the sources offer are, and the files that name the sources.

#![allow(clippy::disallowed_methods, reason = "only the times of the lists are asked for")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// How the lists and the files that name the sources stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lists {
    /// When they were last brought up to date; `None` when there are none.
    pub(super) updated: Option<SystemTime>,
    /// The file of sources that was changed last, and when.
    pub(super) source: Option<(PathBuf, SystemTime)>,
}

/// Returns when a file or directory was last changed.
pub(super) fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Returns what is in a directory, or nothing when it cannot be read.
pub(super) fn entries(directory: &str) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether the name of a file has this beginning and end.
pub(super) fn is_named(path: &Path, start: &str, end: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
}

/// Returns the one that was changed last, and when.
pub(super) fn last_changed(paths: impl Iterator<Item = PathBuf>) -> Option<(PathBuf, SystemTime)> {
    paths.filter_map(|path| Some((changed(&path)?, path))).max().map(|(time, path)| (path, time))
}
