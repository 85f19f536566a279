//! Files as they would be: what a dry run has to know of the resources before.
//!
//! In a dry run nothing is made, so a file below a directory that an earlier resource would have created must not be
//! predicted to fail, and a directory that an earlier one would have emptied can be removed. This remembers what each
//! operation would have left, walks paths through it by the rules of the real walk, and answers for the paths that it
//! covers; for all others the disk has the answer.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsString,
    ops::Bound,
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{getegid, geteuid},
};

use super::{
    attributes::Attributes,
    check::{self, Intent},
    directory::Parents,
    entry::{self, Digested, Entry, Kind, Modified},
    error::{FileError, Operation, Problem},
    listing,
    trust::Trust,
    walk,
};

/// What earlier operations would have left. Paths have no links in them.
#[derive(Debug, Default)]
pub(crate) struct Foresight(BTreeMap<PathBuf, Left>);

#[derive(Debug)]
enum Left {
    Nothing,
    File { attributes: Attributes, sha256: Option<String> },
    Directory { attributes: Attributes, inside: Inside },
}

/// What is in a directory besides what is foreseen there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Nothing,
    WhatIsOnDisk,
}

/// What would be at a path.
#[derive(Debug)]
pub(crate) enum Foreseen {
    Nothing,
    Entry(Digested),
}

/// How far a walk came.
struct Way {
    /// The directory, all links resolved.
    directory: PathBuf,
    missing: VecDeque<OsString>,
    trust: Trust,
    /// The links that led here, each with its target.
    links: Vec<(PathBuf, PathBuf)>,
}

/// Which links a walk follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// Those that the real walk follows.
    Trusted,
    /// All, as the kernel does for whoever only reads.
    All,
}

impl Foresight {
    /// What would be at the path by now; `None` when that is what is on disk.
    pub(crate) fn inspect(&self, path: &Path) -> Result<Option<Foreseen>, FileError> {
        self.find(path, Links::Trusted).map_err(|problem| FileError::new(Operation::Inspect, path, problem))
    }

    /// What a path, with links followed, would lead to by now; `None` when that is what is on disk.
    pub(crate) fn source(&self, path: &Path) -> Result<Option<Foreseen>, FileError> {
        self.find(path, Links::All).map_err(|problem| FileError::new(Operation::Read, path, problem))
    }

