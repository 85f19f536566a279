//! Moves a finished tree into a directory that exists.
//!
//! Each name is moved by one rename: a file replaces a file at once, and a directory that is new arrives with all that
//! is in it. Directories on both sides are merged; the one that was there keeps its owner and mode. Everything that
//! could stand in the way is found out before the first name is moved.

use std::{
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, RenameFlags, fchmod, fstat, openat, renameat, renameat_with, statat},
    io::Errno,
};

use super::{entry::FileKind, error::Problem, listing::list, opening, temporary::Temporary, walk::DirHandle};

/// Whether what is at a path of the target may make room for something of another kind. Paths are relative to it.
pub(super) type Yields<'a> = &'a dyn Fn(&Path) -> bool;

/// How to move.
pub(super) struct Merge<'a> {
    /// Whom the tree belongs to.
    pub(super) owner: u32,
    /// The path that appears after all others.
    pub(super) last: Option<&'a Path>,
    pub(super) yields: Yields<'a>,
}

/// How one name is published.
enum Fate {
    /// It is moved, to where nothing is or over what is there.
    Move,
    /// It changes places with something of another kind, which then goes with the rest of the staging.
    Exchange,
    /// Both are directories.
    Descend,
}

impl Merge<'_> {
    /// Finds conflicting entries, without a change.
    pub(super) fn survey(&self, staged: &Temporary<DirHandle, OwnedFd>) -> Result<(), Problem> {
        self.survey_level(&staged.descriptor, &staged.place, Path::new(""))
    }

    pub(super) fn run(&self, staged: &Temporary<DirHandle, OwnedFd>) -> Result<(), Problem> {
        self.run_level(&staged.descriptor, &staged.place, Path::new(""))
    }

    fn survey_level(&self, staged: &OwnedFd, target: &DirHandle, path: &Path) -> Result<(), Problem> {
        target.permits(self.owner)?;
        for name in self.names(staged, target, path)? {
            let below = path.join(&name);
            if let Fate::Descend = self.fate(staged, target, &name, &below)? {
                self.survey_level(&open(staged, &name, target)?, &target.enter(&name)?, &below)?;
            }
        }
        Ok(())
    }

    fn run_level(&self, staged: &OwnedFd, target: &DirHandle, path: &Path) -> Result<(), Problem> {
        target.permits(self.owner)?;
        let barrier = target.dir_sync()?;
        for name in self.names(staged, target, path)? {
            let below = path.join(&name);
            let moved = match self.fate(staged, target, &name, &below)? {
                Fate::Move => move_in(staged, target, &name),
                Fate::Exchange => {
                    renameat_with(staged, &name, target.directory(), &name, RenameFlags::EXCHANGE)
                }
                Fate::Descend => {
                    let inner = open(staged, &name, target)?;
                    // Names can be taken only out of a directory that may be written to.
                    fchmod(&inner, Mode::RWXU).map_err(|errno| target.explain(errno, &name))?;
                    self.run_level(&inner, &target.enter(&name)?, &below)?;
                    Ok(())
                }
            };
            moved.map_err(|errno| target.explain(errno, &name))?;
        }
        barrier.sync()
    }

    fn fate(&self, staged: &OwnedFd, target: &DirHandle, name: &OsStr, path: &Path) -> Result<Fate, Problem> {
        let new =
            statat(staged, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| target.explain(errno, name))?;
        let is_directory = FileType::from_raw_mode(new.st_mode) == FileType::Directory;
        let Some(old) = target.entry(name)? else { return Ok(Fate::Move) };
        let at = || target.at(name);
        match (is_directory, old.kind) {
            (_, FileKind::Directory) if target.is_mount_point(name) => {
                Err(Problem::OtherFileSystem { at: at() })
            }
            (true, FileKind::Directory) => Ok(Fate::Descend),
            (false, kind) if is_replaceable(&kind) => Ok(Fate::Move),
            (_, kind) if (is_replaceable(&kind) || kind == FileKind::Directory) && (self.yields)(path) => {
                Ok(Fate::Exchange)
            }
            (true, FileKind::Symlink { target }) => Err(Problem::LinkInTheWay { link: at(), target }),
            (true, FileKind::File) => Err(Problem::NotADirectory { component: at() }),
            (false, FileKind::Directory) => Err(Problem::IsADirectory { at: at() }),
            _ => Err(Problem::Special { at: at() }),
        }
    }

    /// The names of a level in a settled order, the one that leads to `last` at the end.
    fn names(&self, staged: &OwnedFd, target: &DirHandle, path: &Path) -> Result<Vec<OsString>, Problem> {
        let names =
            list(staged).and_then(|names| names.map(|listed| listed.map(|listed| listed.name)).collect());
        let mut names: Vec<OsString> = names.map_err(|errno| Problem::from_errno(errno, target.path()))?;
        names.sort();
        let last = self.last.and_then(|last| last.strip_prefix(path).ok()?.iter().next());
        if let Some(at) = last.and_then(|last| names.iter().position(|name| name == last)) {
            let name = names.remove(at);
            names.push(name);
        }
        Ok(names)
    }
}

fn open(staged: &OwnedFd, name: &OsStr, target: &DirHandle) -> Result<OwnedFd, Problem> {
    openat(staged, name, opening::DIRECTORY, Mode::empty()).map_err(|errno| target.explain(errno, name))
}

fn move_in(staged: &OwnedFd, target: &DirHandle, name: &OsStr) -> Result<(), Errno> {
    match renameat(staged, name, target.directory(), name) {
        // Only who may write to a directory can move it, unless he is root.
        Err(Errno::ACCESS) => {
            let directory = openat(staged, name, opening::DIRECTORY, Mode::empty())?;
            let mode = Mode::from_raw_mode(fstat(&directory)?.st_mode);
            fchmod(&directory, mode | Mode::WUSR)?;
            renameat(staged, name, target.directory(), name)?;
            fchmod(&directory, mode)
        }
        moved => moved,
    }
}

/// What a file or link takes the place of.
fn is_replaceable(kind: &FileKind) -> bool {
    matches!(kind, FileKind::File | FileKind::Symlink { .. })
}
