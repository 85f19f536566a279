//! Sessions that outlive the process: a directory with one append-only file of events.
//!
//! Several commands of a script can write at the same time, and each can be killed. An event is one line, appended
//! under a lock. Readers skip a line that was torn by a kill, and the next writer separates it from its own line. The
//! store holds the directory by its descriptor, and rejects it if other users control it or a parent, so that records
//! cannot be redirected.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    rc::Rc,
};

use jiff::Timestamp;
use rustix::{io::Errno, process::geteuid};
use serde::{Deserialize, Serialize};

use super::{Event, id::Ids};
use crate::host::files::{self, Entry, FileError, FileKind, PrivateFolder, Problem};

const EVENTS: &str = "events.jsonl";
const MARK: &str = "session.json";
const PROTOCOL: &str = "io.choria.ccm.v1.session";
/// Prefix of the names of session directories.
const PREFIX: &str = "ccm-session-";

/// Directory of a session.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// Path of the directory as it was given, for messages.
    folder: PathBuf,
    /// Descriptor of the directory.
    held: Rc<PrivateFolder>,
}

/// Marker file of a session directory, with the time of its creation.
#[derive(Serialize, Deserialize)]
struct Mark {
    protocol: String,
    /// Time of creation: RFC 3339, UTC.
    started: String,
}

/// All records of a store.
pub(crate) struct Recorded {
    pub(crate) started: Timestamp,
    pub(crate) events: Vec<Event>,
    /// Number of incomplete lines of killed commands.
    pub(crate) torn: usize,
}

