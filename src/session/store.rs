//! A session that outlives the process: a folder with one append-only file of events.
//!
//! Several commands of a script may write at once, and any of them may be killed. Each event is one line, appended whole
//! under a lock; a line that was torn by a kill is passed over by readers and fenced off by the next writer.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::{Event, id::Ids};

const EVENTS: &str = "events.jsonl";
const MARK: &str = "session.json";
const PROTOCOL: &str = "io.choria.ccm.v1.session";

/// A folder that holds a session.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
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
    #[error("session {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl Store {
    /// Makes a store in a new folder, or in one that is empty.
    pub(crate) fn create(folder: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Io { path: folder.to_owned(), error };
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = fs::symlink_metadata(folder).map_err(failed)?;
                if !found.is_dir() || fs::read_dir(folder).map_err(failed)?.next().is_some() {
                    return Err(StoreError::NotEmpty(folder.to_owned()));
                }
                owned(folder, &found)?;
                let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
                fs::set_permissions(folder, permissions).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        let mark = Mark { protocol: PROTOCOL.to_owned(), started: Timestamp::now().to_string() };
        let text = serde_json::to_string(&mark).map_err(|error| failed(error.into()))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.join(MARK))
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Makes a store in a folder of its own below another one.
    pub(crate) fn create_below(parent: &Path) -> Result<Self, StoreError> {
        Self::create(&parent.join(format!("ccm-session-{}", Ids::new().give(Timestamp::now()))))
    }

    /// A store that exists.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        // Without a slash behind it, which would lead through a link.
        let folder: PathBuf = folder.components().collect();
        let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let found = match fs::metadata(&folder) {
            Ok(found) => found,
            Err(error) if is_denied(&error) => return Err(StoreError::Io { path: folder, error }),
            Err(_) => return Err(StoreError::NotASession(folder)),
        };
        let mark = match fs::symlink_metadata(folder.join(MARK)) {
            Ok(mark) if mark.is_file() => mark,
            Err(error) if is_denied(&error) => {
                return Err(StoreError::Denied { path: folder, owner: found.uid() });
            }
            _ => return Err(StoreError::NotASession(folder)),
        };
        owned(&folder, &found)?;
        owned(&folder, &mark)?;
        // Whoever may write to the folder can lead what is appended elsewhere.
        if found.mode() & 0o022 != 0 {
            return Err(StoreError::Exposed { path: folder, mode: found.mode() & 0o7777 });
        }
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds an event.
    pub(super) fn append(&self, event: &Event) -> Result<(), StoreError> {
        let write = || {
            let mut line = serde_json::to_vec(event)?;
            line.push(b'\n');
            let path = self.folder.join(EVENTS);
            let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
            file.lock()?;
            if ends_torn(&mut file)? {
                line.insert(0, b'\n');
            }
            file.write_all(&line)
        };
        write().map_err(|error| StoreError::Io { path: self.folder.clone(), error })
    }

    /// Everything that was recorded.
    pub(crate) fn read(&self) -> Result<Recorded, StoreError> {
        let failed = |error| StoreError::Io { path: self.folder.clone(), error };
        let mark = fs::read(self.folder.join(MARK)).map_err(failed)?;
        let started = serde_json::from_slice::<Mark>(&mark).ok().and_then(|mark| mark.started.parse().ok());
        let started = started.unwrap_or_else(Timestamp::now);
        // The lock keeps out the half of a line that somebody is appending.
        let read = || {
            let mut file = File::open(self.folder.join(EVENTS))?;
            file.lock_shared()?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map(|_| bytes)
        };
        let bytes = match read() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let mut recorded = Recorded { started, events: Vec::new(), torn: 0 };
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(event) => recorded.events.push(event),
                Err(_) => recorded.torn += 1,
            }
        }
        Ok(recorded)
    }

    /// Removes the store and nothing else: a folder in which somebody put something of his own stays.
    pub(crate) fn remove(self) -> Result<(), StoreError> {
        let failed = |error| StoreError::Io { path: self.folder.clone(), error };
        if fs::symlink_metadata(&self.folder).map_err(failed)?.is_symlink() {
            return Err(StoreError::Link(self.folder));
        }
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let other = entry.map_err(failed)?.file_name();
            if other != EVENTS && other != MARK {
                return Err(StoreError::Shared { path: self.folder, other });
            }
        }
        for name in [EVENTS, MARK] {
            match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        fs::remove_dir(&self.folder).map_err(failed)
    }
}

/// Only what belongs to the user or to root is theirs alone.
fn owned(folder: &Path, found: &fs::Metadata) -> Result<(), StoreError> {
    if [0, geteuid().as_raw()].contains(&found.uid()) {
        return Ok(());
    }
    Err(StoreError::Foreign { path: folder.to_owned(), owner: found.uid() })
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