    fn find(&self, path: &Path, links: Links) -> Result<Option<Foreseen>, Problem> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (mut path, mut followed) = (path.to_owned(), 0);
        loop {
            let (parent, name) = walk::split(&path)?;
            let way = match self.walk(parent, links) {
                Err(Problem::DanglingLink { .. }) => return Ok(Some(Foreseen::Nothing)),
                way => way?,
            };
            if !way.missing.is_empty() {
                return Ok(Some(Foreseen::Nothing));
            }
            let at = way.directory.join(name);
            match self.entry(&at)? {
                Some(Entry { kind: Kind::Symlink { target }, .. }) if links == Links::All => {
                    followed += 1;
                    if followed > walk::MOST_LINKS {
                        return Err(Problem::LinkLoop { link: at });
                    }
                    path = way.directory.join(target);
                }
                _ => return Ok(self.foreseen(&at)),
            }
        }
    }

    /// The names that would be in a directory.
    pub(crate) fn names(&self, path: &Path) -> Result<Vec<OsString>, FileError> {
        if self.0.is_empty() {
            return listing::names(path);
        }
        let at = self.resolve(path).map_err(|problem| FileError::new(Operation::Inspect, path, problem))?;
        let is_new = matches!(self.0.get(&at), Some(Left::Directory { inside: Inside::Nothing, .. }));
        let mut names = if is_new { Vec::new() } else { listing::names(&at)? };
        for (path, left) in self.below(&at).filter(|(path, _)| path.parent() == Some(&at)) {
            let Some(name) = path.file_name() else { continue };
            names.retain(|other| other != name);
            if !matches!(left, Left::Nothing) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Fails as the real operation would, and remembers what it would have left: a file with this checksum.
    pub(crate) fn rehearse(
        &mut self,
        path: &Path,
        intent: Intent,
        sha256: Option<String>,
    ) -> Result<(), FileError> {
        if self.0.is_empty() {
            check::check(path, intent)?;
        }
        self.play(path, intent, sha256).map_err(|problem| FileError::new(intent.operation(), path, problem))
    }

    fn play(&mut self, path: &Path, intent: Intent, sha256: Option<String>) -> Result<(), Problem> {
        let (parent, name) = walk::split(path)?;
        let way = match self.walk(parent, Links::Trusted) {
            Err(Problem::DanglingLink { .. }) if intent.attributes().is_none() => return Ok(()),
            way => way?,
        };
        let at = way.missing.iter().fold(way.directory.clone(), |at, name| at.join(name)).join(name);
        if !self.0.is_empty() {
            self.check(&way, &at, intent)?;
        }
        self.remember(&way, at, intent, sha256)
    }

    fn check(&self, way: &Way, at: &Path, intent: Intent) -> Result<(), Problem> {
        if let (Intent::Write(_), Some((link, target))) =
            (intent, way.links.iter().find(|(link, _)| link == at).cloned())
        {
            return Err(Problem::LinkInTheWay { link, target });
        }
        let first = way.missing.front().map_or_else(|| at.to_owned(), |name| way.directory.join(name));
        if matches!(self.known(&first), Known::Disk) {
            let changed = |below: &Path| self.0.contains_key(below);
            return check::foresee(at, intent, Some(way.trust.clone()), &changed);
        }
        if let Some(wanted) = intent.attributes() {
            way.trust.permits(wanted.uid)?;
            check::may_give(at, wanted)?;
        }
        let missing = !way.missing.is_empty();
        match (intent, self.entry(at)?) {
            (Intent::MakeDirectory(_, Parents::Make) | Intent::Remove | Intent::RemoveTree, None) => Ok(()),
            (_, None) if missing => {
                Err(Problem::ParentMissing { missing: first, nearest: way.directory.clone() })
            }
            (Intent::SetAttributes(_), None) => Err(Problem::Changed { at: at.to_owned() }),
            (Intent::Write(_), Some(Entry { kind: Kind::Directory, .. })) => {
                Err(Problem::IsADirectory { at: at.to_owned() })
            }
            (Intent::SetAttributes(_), Some(found)) if !may_change(&found) => {
                Err(Problem::from_errno(Errno::PERM, at))
            }
            _ => Ok(()),
        }
    }

    fn remember(
        &mut self,
        way: &Way,
        at: PathBuf,
        intent: Intent,
        sha256: Option<String>,
    ) -> Result<(), Problem> {
        let is_directory = self.entry(&at)?.is_some_and(|entry| entry.kind == Kind::Directory);
        let left = match intent {
            Intent::Remove | Intent::RemoveTree => Left::Nothing,
            Intent::SetAttributes(attributes) | Intent::MakeDirectory(attributes, _) if is_directory => {
                let is_new = matches!(self.0.get(&at), Some(Left::Directory { inside: Inside::Nothing, .. }));
                let inside = if is_new { Inside::Nothing } else { Inside::WhatIsOnDisk };
                self.0.insert(at, Left::Directory { attributes, inside });
                return Ok(());
            }
            Intent::Write(attributes) | Intent::SetAttributes(attributes) => {
                Left::File { attributes, sha256 }
            }
            Intent::MakeDirectory(attributes, _) => {
                self.remember_parents(way, attributes);
                Left::Directory { attributes, inside: Inside::Nothing }
            }
        };
        let below: Vec<PathBuf> = self.below(&at).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.0.remove(&path);
        }
        self.0.insert(at, left);
        Ok(())
    }

    /// What is foreseen below a path. Paths are in the order of their components, so it comes right after it.
    fn below<'a>(&'a self, at: &'a Path) -> impl Iterator<Item = (&'a PathBuf, &'a Left)> {
        let after = (Bound::Excluded(at), Bound::Unbounded);
        self.0.range::<Path, _>(after).take_while(move |(path, _)| path.starts_with(at))
    }

    fn remember_parents(&mut self, way: &Way, wanted: Attributes) {
        let own = Attributes { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode: 0o755 };
        let attributes =
            if way.trust.is_below_a_stranger() { Attributes { mode: 0o755, ..wanted } } else { own };
        let mut at = way.directory.clone();
        for name in &way.missing {
            at.push(name);
            self.0.insert(at.clone(), Left::Directory { attributes, inside: Inside::Nothing });
        }
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf, Problem> {
        let (parent, name) = walk::split(path)?;
        let way = self.walk(parent, Links::Trusted)?;
        Ok(way.directory.join(name))
    }

    /// Walks towards a directory as far as it would exist.
    fn walk(&self, path: &Path, links: Links) -> Result<Way, Problem> {
        let mut way = self.root()?;
        let mut ahead: VecDeque<OsString> = walk::components(path).collect();
        let mut own = ahead.len();
        let mut followed = Vec::new();
        while let Some(name) = ahead.pop_front() {
            let is_own = ahead.len() < own;
            own = own.min(ahead.len());
            if name == ".." {
                let parent = way.directory.parent().map(walk::components).into_iter().flatten();
                parent.collect::<Vec<_>>().into_iter().rev().for_each(|name| ahead.push_front(name));
                way = self.root()?;
                continue;
            }
            let at = way.directory.join(&name);
            match self.entry(&at)? {
                Some(Entry { kind: Kind::Directory, uid, mode, .. }) => {
                    way.trust.pass(&at, uid, mode);
                    way.directory = at;
                }
                Some(Entry { kind: Kind::Symlink { target }, uid, nlink, .. }) => {
                    let risk = way.trust.risk_of_link(&way.directory, uid, nlink);
                    if let Some(risk) = risk.filter(|_| links == Links::Trusted) {
                        return Err(Problem::UnsafeLink { link: at, target, owner: uid, risk });
                    }
                    if followed.len() == walk::MOST_LINKS {
                        return Err(Problem::LinkLoop { link: at });
                    }
                    let inner: Vec<OsString> = walk::components(&target).collect();
                    inner.into_iter().rev().for_each(|name| ahead.push_front(name));
                    if target.is_absolute() {
                        way = self.root()?;
                    }
                    followed.push((at, target));
                }
                Some(_) => return Err(Problem::NotADirectory { component: at }),
                None => {
                    if let (false, Some((link, target))) = (is_own, followed.pop()) {
                        return Err(Problem::DanglingLink { link, target });
                    }
                    ahead.push_front(name);
                    (way.missing, way.links) = (ahead, followed);
                    return Ok(way);
                }
            }
        }
        way.links = followed;
        Ok(way)
    }

    fn root(&self) -> Result<Way, Problem> {
        let directory = PathBuf::from("/");
        let mut trust = Trust::default();
        if let Some(Entry { uid, mode, .. }) = self.entry(&directory)? {
            trust.pass(&directory, uid, mode);
        }
        Ok(Way { directory, missing: VecDeque::new(), trust, links: Vec::new() })
    }

    /// What would be at a path without links in it.
    fn entry(&self, at: &Path) -> Result<Option<Entry>, Problem> {
        match self.foreseen(at) {
            None => entry::look(at),
            Some(Foreseen::Nothing) => Ok(None),
            Some(Foreseen::Entry(Digested { entry, .. })) => Ok(Some(entry)),
        }
    }

    fn foreseen(&self, at: &Path) -> Option<Foreseen> {
        let entry = |kind, attributes, sha256| {
            Some(Foreseen::Entry(Digested { entry: of(kind, attributes), sha256 }))
        };
        match self.known(at) {
            Known::Disk => None,
            Known::Void | Known::Left(Left::Nothing) => Some(Foreseen::Nothing),
            Known::Left(Left::File { attributes, sha256 }) => entry(Kind::File, *attributes, sha256.clone()),
            Known::Left(Left::Directory { attributes, .. }) => entry(Kind::Directory, *attributes, None),
        }
    }

    fn known(&self, at: &Path) -> Known<'_> {
        if let Some(left) = self.0.get(at) {
            return Known::Left(left);
        }
        match at.ancestors().skip(1).find_map(|above| self.0.get(above)) {
            None | Some(Left::Directory { inside: Inside::WhatIsOnDisk, .. }) => Known::Disk,
            Some(_) => Known::Void,
        }
    }
}

/// Who knows what would be at a path.
enum Known<'a> {
    Left(&'a Left),
    /// It lies below something that would be new or gone.
    Void,
    Disk,
}

fn may_change(found: &Entry) -> bool {
    geteuid().is_root() || geteuid().as_raw() == found.uid
}

fn of(kind: Kind, Attributes { uid, gid, mode }: Attributes) -> Entry {
    let modified = Modified { seconds: 0, nanoseconds: 0 };
    Entry { kind, uid, gid, mode, size: 0, modified, nlink: 1, dev: 0, ino: 0 }
}
