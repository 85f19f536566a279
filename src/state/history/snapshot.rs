//! The state of a path: taking it with a copy of the content, comparing it, and restoring it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    objects::Objects,
    record::{from_text, to_text},
};
use crate::host::files::{
    self, Attributes, CopyInterrupted, Entry, Extended, FileError, FileKind, InTheWay, Original, hex,
};

/// Largest file or tree that is kept unless a resource or a flag requests more.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Largest number of entries of a tree that is kept.
const MOST_ENTRIES: usize = 100_000;

/// The security module assigns it, and it changes without a change of the file.
const LABEL: &str = "security.selinux";

/// The state of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    #[serde(rename = "type")]
    pub(crate) kind: SnapshotKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// SHA-256 of the content; a keyed hash if the resource is sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// Target of a link. If the resource is sensitive, it is kept as the content of a file is, under `digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) extended: BTreeMap<String, String>,
    /// Digest of the listing of everything in the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tree: Option<String>,
    #[serde(default, skip_serializing_if = "Kept::is_unneeded")]
    pub(crate) kept: Kept,
}

/// The kind of entry at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SnapshotKind {
    #[default]
    Absent,
    File,
    Directory,
    Link,
    Special,
}

/// Whether the content was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kept {
    /// There is no content, or it does not change.
    #[default]
    Unneeded,
    Copy,
    /// A copy that is encrypted for `STATE/identity`.
    Encrypted,
    /// No copy, for this reason.
    Not(String),
}

impl Kept {
    fn is_unneeded(&self) -> bool {
        *self == Self::Unneeded
    }
}

/// How much of a path a snapshot contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Depth {
    /// Kind and attributes.
    Attributes,
    /// The content of a file, too.
    Content,
    /// Everything in a directory, too.
    Tree,
}

/// Why a path was not restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    #[error("{0}")]
    NotKept(String),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error("cannot read the kept copy: {0}")]
    Copy(#[from] io::Error),
}

/// An entry of a listing.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    path: String,
    #[serde(flatten)]
    snapshot: Snapshot,
}

/// Takes snapshots. Without a store of copies it only computes digests.
pub(crate) struct Camera<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) keeping: Keeping,
    pub(crate) tick: &'a dyn Fn() -> Result<(), CopyInterrupted>,
}

/// Which contents are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Digests only.
    Nothing,
    /// Up to this size.
    UpTo(u64),
    /// None, because the resource sets `keep: never`.
    Never,
}

