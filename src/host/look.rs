//! Whether something is at a path and what it is, with links followed as any program would. What is found can be gone by the
//! time that it is opened: whoever acts on a path goes through `files`.

use std::{
    io,
    path::{Path, PathBuf},
};

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}

/// As [`exists`], but a link counts also if it leads nowhere.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}

pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

pub(crate) fn is_link(path: &Path) -> bool {
    path.is_symlink()
}

/// Returns the path without links, `.` and `..`.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}
