//! A run that awaits confirmation, in `STATE/confirm`.
//!
//! `pending.json` exists from before the first change of the run until it is confirmed or undone. Each of its changes is
//! made under `lock`, by rename. While a guard waits for the deadline, it holds `guard`. During the run, `progress` has
//! the time at which the last resource was finished. `last.json` is the result of the last confirmation, and `ccm` the
//! copy of the program that the guard runs.

use std::{
    fs::{File, TryLockError},
    io::Read,
    path::PathBuf,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{StateDirectory, StateError, read};
use crate::host::{
    files::{FileError, PrivateFolder},
    process::{Boot, Head, since_boot},
};

/// Directory in the state directory.
pub(super) const FOLDER: &str = "confirm";
const PENDING: &str = "pending.json";
const PROGRESS: &str = "progress";
const LAST: &str = "last.json";
const LOCK: &str = "lock";
const GUARD: &str = "guard";
const PROGRAM: &str = "ccm";

/// How often a guard tries to become the only one, and the pause between.
const ATTEMPTS: usize = 100;
const PULSE: Duration = Duration::from_millis(5);

/// Format of the records.
const FORMAT: u32 = 1;

/// A run that awaits confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confirmation {
    v: u32,
    pub(crate) run: String,
    pub(crate) phase: Phase,
    pub(crate) timeout: Duration,
    /// Whether the machine has to boot before the run can be confirmed.
    #[serde(default)]
    pub(crate) after_boot: bool,
    /// Id of the boot that the record is of.
    boot: String,
    /// When the time began to count, on the clock since the boot.
    since: Duration,
    /// Process that makes the run, and its start time.
    runner: Option<(i32, u64)>,
    /// Resources that an undo failed to restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<String>,
}

/// Progress of a run with confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// The run is in progress.
    Applying,
    /// The run succeeded and can be confirmed.
    Waiting,
    /// The run is being undone.
    Undoing,
    /// Something could not be undone. The next boot and `ccm confirm --undo` try again.
    Stuck,
}

/// The present boot and the present time.
pub(crate) struct Moment {
    boot: Boot,
    now: Duration,
}

/// The result of a confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resolved {
    pub(crate) run: String,
    pub(crate) outcome: Outcome,
}

/// Whether a run was confirmed or undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Confirmed,
    /// By the run with this id.
    Undone(String),
}

/// `STATE/confirm`.
pub(crate) struct ConfirmationStore {
    folder: PrivateFolder,
}

impl StateDirectory {
    /// Opens the records of confirmations; `None` if there never was one.
    pub(crate) fn confirmations(&self) -> Result<Option<ConfirmationStore>, StateError> {
        let Some(state) = self.open()? else { return Ok(None) };
        Ok(state.folder(FOLDER)?.map(|folder| ConfirmationStore { folder }))
    }

    /// Opens the records of confirmations and creates them if there are none.
    pub(crate) fn make_confirmations(&self) -> Result<ConfirmationStore, StateError> {
        Ok(ConfirmationStore { folder: self.make_folder(FOLDER)? })
    }

    /// Returns the run that awaits confirmation.
    pub(crate) fn awaiting_confirmation(&self) -> Result<Option<Confirmation>, StateError> {
        self.confirmations()?.map_or(Ok(None), |store| store.pending())
    }
}

impl Moment {
    /// Returns the present moment; `None` without `/proc`.
    pub(crate) fn now() -> Option<Self> {
        Some(Self { boot: Boot::current()?, now: since_boot() })
    }
}

impl Confirmation {
    /// Begins to wait for the confirmation of a run that is in progress in this process.
    pub(crate) fn begin(run: String, timeout: Duration, after_boot: bool, moment: &Moment) -> Self {
        Self {
            v: FORMAT,
            run,
            phase: Phase::Applying,
            timeout,
            after_boot,
            boot: moment.boot.id.clone(),
            since: moment.now,
            runner: Head::of_this_process().map(|head| (head.pid, head.started)),
            left: Vec::new(),
        }
    }

    /// Returns the record of the run after its end.
    pub(crate) fn waiting(self, moment: &Moment) -> Self {
        Self { phase: Phase::Waiting, since: moment.now, ..self }
    }

