//! What survives a run: who is running, which refreshes are owed, what was unpacked, what files hold that nobody can have
//! changed, and what a killed run may have left lying about.
//!
//! Deleting the state directory loses memory, never correctness. It is used only where nobody but root and the user
//! running the program controls it and the way to it, and everything in it is opened by descriptor ([`PrivateFolder`]).

mod agent_runs;
mod archives;
mod command;
mod confirmation;
mod digests;
mod downloads;
pub(crate) mod history;
mod identity;
mod lock;
mod pending_refreshes;
mod processed;
mod refresh_store;
mod run_list;
mod secret_paths;
mod write_journal;

pub(crate) use agent_runs::AgentRuns;
pub(crate) use archives::{ExtractionRecord, Fetched, Origin, Progress, Unpacking};
pub(crate) use confirmation::{Confirmation, ConfirmationStore, Moment, Outcome, Phase, Resolved};
pub(crate) use digests::{Digests, Recall};
pub(crate) use downloads::Downloaded;
pub(crate) use identity::{StateIdentity, Undecryptable};
pub(crate) use lock::{Held, Patience, RunLock};
pub(crate) use pending_refreshes::{
    Change, Entry, Pending, PendingRefresh, RefreshOrigin, RefreshRecords, ScriptSession,
};
pub(crate) use processed::Processed;
pub(crate) use refresh_store::RefreshStore;
pub(crate) use write_journal::WriteJournal;

use std::{
    ffi::OsString,
    fs::{File, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::host::files::{self, FileError, PrivateFolder, Problem};

/// The directory that ccm keeps its state in. Without a path it is empty, and nothing can be stored in it.
#[derive(Clone, Debug)]
pub(crate) struct StateDirectory(Option<PathBuf>);

/// The records that ccm keeps on this machine between runs, and the directories that this run writes in.
pub(crate) struct LocalState {
    pub(crate) directory: StateDirectory,
    pub(crate) write_journal: WriteJournal,
    pub(crate) digests: Digests,
}

impl LocalState {
    /// Returns the state in a directory, which is created when something is written to it.
    pub(crate) fn at(directory: StateDirectory) -> Self {
        Self { write_journal: directory.write_journal(), digests: directory.digests(), directory }
    }

    /// Sets whether remembered digests of files are used.
    pub(crate) fn with_recall(mut self, recall: Recall) -> Self {
        self.digests.recall = recall;
        self
    }
}

/// Held by the one agent that uses a state directory.
pub(crate) struct AgentLock {
    _file: File,
    /// Where it listens.
    pub(crate) socket: PathBuf,
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
    #[error(
        "state directory {} is not used: others may write to it (mode {mode:04o}), and may have put links or records of \
         their own there; look at what is in it, then remove it or close it (chmod 0700)",
        path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "state directory {} is not used: others control {} (owner {owner}, mode {mode:04o}) and could exchange what is \
         below it",
        path.display(),
        component.display()
    )]
    Controlled { path: PathBuf, component: PathBuf, owner: u32, mode: u32 },
    #[error("no state directory: set HOME, XDG_STATE_HOME or --state-dir")]
    NoDirectory,
    #[error("interrupted while waiting for another run to finish")]
    Interrupted,
}

impl StateError {
    /// Converts an error of reading the running program.
    pub(crate) fn from_program(error: io::Error) -> Self {
        Self::Io { path: "/proc/self/exe".into(), error }
    }
}

