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
//!
//! There is one walk, over any [`Terrain`]: the disk, or the disk as a dry run would have left it.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use super::{
    entry::{Entry, FileKind},
    error::Problem,
    opening,
    trust::Trust,
};

/// As many as the kernel itself follows.
pub(super) const MOST_LINKS: usize = 40;

/// What a walk goes over. It tells what is there; the walk judges it.
pub(super) trait Terrain {
    /// What the walk holds of a directory.
    type Directory;

    /// Returns the root directory.
    fn root(&self) -> Result<(Self::Directory, Entry), Problem>;

    /// Looks at a name in a directory, without following it.
    fn look(
        &self,
        from: &Reached<Self::Directory>,
        name: &OsStr,
    ) -> Result<Option<(Self::Directory, Entry)>, Problem>;
}

/// Which links a walk follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// Those that nobody untrusted could have put there.
    Trusted,
    /// All, as the kernel does for whoever only reads.
    All,
}

/// A directory that a walk arrived at.
#[derive(Debug)]
pub(super) struct Reached<D> {
    directory: D,
    /// Where it is, all links resolved; for messages.
    path: PathBuf,
    trust: Trust,
    /// The links that led here, each with its target.
    links: Vec<(PathBuf, PathBuf)>,
}

/// A directory on disk, held by its descriptor.
pub(super) type DirHandle = Reached<OwnedFd>;

impl AsRef<DirHandle> for DirHandle {
    fn as_ref(&self) -> &DirHandle {
        self
    }
}

/// How far a walk came.
pub(super) struct Walked<D = OwnedFd> {
    pub(super) place: Reached<D>,
    /// The components of the path that do not exist, in order.
    pub(super) missing: VecDeque<OsString>,
}

impl<D> Walked<D> {
    /// Returns the path of the directory that the walk was for, whether or not it exists.
    pub(super) fn end(&self) -> PathBuf {
        self.missing.iter().fold(self.place.path.clone(), |at, name| at.join(name))
    }
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

/// Walks towards a directory on disk as far as it exists.
pub(super) fn walk(path: &Path) -> Result<Walked, Problem> {
    walk_over(&Disk, path, Links::Trusted)
}

/// Walks towards a directory as far as it exists.
pub(super) fn walk_over<T: Terrain>(
    terrain: &T,
    path: &Path,
    follow: Links,
) -> Result<Walked<T::Directory>, Problem> {
    debug_assert!(path.is_absolute());
    let mut place = Reached::root(terrain)?;
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
            place = Reached::root(terrain)?;
            continue;
        }
        match place.step(terrain, &name, follow)? {
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
                    place = Reached::root(terrain)?;
                }
                links.push((link, target));
            }
        }
    }
    place.links = links;
    Ok(Walked { place, missing: VecDeque::new() })
}

fn components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

enum Step<D> {
    Into(Reached<D>),
    Link { target: PathBuf },
    Missing,
}

/// The disk as it is.
pub(super) struct Disk;

impl Terrain for Disk {
    type Directory = OwnedFd;

    fn root(&self) -> Result<(OwnedFd, Entry), Problem> {
        let path = Path::new("/");
        let directory = openat(CWD, path, opening::WAY, Mode::empty())
            .map_err(|errno| Problem::from_errno(errno, path))?;
        let entry = Entry::of(&directory, path)?;
        Ok((directory, entry))
    }

    fn look(&self, from: &DirHandle, name: &OsStr) -> Result<Option<(OwnedFd, Entry)>, Problem> {
        let at = from.at(name);
        // O_PATH together with O_NOFOLLOW opens a link itself: what was opened and what is judged are one thing.
        let found = match from.open(name, OFlags::PATH) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::ACCESS) => return Err(Problem::from_errno(Errno::ACCESS, &from.path)),
            Err(errno) => return Err(Problem::from_errno(errno, &at)),
        };
        let entry = Entry::of(&found, &at)?;
        Ok(Some((found, entry)))
    }
}

impl<D> Reached<D> {
    fn root(terrain: &impl Terrain<Directory = D>) -> Result<Self, Problem> {
        let (directory, entry) = terrain.root()?;
        Ok(Self::arrive(directory, PathBuf::from("/"), &entry, Trust::default()))
    }

    /// Notes what a directory means for everything below it.
    fn arrive(directory: D, path: PathBuf, entry: &Entry, mut trust: Trust) -> Self {
        trust.pass(&path, entry.uid, entry.mode);
        Self { directory, path, trust, links: Vec::new() }
    }

    fn step(
        &self,
        terrain: &impl Terrain<Directory = D>,
        name: &OsStr,
        follow: Links,
    ) -> Result<Step<D>, Problem> {
        let at = self.at(name);
        let Some((found, entry)) = terrain.look(self, name)? else { return Ok(Step::Missing) };
        match entry.kind {
            FileKind::Directory => Ok(Step::Into(Self::arrive(found, at, &entry, self.trust.clone()))),
            FileKind::Symlink { target } => {
                let risk = self.trust.risk_of_link(&self.path, entry.uid, entry.nlink);
                match risk.filter(|_| follow == Links::Trusted) {
                    Some(risk) => {
                        Err(Problem::UnsafeLink { link: at, target, owner: entry.uid.into(), risk })
                    }
                    None => Ok(Step::Link { target }),
                }
            }
            _ => Err(Problem::NotADirectory { component: at }),
        }
    }

    /// Refuses to replace a link that the path itself goes through: the path would then lead nowhere.
    pub(super) fn refuse_own_way(&self, name: &OsStr) -> Result<(), Problem> {
        let at = self.at(name);
        match self.links.iter().find(|(link, _)| *link == at).cloned() {
            Some((link, target)) => Err(Problem::LinkInTheWay { link, target }),
            None => Ok(()),
        }
    }

    /// The problem that a directory on the way is not here.
    pub(super) fn lacks(&self, name: &OsStr) -> Problem {
        Problem::ParentMissing { missing: self.at(name), nearest: self.path.clone() }
    }

    pub(super) fn directory(&self) -> &D {
        &self.directory
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn at(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    /// Returns whose hands the way here passed through.
    pub(super) fn trust(&self) -> &Trust {
        &self.trust
    }
}

impl DirHandle {
    /// The same directory, as it would be after changes that are only predicted.
    pub(super) fn seen_with(self, trust: Trust) -> DirHandle {
        DirHandle { trust, ..self }
    }

    /// Whether something that is to belong to `owner` may be made or changed here.
    pub(super) fn permits(&self, owner: u32) -> Result<(), Problem> {
        self.trust.permits(owner)
    }

    /// Goes on into a directory that is here.
    pub(super) fn enter(&self, name: &OsStr) -> Result<DirHandle, Problem> {
        match self.step(&Disk, name, Links::Trusted)? {
            Step::Into(next) => Ok(next),
            Step::Link { .. } | Step::Missing => Err(Problem::Changed { at: self.at(name) }),
        }
    }
}
