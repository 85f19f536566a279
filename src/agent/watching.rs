//! Which directories are watched, and which resources an event concerns.
//!
//! A file is watched by the directory that it is in, because a new file that is renamed over it ends every watch on the
//! old one. The directories on the way there are watched too: one of them may be moved away, or come to be. What a run of
//! the agent itself writes is known by its stamp and wakes nobody.

mod wanted;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use self::wanted::Wanted;
use crate::{
    host::{
        bus::UnitSignal,
        inotify::{Happening, Inotify, Interest, Stamp, Watch, What},
        look,
        remote_file_system::RemoteFileSystem,
    },
    resource::Watches,
    vocabulary::Reference,
};

/// The books of package managers, and those of accounts.
const PACKAGES: [&str; 4] = [
    "/var/lib/dpkg/status",
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
];
const ACCOUNTS: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"];

/// A resource of one of the manifests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subject {
    pub(crate) manifest: usize,
    pub(crate) resource: Reference,
}

/// What an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Target {
    /// Part of a resource, by its place in the list of its manifest.
    Resource { manifest: u32, place: u32, part: Part },
    /// A source of this machine, by its number.
    Source(u32),
    /// The file of allowed signers.
    Signers,
    /// The agent's configuration.
    Configuration,
}

/// What of a resource an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    /// What it manages, and what that depends on.
    State,
    /// A file that comes with the manifest and says what is wanted.
    Source,
}

/// What has happened.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    pub(crate) subjects: BTreeSet<Subject>,
    /// Resources of which something else may be wanted now: that is no drift.
    pub(crate) renewed: BTreeSet<Subject>,
    pub(crate) sources: BTreeSet<usize>,
    /// The file of allowed signers may have changed.
    pub(crate) signers: bool,
    /// The agent's configuration may have changed.
    pub(crate) configuration: bool,
    /// More happened than could be told: anything may have drifted.
    pub(crate) anything: bool,
    pub(crate) writing: Writing,
}

/// Whether other processes still write the files of a drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writing {
    #[default]
    Done,
    /// No file was closed yet: more can follow.
    InProgress,
}

impl Drift {
    pub(crate) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
            && self.renewed.is_empty()
            && self.sources.is_empty()
            && !(self.signers || self.configuration || self.anything)
    }
}

/// What the agent itself left at paths.
#[derive(Default)]
pub(crate) struct OwnWrites(HashMap<PathBuf, Stamp>);

impl OwnWrites {
    /// Notes how the paths are that a resource depends on, after it was changed.
    pub(crate) fn note(&mut self, watches: &Watches, folder: &Path) {
        for (path, _) in paths(watches, folder) {
            let stamp = Stamp::of(&path);
            self.0.insert(path, stamp);
        }
    }

    fn explain(&self, path: &Path) -> bool {
        self.0.get(path).is_some_and(|stamp| *stamp == Stamp::of(path))
    }
}

/// A directory that is to be watched.
#[derive(Default)]
struct Folder {
    watch: Option<(Watch, Interest)>,
    /// Whom a change of this name concerns.
    names: HashMap<OsString, Vec<Target>>,
    /// Whom any name concerns.
    inside: Vec<Target>,
    /// Names that are on the way to other directories.
    steps: HashSet<OsString>,
}

impl Folder {
    /// Of a directory that is only on the way to others, names are enough: it may be a busy one such as `/tmp`.
    fn interest(&self) -> Interest {
        if self.names.is_empty() && self.inside.is_empty() { Interest::Names } else { Interest::Everything }
    }
}

/// A directory of which the kernel does not tell everything: what changes there is looked at when its time comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unwatchable {
    pub(crate) path: PathBuf,
    pub(crate) why: Why,
}

/// Why a directory cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Others change what is on this file system, too. The rest of it is told only if it is another one.
    FileSystem(RemoteFileSystem),
    Refused(Errno),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::FileSystem(system) => {
                write!(f, "it is on a file system that others change, too: {}", system.name)
            }
            Self::Refused(error) => write!(f, "{}", io::Error::from(*error)),
        }
    }
}

