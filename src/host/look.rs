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

/// Returns the files with any of these extensions in a directory and those in it, relative to it, in order. Skips hidden entries and
/// does not follow links.
pub(crate) fn files_below(root: &Path, extensions: &[&str], deepest: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let Ok(entries) = root.join(&below).read_dir() else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            let path = below.join(&name);
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() && below.components().count() < deepest {
                open.push(path);
            } else if kind.is_file()
                && path.extension().is_some_and(|end| extensions.iter().any(|known| end == *known))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the names in a directory that are UTF-8, in order; none if it cannot be read.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Returns the files in a directory and those in it, relative to it, in order. Follows links to files, and skips `.git`.
pub(crate) fn all_files_below(root: &Path, deepest: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let Ok(entries) = root.join(&below).read_dir() else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = below.join(entry.file_name());
            if kind.is_dir() && entry.file_name() != ".git" && below.components().count() < deepest {
                open.push(path);
            } else if entry.path().is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns whether a file has a permission to execute it.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}