impl Camera<'_> {
    /// Returns the state of a path and keeps its content. Only an error of the path itself is an error: if a copy fails,
    /// the snapshot contains the reason.
    pub(crate) fn take(&self, path: &Path, depth: Depth) -> Result<Snapshot, FileError> {
        let Some(original) = files::original(path)? else { return Ok(Snapshot::default()) };
        let mut snapshot = Snapshot::of(&original);
        match (snapshot.kind, depth) {
            (SnapshotKind::File, Depth::Content | Depth::Tree) => {
                if let Some(file) = &original.file {
                    self.add_content(&mut snapshot, file, &original.entry);
                }
            }
            (SnapshotKind::Directory, Depth::Tree) => self.add_tree(&mut snapshot, path, &original.entry),
            (SnapshotKind::Link, _) if self.objects.are_secret() => self.hide_target(&mut snapshot),
            _ => {}
        }
        Ok(snapshot)
    }

    /// Keeps the target of a link of a sensitive resource as the content of a file is kept.
    fn hide_target(&self, snapshot: &mut Snapshot) {
        let target = snapshot.target.take().unwrap_or_default();
        match self.keeping {
            Keeping::Nothing => snapshot.digest = Some(self.objects.digest_bytes(target.as_bytes())),
            Keeping::Never => snapshot.kept = Kept::Not("the resource sets `keep: never`".to_owned()),
            Keeping::UpTo(_) => match self.objects.keep_bytes(target.as_bytes()) {
                Ok(digest) => (snapshot.digest, snapshot.kept) = (Some(digest), self.objects.kept()),
                Err(error) => snapshot.kept = Kept::Not(format!("no copy could be made: {error}")),
            },
        }
    }

    /// Adds the digest of a file, and keeps its content. A file that is not kept is not read either: its owner can make it
    /// terabytes long.
    fn add_content(&self, snapshot: &mut Snapshot, file: &File, entry: &Entry) {
        let is_kept = match self.keeping {
            Keeping::Nothing => false,
            Keeping::Never => {
                snapshot.kept = Kept::Not("the resource sets `keep: never`".to_owned());
                return;
            }
            Keeping::UpTo(most) if entry.size > most => {
                snapshot.kept = Kept::Not(too_large(entry.size, most));
                return;
            }
            Keeping::UpTo(_) => true,
        };
        let result =
            if is_kept { self.objects.keep(file, self.tick) } else { self.objects.digest(file, self.tick) };
        match result {
            Ok(digest) => {
                snapshot.digest = Some(digest);
                if is_kept {
                    snapshot.kept = self.objects.kept();
                }
            }
            Err(error) => snapshot.kept = Kept::Not(format!("no copy could be made: {error}")),
        }
    }

    /// Adds the digest of everything in a directory. A tree is kept completely or not.
    fn add_tree(&self, snapshot: &mut Snapshot, path: &Path, entry: &Entry) {
        let mut walk = TreeWalk { camera: self, device: entry.dev, listing: Vec::new(), kept: Ok(()) };
        let (most, is_kept) = match self.keeping {
            Keeping::Nothing => (u64::MAX, false),
            Keeping::Never => {
                walk.kept = Err("the resource sets `keep: never`".to_owned());
                (u64::MAX, false)
            }
            Keeping::UpTo(most) => (most, true),
        };
        if is_kept && let Err(reason) = walk.measure(path, most) {
            snapshot.kept = Kept::Not(reason);
            return;
        }
        if let Err(error) = walk.visit(path, "") {
            snapshot.kept = Kept::Not(error.to_string());
            return;
        }
        let TreeWalk { listing, kept, .. } = walk;
        match (kept, is_kept) {
            (Err(reason), _) => snapshot.kept = Kept::Not(reason),
            (Ok(()), true) => match self.objects.keep_bytes(&listing) {
                Ok(digest) => {
                    snapshot.tree = Some(digest);
                    snapshot.kept = self.objects.kept();
                }
                Err(error) => snapshot.kept = Kept::Not(format!("no copy could be made: {error}")),
            },
            (Ok(()), false) => snapshot.tree = Some(self.objects.digest_bytes(&listing)),
        }
    }
}

fn too_large(size: u64, most: u64) -> String {
    format!("larger than {} MiB: {} bytes", most >> 20, size)
}

/// A walk over everything in a directory.
struct TreeWalk<'a> {
    camera: &'a Camera<'a>,
    device: u64,
    listing: Vec<u8>,
    kept: Result<(), String>,
}

impl TreeWalk<'_> {
    /// Fails if the tree is too large to be kept.
    fn measure(&self, path: &Path, most: u64) -> Result<(), String> {
        let (mut left, mut size, mut count) = (vec![path.to_owned()], 0_u64, 0_usize);
        while let Some(directory) = left.pop() {
            for name in files::names(&directory).map_err(|error| error.to_string())? {
                let at = directory.join(name);
                let Some(entry) = files::inspect(&at).map_err(|error| error.to_string())? else { continue };
                count += 1;
                size = size.saturating_add(if entry.kind == FileKind::File { entry.size } else { 0 });
                if size > most {
                    return Err(too_large(size, most));
                }
                if count > MOST_ENTRIES {
                    return Err(format!("more than {MOST_ENTRIES} entries"));
                }
                if entry.kind == FileKind::Directory && entry.dev == self.device {
                    left.push(at);
                }
            }
        }
        Ok(())
    }

    fn visit(&mut self, directory: &Path, prefix: &str) -> Result<(), FileError> {
        let mut names = files::names(directory)?;
        names.sort();
        for name in names {
            let at = directory.join(&name);
            let Some(original) = files::original(&at)? else { continue };
            let mut snapshot = Snapshot::of(&original);
            let is_directory = snapshot.kind == SnapshotKind::Directory;
            if let Some(file) = &original.file {
                self.camera.add_content(&mut snapshot, file, &original.entry);
            }
            if let Kept::Not(reason) = std::mem::take(&mut snapshot.kept) {
                self.kept = Err(reason);
            }
            let path = format!("{prefix}{}", to_text(&name));
            if is_directory && original.entry.dev != self.device {
                self.kept = Err(format!("another file system is mounted on {}", at.display()));
                continue;
            }
            let listed = Listed { path: path.clone(), snapshot };
            if serde_json::to_writer(&mut self.listing, &listed).is_ok() {
                self.listing.push(b'\n');
            }
            if is_directory {
                self.visit(&at, &format!("{path}/"))?;
            }
        }
        Ok(())
    }
}

