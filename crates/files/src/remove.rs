//! Removing files and whole trees, by descriptor and never through a link.

use std::{
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, unlinkat},
    io::Errno,
};

use super::{
    check::may_remove_tree,
    dir_handle::protection,
    entry::{CopyInterrupted, FileKind},
    error::{FileError, Operation, Problem},
    listing::{Listed, list},
    opening,
    walk::{self, DirHandle},
};

/// How often a directory is read again when something was put into it while it was being emptied.
pub(super) const REREADS: usize = 8;

/// Removes a file, link or empty directory. Nothing there is fine.
pub fn remove(path: &Path) -> Result<(), FileError> {
    removing(path, |place, name| match place.entry(name)? {
        None => Ok(()),
        Some(entry) => unlink(place, name, &entry.kind),
    })
}

/// Removes what is at `path` with everything below it, following no link and entering no other file system, unless
/// something in it can be seen to stay: then all of it does. Nothing there is fine. `tick` is asked between entries
/// whether to go on.
pub fn remove_tree(
    path: &Path,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), FileError> {
    removing(path, |place, name| {
        if let Some(found) = place.entry(name)? {
            may_remove_tree(place, name, &found, &|_| false, tick)?;
        }
        tree(place, name, tick)
    })
}

fn removing(
    path: &Path,
    work: impl FnOnce(&DirHandle, &OsStr) -> Result<(), Problem>,
) -> Result<(), FileError> {
    let attempt = || {
        let (place, name) = match walk::reach(path) {
            Err(Problem::ParentMissing { .. } | Problem::DanglingLink { .. }) => return Ok(()),
            reached => reached?,
        };
        let barrier = place.dir_sync()?;
        work(&place, &name)?;
        barrier.sync()
    };
    attempt().map_err(|problem| FileError::new(Operation::Remove, path, problem))
}

fn unlink(place: &DirHandle, name: &OsStr, kind: &FileKind) -> Result<(), Problem> {
    let flags = if *kind == FileKind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(place.directory(), name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(place.explain(errno, name)),
    }
}

/// Removes one entry of a directory with everything below it.
pub(super) fn tree(
    place: &DirHandle,
    name: &OsStr,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), Problem> {
    match place.entry(name)? {
        None => return Ok(()),
        Some(entry) if entry.kind != FileKind::Directory => return unlink(place, name, &entry.kind),
        Some(_) => {}
    }
    empty(place, name, &Unlink, tick)?;
    unlink(place, name, &FileKind::Directory)
}

/// Goes through everything in a directory, the innermost first.
pub(super) fn empty(
    place: &DirHandle,
    name: &OsStr,
    deed: &dyn Deed,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), Problem> {
    let directory = enter(place.directory(), name).map_err(|errno| place.explain(errno, name))?;
    Removal::of(directory, place.at(name), deed)?.run(tick)
}

/// What is done with each name in a tree.
pub(super) trait Deed {
    /// Takes a name out of a directory, or says why it cannot be.
    fn take(&self, directory: &OwnedFd, name: &OsStr, flags: AtFlags) -> Result<(), Errno>;
    /// Whether the name is none of its business.
    fn passes_over(&self, at: &Path) -> bool;
}

/// The real thing.
struct Unlink;

impl Deed for Unlink {
    fn take(&self, directory: &OwnedFd, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
        unlinkat(directory, name, flags)
    }

    fn passes_over(&self, _: &Path) -> bool {
        false
    }
}

/// The emptying of one directory. A tree can be deeper than there are descriptors or stack, so only the directory in
/// hand is open: the way back up is `..`, taken when it leads to the very directory that was left.
struct Removal<'a> {
    deed: &'a dyn Deed,
    /// The directory in hand.
    directory: OwnedFd,
    identity: Identity,
    path: PathBuf,
    /// The directories in it that are still to be emptied.
    below: Vec<OsString>,
    /// The ones above it, outermost first.
    above: Vec<Level>,
    rereads: usize,
}

struct Level {
    identity: Identity,
    below: Vec<OsString>,
    rereads: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    dev: u64,
    ino: u64,
}

impl<'a> Removal<'a> {
    fn of(directory: OwnedFd, path: PathBuf, deed: &'a dyn Deed) -> Result<Self, Problem> {
        let identity = identify(&directory).map_err(|errno| Problem::from_errno(errno, &path))?;
        Ok(Removal { deed, directory, identity, path, below: Vec::new(), above: Vec::new(), rereads: 0 })
    }

