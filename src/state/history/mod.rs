//! The history of runs: the changes of each run, and the replaced states.
//!
//! `STATE/history/YYYY-MM.jsonl` has one JSON document per line ([`record`]), appended under a lock. A change is recorded
//! before it is made and completed after it, so that a killed run can be undone. A line that a kill cut short is ignored,
//! and the next record begins on a new line. `STATE/history/objects` has copies of contents ([`objects`]).

mod limits;
mod measure;
mod objects;
mod reading;
mod record;
mod recorder;
mod sealing;
mod snapshot;
#[cfg(test)]
mod tests;

use std::{fs::File, path::PathBuf};

pub(crate) use self::{
    limits::Limits,
    measure::Measure,
    objects::Objects,
    reading::{Log, RunRecord},
    record::{
        Change, Done, End, HostRun, ManifestDigest, PathBefore, PropertyChange, RunKind, Start, Undo, Who,
        from_text, to_text,
    },
    recorder::Recorder,
    snapshot::{Camera, Depth, Keeping, Kept, LARGEST, RestoreError, Snapshot, SnapshotKind},
};
use super::{StateDirectory, StateError};
use crate::host::files::PrivateFolder;

/// Directory of the history in the state directory.
pub(super) const FOLDER: &str = "history";
const OBJECTS: &str = "objects";
const LOCK: &str = "lock";
/// Directory with an empty file for each run that was undone.
const UNDONE: &str = "undone";

/// Whether contents are those of a sensitive resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Public,
    Secret,
}

/// The history of a state directory.
pub(crate) struct HistoryStore {
    state: StateDirectory,
    folder: PrivateFolder,
}

impl StateDirectory {
    /// Opens the history; `None` if there is none yet.
    pub(crate) fn history(&self) -> Result<Option<HistoryStore>, StateError> {
        let Some(state) = self.open()? else { return Ok(None) };
        let folder = state.folder(FOLDER)?;
        Ok(folder.map(|folder| HistoryStore { state: self.clone(), folder }))
    }

    /// Returns the directories in which a run that changes something makes files: none without a state directory.
    pub(crate) fn history_directories(&self) -> Vec<PathBuf> {
        let history = self.path().map(|path| path.join(FOLDER));
        history.map_or_else(|_| Vec::new(), |history| vec![history.join(OBJECTS), history])
    }

    /// Opens the history and creates it if there is none yet.
    pub(crate) fn make_history(&self) -> Result<HistoryStore, StateError> {
        let folder = self.make_folder(FOLDER)?;
        Ok(HistoryStore { state: self.clone(), folder })
    }
}

impl HistoryStore {
    /// Returns the kept copies. The key of the state directory is created when a secret is kept for the first time.
    pub(crate) fn objects(&self, secrecy: Secrecy) -> Result<Objects, StateError> {
        let folder = self.folder.make_folder(OBJECTS)?;
        let identity = match secrecy {
            Secrecy::Public => None,
            Secrecy::Secret => Some(self.state.make_identity()?),
        };
        Ok(Objects::new(folder, identity))
    }

    /// Notes that a run was undone, at least in part.
    pub(crate) fn mark_undone(&self, run: &str) -> Result<(), StateError> {
        Ok(self.folder.make_folder(UNDONE)?.put_new(run, b"").map(drop)?)
    }

    /// Whether a run was undone.
    pub(crate) fn is_undone(&self, run: &str) -> bool {
        let undone = self.folder.folder(UNDONE).ok().flatten();
        undone.is_some_and(|undone| undone.look(run.as_ref()).is_ok_and(|found| found.is_some()))
    }

    /// Takes the lock that serializes appending and pruning.
    fn lock(&self) -> Result<File, StateError> {
        let file = self.folder.make_to_append(LOCK)?;
        file.lock().map_err(|error| StateError::Io { path: self.folder.path().join(LOCK), error })?;
        Ok(file)
    }
}