/// Reason why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("{} is not a session: make one with `ccm session new`", .0.display())]
    NotASession(PathBuf),
    #[error(
        "session {} is not used: it belongs to user {owner}, who could lead what is recorded elsewhere; make one of \
         your own with `ccm session new`, or run this as that user",
        path.display()
    )]
    Foreign { path: PathBuf, owner: u32 },
    #[error("session {} is not used: others may write to it (mode {mode:04o}); it must be 0700", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "session {} is not used: permission denied, it belongs to user {owner}; make one of your own with \
         `ccm session new`",
        path.display()
    )]
    Denied { path: PathBuf, owner: u32 },
    #[error("session {} is not removed: it is a link; name the folder itself", .0.display())]
    Link(PathBuf),
    #[error("session {} is not removed: {} is not part of it", path.display(), Path::new(other).display())]
    Shared { path: PathBuf, other: OsString },
    #[error("cannot make a session in {}: it is not an empty folder", .0.display())]
    NotEmpty(PathBuf),
    #[error(
        "session {} is not used: others control {} (owner {owner}, mode {mode:04o}) and could lead what is recorded \
         elsewhere; make one where only root and you can write, with `ccm session new --directory FOLDER` or TMPDIR",
        path.display(),
        component.display()
    )]
    Controlled { path: PathBuf, component: PathBuf, owner: u32, mode: u32 },
    #[error("session {}: {error}", path.display())]
    Files { path: PathBuf, error: Box<FileError> },
    #[error("session {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl Store {
    /// Creates a store in a new or empty directory.
    pub(crate) fn create(folder: &Path) -> Result<Self, StoreError> {
        let folder = absolute(folder);
        let made = match PrivateFolder::make_new(&folder) {
            Err(FileError { problem: Problem::System { source: Errno::EXIST, .. }, .. }) => {
                let is_folder = |entry: &Entry| entry.kind == FileKind::Directory;
                let found = files::inspect(&folder).map_err(|error| StoreError::of(&folder, error))?;
                let found = if found.as_ref().is_some_and(is_folder) { find(&folder)? } else { None };
                let found = found.ok_or_else(|| StoreError::NotEmpty(folder.clone()))?;
                if !found.names().map_err(|error| StoreError::of(&folder, error))?.is_empty() {
                    return Err(StoreError::NotEmpty(folder));
                }
                found.close_to_others().map(|()| found)
            }
            made => made,
        };
        let store = Self::at(&folder, made.map_err(|error| StoreError::of(&folder, error))?);
        store.mark()?;
        Ok(store)
    }

    /// Creates a store in a new directory below another one.
    pub(crate) fn create_below(parent: &Path) -> Result<Self, StoreError> {
        Self::create(&parent.join(format!("{PREFIX}{}", Ids::new().give(Timestamp::now()))))
    }

    /// Opens a store, and creates it if its directory does not exist.
    pub(crate) fn open_or_create(folder: &Path) -> Result<Self, StoreError> {
        match Self::open(folder) {
            Err(StoreError::NotASession(path)) if matches!(files::inspect(&path), Ok(None)) => {
                match Self::create(folder) {
                    // Another command of the script was faster.
                    Err(StoreError::NotEmpty(_)) => Self::open(folder),
                    created => created,
                }
            }
            opened => opened,
        }
    }

    /// Opens an existing store. An empty private directory of the user becomes a store.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        // A trailing slash would follow a link.
        let folder: PathBuf = absolute(folder).components().collect();
        let Some(found) = find(&folder)? else { return Err(StoreError::NotASession(folder)) };
        let store = Self::at(&folder, found);
        let is_marked = match store.held.open_file(MARK) {
            Ok(mark) => mark.is_some(),
            Err(FileError { problem: Problem::Denied { .. }, .. }) => {
                return Err(StoreError::Denied { path: folder, owner: store.held.entry().uid });
            }
            Err(FileError { problem: Problem::Special { .. } | Problem::IsADirectory { .. }, .. }) => false,
            Err(error) => return Err(store.failed(error)),
        };
        if !is_marked {
            let is_own = store.held.entry().uid == geteuid().as_raw();
            if !is_own
                || !store.held.is_closed()
                || !store.held.names().map_err(|error| store.failed(error))?.is_empty()
            {
                return Err(StoreError::NotASession(folder));
            }
            store.mark()?;
        }
        Ok(store)
    }

    fn at(folder: &Path, held: PrivateFolder) -> Self {
        Self { folder: folder.to_owned(), held: Rc::new(held) }
    }

    /// Creates the marker file, unless another command was faster.
    fn mark(&self) -> Result<(), StoreError> {
        let mark = Mark { protocol: PROTOCOL.to_owned(), started: Timestamp::now().to_string() };
        let text = serde_json::to_vec(&mark).map_err(|error| self.broken(error.into()))?;
        self.held.put_new(MARK, &text).map(drop).map_err(|error| self.failed(error))
    }

    /// Returns the path by which the store was created or opened.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Appends an event.
    pub(super) fn append(&self, event: &Event) -> Result<(), StoreError> {
        let mut file = self.held.make_to_append(EVENTS).map_err(|error| self.failed(error))?;
        let mut write = || {
            let mut line = serde_json::to_vec(event)?;
            line.push(b'\n');
            file.lock()?;
            if ends_torn(&mut file)? {
                line.insert(0, b'\n');
            }
            file.write_all(&line)
        };
        write().map_err(|error| self.broken(error))
    }

    /// Reads all records.
    pub(crate) fn read(&self) -> Result<Recorded, StoreError> {
        let mark = self.text(MARK)?;
        let started = serde_json::from_slice::<Mark>(&mark).ok().and_then(|mark| mark.started.parse().ok());
        let started = started.unwrap_or_else(Timestamp::now);
        let mut recorded = Recorded { started, events: Vec::new(), torn: 0 };
        for line in self.text(EVENTS)?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(event) => recorded.events.push(event),
                Err(_) => recorded.torn += 1,
            }
        }
        Ok(recorded)
    }

    /// Reads a file of the store; empty if the file does not exist.
    fn text(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let Some(mut file) = self.held.open_file(name).map_err(|error| self.failed(error))? else {
            return Ok(Vec::new());
        };
        let mut bytes = Vec::new();
        // The lock excludes partly written lines.
        let read = file.lock_shared().and_then(|()| file.read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| self.broken(error))
    }

    /// Removes the store and nothing else: a directory with other files stays.
    pub(crate) fn remove(self) -> Result<(), StoreError> {
        let found = files::inspect(&self.folder).map_err(|error| self.failed(error))?;
        if found.is_some_and(|found| matches!(found.kind, FileKind::Symlink { .. })) {
            return Err(StoreError::Link(self.folder));
        }
        let names = self.held.names().map_err(|error| self.failed(error))?;
        if let Some(other) = names.into_iter().find(|name| name != EVENTS && name != MARK) {
            return Err(StoreError::Shared { path: self.folder, other });
        }
        let removed = [EVENTS, MARK].iter().try_for_each(|name| self.held.remove(name.as_ref()));
        removed.and_then(|()| self.held.remove_self()).map_err(|error| self.failed(error))
    }

    /// Removes abandoned stores of this user below a directory that were last written before `before` (seconds since
    /// 1970). Ignores errors.
    pub(crate) fn sweep_below(parent: &Path, before: i64) {
        let parent = absolute(parent);
        for name in files::names(&parent).unwrap_or_default() {
            let is_store = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
            let found = is_store.then(|| Self::find_abandoned(&parent.join(name), before)).flatten();
            let _ = found.map(Self::remove);
        }
    }

    /// Returns when a store was last written, in seconds since 1970; `None` if there is no usable store.
    pub(crate) fn last_touched(folder: &Path) -> Option<i64> {
        Self::at(folder, find(folder).ok().flatten()?).touched()
    }

    fn touched(&self) -> Option<i64> {
        let entries = [MARK, EVENTS].iter().filter_map(|name| self.held.look(name.as_ref()).ok()?);
        entries.map(|entry| entry.modified.seconds).max()
    }

    fn find_abandoned(folder: &Path, before: i64) -> Option<Self> {
        let held = find(folder).ok().flatten().filter(|held| held.entry().uid == geteuid().as_raw())?;
        let store = Self::at(folder, held);
        // A directory with neither file was never a session, or is being created.
        (store.touched()? < before).then_some(store)
    }

    fn failed(&self, error: FileError) -> StoreError {
        StoreError::of(&self.folder, error)
    }

    fn broken(&self, error: io::Error) -> StoreError {
        StoreError::Io { path: self.folder.clone(), error }
    }
}

impl StoreError {
    /// Returns the error of the session for an error of a file.
    fn of(folder: &Path, error: FileError) -> Self {
        let path = folder.to_owned();
        match error.problem {
            Problem::Foreign { owner, .. } => Self::Foreign { path, owner },
            Problem::Exposed { mode, .. } => Self::Exposed { path, mode },
            Problem::Controlled { component, owner, mode } => {
                Self::Controlled { path, component, owner, mode }
            }
            _ => Self::Files { path, error: Box::new(error) },
        }
    }
}

/// Opens the directory of a session; `None` if it does not exist.
fn find(folder: &Path) -> Result<Option<PrivateFolder>, StoreError> {
    match PrivateFolder::open(folder) {
        Err(FileError { problem: Problem::NotADirectory { .. } | Problem::DanglingLink { .. }, .. }) => {
            Ok(None)
        }
        found => found.map_err(|error| StoreError::of(folder, error)),
    }
}

fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Returns whether the last line is incomplete.
fn ends_torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
