//! The tree of extracted entries.
//!
//! Every entry is checked against all entries before it. Links are checked against the complete tree, before any of it is
//! visible at the target.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::fchown},
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Mode, Timespec, Timestamps, fchmod, futimens};
use sha2::{Digest, Sha256};

use ccm_files::{Attributes, CopyInterrupted, Staging};

use super::{Rules, UnpackError, error::Offence, meter::Meter, name::locate};

const CHUNK: usize = 128 * 1024;
const PERMISSIONS: u32 = 0o777;
/// Prevents users from removing files of other users in a directory.
pub(super) const STICKY: u32 = 0o1000;
/// Maximum number of links that the kernel follows.
const MOST_LINKS: usize = 40;

/// An extracted entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// Path relative to the target.
    pub path: PathBuf,
    /// Its kind and content.
    pub what: What,
}

/// Kind and content of an extracted entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A regular file.
    File {
        /// SHA-256 of its content.
        sha256: [u8; 32],
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// The path that the link contains.
        target: PathBuf,
    },
    /// A directory.
    Directory,
}

/// Attributes of a file in the archive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct About {
    pub(super) mode: u32,
    /// Modification time in seconds since the Unix epoch, if the archive contains it.
    pub(super) modified: Option<i64>,
}

enum Node {
    File {
        sha256: [u8; 32],
        mode: u32,
    },
    Link {
        target: PathBuf,
    },
    /// The mode is set if the directory has its own entry.
    Directory {
        mode: Option<u32>,
    },
}

