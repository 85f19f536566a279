//! The way to a path, one directory at a time.
//!
//! The kernel's own path lookup follows whatever links it meets. On a machine with unprivileged users that is an
//! invitation: whoever can write to one directory of the path decides where a privileged write ends. The walk opens
//! every component relative to the descriptor of the one before, so that nothing can be swapped behind its back, and
//! keeps account of whose hands it passed through. With *us* for root and the user running the program:
//!
//! - A link is followed only when it is ours, lies in a directory of ours that others cannot write to (or that is
//!   sticky), and no directory of a stranger was passed before: a stranger could not have put it there, nor moved a
//!   directory of ours that holds it. Its target is walked by the same rules.
//! - A directory of a stranger puts all that is below it at the stranger's mercy. The walk goes on, because looking
//!   and removing by descriptor cannot be led astray, but [`DirHandle::permits`] lets only the stranger's own files be
//!   made there.
//! - A world-writable directory without the sticky bit is everybody's, and nothing is made below it.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat},
    io::Errno,
};

use super::{
    error::Problem,
    trust::{GROUP_OR_OTHERS_WRITE, Trust, is_ours},
};

/// As many as the kernel itself follows.
pub(super) const MOST_LINKS: usize = 40;

/// A directory that the walk arrived at, held by its descriptor.
#[derive(Debug)]
pub(super) struct DirHandle {
    directory: OwnedFd,
    /// Where it is, all links resolved; for messages.
    path: PathBuf,
    trust: Trust,
    /// The links that led here, each with its target.
    links: Vec<(PathBuf, PathBuf)>,
}

impl AsRef<DirHandle> for DirHandle {
    fn as_ref(&self) -> &DirHandle {
        self
    }
}

/// How far a walk came.
pub(super) struct Walked {
    pub(super) place: DirHandle,
    /// The components of the path that do not exist, in order.
    pub(super) missing: VecDeque<OsString>,
}

/// Walks to the directory that holds `path`, which must exist, and gives it with the last component.
pub(super) fn reach(path: &Path) -> Result<(DirHandle, OsString), Problem> {
    let (parent, name) = split(path)?;
    Ok((reach_directory(parent)?, name.to_owned()))
}

/// Walks to a directory, which must exist.
pub(super) fn reach_directory(path: &Path) -> Result<DirHandle, Problem> {
    let Walked { place, missing } = walk(path)?;
    match missing.front() {
        None => Ok(place),
        Some(name) => Err(place.lacks(name)),
    }
}

/// The parent of a path and its last component.
pub(super) fn split(path: &Path) -> Result<(&Path, &OsStr), Problem> {
    path.parent().zip(path.file_name()).ok_or(Problem::Root)
}

/// Walks towards a directory as far as it exists.
pub(super) fn walk(path: &Path) -> Result<Walked, Problem> {
    debug_assert!(path.is_absolute());
    let mut place = DirHandle::root()?;
    let mut ahead: VecDeque<OsString> = components(path).collect();
    // How many at the end of `ahead` are from `path` itself; those before came out of a link.
    let mut own = ahead.len();
    let mut links: Vec<(PathBuf, PathBuf)> = Vec::new();
    while let Some(name) = ahead.pop_front() {
        let is_own = ahead.len() < own;
        own = own.min(ahead.len());
        if name == ".." {
            // Links are resolved already, so the parent's path is true; walking it again checks it again.
            let parent: Vec<OsString> = place.path.parent().map(components).into_iter().flatten().collect();
            parent.into_iter().rev().for_each(|name| ahead.push_front(name));
            place = DirHandle::root()?;
            continue;
        }
        match place.step(&name)? {
            Step::Into(next) => place = next,
            Step::Missing => {
                if let (false, Some((link, target))) = (is_own, links.pop()) {
                    return Err(Problem::DanglingLink { link, target });
                }
                ahead.push_front(name);
                place.links = links;
                return Ok(Walked { place, missing: ahead });
            }
            Step::Link { target } => {
                let link = place.path.join(&name);
                if links.len() == MOST_LINKS {
                    return Err(Problem::LinkLoop { link });
                }
                let inner: Vec<OsString> = components(&target).collect();
                inner.into_iter().rev().for_each(|name| ahead.push_front(name));
                if target.is_absolute() {
                    place = DirHandle::root()?;
                }
                links.push((link, target));
            }
        }
    }
    place.links = links;
    Ok(Walked { place, missing: VecDeque::new() })
}