/// Watches directories, where the kernel lets it.
pub(crate) struct Watching {
    inotify: Inotify,
    folders: BTreeMap<PathBuf, Folder>,
    paths: HashMap<Watch, PathBuf>,
    /// Whom a change of a unit concerns.
    units: BTreeMap<String, Vec<Target>>,
    /// The resources of each manifest.
    wanted: Vec<Wanted>,
    /// The names of the resources of each manifest.
    names: BTreeMap<usize, HashSet<Reference>>,
    /// What came while a run was in progress.
    kept: Vec<Happening>,
    /// Whether the kernel allows no more watches.
    is_limited: bool,
    /// What cannot be watched, and how much of it was told.
    unwatchable: Vec<Unwatchable>,
    told: usize,
}

impl Watching {
    /// Returns the names of the resources of each manifest that was loaded completely.
    pub(crate) fn names(&self) -> &BTreeMap<usize, HashSet<Reference>> {
        &self.names
    }

    /// Sets the names of the resources of a manifest.
    pub(crate) fn set_names(&mut self, manifest: usize, names: HashSet<Reference>) {
        self.names.insert(manifest, names);
    }

    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            inotify: Inotify::new()?,
            folders: BTreeMap::new(),
            paths: HashMap::new(),
            units: BTreeMap::new(),
            wanted: Vec::new(),
            names: BTreeMap::new(),
            kept: Vec::new(),
            is_limited: false,
            unwatchable: Vec::new(),
            told: 0,
        })
    }

    pub(crate) fn inotify(&self) -> &Inotify {
        &self.inotify
    }

    /// How many directories are watched.
    pub(crate) fn count(&self) -> usize {
        self.paths.len()
    }

    /// Whether the kernel allows no more watches: what is not watched is looked at when its time comes.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Returns what has turned out since to be unwatchable: each directory, or each of several file systems, once.
    pub(crate) fn new_unwatchable(&mut self) -> &[Unwatchable] {
        let first = std::mem::replace(&mut self.told, self.unwatchable.len());
        &self.unwatchable[first..]
    }

    /// Watches a source of this machine.
    pub(crate) fn add_source(&mut self, number: usize, path: &Path) {
        self.add(path, Target::Source(u32::try_from(number).unwrap_or(u32::MAX)));
    }

    /// Watches the file of allowed signers.
    pub(crate) fn add_signers(&mut self, path: &Path) {
        self.add(path, Target::Signers);
    }

    /// Watches the agent's configuration.
    pub(crate) fn add_configuration(&mut self, path: &Path) {
        self.add(path, Target::Configuration);
    }

    fn add(&mut self, path: &Path, target: Target) {
        self.insert(path, target, &mut HashMap::new());
        self.renew();
    }

    /// Watches what the resources of a manifest depend on, and no more what they depended on before.
    pub(crate) fn set<'r>(
        &mut self,
        manifest: usize,
        folder: &Path,
        resources: impl Iterator<Item = (Reference, &'r Watches)> + Clone,
    ) {
        let wanted = Wanted::of(folder, resources.clone());
        if self.wanted.len() <= manifest {
            self.wanted.resize_with(manifest + 1, Wanted::default);
        }
        if !self.wanted[manifest].is_replaced_by(wanted) {
            self.renew();
            return;
        }
        let number = u32::try_from(manifest).unwrap_or(u32::MAX);
        let is_other =
            |target: &Target| !matches!(target, Target::Resource { manifest, .. } if *manifest == number);
        for folder in self.folders.values_mut() {
            folder.inside.retain(is_other);
            folder.names.retain(|_, targets| {
                targets.retain(is_other);
                !targets.is_empty()
            });
        }
        self.units.retain(|_, targets| {
            targets.retain(is_other);
            !targets.is_empty()
        });
        let mut ways = HashMap::new();
        for (place, (_, watches)) in resources.enumerate() {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            for (path, part) in paths(watches, folder) {
                self.insert(&path, Target::Resource { manifest: number, place, part }, &mut ways);
            }
            let target = Target::Resource { manifest: number, place, part: Part::State };
            for path in &watches.folders {
                let path = resolved(&folder.join(path));
                self.walk_to(&path);
                self.folders.entry(path).or_default().inside.push(target);
            }
            for unit in &watches.units {
                self.units.entry(unit.clone()).or_default().push(target);
            }
        }
        self.renew();
    }

    /// Has a target named when something happens to a path. The ways to directories that are known are not looked for
    /// again.
    fn insert(&mut self, path: &Path, target: Target, ways: &mut HashMap<PathBuf, Way>) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        if !ways.contains_key(parent) {
            let way = Way::to(parent);
            self.walk_to(&way.real);
            for (folder, name) in &way.links {
                self.walk_to(folder);
                self.folders.entry(folder.clone()).or_default().steps.insert(name.clone());
            }
            ways.insert(parent.to_owned(), way);
        }
        let Way { real, links } = &ways[parent];
        // Where a link leads elsewhere, there may be something else.
        let links = links.iter().map(|(folder, name)| (folder, name.as_os_str()));
        for (folder, name) in links.chain([(real, name)]) {
            let names = &mut self.folders.entry(folder.clone()).or_default().names;
            // Most names concern one resource, and there may be many names.
            let targets = names.entry(name.to_owned()).or_insert_with(|| Vec::with_capacity(1));
            if targets.last() != Some(&target) {
                targets.push(target);
            }
        }
    }

    /// Remembers the names on the way to a directory.
    fn walk_to(&mut self, directory: &Path) {
        let mut below = directory;
        while let (Some(above), Some(name)) = (below.parent(), below.file_name()) {
            let is_new = self.folders.entry(above.to_owned()).or_default().steps.insert(name.to_owned());
            if !is_new {
                return;
            }
            below = above;
        }
    }

    /// Watches the directories that exist and are not watched yet.
    fn renew(&mut self) {
        self.is_limited = false;
        for (path, folder) in &mut self.folders {
            let interest = folder.interest();
            if folder.watch.is_some_and(|(_, known)| known == interest) {
                continue;
            }
            match self.inotify.watch(path, interest) {
                Ok(watch) => {
                    folder.watch = Some((watch, interest));
                    self.paths.insert(watch, path.clone());
                    // On the way to others, only what is moved matters, and that goes through this machine.
                    if interest == Interest::Everything {
                        let system = RemoteFileSystem::of(path).map(Why::FileSystem);
                        note(&mut self.unwatchable, path, system);
                    }
                }
                Err(Errno::NOSPC | Errno::NOMEM) => {
                    self.is_limited = true;
                    return;
                }
                // Of what does not exist, the directory above tells when it comes.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => note(&mut self.unwatchable, path, Some(Why::Refused(error))),
            }
        }
    }

    /// Takes what has happened while a run is in progress, so that the kernel need not keep it.
    pub(crate) fn keep(&mut self) {
        self.kept.extend(self.inotify.take());
    }

    /// Whether some resource depends on a unit.
    pub(crate) fn has_units(&self) -> bool {
        !self.units.is_empty()
    }

    /// Returns whom changes of units concern.
    pub(crate) fn unit_drift(&self, signals: &[UnitSignal]) -> Drift {
        let mut targets = BTreeSet::new();
        for signal in signals {
            match signal {
                UnitSignal::Unit(name) => targets.extend(self.units.get(name).into_iter().flatten()),
                UnitSignal::Files => targets.extend(self.units.values().flatten()),
            }
        }
        self.drift_of(targets, false)
    }

    /// Returns whom it concerns what has happened, apart from what the agent itself did.
    pub(crate) fn drift(&mut self, own: &OwnWrites) -> Drift {
        let mut found = Found::default();
        let mut happenings = std::mem::take(&mut self.kept);
        happenings.extend(self.inotify.take());
        for happening in happenings {
            self.judge(&happening, own, &mut found);
        }
        if found.is_structure_changed {
            self.wanted.iter_mut().for_each(Wanted::outdate);
            self.renew();
        }
        let is_in_progress = found.targets.is_empty() && !found.modified.is_empty();
        let writing = if is_in_progress { Writing::InProgress } else { Writing::Done };
        found.targets.append(&mut found.modified);
        Drift { writing, ..self.drift_of(found.targets, found.anything) }
    }

    fn drift_of(&self, targets: BTreeSet<Target>, anything: bool) -> Drift {
        let mut drift = Drift { anything, ..Drift::default() };
        for target in targets {
            match target {
                Target::Source(number) => {
                    drift.sources.insert(number as usize);
                }
                Target::Signers => drift.signers = true,
                Target::Configuration => drift.configuration = true,
                Target::Resource { manifest, place, part } => {
                    let manifest = manifest as usize;
                    let resource = self.wanted.get(manifest).and_then(|wanted| wanted.resource(place));
                    let concerned = match part {
                        Part::State => &mut drift.subjects,
                        Part::Source => &mut drift.renewed,
                    };
                    concerned.extend(resource.map(|resource| Subject { manifest, resource }));
                }
            }
        }
        drift
    }

    fn judge(&mut self, happening: &Happening, own: &OwnWrites, found: &mut Found) {
        if happening.what == What::Overflow {
            found.anything = true;
            return;
        }
        let Some(path) = self.paths.get(&happening.watch).cloned() else { return };
        if happening.what == What::Lost {
            found.is_structure_changed = true;
            self.release_below(&path);
            self.all_below(&path, found);
            return;
        }
        let Some(folder) = self.folders.get(&path) else { return };
        let at = path.join(&happening.name);
        let is_step = !matches!(happening.what, What::Changed | What::Modified)
            && folder.steps.contains(&happening.name);
        if is_step {
            found.is_structure_changed = true;
            self.release_below(&at);
        }
        let Some(folder) = self.folders.get(&path) else { return };
        if own.explain(&at) {
            return;
        }
        let concerned = folder.names.get(&happening.name).into_iter().flatten().chain(&folder.inside);
        match happening.what {
            What::Modified => found.modified.extend(concerned),
            _ => found.targets.extend(concerned),
        }
        if is_step {
            self.all_below(&at, found);
        }
    }

    /// Watches a directory and those below it no more: under their names there may be others now.
    fn release_below(&mut self, path: &Path) {
        let below =
            self.folders.range_mut(path.to_owned()..).take_while(|(folder, _)| folder.starts_with(path));
        for (watch, _) in below.filter_map(|(_, folder)| folder.watch.take()) {
            self.inotify.unwatch(watch);
            self.paths.remove(&watch);
        }
    }

    fn all_below(&self, path: &Path, found: &mut Found) {
        let below = self.folders.range(path.to_owned()..).take_while(|(folder, _)| folder.starts_with(path));
        for (_, folder) in below {
            found.targets.extend(folder.names.values().flatten().chain(&folder.inside));
        }
    }
}

