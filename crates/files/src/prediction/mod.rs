//! Predicts files in a dry run, from the operations before.
//!
//! In a dry run nothing is made, so a file below a directory that an earlier operation would have created must not be
//! predicted to fail, and a directory that an earlier one would have emptied can be removed. This remembers what each
//! operation would have left, walks paths through it by the real walk ([`walk`](super::walk)), and answers for the paths
//! that it covers; for all others the disk has the answer.
//!
//! Commands and archives do not say all that they leave. What they do say is taken to be there, as whatever it is needed
//! as; below it anything may be, and is taken to be there where a path leads through it, but not where it ends.

mod terrain;

use std::{
    collections::BTreeMap,
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
    entry::{self, Digested, Entry, FileKind, Timestamp},
    error::{FileError, Operation, Problem},
    listing,
    walk::{self, Links, Walked},
};

/// Predicted results of earlier operations. Paths do not contain links.
#[derive(Clone, Debug, Default)]
pub struct Prediction(BTreeMap<PathBuf, Left>);

#[derive(Clone, Debug)]
enum Left {
    Nothing,
    File {
        attributes: Attributes,
        /// `None` if it equals the disk.
        sha256: Option<String>,
    },
    Directory {
        attributes: Attributes,
        inside: Inside,
    },
    Link {
        target: PathBuf,
    },
    /// A file or a directory. The mode is that of a directory.
    Something(Attributes),
}

/// What is in a directory besides what is predicted there.
#[derive(Clone, Copy, Debug)]
struct Inside {
    /// What the disk has there.
    on_disk: bool,
    /// What nobody names.
    unnamed: Occupancy,
}

impl Inside {
    const NOTHING: Self = Self { on_disk: false, unnamed: Occupancy::Empty };
    const UNKNOWN: Self = Self { on_disk: false, unnamed: Occupancy::Unknown };
}

/// Whether something would be in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupancy {
    /// The directory would be empty.
    Empty,
    /// The directory would be empty unless an action has effects that it did not declare.
    Unknown,
    /// The directory would contain something.
    Occupied,
}

/// Checksum of a file whose predicted content is unknown. No real file has this value.
pub const UNKNOWN: &str = "unknown";

/// The predicted entry at a path.
#[derive(Debug)]
pub enum Predicted {
    /// The path would not exist.
    Nothing,
    /// The path would be this entry.
    Entry(Digested),
    /// A file or a directory with this owner and group.
    Something {
        /// UID of the owner.
        uid: u32,
        /// GID of the group.
        gid: u32,
    },
    /// The path might exist, as an undeclared effect of an action.
    Perhaps,
}

impl Predicted {
    /// The entry, where something is there for certain; one whose kind is not known is of the kind that is expected.
    pub fn entry(self, expected: FileKind) -> Option<Digested> {
        match self {
            Self::Nothing | Self::Perhaps => None,
            Self::Entry(digested) => Some(digested),
            Self::Something { uid, gid } => {
                let (mode, sha256) = match expected {
                    FileKind::Directory => (0o755, None),
                    _ => (0o644, Some(UNKNOWN.to_owned())),
                };
                Some(Digested { entry: of(expected, Attributes { uid, gid, mode }), sha256 })
            }
        }
    }
}

/// The predicted state of a path that earlier operations change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftAt {
    /// Nothing.
    Nothing,
    /// A file with this owner and mode.
    File(Attributes),
    /// A directory. If it is new, nothing that is there on disk is in it.
    Directory {
        /// Owner and mode.
        attributes: Attributes,
        /// Whether it replaces what is on disk.
        is_new: bool,
    },
    /// A symbolic link with this target.
    Link(PathBuf),
    /// Something that is not known.
    Unknown,
}

/// What the last component of a path stands for, if it is a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Itself,
    Target,
}

impl Prediction {
    /// Returns the predicted entry at a managed path; `None` if the disk is unchanged there.
    pub fn inspect(&self, path: &Path) -> Result<Option<Predicted>, FileError> {
        self.find(path, Links::Trusted, Last::Itself)
            .map_err(|problem| FileError::new(Operation::Inspect, path, problem))
    }

    /// Returns the predicted entry at a path that is only read, following links of all users; `None` if the disk is unchanged there.
    pub fn look(&self, path: &Path) -> Result<Option<Predicted>, FileError> {
        self.find(path, Links::All, Last::Itself)
            .map_err(|problem| FileError::new(Operation::Inspect, path, problem))
    }

    /// Returns the predicted entry at a path after following all links; `None` if the disk is unchanged there.
    pub fn follow(&self, path: &Path) -> Result<Option<Predicted>, FileError> {
        self.find(path, Links::All, Last::Target)
            .map_err(|problem| FileError::new(Operation::Read, path, problem))
    }