pub(super) fn components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

enum Step {
    Into(DirHandle),
    Link { target: PathBuf },
    Missing,
}

impl DirHandle {
    fn root() -> Result<DirHandle, Problem> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = PathBuf::from("/");
        let directory =
            openat(CWD, "/", flags, Mode::empty()).map_err(|errno| Problem::from_errno(errno, &path))?;
        let stat = fstat(&directory).map_err(|errno| Problem::from_errno(errno, &path))?;
        Ok(DirHandle::arrive(directory, path, &stat, Trust::default()))
    }

    /// Notes what a directory means for everything below it.
    fn arrive(directory: OwnedFd, path: PathBuf, stat: &Stat, mut trust: Trust) -> DirHandle {
        trust.pass(&path, stat.st_uid, stat.st_mode & 0o7777);
        DirHandle { directory, path, trust, links: Vec::new() }
    }

    /// The same directory, as it would be after changes that are only predicted.
    pub(super) fn seen_with(self, trust: Trust) -> DirHandle {
        DirHandle { trust, ..self }
    }

    fn step(&self, name: &OsStr) -> Result<Step, Problem> {
        let at = self.path.join(name);
        // O_PATH together with O_NOFOLLOW opens a link itself: what was opened and what is judged are one thing.
        let found = match self.open(name, OFlags::PATH) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(Step::Missing),
            Err(Errno::ACCESS) => return Err(Problem::from_errno(Errno::ACCESS, &self.path)),
            Err(errno) => return Err(Problem::from_errno(errno, &at)),
        };
        let stat = fstat(&found).map_err(|errno| Problem::from_errno(errno, &at))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Step::Into(DirHandle::arrive(found, at, &stat, self.trust.clone()))),
            FileType::Symlink => {
                let target =
                    readlinkat(&found, "", Vec::new()).map_err(|errno| Problem::from_errno(errno, &at))?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                match self.trust.risk_of_link(&self.path, stat.st_uid, stat.st_nlink) {
                    Some(risk) => Err(Problem::UnsafeLink { link: at, target, owner: stat.st_uid, risk }),
                    None => Ok(Step::Link { target }),
                }
            }
            _ => Err(Problem::NotADirectory { component: at }),
        }
    }

    /// Whether something that is to belong to `owner` may be made or changed here.
    pub(super) fn permits(&self, owner: u32) -> Result<(), Problem> {
        self.trust.permits(owner)
    }

    /// Refuses to replace a link that the path itself goes through: the path would then lead nowhere.
    pub(super) fn refuse_own_way(&self, name: &OsStr) -> Result<(), Problem> {
        let at = self.path.join(name);
        match self.links.iter().find(|(link, _)| *link == at).cloned() {
            Some((link, target)) => Err(Problem::LinkInTheWay { link, target }),
            None => Ok(()),
        }
    }

    /// Whether somebody who is not us can put names into this directory.
    pub(super) fn others_can_write(&self) -> bool {
        !is_ours(self.trust.owner) || self.trust.mode & GROUP_OR_OTHERS_WRITE != 0
    }

    /// Whether a stranger's directory was passed on the way here.
    pub(super) fn is_below_a_stranger(&self) -> bool {
        self.trust.is_below_a_stranger()
    }

    /// Goes on into a directory that is here.
    pub(super) fn enter(&self, name: &OsStr) -> Result<DirHandle, Problem> {
        match self.step(name)? {
            Step::Into(next) => Ok(next),
            Step::Link { .. } | Step::Missing => Err(Problem::Changed { at: self.at(name) }),
        }
    }

    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn owner(&self) -> u32 {
        self.trust.owner
    }

    pub(super) fn is_sticky(&self) -> bool {
        self.trust.is_sticky()
    }
}