/// Notes that a directory cannot be watched, unless that is known of it or of its whole file system.
fn note(unwatchable: &mut Vec<Unwatchable>, path: &Path, why: Option<Why>) {
    let Some(why) = why else { return };
    let is_same = |known: &Unwatchable| match why {
        Why::FileSystem(_) => known.why == why,
        Why::Refused(_) => known.path == path,
    };
    if !unwatchable.iter().any(is_same) {
        unwatchable.push(Unwatchable { path: path.to_owned(), why });
    }
}

#[derive(Default)]
struct Found {
    targets: BTreeSet<Target>,
    /// Targets whose content changed, although no file was closed yet.
    modified: BTreeSet<Target>,
    anything: bool,
    is_structure_changed: bool,
}

/// Returns the paths that somebody depends on, the books of packages and accounts among them.
fn paths(watches: &Watches, folder: &Path) -> Vec<(PathBuf, Part)> {
    // What is managed has an absolute path; what has a relative one comes with the manifest.
    let part = |path: &Path| if path.is_relative() { Part::Source } else { Part::State };
    let mut all: Vec<_> = watches.paths.iter().map(|path| (folder.join(path), part(path))).collect();
    let book = |path: &&str| (PathBuf::from(path), Part::State);
    if !watches.packages.is_empty() {
        all.extend(PACKAGES.iter().map(book));
    }
    if !watches.users.is_empty() || !watches.groups.is_empty() {
        all.extend(ACCOUNTS.iter().map(book));
    }
    all
}

/// How a directory is reached.
struct Way {
    /// Where it really is, as far as it exists.
    real: PathBuf,
    /// Links on the way there, each with the directory that it is really in.
    links: Vec<(PathBuf, OsString)>,
}

impl Way {
    fn to(directory: &Path) -> Self {
        let real = resolved(directory);
        let mut links = Vec::new();
        let mut below = directory;
        while let (true, Some(above), Some(name)) = (real != directory, below.parent(), below.file_name()) {
            let folder = resolved(above);
            if look::is_link(&folder.join(name)) {
                links.push((folder, name.to_owned()));
            }
            below = above;
        }
        Self { real, links }
    }
}

/// Returns where a directory really is, as far as it exists.
fn resolved(directory: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut existing = directory;
    loop {
        if let Ok(real) = look::real(existing) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                existing = parent;
            }
            _ => return directory.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
