//! A path as it was: reading it with all its attributes, and restoring it.
//!
//! Extended attributes include access lists, capabilities and the `SELinux` label. A restored file has exactly the
//! recorded attributes: a new inode inherits none of the file that it replaces.

use std::{
    ffi::{CString, OsStr},
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, OFlags, XattrFlags, chownat, fchmod, fchown, fremovexattr, fsetxattr, fsync, ioctl_ficlone,
    },
    io::Errno,
};

use super::{
    attributes::{Attributes, refuse_hard_links},
    directory::{self, Parents},
    entry::{Entry, FileKind},
    error::{FileError, Operation, Problem},
    extended::{allowed, names, value},
    opening,
    walk::{self, DirHandle},
    write::TempFile,
};

/// Extended attributes: names and values.
pub type Extended = Vec<(String, Vec<u8>)>;

/// An entry with its extended attributes and, for a regular file, the file opened for reading.
pub struct Original {
    /// The entry.
    pub entry: Entry,
    /// Its extended attributes, sorted by name.
    pub extended: Extended,
    /// The open file, if the entry is a regular file.
    pub file: Option<File>,
}

/// Opens a path without following it and reads its attributes; `None` if it does not exist. Only regular files are
/// opened for reading: opening a FIFO or a device can block or have effects.
pub fn original(path: &Path) -> Result<Option<Original>, FileError> {
    read_original(path).map_err(|problem| FileError::new(Operation::Read, path, problem))
}

fn read_original(path: &Path) -> Result<Option<Original>, Problem> {
    let (place, name) = match walk::reach(path) {
        Err(Problem::ParentMissing { .. } | Problem::DanglingLink { .. }) => return Ok(None),
        reached => reached?,
    };
    let Some(seen) = place.entry(&name)? else { return Ok(None) };
    let flags = match seen.kind {
        FileKind::File => opening::READ,
        FileKind::Directory => opening::DIRECTORY,
        _ => return Ok(Some(Original { entry: seen, extended: Vec::new(), file: None })),
    };
    let opened = place.open(&name, flags).map_err(|errno| match errno {
        Errno::NOENT | Errno::LOOP | Errno::NOTDIR => Problem::Changed { at: place.at(&name) },
        errno => place.explain(errno, &name),
    })?;
    let entry = Entry::of(&opened, &place.at(&name))?;
    if !entry.is_same_file(&seen) {
        return Err(Problem::Changed { at: place.at(&name) });
    }
    let extended = read_extended(&opened).map_err(|errno| place.explain(errno, &name))?;
    let file = (entry.kind == FileKind::File).then(|| File::from(opened));
    Ok(Some(Original { entry, extended, file }))
}