    fn run(mut self, tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>) -> Result<(), Problem> {
        self.clear(tick)?;
        loop {
            if let Some(name) = self.below.pop() {
                self.descend(&name)?;
                self.clear(tick)?;
            } else if self.above.is_empty() {
                return Ok(());
            } else {
                self.ascend(tick)?;
            }
        }
    }

    /// Unlinks everything in the directory in hand but its directories, and remembers those.
    fn clear(&mut self, tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>) -> Result<(), Problem> {
        let names = list(&self.directory).map_err(|errno| self.problem(errno))?;
        for listed in names {
            tick().map_err(|CopyInterrupted| Problem::CopyInterrupted)?;
            let Listed { name, kind } = listed.map_err(|errno| self.problem(errno))?;
            // A deep tree has long paths: to copy one for each name would take quadratic time.
            self.path.push(&name);
            let passed_over = self.deed.passes_over(&self.path);
            self.path.pop();
            if passed_over {
                continue;
            }
            if kind == FileType::Directory {
                self.below.push(name);
                continue;
            }
            match self.deed.take(&self.directory, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // Not every file system says in the listing what is a directory.
                Err(Errno::ISDIR) => self.below.push(name),
                Err(errno) => return Err(self.refusal(errno, &name)),
            }
        }
        Ok(())
    }

    fn descend(&mut self, name: &OsStr) -> Result<(), Problem> {
        self.path.push(name);
        let entered = enter(&self.directory, name)
            .and_then(|directory| identify(&directory).map(|identity| (directory, identity)));
        let (directory, identity) = match entered {
            Ok(entered) => entered,
            // It was swapped for something else, or is gone; a second reading of the directory tells.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.path.pop();
                return Ok(());
            }
            Err(errno) => return Err(self.problem(errno)),
        };
        self.directory = directory;
        let identity = std::mem::replace(&mut self.identity, identity);
        let below = std::mem::take(&mut self.below);
        self.above.push(Level { identity, below, rereads: std::mem::take(&mut self.rereads) });
        Ok(())
    }

    /// Goes back up and removes the directory left.
    fn ascend(&mut self, tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>) -> Result<(), Problem> {
        let Some(level) = self.above.pop() else { return Ok(()) };
        let parent = openat(&self.directory, "..", opening::DIRECTORY, Mode::empty())
            .map_err(|errno| self.problem(errno))?;
        if identify(&parent).map_err(|errno| self.problem(errno))? != level.identity {
            return Err(Problem::Changed { at: self.path.clone() });
        }
        let left = self.path.file_name().unwrap_or_default().to_owned();
        self.path.pop();
        (self.directory, self.identity, self.below) = (parent, level.identity, level.below);
        self.rereads = level.rereads;
        match self.deed.take(&self.directory, &left, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) if self.rereads < REREADS => {
                self.rereads += 1;
                self.below.clear();
                self.clear(tick)
            }
            Err(errno) => Err(self.refusal(errno, &left)),
        }
    }

    /// Why a name in the directory in hand stays.
    fn refusal(&self, errno: Errno, name: &OsStr) -> Problem {
        let protected = || {
            [name, OsStr::new(".")].into_iter().find_map(|name| protection(&self.directory, &self.path, name))
        };
        let plain = || Problem::from_errno(errno, &self.path.join(name));
        if errno == Errno::PERM { protected().unwrap_or_else(plain) } else { plain() }
    }

    fn problem(&self, errno: Errno) -> Problem {
        Problem::from_errno(errno, &self.path)
    }
}

/// Opens a directory to empty it: not through a link, and not across a mount, a bind mount included.
fn enter(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = opening::DIRECTORY;
    match openat2(directory, name, flags, Mode::empty(), ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6 lack it, and old container runtimes forbid it; other devices can still be told apart.
        Err(Errno::NOSYS | Errno::PERM) => enter_on_device(directory, name, flags),
        entered => entered,
    }
}

/// Opens what is on the same device.
pub(super) fn enter_on_device(directory: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let entered = openat(directory, name, flags, Mode::empty())?;
    let stays = identify(&entered)?.dev == identify(directory)?.dev;
    if stays { Ok(entered) } else { Err(Errno::XDEV) }
}

fn identify(directory: &OwnedFd) -> Result<Identity, Errno> {
    let stat = fstat(directory)?;
    Ok(Identity { dev: stat.st_dev, ino: stat.st_ino })
}