    /// Returns where on disk to look for what is at a managed path: links that are not there yet are followed.
    pub fn place_on_disk(&self, path: &Path) -> PathBuf {
        self.on_disk(path, Links::Trusted, Last::Itself)
    }

    /// Returns where on disk to look for what a path leads to: links that are not there yet are followed.
    pub fn target_on_disk(&self, path: &Path) -> PathBuf {
        self.on_disk(path, Links::All, Last::Target)
    }

    fn on_disk(&self, path: &Path, links: Links, last: Last) -> PathBuf {
        let has_links = self.0.values().any(|left| matches!(left, Left::Link { .. }));
        let found = has_links.then(|| self.search(path, links, last).ok().flatten()).flatten();
        found.unwrap_or_else(|| path.to_owned())
    }

    /// Returns the path that a path with all links followed would lead to; `None` where nothing would be there.
    pub fn destination(&self, path: &Path) -> Option<PathBuf> {
        self.search(path, Links::All, Last::Target).ok()?
    }

    fn find(&self, path: &Path, links: Links, last: Last) -> Result<Option<Predicted>, Problem> {
        // The root directory is as it is.
        if self.0.is_empty() || path.parent().is_none() {
            return Ok(None);
        }
        let found = self.search(path, links, last)?;
        Ok(found.map_or(Some(Predicted::Nothing), |at| self.predicted(&at)))
    }

    /// Returns where a path leads; `None` where a directory on the way would not be there.
    fn search(&self, path: &Path, links: Links, last: Last) -> Result<Option<PathBuf>, Problem> {
        let (mut path, mut followed) = (path.to_owned(), 0);
        loop {
            let (parent, name) = walk::split(&path)?;
            let way = match self.walk(parent, links) {
                Err(Problem::DanglingLink { .. }) => return Ok(None),
                way => way?,
            };
            if !way.missing.is_empty() {
                return Ok(None);
            }
            let at = way.place.at(name);
            match self.entry(&at)? {
                Some(Entry { kind: FileKind::Symlink { target }, .. }) if last == Last::Target => {
                    followed += 1;
                    if followed > walk::MOST_LINKS {
                        return Err(Problem::LinkLoop { link: at });
                    }
                    path = way.place.path().join(target);
                }
                _ => return Ok(Some(at)),
            }
        }
    }

    /// Returns a managed path with the links of its parents followed.
    pub fn without_links(&self, path: &Path) -> PathBuf {
        self.search(path, Links::Trusted, Last::Itself).ok().flatten().unwrap_or_else(|| path.to_owned())
    }

    /// Returns every path that differs from the disk, the outer ones first. Paths do not contain links.
    pub fn changed(&self) -> impl Iterator<Item = (&Path, LeftAt)> {
        self.0.iter().map(|(path, left)| {
            let left = match left {
                Left::Nothing => LeftAt::Nothing,
                Left::File { attributes, .. } => LeftAt::File(*attributes),
                Left::Directory { attributes, inside } => {
                    LeftAt::Directory { attributes: *attributes, is_new: !inside.on_disk }
                }
                Left::Link { target } => LeftAt::Link(target.clone()),
                Left::Something(_) => LeftAt::Unknown,
            };
            (path.as_path(), left)
        })
    }

    /// Whether something would be in a directory.
    pub fn occupancy(&self, path: &Path) -> Result<Occupancy, FileError> {
        if !self.names(path)?.is_empty() {
            return Ok(Occupancy::Occupied);
        }
        if self.0.is_empty() {
            return Ok(Occupancy::Empty);
        }
        let at = self.resolve(path).map_err(|problem| FileError::new(Operation::Inspect, path, problem))?;
        Ok(self.inside(&at).unnamed)
    }

