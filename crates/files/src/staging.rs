//! A tree in the making, which nobody else can enter, on the file system that it is meant for.
//!
//! Where the target does not exist, the tree is made beside it and appears there with one rename. Where it exists, the
//! tree is made inside it and merged into it ([`merge`](super::merge)).

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Read,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, chownat, fchmod, fchown, linkat, mkdirat, openat, symlinkat,
        syncfs,
    },
    io::Errno,
};

use super::{
    attributes::Attributes,
    directory::{self, Parents},
    error::{FileError, Operation, Problem},
    merge::{Merge, Yields},
    opening,
    temporary::{self, Temporary},
    walk::{self, DirHandle, Walked},
};

/// A tree in the making; gone when dropped before it is published.
pub struct Staging {
    target: PathBuf,
    temporary: Temporary<DirHandle, OwnedFd>,
    ground: Ground,
    cursor: Cursor,
}

/// Where the tree is made.
enum Ground {
    /// In the target, which exists.
    Inside,
    /// Next to the target, which will have this name.
    Beside(OsString),
}

impl Staging {
    /// Begins a tree that is to appear at `target`. Missing directories above it are made; the target itself is not
    /// until the tree is published. `root` is what the target gets when it is made.
    pub fn new(target: &Path, root: Attributes) -> Result<Staging, FileError> {
        let begin = || {
            let Walked { place, mut missing } = walk::walk(target)?;
            place.permits(root.uid)?;
            let (place, ground) = match missing.pop_back() {
                None => (place, Ground::Inside),
                Some(name) => {
                    let walked = Walked { place, missing };
                    (directory::make_parents(walked, root, Parents::Make)?, Ground::Beside(name))
                }
            };
            let temporary = temporary::directory(place, root.uid)?;
            let root = temporary.descriptor.try_clone().map_err(|_| Errno::MFILE);
            let root = root.map_err(|errno| Problem::from_errno(errno, target))?;
            Ok(Staging {
                target: target.to_owned(),
                temporary,
                ground,
                cursor: Cursor { root, way: Vec::new() },
            })
        };
        begin().map_err(|problem| FileError::new(Operation::Unpack, target, problem))
    }

    /// Where the tree is for now.
    pub fn path(&self) -> PathBuf {
        self.temporary.path()
    }

    /// Makes a directory, whose parent exists.
    pub fn make_directory(&mut self, path: &Path) -> Result<(), FileError> {
        self.at(path, |parent, name| mkdirat(parent, name, Mode::RWXU))
    }

    /// Makes an empty file, whose directory exists.
    pub fn make_file(&mut self, path: &Path) -> Result<File, FileError> {
        let flags = opening::NEW_FILE.union(OFlags::WRONLY);
        self.at(path, |parent, name| openat(parent, name, flags, Mode::RUSR | Mode::WUSR)).map(File::from)
    }

    /// Makes a file with this content and these attributes, whose directory exists.
    pub fn copy_file(
        &mut self,
        path: &Path,
        content: &mut dyn Read,
        attributes: Attributes,
    ) -> Result<(), FileError> {
        let mut file = self.make_file(path)?;
        let (uid, gid) = attributes.owner();
        let mut write = || {
            std::io::copy(content, &mut file)?;
            fchown(&file, uid, gid)?;
            fchmod(&file, attributes.mode())?;
            Ok(())
        };
        write().map_err(|error| self.explain(&error, path))
    }

