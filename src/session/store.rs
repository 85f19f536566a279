//! A session that outlives the process: a folder with one append-only file of events.
//!
//! Several commands of a script may write at once, and any of them may be killed. Each event is one line, appended whole
//! under a lock; a line that was torn by a kill is passed over by readers and fenced off by the next writer. The folder is
//! held by its descriptor, and refused where others control it or the way to it: nothing that is recorded can be led elsewhere.

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
/// How the names of folders begin that are made for sessions.
const PREFIX: &str = "ccm-session-";

/// A folder that holds a session.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// As it was given; for messages.
    folder: PathBuf,
    /// The folder itself, wherever it is now.
    held: Rc<PrivateFolder>,
}

/// Says that a folder was made to hold a session, and when.
#[derive(Serialize, Deserialize)]
struct Mark {
    protocol: String,
    /// RFC 3339, UTC.
    started: String,
}

/// Everything that was recorded in a store.
pub(crate) struct Recorded {
    pub(crate) started: Timestamp,
    pub(crate) events: Vec<Event>,
    /// Lines that a killed command left unfinished.
    pub(crate) torn: usize,
}

/// Why a store cannot be used.
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
    /// Makes a store in a new folder, or in one that is empty.
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

    /// Makes a store in a folder of its own below another one.
    pub(crate) fn create_below(parent: &Path) -> Result<Self, StoreError> {
        Self::create(&parent.join(format!("{PREFIX}{}", Ids::new().give(Timestamp::now()))))
    }

    /// Opens a store that exists. An empty folder of the user's own that is closed to others becomes one.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        // Without a slash behind it, which would lead through a link.
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

    /// Says that the folder holds a session, unless another command was faster.
    fn mark(&self) -> Result<(), StoreError> {
        let mark = Mark { protocol: PROTOCOL.to_owned(), started: Timestamp::now().to_string() };
        let text = serde_json::to_vec(&mark).map_err(|error| self.broken(error.into()))?;
        self.held.put_new(MARK, &text).map(drop).map_err(|error| self.failed(error))
    }

    /// Returns the path that the store was made or opened by.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds an event.
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

    /// Reads everything that was recorded.
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

    /// Reads a file of the store; one that is not there is empty.
    fn text(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let Some(mut file) = self.held.open_file(name).map_err(|error| self.failed(error))? else {
            return Ok(Vec::new());
        };
        let mut bytes = Vec::new();
        // The lock keeps out the half of a line that somebody is appending.
        let read = file.lock_shared().and_then(|()| file.read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| self.broken(error))
    }

    /// Removes the store and nothing else: a folder in which somebody put something of his own stays.
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

    /// Removes what scripts that did not come to their end left below a folder: stores of this user that nobody has written
    /// to since `before` (seconds since 1970). What cannot be removed stays.
    pub(crate) fn sweep_below(parent: &Path, before: i64) {
        let parent = absolute(parent);
        for name in files::names(&parent).unwrap_or_default() {
            let is_store = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
            let found = is_store.then(|| Self::find_abandoned(&parent.join(name), before)).flatten();
            let _ = found.map(Self::remove);
        }
    }

    /// Returns when a store was last written to, in seconds since 1970; `None` if there is none, or not one to be used.
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
        // What has neither file was never a session, or is just becoming one.
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
    /// Says what a problem with a file means for the session in a folder.
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

/// Opens the folder that a session may be in; `None` if there is no folder.
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

/// Whether the last line has no end.
fn ends_torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