fn read_extended(opened: &OwnedFd) -> Result<Extended, Errno> {
    let listed = match names(opened) {
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut extended = Vec::new();
    for name in listed {
        let Ok(text) = name.to_str() else { continue };
        match value(opened, name.as_c_str()) {
            Ok(value) => extended.push((text.to_owned(), value)),
            Err(Errno::NODATA | Errno::NOTSUP | Errno::PERM | Errno::ACCESS) => {}
            Err(errno) => return Err(errno),
        }
    }
    extended.sort();
    Ok(extended)
}

/// Makes `to` share the blocks of `from`; returns whether the file system supports that.
pub fn share_blocks(to: &File, from: &File) -> bool {
    ioctl_ficlone(to, from).is_ok()
}

/// Writes a file with exactly these attributes and replaces the entry at the path, which must not be a directory.
pub fn restore_file(
    path: &Path,
    attributes: Attributes,
    extended: &Extended,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let attempt = || {
        let mut draft = TempFile::among_others(path, attributes.uid)?;
        draft.pour(fill)?;
        draft.complete_with(|file| dress(file, attributes, extended))
    };
    attempt().map_err(|problem| FileError::new(Operation::Write, path, problem))
}

/// Gives the file or directory at the path exactly these attributes, if it is still the inspected one.
pub fn restore_attributes(
    path: &Path,
    expected: &Entry,
    attributes: Attributes,
    extended: &Extended,
) -> Result<(), FileError> {
    let attempt = || {
        let (place, name) = walk::reach(path)?;
        place.permits(attributes.uid)?;
        set_all(&place, &name, expected, attributes, extended)
    };
    attempt().map_err(|problem| FileError::new(Operation::SetAttributes, path, problem))
}

/// Creates a directory with exactly these attributes in place of a file, a link or no entry; sets the attributes of an
/// existing directory.
pub fn restore_directory(path: &Path, attributes: Attributes, extended: &Extended) -> Result<(), FileError> {
    match crate::inspect(path)?.map(|entry| entry.kind) {
        None => directory::make_directory(path, attributes, Parents::Expect)?,
        Some(FileKind::Directory) => {}
        Some(FileKind::Symlink { .. }) => {
            crate::remove(path)?;
            directory::make_directory(path, attributes, Parents::Expect)?;
        }
        Some(_) => directory::replace_file_with_directory(path, attributes)?,
    }
    match crate::inspect(path)? {
        Some(entry) if entry.kind == FileKind::Directory => {
            restore_attributes(path, &entry, attributes, extended)
        }
        _ => {
            let problem = Problem::Changed { at: path.to_owned() };
            Err(FileError::new(Operation::MakeDirectory, path, problem))
        }
    }
}

/// Gives the symbolic link at the path its owner.
pub fn restore_link_owner(path: &Path, attributes: Attributes) -> Result<(), FileError> {
    let attempt = || {
        let (place, name) = walk::reach(path)?;
        let found = place.entry(&name)?;
        let is_link = found.as_ref().is_some_and(|entry| matches!(entry.kind, FileKind::Symlink { .. }));
        if found.is_some_and(|entry| (entry.uid, entry.gid) == (attributes.uid, attributes.gid)) {
            return Ok(());
        }
        place.permits(attributes.uid)?;
        if !is_link {
            return Err(Problem::Changed { at: place.at(&name) });
        }
        let (uid, gid) = attributes.owner();
        chownat(place.directory(), &name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| place.explain(errno, &name))
    };
    attempt().map_err(|problem| FileError::new(Operation::SetAttributes, path, problem))
}

fn set_all(
    place: &DirHandle,
    name: &OsStr,
    expected: &Entry,
    attributes: Attributes,
    extended: &Extended,
) -> Result<(), Problem> {
    let flags = if expected.kind == FileKind::Directory { opening::DIRECTORY } else { opening::READ };
    let found = place.open(name, OFlags::PATH).map_err(|errno| place.explain(errno, name))?;
    let entry = Entry::of(&found, &place.at(name))?;
    if !entry.is_same_file(expected) {
        return Err(Problem::Changed { at: place.at(name) });
    }
    refuse_hard_links(place, name, &entry)?;
    let opened = place.open(name, flags).map_err(|errno| place.explain(errno, name))?;
    if !Entry::of(&opened, &place.at(name))?.is_same_file(expected) {
        return Err(Problem::Changed { at: place.at(name) });
    }
    dress(&opened, attributes, extended).map_err(|errno| place.explain(errno, name))?;
    match fsync(&opened) {
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        Err(source) => Err(Problem::Unsynced { at: place.at(name), source }),
    }
}

/// Sets owner, extended attributes and mode. The owner comes first, because the kernel drops setuid bits and capabilities
/// when it changes; until the end the mode permits only the owner.
fn dress(opened: impl AsFd, attributes: Attributes, extended: &Extended) -> Result<(), Errno> {
    let opened = opened.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
    fchmod(&opened, Attributes { mode: attributes.mode & 0o700, ..attributes }.mode())?;
    let (uid, gid) = attributes.owner();
    fchown(&opened, uid, gid)?;
    for name in names(&opened).unwrap_or_default() {
        let is_recorded = extended.iter().any(|(recorded, _)| recorded.as_bytes() == name.to_bytes());
        // A label is always there, and only its value matters.
        if !is_recorded && !name.to_bytes().starts_with(b"security.selinux") {
            allowed(fremovexattr(&opened, name.as_c_str()))?;
        }
    }
    for (name, value) in extended {
        let Ok(name) = CString::new(name.as_str()) else { continue };
        allowed(fsetxattr(&opened, name.as_c_str(), value, XattrFlags::empty()))?;
    }
    fchmod(&opened, attributes.mode())
}
