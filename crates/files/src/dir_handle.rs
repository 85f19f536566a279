//! Reads the entries of an open directory, and finds why an entry cannot be changed.

use std::{
    ffi::OsStr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, StatxAttributes, StatxFlags, fsync, openat, readlinkat, statat, statx},
    io::Errno,
};

use super::{
    entry::{Entry, FileKind},
    error::{Flag, Problem},
    opening,
    walk::DirHandle,
};

impl DirHandle {
    /// Returns the entry with this name.
    pub(super) fn entry(&self, name: &OsStr) -> Result<Option<Entry>, Problem> {
        let found = statat(self.directory(), name, AtFlags::SYMLINK_NOFOLLOW)
            .and_then(|stat| Entry::from_stat(&stat, || readlinkat(self.directory(), name, Vec::new())));
        match found {
            Ok(entry) => Ok(Some(entry)),
            Err(Errno::NOENT) => Ok(None),
            // No longer a link when its target was asked for.
            Err(Errno::INVAL) => Err(Problem::Changed { at: self.at(name) }),
            Err(errno) => Err(self.explain(errno, name)),
        }
    }

    /// Opens the entry with this name, never through a link.
    pub(super) fn open(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat(self.directory(), name, flags.union(opening::OURS), Mode::empty())
    }

    /// Makes ready to bring the names in this directory to disk. This comes before they are changed, so that a lack of
    /// descriptors is found out while nothing has happened yet.
    pub(super) fn dir_sync(&self) -> Result<DirSync, Problem> {
        let path = self.path().to_owned();
        match self.open(OsStr::new("."), opening::DIRECTORY) {
            Ok(directory) => Ok(DirSync { path, directory: Some(directory) }),
            // A directory that may be written but not read. Each name in it is still old or new, never between.
            Err(Errno::ACCESS) => Ok(DirSync { path, directory: None }),
            Err(errno) => Err(Problem::from_errno(errno, &path)),
        }
    }

    /// The problem behind an error that came up with a name here. The kernel says only "not permitted" for a file
    /// that is immutable, or that lies in a directory that is.
    pub(super) fn explain(&self, errno: Errno, name: &OsStr) -> Problem {
        match errno {
            Errno::PERM => {
                self.protection(name).unwrap_or_else(|| Problem::from_errno(errno, &self.at(name)))
            }
            Errno::ACCESS | Errno::ROFS | Errno::NOSPC | Errno::DQUOT => {
                Problem::from_errno(errno, self.path())
            }
            _ => Problem::from_errno(errno, &self.at(name)),
        }
    }

    /// The problem behind an error that came up with a name that was to be new here, and means nothing to anybody.
    pub(super) fn explain_new(&self, errno: Errno) -> Problem {
        let protected = || self.protection_of_entry(OsStr::new("."));
        match errno {
            Errno::PERM => protected().unwrap_or_else(|| Problem::from_errno(errno, self.path())),
            // The directory itself was removed.
            Errno::NOENT => Problem::Changed { at: self.path().to_owned() },
            _ => Problem::from_errno(errno, self.path()),
        }
    }

    /// The attribute, if any, that keeps what is here under this name from being replaced or removed.
    pub(super) fn protection(&self, name: &OsStr) -> Option<Problem> {
        self.protection_of_entry(name).or_else(|| self.protection_of_entry(OsStr::new(".")))
    }

    /// The attribute, if any, that keeps what is here under this name as it is.
    pub(super) fn protection_of_entry(&self, name: &OsStr) -> Option<Problem> {
        protection(self.directory(), self.path(), name)
    }

    /// Whether another file system, or another part of one, is mounted on what is here under this name.
    pub(super) fn is_mount_point(&self, name: &OsStr) -> bool {
        file_attributes(self.directory(), name).contains(StatxAttributes::MOUNT_ROOT)
    }

    /// Refuses anything but a plain entry of the kinds that attributes are managed on.
    pub(super) fn refuse_special(&self, name: &OsStr, entry: &Entry) -> Result<(), Problem> {
        match &entry.kind {
            FileKind::File | FileKind::Directory => Ok(()),
            FileKind::Symlink { target } => {
                Err(Problem::LinkInTheWay { link: self.at(name), target: target.clone() })
            }
            _ => Err(Problem::Special { at: self.at(name) }),
        }
    }
}

/// The attribute, if any, that keeps what is in a directory under this name as it is; `.` is the directory itself.
pub(super) fn protection(directory: &OwnedFd, path: &Path, name: &OsStr) -> Option<Problem> {
    let attributes = file_attributes(directory, name);
    let flag = if attributes.contains(StatxAttributes::IMMUTABLE) {
        Flag::Immutable
    } else if attributes.contains(StatxAttributes::APPEND) {
        Flag::AppendOnly
    } else {
        return None;
    };
    let at = if name == "." { path.to_owned() } else { path.join(name) };
    Some(Problem::Protected { at, flag, source: Errno::PERM })
}

pub(super) fn file_attributes(directory: &OwnedFd, name: &OsStr) -> StatxAttributes {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(directory, name, flags, StatxFlags::empty())
        .map_or(StatxAttributes::empty(), |found| found.stx_attributes)
}

/// What stands between a change of names and the report that it is done.
#[must_use]
pub(super) struct DirSync {
    pub(super) path: PathBuf,
    directory: Option<OwnedFd>,
}

impl DirSync {
    /// Brings the names to disk.
    pub(super) fn sync(self) -> Result<(), Problem> {
        match self.directory.map_or(Ok(()), fsync) {
            // Some network file systems have nothing to sync in a directory.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            Err(source) => Err(Problem::Unsynced { at: self.path, source }),
        }
    }
}