pub(super) struct Tree<'a> {
    pub(super) meter: Meter,
    staging: &'a mut Staging,
    rules: &'a Rules,
    tick: &'a mut dyn FnMut() -> Result<(), CopyInterrupted>,
    nodes: BTreeMap<PathBuf, Node>,
    /// Name of the current entry.
    current: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(
        staging: &'a mut Staging,
        rules: &'a Rules,
        tick: &'a mut dyn FnMut() -> Result<(), CopyInterrupted>,
    ) -> Self {
        let meter = Meter::new(rules.limits);
        Self {
            meter,
            staging,
            rules,
            tick,
            nodes: BTreeMap::new(),
            current: Vec::new(),
            buffer: vec![0; CHUNK],
        }
    }

    /// Starts with the next entry.
    pub(super) fn begin(&mut self, name: &[u8]) {
        name.clone_into(&mut self.current);
    }

    /// Returns the name of the current entry, for errors.
    pub(super) fn current(&self) -> &[u8] {
        &self.current
    }

    pub(super) fn add_directory(&mut self, name: &[u8], mode: u32) -> Result<(), UnpackError> {
        let Some(path) = self.place(name)? else { return Ok(()) };
        match self.nodes.get_mut(&path) {
            None => {
                self.staging.make_directory(&path)?;
                self.nodes.insert(path, Node::Directory { mode: Some(mode) });
            }
            // A parent directory of an earlier entry, or a repeated entry.
            Some(Node::Directory { mode: known }) => *known = Some(mode),
            Some(_) => return Err(Offence::Duplicate.at(name)),
        }
        Ok(())
    }

    /// Adds a file with the complete content, and returns its size.
    pub(super) fn add_file(
        &mut self,
        name: &[u8],
        about: About,
        content: &mut dyn Read,
    ) -> Result<u64, UnpackError> {
        let Some(path) = self.new_place(name)? else {
            return self.drain(content);
        };
        let mut file = self.staging.make_file(&path)?;
        let mut hash = Sha256::new();
        let mut size = 0;
        loop {
            (self.tick)()?;
            let count = read(content, &mut self.buffer)?;
            if count == 0 {
                break;
            }
            hash.update(&self.buffer[..count]);
            file.write_all(&self.buffer[..count]).map_err(|error| self.staging.explain(&error, &path))?;
            size += count as u64;
        }
        self.dress(&file, about).map_err(|error| self.staging.explain(&error, &path))?;
        let sha256 = hash.finalize().into();
        self.nodes.insert(path, Node::File { sha256, mode: self.attributes(about.mode).mode });
        Ok(size)
    }

    fn dress(&self, file: &std::fs::File, about: About) -> io::Result<()> {
        let attributes = self.attributes(about.mode);
        // The owner comes first: the kernel clears bits of the mode with it.
        fchown(file, Some(attributes.uid), Some(attributes.gid))?;
        fchmod(file, Mode::from_raw_mode(attributes.mode))?;
        if let Some(seconds) = about.modified {
            let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
            futimens(file, &Timestamps { last_access: time, last_modification: time })?;
        }
        Ok(())
    }

    /// Returns owner and group from the rules, and the mode without setuid and setgid.
    fn attributes(&self, mode: u32) -> Attributes {
        Attributes { uid: self.rules.uid, gid: self.rules.gid, mode: mode & PERMISSIONS }
    }

    pub(super) fn add_symlink(&mut self, name: &[u8], target: &[u8]) -> Result<(), UnpackError> {
        let Some(path) = self.new_place(name)? else { return Ok(()) };
        if target.is_empty() || target.contains(&0) {
            return Err(Offence::malformed("a link without a target").at(name));
        }
        let target = PathBuf::from(OsStr::from_bytes(target));
        self.staging.make_symlink(&path, &target, self.attributes(0))?;
        self.nodes.insert(path, Node::Link { target });
        Ok(())
    }

    pub(super) fn add_hard_link(&mut self, name: &[u8], target: &[u8]) -> Result<(), UnpackError> {
        let Some(path) = self.new_place(name)? else { return Ok(()) };
        let shown = || PathBuf::from(OsStr::from_bytes(target));
        let existing = locate(target, self.rules.strip_components).map_err(|offence| match offence {
            Offence::Absolute | Offence::Upwards => Offence::LinkOut { target: shown() }.at(name),
            other => other.at(name),
        })?;
        let Some(Node::File { sha256, mode }) = self.nodes.get(&existing) else {
            return Err(Offence::HardLink { target: shown() }.at(name));
        };
        let same = Node::File { sha256: *sha256, mode: *mode };
        self.staging.make_hard_link(&path, &existing)?;
        self.nodes.insert(path, same);
        Ok(())
    }

    /// Discards the content, and returns its size.
    pub(super) fn drain(&mut self, content: &mut dyn Read) -> Result<u64, UnpackError> {
        let mut size = 0;
        loop {
            (self.tick)()?;
            match read(content, &mut self.buffer)? {
                0 => return Ok(size),
                count => size += count as u64,
            }
        }
    }

    /// Returns the path of an entry that must not exist yet and is not a directory.
    fn new_place(&mut self, name: &[u8]) -> Result<Option<PathBuf>, UnpackError> {
        match self.place(name)? {
            Some(path) if self.nodes.contains_key(&path) => Err(Offence::Duplicate.at(name)),
            None if locate(name, 0).is_ok_and(|path| path.as_os_str().is_empty()) => {
                Err(Offence::Nameless.at(name))
            }
            path => Ok(path),
        }
    }

    /// Creates the parent directories of an entry and returns its path; `None` if the entry is the target itself or completely
    /// stripped.
    fn place(&mut self, name: &[u8]) -> Result<Option<PathBuf>, UnpackError> {
        (self.tick)()?;
        self.meter.entry()?;
        let path = locate(name, self.rules.strip_components).map_err(|offence| offence.at(name))?;
        if path.as_os_str().is_empty() {
            return Ok(None);
        }
        let mut missing = Vec::new();
        for above in path.ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty()) {
            match self.nodes.get(above) {
                Some(Node::Directory { .. }) => break,
                Some(_) => return Err(Offence::BelowOther { above: above.to_owned() }.at(name)),
                None => missing.push(above),
            }
        }
        for above in missing.into_iter().rev() {
            self.meter.entry()?;
            self.staging.make_directory(above)?;
            self.nodes.insert(above.to_owned(), Node::Directory { mode: None });
        }
        Ok(Some(path))
    }

    /// Checks all links and sets the attributes of the directories.
    pub(super) fn finish(self) -> Result<Vec<Extracted>, UnpackError> {
        if self.nodes.is_empty() && !self.current.is_empty() && self.rules.strip_components > 0 {
            return Err(UnpackError::NothingLeft { strip_components: self.rules.strip_components });
        }
        for (path, node) in &self.nodes {
            if let Node::Link { target } = node
                && !self.stays_inside(path, target)
            {
                let offence = Offence::LinkOut { target: target.clone() };
                return Err(offence.at(path.as_os_str().as_bytes()));
            }
        }
        // The deepest first: a mode can forbid to enter a directory.
        for (path, node) in self.nodes.iter().rev() {
            if let Node::Directory { mode } = node {
                let mode = mode.unwrap_or(0o755);
                let attributes = Attributes { mode: mode & (PERMISSIONS | STICKY), ..self.attributes(mode) };
                self.staging.dress_directory(path, attributes)?;
            }
        }
        Ok(self.nodes.into_iter().map(|(path, node)| Extracted { path, what: node.into() }).collect())
    }

    /// Returns whether a link points into the target, following the links of the archive. A path that the archive does not contain
    /// might exist as a link, so `..` after such a path is rejected.
    fn stays_inside(&self, link: &Path, target: &Path) -> bool {
        let mut at: PathBuf = link.parent().unwrap_or(Path::new("")).to_owned();
        let mut ahead: Vec<PathBuf> = vec![target.to_owned()];
        // The link itself counts.
        let mut followed = 1;
        while let Some(next) = ahead.pop() {
            let mut components = next.components();
            let Some(component) = components.next() else { continue };
            ahead.push(components.as_path().to_owned());
            match component {
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return false,
                Component::ParentDir => {
                    let is_directory = at.as_os_str().is_empty()
                        || matches!(self.nodes.get(&at), Some(Node::Directory { .. }));
                    if !is_directory || !at.pop() {
                        return false;
                    }
                }
                Component::Normal(name) => {
                    at.push(name);
                    if let Some(Node::Link { target }) = self.nodes.get(&at) {
                        followed += 1;
                        if followed > MOST_LINKS {
                            return false;
                        }
                        at.pop();
                        ahead.push(target.clone());
                    }
                }
            }
        }
        true
    }
}

fn read(content: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, UnpackError> {
    ccm_files::read(content, buffer).map_err(UnpackError::from_read)
}

impl From<Node> for What {
    fn from(node: Node) -> Self {
        match node {
            Node::File { sha256, mode } => Self::File { sha256, mode },
            Node::Link { target } => Self::Link { target },
            Node::Directory { .. } => Self::Directory,
        }
    }
}