impl Snapshot {
    fn of(original: &Original) -> Self {
        let Original { entry, extended, .. } = original;
        let (kind, target) = match &entry.kind {
            FileKind::File => (SnapshotKind::File, None),
            FileKind::Directory => (SnapshotKind::Directory, None),
            FileKind::Symlink { target } => (SnapshotKind::Link, Some(to_text(target.as_os_str()))),
            _ => (SnapshotKind::Special, None),
        };
        Self {
            kind,
            uid: Some(entry.uid),
            gid: Some(entry.gid),
            mode: Some(entry.mode).filter(|_| kind != SnapshotKind::Link),
            size: Some(entry.size).filter(|_| kind == SnapshotKind::File),
            target,
            extended: extended.iter().map(|(name, value)| (name.clone(), STANDARD.encode(value))).collect(),
            ..Self::default()
        }
    }

    /// Returns the state of a path that could not be read: it agrees with no other and cannot be restored.
    pub(crate) fn unknown() -> Self {
        Self { kind: SnapshotKind::Special, ..Self::default() }
    }

    /// Returns a state that a change is to leave.
    pub(crate) fn intended(
        kind: SnapshotKind,
        attributes: Option<Attributes>,
        digest: Option<String>,
    ) -> Self {
        let (uid, gid) = attributes.map(|attributes| (attributes.uid, attributes.gid)).unzip();
        Self { kind, uid, gid, mode: attributes.map(|attributes| attributes.mode), digest, ..Self::default() }
    }

    /// Returns whether the path has the state that a change was to leave. Extended attributes are not compared.
    pub(crate) fn is_intended(&self, intended: &Self) -> bool {
        let same = |one: Option<u32>, two: Option<u32>| two.is_none() || one == two;
        self.kind == intended.kind
            && same(self.uid, intended.uid)
            && same(self.gid, intended.gid)
            && same(self.mode, intended.mode)
            && (intended.target.is_none() || self.target == intended.target)
            && (intended.digest.is_none() || self.digest == intended.digest)
    }

    pub(crate) fn existed(&self) -> bool {
        self.kind != SnapshotKind::Absent
    }

    /// Returns whether both files have the same content, as far as the content matters.
    fn has_content_of(&self, other: &Self) -> bool {
        !matches!(self.kept, Kept::Not(_)) && self.digest == other.digest
    }