    /// Makes a symbolic link, of which nothing is followed.
    pub fn make_symlink(&mut self, path: &Path, target: &Path, owner: Attributes) -> Result<(), FileError> {
        let (uid, gid) = owner.owner();
        self.at(path, |parent, name| {
            symlinkat(target, parent, name)?;
            chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// Gives a file of the tree a second name.
    pub fn make_hard_link(&mut self, path: &Path, existing: &Path) -> Result<(), FileError> {
        let (Some(folder), Some(old)) = (existing.parent(), existing.file_name()) else {
            return Err(self.failed(Errno::INVAL, existing));
        };
        let from = self
            .cursor
            .enter(folder)
            .and_then(|folder| folder.try_clone_to_owned().map_err(|_| Errno::MFILE));
        let from = from.map_err(|errno| self.failed(errno, existing))?;
        self.at(path, |parent, name| linkat(&from, old, parent, name, AtFlags::empty()))
    }

    /// Gives a directory of the tree its owner and mode. Nothing can be made in it any more if the mode forbids it.
    pub fn dress_directory(&mut self, path: &Path, attributes: Attributes) -> Result<(), FileError> {
        let (uid, gid) = attributes.owner();
        self.at(path, |parent, name| {
            let directory = openat(parent, name, opening::DIRECTORY, Mode::empty())?;
            fchown(&directory, uid, gid)?;
            fchmod(&directory, attributes.mode())
        })
    }

    /// Finds out what would keep the tree from being published, before anything is touched.
    pub fn survey(&self, owner: u32, yields: Yields) -> Result<(), FileError> {
        let check = || match &self.ground {
            Ground::Inside => Merge { owner, last: None, yields }.survey(&self.temporary),
            Ground::Beside(name) => match self.temporary.place.entry(name)? {
                None => Ok(()),
                Some(_) => Err(Problem::Changed { at: self.target.clone() }),
            },
        };
        check().map_err(|problem| FileError::new(Operation::Unpack, &self.target, problem))
    }

    /// Brings the tree to disk and then to its place. `last` appears after everything else.
    pub fn publish(mut self, root: Attributes, last: Option<&Path>, yields: Yields) -> Result<(), FileError> {
        let target = self.target.clone();
        self.put_in_place(root, last, yields)
            .map_err(|problem| FileError::new(Operation::Unpack, &target, problem))
    }

    fn put_in_place(&mut self, root: Attributes, last: Option<&Path>, yields: Yields) -> Result<(), Problem> {
        let at = || self.target.clone();
        let name = match &self.ground {
            Ground::Inside => None,
            Ground::Beside(name) => Some(name),
        };
        let tree = &self.temporary.descriptor;
        if name.is_some() {
            let (uid, gid) = root.owner();
            let dressed = fchown(tree, uid, gid).and_then(|()| fchmod(tree, root.mode()));
            dressed.map_err(|errno| Problem::from_errno(errno, &self.target))?;
        }
        // One sync for all files: each of its own would take longer than everything else together.
        syncfs(tree).map_err(|source| Problem::Unsynced { at: at(), source })?;
        let Some(name) = name else {
            return Merge { owner: root.uid, last, yields }.run(&self.temporary);
        };
        let barrier = self.temporary.place.dir_sync()?;
        self.temporary.rename(name, RenameFlags::NOREPLACE).map_err(|errno| match errno {
            Errno::EXIST | Errno::NOENT => Problem::Changed { at: at() },
            errno => Problem::from_errno(errno, &self.target),
        })?;
        barrier.sync()
    }

    /// What an error of writing to a file of the tree means.
    pub fn explain(&self, error: &std::io::Error, path: &Path) -> FileError {
        self.failed(Errno::from_io_error(error).unwrap_or(Errno::IO), path)
    }

    fn at<T>(
        &mut self,
        path: &Path,
        work: impl FnOnce(BorrowedFd, &OsStr) -> Result<T, Errno>,
    ) -> Result<T, FileError> {
        let name = path.file_name().unwrap_or(OsStr::new("."));
        let parent = self.cursor.enter(path.parent().unwrap_or(Path::new("")));
        parent.and_then(|parent| work(parent, name)).map_err(|errno| self.failed(errno, path))
    }

    /// The error as the user knows the path: where the file will be, not where it is for now.
    fn failed(&self, errno: Errno, path: &Path) -> FileError {
        let at = match errno {
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => self.target.clone(),
            _ => self.target.join(path),
        };
        FileError::new(Operation::Unpack, &self.target, Problem::from_errno(errno, &at))
    }
}

/// Directories of the tree on the way to the one in hand: entries of an archive mostly lie next to each other.
struct Cursor {
    root: OwnedFd,
    way: Vec<(OsString, OwnedFd)>,
}

impl Cursor {
    /// Opens a directory of the tree, never through a link.
    fn enter(&mut self, path: &Path) -> Result<BorrowedFd<'_>, Errno> {
        let names = || {
            path.components().filter_map(|component| match component {
                Component::Normal(name) => Some(name),
                _ => None,
            })
        };
        let common = names().zip(&self.way).take_while(|(name, (known, _))| *name == known).count();
        self.way.truncate(common);
        for name in names().skip(common) {
            let parent = self.way.last().map_or(&self.root, |(_, directory)| directory);
            let directory = openat(parent, name, opening::WAY, Mode::empty())?;
            self.way.push((name.to_owned(), directory));
        }
        Ok(self.way.last().map_or(&self.root, |(_, directory)| directory).as_fd())
    }
}