    /// Returns the record after a boot that the confirmation requires, otherwise the same record.
    pub(crate) fn after_boot(self, moment: &Moment) -> Self {
        if self.is_of(moment) || !self.after_boot || self.phase != Phase::Waiting {
            return self;
        }
        let boot = moment.boot.id.clone();
        Self { boot, since: moment.boot.began, after_boot: false, ..self }
    }

    /// Whether the machine was not booted since.
    pub(crate) fn is_of(&self, moment: &Moment) -> bool {
        self.boot == moment.boot.id
    }

    /// Returns the record for another attempt to undo the run.
    pub(crate) fn undoing(self, moment: &Moment) -> Self {
        Self { phase: Phase::Undoing, boot: moment.boot.id.clone(), left: Vec::new(), ..self }
    }

    /// Returns the record after an undo that failed to restore resources.
    pub(crate) fn stuck(self, left: Vec<String>) -> Self {
        Self { phase: Phase::Stuck, left, ..self }
    }

    /// Returns the time that is left; zero if the run has to be undone, `None` if an undo failed and is not retried now.
    pub(crate) fn left(&self, moment: &Moment, progress: Option<Duration>) -> Option<Duration> {
        let this = self.clone().after_boot(moment);
        match this.phase {
            _ if !this.is_of(moment) => Some(Duration::ZERO),
            Phase::Stuck => None,
            Phase::Undoing => Some(Duration::ZERO),
            Phase::Applying => {
                Some((this.since.max(progress.unwrap_or_default()) + this.timeout).saturating_sub(moment.now))
            }
            Phase::Waiting => Some((this.since + this.timeout).saturating_sub(moment.now)),
        }
    }

    /// Returns the process that makes the run.
    pub(crate) fn runner(&self) -> Option<Head> {
        self.runner.map(|(pid, started)| Head { pid, started })
    }
}

impl ConfirmationStore {
    /// Returns the run that awaits confirmation.
    pub(crate) fn pending(&self) -> Result<Option<Confirmation>, StateError> {
        let pending: Option<Confirmation> = self.parsed(PENDING)?;
        match pending {
            Some(pending) if pending.v > FORMAT => {
                Err(self.damaged(PENDING, format!("format {} is newer than this ccm", pending.v)))
            }
            pending => Ok(pending),
        }
    }

    /// Returns the result of the last confirmation.
    pub(crate) fn last(&self) -> Result<Option<Resolved>, StateError> {
        self.parsed(LAST)
    }

    /// Records how far a confirmation is.
    pub(crate) fn put(&self, pending: &Confirmation) -> Result<(), StateError> {
        self.write(PENDING, pending)
    }

    /// Ends a confirmation.
    pub(crate) fn resolve(&self, resolved: &Resolved) -> Result<(), StateError> {
        self.write(LAST, resolved)?;
        self.discard()
    }

    /// Removes the record of a confirmation without a result.
    pub(crate) fn discard(&self) -> Result<(), StateError> {
        for name in [PENDING, PROGRESS, PROGRAM] {
            self.folder.remove(name.as_ref())?;
        }
        Ok(self.folder.sync()?)
    }

    /// Records that a resource was finished now. The record need not survive a power failure.
    pub(crate) fn progressed(&self, now: Duration) -> Result<(), FileError> {
        self.folder.replace_unsynced(PROGRESS, now.as_nanos().to_string().as_bytes())
    }

    /// Returns when the last resource was finished.
    pub(crate) fn progress(&self) -> Option<Duration> {
        let bytes = read(&self.folder, PROGRESS).ok()??;
        let nanoseconds: u64 = str::from_utf8(&bytes).ok()?.parse().ok()?;
        Some(Duration::from_nanos(nanoseconds))
    }

    /// Takes the lock for changes of the record. It is held only for moments.
    pub(crate) fn lock(&self) -> Result<File, StateError> {
        let file = self.folder.make_to_append(LOCK)?;
        file.lock().map_err(|error| StateError::Io { path: self.folder.path().join(LOCK), error })?;
        Ok(file)
    }

