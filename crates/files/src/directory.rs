//! Directories, which appear with their attributes.

use std::{ffi::OsStr, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, RenameFlags, fchmod, fchown, fsync, unlinkat},
    io::Errno,
    process::{getegid, geteuid},
};

use super::{
    attributes::{self, Attributes},
    entry::FileKind,
    error::{FileError, Operation, Problem},
    temporary::{self, Temporary},
    walk::{self, DirHandle, Walked},
};

/// Whether missing parent directories are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    /// They are made, mode 0755, for the user running the program; below a directory of another user, for the owner
    /// of the wanted one.
    Make,
    /// It is an error.
    Expect,
}

/// Makes a directory, which appears with its attributes; one that is there already gets them in place.
pub fn make_directory(path: &Path, attributes: Attributes, parents: Parents) -> Result<(), FileError> {
    let attempt = || {
        let (parent, name) = walk::split(path)?;
        let walked = walk::walk(parent)?;
        walked.place.permits(attributes.uid)?;
        let place = make_parents(walked, attributes, parents)?;
        match place.entry(name)? {
            None => make(&place, name, attributes),
            Some(entry) => {
                place.refuse_special(name, &entry)?;
                match entry.kind {
                    FileKind::Directory => attributes::set_directory(&place, name, &entry, attributes),
                    _ => Err(Problem::NotADirectory { component: place.at(name) }),
                }
            }
        }
    };
    attempt().map_err(|problem| FileError::new(Operation::MakeDirectory, path, problem))
}

/// Puts an empty directory where a file is.
pub fn replace_file_with_directory(path: &Path, attributes: Attributes) -> Result<(), FileError> {
    let attempt = || {
        let (place, name) = walk::reach(path)?;
        place.permits(attributes.uid)?;
        let at = place.at(&name);
        match place.entry(&name)?.map(|entry| entry.kind) {
            None => return Err(Problem::Changed { at }),
            Some(FileKind::Directory) => return Err(Problem::IsADirectory { at }),
            Some(FileKind::Symlink { target }) => return Err(Problem::LinkInTheWay { link: at, target }),
            Some(_) => {}
        }
        let mut made = prepare(&place, &name, attributes)?;
        let barrier = place.dir_sync()?;
        trade(&mut made, &place, &name)?;
        barrier.sync()
    };
    attempt().map_err(|problem| FileError::new(Operation::MakeDirectory, path, problem))
}

pub(super) fn make_parents(
    Walked { mut place, missing }: Walked,
    attributes: Attributes,
    parents: Parents,
) -> Result<DirHandle, Problem> {
    let attributes = parent_attributes(&place, attributes);
    for name in missing {
        if parents == Parents::Expect {
            return Err(Problem::ParentMissing {
                missing: place.at(&name),
                nearest: place.path().to_owned(),
            });
        }
        make(&place, &name, attributes)?;
        place = place.enter(&name)?;
    }
    Ok(place)
}

fn parent_attributes(place: &DirHandle, wanted: Attributes) -> Attributes {
    if place.trust().is_below_a_stranger() {
        Attributes { mode: 0o755, ..wanted }
    } else {
        Attributes { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode: 0o755 }
    }
}

fn make(place: &DirHandle, name: &OsStr, attributes: Attributes) -> Result<(), Problem> {
    let mut made = prepare(place, name, attributes)?;
    let barrier = place.dir_sync()?;
    put(&mut made, name).map_err(|errno| match errno {
        Errno::EXIST | Errno::NOENT => Problem::Changed { at: place.at(name) },
        errno => place.explain(errno, name),
    })?;
    barrier.sync()
}

/// Makes a directory under a temporary name and gives it everything but its own.
fn prepare<'p>(
    place: &'p DirHandle,
    name: &OsStr,
    attributes: Attributes,
) -> Result<Temporary<&'p DirHandle, OwnedFd>, Problem> {
    let made = temporary::directory(place, attributes.uid)?;
    let dressed = || {
        let (uid, gid) = attributes.owner();
        fchown(&made.descriptor, uid, gid)?;
        fchmod(&made.descriptor, attributes.mode())
    };
    dressed().map_err(|errno| place.explain(errno, name))?;
    match fsync(&made.descriptor) {
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(made),
        Err(source) => Err(Problem::Unsynced { at: place.at(name), source }),
    }
}

/// Gives a prepared directory its name, where nothing is.
fn put(made: &mut Temporary<&DirHandle, OwnedFd>, name: &OsStr) -> Result<(), Errno> {
    match made.rename(name, RenameFlags::NOREPLACE) {
        // Not every file system can promise this. Without it, at worst an empty directory is replaced.
        Err(Errno::INVAL | Errno::NOSYS) => made.rename(name, RenameFlags::empty()),
        result => result,
    }
}

/// Gives a prepared directory the name of a file, and removes the file.
fn trade(made: &mut Temporary<&DirHandle, OwnedFd>, place: &DirHandle, name: &OsStr) -> Result<(), Problem> {
    let traded = match made.trade_with_file(name) {
        // Not every file system can exchange two names; there the path is empty for an instant.
        Err(Errno::INVAL | Errno::NOSYS) => {
            unlinkat(place.directory(), name, AtFlags::empty()).and_then(|()| put(made, name))
        }
        traded => traded,
    };
    traded.map_err(|errno| match errno {
        Errno::EXIST | Errno::NOENT | Errno::ISDIR => Problem::Changed { at: place.at(name) },
        errno => place.explain(errno, name),
    })
}
