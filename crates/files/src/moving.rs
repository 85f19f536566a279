//! Moving a directory to another place.

use std::path::Path;

use rustix::{
    fs::{RenameFlags, renameat_with},
    io::Errno,
    process::{getegid, geteuid},
};

use super::{
    attributes::Attributes,
    directory::{Parents, make_parents},
    entry::FileKind,
    error::{FileError, Operation, Problem},
    walk,
};

/// Whether a directory was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The directory has its new name.
    Yes,
    /// Its new place is on another file system, where it would have to be copied to.
    ElsewhereOnly,
}

/// Moves a directory of `owner` with one rename to where nothing is. Directories that lead there and are missing are made.
pub fn move_directory(from: &Path, to: &Path, owner: u32) -> Result<Moved, FileError> {
    let attempt = || {
        let (place, name) = walk::reach(from)?;
        place.permits(owner)?;
        match place.entry(&name)? {
            Some(entry) if entry.kind == FileKind::Directory && entry.uid == owner => {}
            Some(entry) if entry.kind == FileKind::Directory => {
                return Err(Problem::Foreign { at: place.at(&name), owner: entry.uid });
            }
            Some(_) => return Err(Problem::NotADirectory { component: place.at(&name) }),
            None => return Err(Problem::Changed { at: place.at(&name) }),
        }
        let (parent, new_name) = walk::split(to)?;
        let walked = walk::walk(parent)?;
        walked.place.permits(owner)?;
        let ours = Attributes { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode: 0o755 };
        let new_place = make_parents(walked, ours, Parents::Make)?;
        let barriers = [new_place.dir_sync()?, place.dir_sync()?];
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(place.directory(), &name, new_place.directory(), new_name, flags) {
            Ok(()) => {}
            Err(Errno::XDEV) => return Ok(Moved::ElsewhereOnly),
            Err(Errno::EXIST) => return Err(Problem::Changed { at: new_place.at(new_name) }),
            Err(errno) => return Err(new_place.explain(errno, new_name)),
        }
        for barrier in barriers {
            barrier.sync()?;
        }
        Ok(Moved::Yes)
    };
    attempt().map_err(|problem| FileError::new(Operation::Move, from, problem))
}