impl StateDirectory {
    /// Returns the state directory at a path, which need not exist yet.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(Some(path))
    }

    /// Returns the state directory of a command that only reads and has none.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Returns the path of the directory, for the command line of another ccm.
    pub(crate) fn to_path(&self) -> Result<PathBuf, StateError> {
        self.path().map(Path::to_owned)
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    fn path(&self) -> Result<&Path, StateError> {
        self.0.as_deref().ok_or(StateError::NoDirectory)
    }

    /// Opens the directory; `None` if it does not exist.
    fn open(&self) -> Result<Option<PrivateFolder>, StateError> {
        let Some(path) = &self.0 else { return Ok(None) };
        let folder = PrivateFolder::open(path).map_err(|error| refused(path, error))?;
        folder.map(Self::judge).transpose()
    }

    /// Opens the directory, and makes it if it does not exist, for nobody else to read.
    fn make(&self) -> Result<PrivateFolder, StateError> {
        let path = self.path()?;
        let folder = Self::judge(PrivateFolder::make(path).map_err(|error| refused(path, error))?)?;
        if !folder.is_closed() {
            folder.close_to_others()?;
        }
        Ok(folder)
    }

    /// Opens a folder in the directory, and makes both if they do not exist.
    pub(crate) fn make_folder(&self, name: &str) -> Result<PrivateFolder, StateError> {
        let path = self.path()?;
        self.make()?.make_folder(name).map_err(|error| refused(path, error))
    }

    /// Keeps other agents out of the directory for as long as what this returns lives; `None` if there is one.
    pub(crate) fn lock_agent(&self) -> Result<Option<AgentLock>, StateError> {
        let folder = self.make()?;
        let file = folder.make_to_append(AGENT_LOCK)?;
        match file.try_lock() {
            Ok(()) => {
                // What an agent that was killed left behind.
                folder.remove(AGENT_SOCKET.as_ref())?;
                Ok(Some(AgentLock { _file: file, socket: folder.path().join(AGENT_SOCKET) }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(StateError::Io { path: folder.path().join(AGENT_LOCK), error })
            }
        }
    }

    /// Returns where an agent that uses this directory listens.
    pub(crate) fn agent_socket(&self) -> Result<PathBuf, StateError> {
        Ok(self.path()?.join(AGENT_SOCKET))
    }

    /// Refuses a folder that is not the user's own, or that others may read and that holds what the program never put
    /// there: it is somebody's, and stays as it is.
    fn judge(folder: PrivateFolder) -> Result<PrivateFolder, StateError> {
        let (owner, mode) = (folder.entry().uid, folder.entry().mode);
        let is_ours =
            |name: &OsString| NAMES.iter().any(|ours| name == ours) || files::is_temporary_name(name);
        if owner != geteuid().as_raw() || !folder.is_closed() && !folder.names()?.iter().all(is_ours) {
            return Err(StateError::NotPrivate { path: folder.path().to_owned(), mode, owner });
        }
        Ok(folder)
    }
}

/// Returns what a problem with a file means for the state directory at a path.
fn refused(path: &Path, error: FileError) -> StateError {
    let path = path.to_owned();
    match error.problem {
        Problem::Controlled { component, owner, mode } => {
            StateError::Controlled { path, component, owner, mode }
        }
        Problem::Exposed { at, mode } => StateError::Exposed { path: at, mode },
        Problem::Foreign { at, owner } if at == path => {
            let mode = files::inspect(&path).ok().flatten().map_or(0, |entry| entry.mode);
            StateError::NotPrivate { path, mode, owner }
        }
        _ => StateError::Files(error),
    }
}

/// Reads a whole file of a folder; `None` if there is none.
fn read(folder: &PrivateFolder, name: &str) -> Result<Option<Vec<u8>>, StateError> {
    let Some(mut file) = folder.open_file(name)? else { return Ok(None) };
    let mut bytes = Vec::new();
    match file.read_to_end(&mut bytes) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) => Err(StateError::Io { path: folder.path().join(name), error }),
    }
}

/// What the program itself puts into its state directory, and put there earlier.
const NAMES: [&str; 18] = [
    "lock",
    "refreshes.jsonl",
    "unfinished",
    "commands",
    "archives",
    "bundles",
    digests::FILE,
    "validating",
    "debts.json",
    "debts.lock",
    "sources",
    history::FOLDER,
    confirmation::FOLDER,
    agent_runs::FILE,
    AGENT_LOCK,
    AGENT_SOCKET,
    identity::FILE,
    secret_paths::FILE,
];

const AGENT_LOCK: &str = "agent.lock";
const AGENT_SOCKET: &str = "agent.sock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_stored_without_a_state_directory() {
        let state = StateDirectory::none();
        assert!(matches!(state.open(), Ok(None)));
        assert!(matches!(state.make(), Err(StateError::NoDirectory)));
        assert!(matches!(state.make_folder("bundles"), Err(StateError::NoDirectory)));
    }

    #[test]
    fn only_a_foreign_folder_is_no_state_directory() {
        for (at, expected) in [
            ("/no-such-directory", "/no-such-directory is not a state directory: it belongs to user 7 "),
            ("/no-such-directory/archives", "state directory: cannot read \"/dev/null\": "),
        ] {
            let problem = Problem::Foreign { at: at.into(), owner: 7 };
            let no_folder = PrivateFolder::open(Path::new("/dev/null")).err().unwrap();
            let refused = refused(Path::new("/no-such-directory"), FileError { problem, ..no_folder });
            assert!(refused.to_string().starts_with(expected), "{refused}");
        }
    }
}