    /// Returns the names that would be in a directory, as far as that is known.
    pub fn names(&self, path: &Path) -> Result<Vec<OsString>, FileError> {
        if self.0.is_empty() {
            return listing::names(path);
        }
        let at = self.resolve(path).map_err(|problem| FileError::new(Operation::Inspect, path, problem))?;
        let mut names = if self.inside(&at).on_disk { listing::names(&at)? } else { Vec::new() };
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
    pub fn simulate(&mut self, path: &Path, intent: Intent, sha256: Option<String>) -> Result<(), FileError> {
        if self.0.is_empty() {
            check::check(path, &intent)?;
        }
        let operation = intent.operation();
        self.play(path, intent, sha256).map_err(|problem| FileError::new(operation, path, problem))
    }

    fn play(&mut self, path: &Path, intent: Intent, sha256: Option<String>) -> Result<(), Problem> {
        let (parent, name) = walk::split(path)?;
        let way = match self.walk(parent, Links::Trusted) {
            Err(Problem::DanglingLink { .. }) if matches!(intent, Intent::Remove | Intent::RemoveTree) => {
                return Ok(());
            }
            way => way?,
        };
        let at = way.end().join(name);
        if !self.0.is_empty() {
            self.check(&way, &at, &intent)?;
        }
        self.remember(&way, at, intent, sha256)
    }

    fn check(&self, way: &Walked<()>, at: &Path, intent: &Intent) -> Result<(), Problem> {
        if let (Intent::Write(_) | Intent::MakeLink(_), Some(name)) = (intent, at.file_name()) {
            way.place.refuse_own_way(name)?;
        }
        let first = way.missing.front().map_or_else(|| at.to_owned(), |name| way.place.at(name));
        if self.predicted(&first).is_none() {
            let changed = |below: &Path| self.0.contains_key(below);
            return check::predict(at, intent, Some(way.place.trust().clone()), &changed);
        }
        intent.is_permitted(way.place.trust())?;
        if let Some(wanted) = intent.attributes() {
            check::may_give(at, wanted)?;
        }
        let missing = !way.missing.is_empty();
        match (intent, self.entry(at)?) {
            (Intent::MakeDirectory(_, Parents::Make) | Intent::Remove | Intent::RemoveTree, None) => Ok(()),
            (_, None) if missing => {
                Err(Problem::ParentMissing { missing: first, nearest: way.place.path().to_owned() })
            }
            (Intent::SetAttributes(_), None) => Err(Problem::Changed { at: at.to_owned() }),
            (Intent::Write(_), Some(Entry { kind: FileKind::Directory, .. })) => {
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
        way: &Walked<()>,
        at: PathBuf,
        intent: Intent,
        sha256: Option<String>,
    ) -> Result<(), Problem> {
        let is_directory = self.entry(&at)?.is_some_and(|entry| entry.kind == FileKind::Directory);
        let left = match intent {
            Intent::Remove | Intent::RemoveTree => Left::Nothing,
            Intent::MakeLink(target) => Left::Link { target },
            Intent::SetAttributes(attributes) | Intent::MakeDirectory(attributes, _) if is_directory => {
                let inside = self.inside(&at);
                self.0.insert(at, Left::Directory { attributes, inside });
                return Ok(());
            }
            Intent::SetAttributes(attributes) if matches!(self.0.get(&at), Some(Left::Something(_))) => {
                self.0.insert(at, Left::Something(attributes));
                return Ok(());
            }
            Intent::Write(attributes) | Intent::SetAttributes(attributes) => {
                Left::File { attributes, sha256 }
            }
            Intent::MakeDirectory(attributes, _) => {
                self.remember_parents(way, attributes);
                let is_known = !matches!(self.predicted(&at), Some(Predicted::Perhaps));
                let inside = if is_known { Inside::NOTHING } else { Inside::UNKNOWN };
                Left::Directory { attributes, inside }
            }
        };
        self.put(at, left);
        Ok(())
    }

    /// What is predicted below a path. Paths are in the order of their components, so it comes right after it.
    fn below<'a>(&'a self, at: &'a Path) -> impl Iterator<Item = (&'a PathBuf, &'a Left)> {
        let after = (Bound::Excluded(at), Bound::Unbounded);
        self.0.range::<Path, _>(after).take_while(move |(path, _)| path.starts_with(at))
    }

    fn remember_parents(&mut self, way: &Walked<()>, wanted: Attributes) {
        let own = Attributes { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode: 0o755 };
        let attributes =
            if way.place.trust().is_below_a_stranger() { Attributes { mode: 0o755, ..wanted } } else { own };
        let mut at = way.place.path().to_owned();
        for name in &way.missing {
            at.push(name);
            self.0.insert(at.clone(), Left::Directory { attributes, inside: Inside::NOTHING });
        }
    }

    /// Remembers that something would be at a path, made by somebody with this user and group who does not say what.
    pub fn assume(&mut self, path: &Path, uid: u32, gid: u32) {
        let attributes = Attributes { uid, gid, mode: 0o755 };
        let Ok((parent, name)) = walk::split(path) else { return };
        // Where no way leads, nothing that is said of it helps anybody.
        let Ok(Walked { place, missing }) = self.walk(parent, Links::All) else { return };
        let mut at = place.path().to_owned();
        for name in missing {
            at.push(name);
            self.put(at.clone(), Left::Directory { attributes, inside: Inside::UNKNOWN });
        }
        at.push(name);
        if matches!(self.entry(&at), Ok(None)) {
            self.put(at, Left::Something(attributes));
        }
    }

    /// Fails as extracting into a directory would, and records that the directory would have unknown content.
    pub fn fill(&mut self, directory: &Path, root: Attributes) -> Result<(), FileError> {
        let failed = |problem| FileError::new(Operation::Unpack, directory, problem);
        let way = self.walk(directory, Links::Trusted).map_err(failed)?;
        way.place.trust().permits(root.uid).map_err(failed)?;
        if !way.missing.is_empty() {
            self.simulate(directory, Intent::MakeDirectory(root, Parents::Make), None)?;
        }
        let at = way.end();
        let attributes = match self.component(&at).map_err(failed)? {
            Some(Entry { uid, gid, mode, .. }) => Attributes { uid, gid, mode },
            None => root,
        };
        let inside = Inside { unnamed: Occupancy::Occupied, ..self.inside(&at) };
        self.0.insert(at, Left::Directory { attributes, inside });
        Ok(())
    }

    /// What is there now is all there is at and below a path.
    fn put(&mut self, at: PathBuf, left: Left) {
        let below: Vec<PathBuf> = self.below(&at).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.0.remove(&path);
        }
        self.0.insert(at, left);
    }

    fn inside(&self, at: &Path) -> Inside {
        match self.known(at) {
            Known::Left(Left::Directory { inside, .. }) => *inside,
            Known::Left(Left::Something(_)) | Known::Anything(_) => Inside::UNKNOWN,
            Known::DiskOrAnything(_) => Inside { on_disk: true, ..Inside::UNKNOWN },
            Known::Left(Left::Nothing | Left::File { .. } | Left::Link { .. }) | Known::Void => {
                Inside::NOTHING
            }
            Known::Disk => Inside { on_disk: true, ..Inside::NOTHING },
        }
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf, Problem> {
        let (parent, name) = walk::split(path)?;
        let way = self.walk(parent, Links::Trusted)?;
        Ok(way.place.at(name))
    }

    /// What would be at a path without links in it. What is not known to be there is not.
    fn entry(&self, at: &Path) -> Result<Option<Entry>, Problem> {
        match self.predicted(at) {
            None => entry::look(at),
            Some(predicted) => Ok(predicted.entry(FileKind::File).map(|digested| digested.entry)),
        }
    }

    fn predicted(&self, at: &Path) -> Option<Predicted> {
        let entry = |kind, attributes, sha256| {
            Some(Predicted::Entry(Digested { entry: of(kind, attributes), sha256 }))
        };
        match self.known(at) {
            Known::Disk => None,
            Known::Void | Known::Left(Left::Nothing) => Some(Predicted::Nothing),
            Known::Left(Left::File { attributes, sha256 }) => {
                entry(FileKind::File, *attributes, sha256.clone())
            }
            Known::Left(Left::Directory { attributes, .. }) => entry(FileKind::Directory, *attributes, None),
            Known::Left(Left::Link { target }) => {
                entry(FileKind::Symlink { target: target.clone() }, Attributes::own(0o777), None)
            }
            Known::Left(Left::Something(Attributes { uid, gid, .. })) => {
                Some(Predicted::Something { uid: *uid, gid: *gid })
            }
            Known::Anything(_) => Some(Predicted::Perhaps),
            Known::DiskOrAnything(_) => matches!(entry::look(at), Ok(None)).then_some(Predicted::Perhaps),
        }
    }

    fn known(&self, at: &Path) -> Known<'_> {
        if let Some(left) = self.0.get(at) {
            return Known::Left(left);
        }
        match at.ancestors().skip(1).find_map(|above| self.0.get(above)) {
            None => Known::Disk,
            Some(Left::Directory { attributes, inside: Inside { on_disk, unnamed } }) => {
                match (on_disk, unnamed) {
                    (true, Occupancy::Empty) => Known::Disk,
                    (true, _) => Known::DiskOrAnything(*attributes),
                    (false, Occupancy::Empty) => Known::Void,
                    (false, _) => Known::Anything(*attributes),
                }
            }
            Some(Left::Something(attributes)) => Known::Anything(*attributes),
            Some(Left::Nothing | Left::File { .. } | Left::Link { .. }) => Known::Void,
        }
    }
}

/// Who knows what would be at a path.
enum Known<'a> {
    Left(&'a Left),
    /// It lies below something that would be new or gone.
    Void,
    Disk,
    /// Nobody. A directory would have these attributes.
    Anything(Attributes),
    /// The disk, as far as something is there.
    DiskOrAnything(Attributes),
}

fn may_change(found: &Entry) -> bool {
    geteuid().is_root() || geteuid().as_raw() == found.uid
}

fn of(kind: FileKind, Attributes { uid, gid, mode }: Attributes) -> Entry {
    let never = Timestamp { seconds: 0, nanoseconds: 0 };
    Entry { kind, uid, gid, mode, size: 0, modified: never, changed: never, nlink: 1, dev: 0, ino: 0 }
}
