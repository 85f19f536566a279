//! What survives a run: who is running, which refreshes are owed, what was unpacked, and what a killed run may have left lying about.
//!
//! Deleting the state directory loses memory, never correctness.

mod archives;
mod command;
mod lock;
mod pending_refreshes;
mod refresh_store;
mod write_journal;

pub(crate) use archives::{ExtractionRecord, Fetched, Origin, Progress, Unpacking};
pub(crate) use lock::{Held, Patience, RunLock};
pub(crate) use pending_refreshes::{Change, PendingRefresh, RefreshRecords};
pub(crate) use refresh_store::RefreshStore;
pub(crate) use write_journal::WriteJournal;

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::host::files::{self, Attributes, FileError, Parents};

/// The folder that the program keeps its memory in.
#[derive(Clone, Debug)]
pub(crate) struct StateDirectory(PathBuf);

/// What the program remembers between runs, and where this run is writing.
pub(crate) struct Memory {
    pub(crate) directory: StateDirectory,
    pub(crate) write_journal: WriteJournal,
}

impl Memory {
    /// Returns the memory that is kept in a directory, which is made when something is written to it.
    pub(crate) fn at(directory: StateDirectory) -> Self {
        Self { write_journal: directory.write_journal(), directory }
    }
}

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("state directory: {0}")]
    Files(#[from] FileError),
    #[error("cannot use {} in the state directory: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} in the state directory is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "{} is not a state directory: it belongs to user {owner} with mode {mode:04o}, and must be yours with mode 0700",
        path.display()
    )]
    NotPrivate { path: PathBuf, mode: u32, owner: u32 },
    #[error("interrupted while waiting for another run to finish")]
    Interrupted,
}

impl StateDirectory {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// None, for whoever only looks: nothing is there, and nothing can be put there.
    pub(crate) fn nowhere() -> Self {
        Self(PathBuf::from(NOWHERE))
    }

    pub(crate) fn is_nowhere(&self) -> bool {
        self.0 == Path::new(NOWHERE)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the directory if it is not there, for nobody else to read.
    fn make(&self) -> Result<(), StateError> {
        make_private(&self.0)
    }

    /// Puts a complete file into the directory.
    fn store(&self, name: &str, content: &[u8]) -> Result<(), StateError> {
        self.make()?;
        files::replace(&self.0.join(name), Attributes::own(0o600), |out| out.write_all(content))?;
        Ok(())
    }
}

/// Opens a file that is locked, making it if it is not there.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Makes a directory that only we can use, or sees to it that an existing one is such.
fn make_private(path: &Path) -> Result<(), StateError> {
    let wanted = Attributes::own(0o700);
    if let Some(entry) = files::inspect(path)?.filter(|entry| entry.kind == files::FileKind::Directory) {
        if entry.uid == wanted.uid && entry.mode | 0o700 == 0o700 {
            return Ok(());
        }
        // A folder that holds anything else is somebody's, and stays as it is.
        let is_ours = |name: &OsString| NAMES.iter().any(|ours| name == ours);
        if entry.uid != wanted.uid || !files::names(path)?.iter().all(is_ours) {
            return Err(StateError::NotPrivate { path: path.to_owned(), mode: entry.mode, owner: entry.uid });
        }
    }
    Ok(files::make_directory(path, wanted, Parents::Make)?)
}

/// Systems give this home to users who have none.
const NOWHERE: &str = "/nonexistent/ccm";

/// What the program itself puts into its state directory.
const NAMES: [&str; 7] =
    ["lock", "debts.json", "debts.lock", "unfinished", "archives", "bundles", "commands"];
