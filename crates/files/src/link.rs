//! Symbolic links, which appear and change at once.

use std::{ffi::OsStr, path::Path};

use rustix::{
    fs::{RenameFlags, fsync, renameat, renameat_with, symlinkat},
    io::Errno,
    process::geteuid,
};

use super::{
    check::may_remove_tree,
    entry::{CopyInterrupted, FileKind},
    error::{FileError, Operation, Problem},
    remove, temporary,
    walk::{self, DirHandle},
};

/// Whether a link may replace a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTheWay {
    /// It stays, and the link is not made.
    Stays,
    /// It is removed, a directory with everything in it.
    Goes,
}

/// The name of a new link in the private directory that it is made in.
const NEW: &str = "link";

/// Makes a symbolic link at `path`, in place of another link or of nothing, and with [`InTheWay::Goes`] of anything.
///
/// It is made in a temporary directory beside its place and renamed from there: a link has no descriptor that could be
/// locked, a directory has, and [`sweep`](super::sweep) finds what a killed run left. A directory in the way trades
/// places with it, and is removed where nobody sees it.
pub fn make_link(
    path: &Path,
    target: &Path,
    in_the_way: InTheWay,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), FileError> {
    let mut attempt = || {
        let (place, name) = walk::reach(path)?;
        place.trust().permits_whole_file()?;
        place.refuse_own_way(&name)?;
        let found = place.entry(&name)?;
        match &found {
            Some(entry) if matches!(entry.kind, FileKind::Symlink { .. }) => {}
            Some(_) if in_the_way == InTheWay::Stays => {
                return Err(Problem::Changed { at: place.at(&name) });
            }
            Some(entry) => may_remove_tree(&place, &name, entry, &|_| false, tick)?,
            None => {}
        }
        let is_directory = found.is_some_and(|entry| entry.kind == FileKind::Directory);
        let made = temporary::directory(&place, geteuid().as_raw())?;
        symlinkat(target, &made.descriptor, NEW).map_err(|errno| place.explain(errno, &name))?;
        match fsync(&made.descriptor) {
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => {}
            Err(source) => return Err(Problem::Unsynced { at: place.at(&name), source }),
        }
        let barrier = place.dir_sync()?;
        if is_directory {
            trade(&made.descriptor, &place, &name, tick)?;
        } else {
            renameat(&made.descriptor, NEW, place.directory(), &name)
                .map_err(|errno| moved(&place, &name, errno))?;
        }
        drop(made);
        barrier.sync()
    };
    attempt().map_err(|problem| FileError::new(Operation::MakeLink, path, problem))
}

/// Puts the link where a directory is, which goes to where the link was made.
fn trade(
    made: impl rustix::fd::AsFd,
    place: &DirHandle,
    name: &OsStr,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), Problem> {
    match renameat_with(&made, NEW, place.directory(), name, RenameFlags::EXCHANGE) {
        // Not every file system can exchange two names; there the path is empty for an instant.
        Err(Errno::INVAL | Errno::NOSYS) => {
            remove::tree(place, name, tick)?;
            renameat(&made, NEW, place.directory(), name).map_err(|errno| moved(place, name, errno))
        }
        traded => traded.map_err(|errno| moved(place, name, errno)),
    }
}

fn moved(place: &DirHandle, name: &OsStr, errno: Errno) -> Problem {
    match errno {
        Errno::NOENT | Errno::ISDIR => Problem::Changed { at: place.at(name) },
        errno => place.explain(errno, name),
    }
}