    /// Returns whether both describe the same state, as far as both contain it. A content that was not kept is unknown and
    /// agrees with no other.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let extended = |snapshot: &Self| -> Vec<(String, String)> {
            let all = snapshot.extended.iter().filter(|(name, _)| *name != LABEL);
            all.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let both = |one: &Option<String>, two: &Option<String>| one.is_none() || two.is_none() || one == two;
        let is_unknown = |snapshot: &Self| matches!(snapshot.kept, Kept::Not(_));
        self.kind == other.kind
            && !is_unknown(self)
            && !is_unknown(other)
            && (self.uid, self.gid, self.mode) == (other.uid, other.gid, other.mode)
            && self.target == other.target
            && both(&self.digest, &other.digest)
            && both(&self.tree, &other.tree)
            && extended(self) == extended(other)
    }

    /// Returns why the path cannot be restored, if it cannot.
    pub(crate) fn not_kept(&self, now: &Self, objects: &Objects) -> Option<String> {
        let is_present = |digest: &Option<String>| digest.as_ref().is_some_and(|digest| objects.has(digest));
        match self.kind {
            SnapshotKind::Special => Some("only regular files, directories and links are kept".to_owned()),
            SnapshotKind::Link if self.target.is_some() => None,
            kind @ (SnapshotKind::File | SnapshotKind::Link)
                if now.kind == kind && self.has_content_of(now) =>
            {
                None
            }
            SnapshotKind::File | SnapshotKind::Link => match &self.kept {
                Kept::Not(reason) => Some(reason.clone()),
                _ if is_present(&self.digest) => None,
                _ => Some("the copy was removed to stay within `history_size`".to_owned()),
            },
            SnapshotKind::Directory => match (&self.kept, &self.tree) {
                (Kept::Not(reason), _) => Some(reason.clone()),
                (_, Some(_)) if !is_present(&self.tree) && self.tree != now.tree => {
                    Some("the copy was removed to stay within `history_size`".to_owned())
                }
                _ => None,
            },
            SnapshotKind::Absent => None,
        }
    }

    /// Returns the target of the link.
    fn link_target(&self, objects: &Objects) -> Result<PathBuf, RestoreError> {
        let missing = || RestoreError::NotKept("the copy is missing".to_owned());
        let target = match (&self.target, &self.digest) {
            (Some(target), _) => target.clone(),
            (None, Some(digest)) => {
                let mut copy = objects.open(digest)?.ok_or_else(missing)?;
                objects.check(&mut copy, digest)?;
                let mut target = String::new();
                copy.read_to_string(&mut target)?;
                target
            }
            (None, None) => return Err(missing()),
        };
        from_text(&target).ok_or_else(missing)
    }

    fn attributes(&self) -> Attributes {
        let mode = self.mode.unwrap_or(0o600);
        Attributes { uid: self.uid.unwrap_or(0), gid: self.gid.unwrap_or(0), mode }
    }

    fn extended(&self) -> Extended {
        let decoded = |(name, value): (&String, &String)| Some((name.clone(), STANDARD.decode(value).ok()?));
        self.extended.iter().filter_map(decoded).collect()
    }

    /// Restores the path, whose current state is `now`.
    pub(crate) fn restore(
        &self,
        path: &Path,
        now: &Self,
        objects: &Objects,
        tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
    ) -> Result<(), RestoreError> {
        if let Some(reason) = self.not_kept(now, objects) {
            return Err(RestoreError::NotKept(reason));
        }
        if now.kind == SnapshotKind::Directory && self.kind != SnapshotKind::Directory {
            if now.tree.is_some() {
                files::remove_tree(path, tick)?;
            } else {
                files::remove(path)?;
            }
        }
        match self.kind {
            SnapshotKind::Absent => files::remove(path)?,
            SnapshotKind::File => self.restore_file(path, now, objects)?,
            SnapshotKind::Link => {
                let is_same = (&now.target, &now.digest) == (&self.target, &self.digest);
                if now.kind != SnapshotKind::Link || !is_same {
                    let target = self.link_target(objects)?;
                    files::make_link(path, &target, InTheWay::Goes, tick)?;
                }
                files::restore_link_owner(path, self.attributes())?;
            }
            SnapshotKind::Directory => {
                files::restore_directory(path, self.attributes(), &self.extended())?;
                if self.tree.is_some() && self.tree != now.tree {
                    self.restore_tree(path, objects, tick)?;
                }
            }
            SnapshotKind::Special => {}
        }
        Ok(())
    }

    fn restore_file(&self, path: &Path, now: &Self, objects: &Objects) -> Result<(), RestoreError> {
        let (attributes, extended) = (self.attributes(), self.extended());
        let copy = self.digest.as_ref().map(|digest| objects.open(digest)).transpose()?.flatten();
        match (copy, files::inspect(path)?) {
            (Some(mut copy), _) => {
                let digest = self.digest.clone().unwrap_or_default();
                objects.check(&mut copy, &digest)?;
                files::restore_file(path, attributes, &extended, |out| io::copy(&mut copy, out).map(drop))?;
            }
            (None, Some(entry)) if self.has_content_of(now) => {
                files::restore_attributes(path, &entry, attributes, &extended)?;
            }
            _ => return Err(RestoreError::NotKept("the copy is missing".to_owned())),
        }
        Ok(())
    }

    /// Makes a directory contain exactly the entries of its listing.
    fn restore_tree(
        &self,
        path: &Path,
        objects: &Objects,
        tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
    ) -> Result<(), RestoreError> {
        let listing = self.listing(objects)?;
        let known: BTreeSet<PathBuf> =
            listing.iter().filter_map(|listed| from_text_below(path, listed)).collect();
        remove_unlisted(path, &known, tick)?;
        let camera = Camera { objects, keeping: Keeping::Nothing, tick: &|| Ok(()) };
        for listed in listing.iter().filter(|listed| listed.snapshot.kind != SnapshotKind::Special) {
            let Some(at) = from_text_below(path, listed) else { continue };
            let now = camera.take(&at, Depth::Content)?;
            if !now.agrees_with(&listed.snapshot) {
                listed.snapshot.restore(&at, &now, objects, tick)?;
            }
        }
        Ok(())
    }

    fn listing(&self, objects: &Objects) -> Result<Vec<Listed>, RestoreError> {
        let missing = || RestoreError::NotKept("the copy is missing".to_owned());
        let digest = self.tree.as_ref().ok_or_else(missing)?;
        let mut file = objects.open(digest)?.ok_or_else(missing)?;
        objects.check(&mut file, digest)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let parse = |line: &str| serde_json::from_str(line).map_err(|error| RestoreError::Copy(error.into()));
        text.lines().map(parse).collect()
    }

    /// Returns whether a directory contains only entries of its earlier state, as after an interrupted removal.
    pub(crate) fn is_partly_removed(&self, path: &Path, objects: &Objects) -> bool {
        let Ok(known) = self.listing(objects) else { return false };
        let known: BTreeMap<&str, &Snapshot> =
            known.iter().map(|listed| (listed.path.as_str(), &listed.snapshot)).collect();
        let Ok(Some(entry)) = files::inspect(path) else { return false };
        let camera = Camera { objects, keeping: Keeping::Nothing, tick: &|| Ok(()) };
        let mut walk = TreeWalk { camera: &camera, device: entry.dev, listing: Vec::new(), kept: Ok(()) };
        if entry.kind != FileKind::Directory || walk.visit(path, "").is_err() {
            return false;
        }
        let is_known = |line: &[u8]| {
            let listed: Result<Listed, _> = serde_json::from_slice(line);
            let listed = listed.ok().filter(|listed| {
                known.get(listed.path.as_str()).is_some_and(|known| known.agrees_with(&listed.snapshot))
            });
            listed.is_some()
        };
        walk.listing.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).all(is_known)
    }

    /// Returns the digests of all copies that the snapshot refers to.
    pub(crate) fn copies(&self, objects: &Objects) -> Vec<String> {
        if matches!(self.kept, Kept::Not(_) | Kept::Unneeded) {
            return Vec::new();
        }
        let inner = self.tree.as_ref().and_then(|_| self.listing(objects).ok()).into_iter().flatten();
        let inner = inner.filter_map(|listed| listed.snapshot.digest);
        self.digest.iter().chain(&self.tree).cloned().chain(inner).collect()
    }
}

fn from_text_below(path: &Path, listed: &Listed) -> Option<PathBuf> {
    // Each name is encoded on its own.
    let mut at = path.to_owned();
    for name in listed.path.split('/') {
        let name = from_text(name)?;
        if name.components().count() != 1 || name.as_os_str() == ".." {
            return None;
        }
        at.push(name);
    }
    Some(at)
}

fn remove_unlisted(
    directory: &Path,
    known: &BTreeSet<PathBuf>,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), FileError> {
    for name in files::names(directory)? {
        let at = directory.join(name);
        if !known.contains(&at) {
            files::remove_tree(&at, tick)?;
        } else if files::inspect(&at)?.is_some_and(|entry| entry.kind == FileKind::Directory) {
            remove_unlisted(&at, known, tick)?;
        }
    }
    Ok(())
}

/// Returns the SHA-256 of the rest of a file.
pub(super) fn sha256(
    mut file: &File,
    tick: &dyn Fn() -> Result<(), CopyInterrupted>,
) -> io::Result<[u8; 32]> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Sha256::new();
    files::pieces(&mut file, &mut || tick(), |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok(hasher.finalize().into())
}

/// Returns the lower-case hex SHA-256 of bytes.
pub(super) fn sha256_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