    /// Becomes the guard; `None` if there is one.
    pub(crate) fn become_guard(&self) -> Result<Option<File>, StateError> {
        let file = self.folder.make_to_append(GUARD)?;
        for _ in 0..ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                // Another process checks whether there is a guard.
                Err(TryLockError::WouldBlock) => thread::sleep(PULSE),
                Err(TryLockError::Error(error)) => {
                    return Err(StateError::Io { path: self.folder.path().join(GUARD), error });
                }
            }
        }
        Ok(None)
    }

    /// Whether there is a guard.
    pub(crate) fn has_guard(&self) -> Result<bool, StateError> {
        let file = self.folder.make_to_append(GUARD)?;
        match file.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => {
                Err(StateError::Io { path: self.folder.path().join(GUARD), error })
            }
        }
    }

    /// Keeps a copy of a program for the guard, and returns its path.
    pub(crate) fn keep_program(&self, program: &File) -> Result<PathBuf, StateError> {
        self.folder.put_program(PROGRAM, program)?;
        Ok(self.folder.path().join(PROGRAM))
    }

    fn parsed<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let Some(mut file) = self.folder.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| StateError::Io { path: self.folder.path().join(name), error })?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| self.damaged(name, error.to_string()))
    }

    fn write(&self, name: &str, record: &impl Serialize) -> Result<(), StateError> {
        let json = serde_json::to_vec(record).map_err(|error| self.damaged(name, error.to_string()))?;
        Ok(self.folder.replace(name, |out| out.write_all(&json))?)
    }

    fn damaged(&self, name: &str, reason: String) -> StateError {
        StateError::Damaged { path: self.folder.path().join(name), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(boot: &str, began: u64, now: u64) -> Moment {
        let boot = Boot { id: boot.to_owned(), began: Duration::from_secs(began) };
        Moment { boot, now: Duration::from_secs(now) }
    }

    fn left(of: &Confirmation, moment: &Moment, progress: Option<u64>) -> Option<u64> {
        of.left(moment, progress.map(Duration::from_secs)).map(|left| left.as_secs())
    }

    #[test]
    fn time_counts_from_the_last_finished_resource_and_from_the_end_of_the_run() {
        let minute = Duration::from_mins(1);
        let begun = Confirmation::begin("r".to_owned(), minute, false, &moment("a", 0, 100));
        assert_eq!(left(&begun, &moment("a", 0, 110), None), Some(50));
        assert_eq!(left(&begun, &moment("a", 0, 110), Some(105)), Some(55));
        assert_eq!(left(&begun, &moment("a", 0, 170), Some(105)), Some(0));
        let waiting = begun.waiting(&moment("a", 0, 200));
        assert_eq!(left(&waiting, &moment("a", 0, 210), Some(105)), Some(50));
    }

    #[test]
    fn boot_makes_the_undo_due_unless_the_confirmation_requires_a_boot() {
        let minute = Duration::from_mins(1);
        let (before, after) = (moment("a", 0, 100), moment("b", 5, 10));
        for phase in [Phase::Applying, Phase::Waiting, Phase::Undoing, Phase::Stuck] {
            let begun = Confirmation::begin("r".to_owned(), minute, false, &before);
            assert_eq!(left(&Confirmation { phase, ..begun }, &after, None), Some(0), "{phase:?}");
        }
        let required = Confirmation::begin("r".to_owned(), minute, true, &before);
        assert_eq!(left(&required, &after, None), Some(0), "the run did not end before the boot");
        let required = required.waiting(&before);
        assert_eq!(left(&required, &moment("a", 0, 160), None), Some(0), "there was no boot");
        assert_eq!(left(&required, &after, None), Some(55));
        assert_eq!(left(&required.after_boot(&after), &moment("b", 5, 65), None), Some(0));
    }

    #[test]
    fn failed_undo_waits_for_the_next_boot() {
        let before = moment("a", 0, 100);
        let begun = Confirmation::begin("r".to_owned(), Duration::ZERO, false, &before);
        let stuck = Confirmation { phase: Phase::Stuck, ..begun };
        assert_eq!(left(&stuck, &before, None), None);
        assert_eq!(left(&stuck, &moment("b", 0, 1), None), Some(0));
    }
}
