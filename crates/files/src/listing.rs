//! The names in a directory, read through its descriptor.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::{Dir, FileType, Mode, openat},
    io::Errno,
};

use super::{
    error::{FileError, Operation},
    opening, walk,
};

/// The names in a directory.
pub fn names(path: &Path) -> Result<Vec<OsString>, FileError> {
    let read = || {
        let place = walk::reach_directory(path)?;
        openat(place.directory(), ".", opening::DIRECTORY, Mode::empty())
            .and_then(|directory| list(directory)?.map(|listed| listed.map(|listed| listed.name)).collect())
            .map_err(|errno| place.explain(errno, OsStr::new(".")))
    };
    read().map_err(|problem| FileError::new(Operation::Read, path, problem))
}

/// Whether a file system is mounted on a directory.
pub fn is_mount_point(path: &Path) -> Result<bool, FileError> {
    let look = || Ok(walk::reach_directory(path)?.is_mount_point(OsStr::new(".")));
    look().map_err(|problem| FileError::new(Operation::Inspect, path, problem))
}

/// A name and, if the file system reports it, the kind of its entry.
pub(super) struct Listed {
    pub(super) name: OsString,
    pub(super) kind: FileType,
}

/// Reads a directory from its start. Names that are created or removed meanwhile can be missing or present.
pub(super) fn list(directory: impl AsFd) -> Result<impl Iterator<Item = Result<Listed, Errno>>, Errno> {
    let opened = openat(directory, ".", opening::DIRECTORY, Mode::empty())?;
    Ok(Dir::new(opened)?
        .filter(|entry| {
            !entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
        })
        .map(|entry| {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            Ok(Listed { name, kind: entry.file_type() })
        }))
}
