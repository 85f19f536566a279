//! State that all commands of a program share: their parent cgroup, the lock for commands without cgroups, and the
//! journal.

use std::io::{self, ErrorKind};
use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::Pid;

use super::cgroup::{Home, Leaf};
use super::recovery::NextRun;
use super::table::{self, Record};

/// Number of attempts to create a cgroup for a command.
const ATTEMPTS: usize = 8;

/// Records the running commands, so that the next run can terminate them if this run is killed.
pub trait Journal: Send + Sync {
    /// Records that a command is about to start in this cgroup.
    fn begun(&self, cgroup: &Path, next_run: NextRun);
    /// Records the first process of the command.
    fn started(&self, cgroup: &Path, head: Head, next_run: NextRun);
    /// Records that the command has ended. Processes left in its cgroup are not part of the command.
    fn ended(&self, cgroup: &Path);
}

/// The first process of a command. Process ID and start time are unique since the machine was booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its process ID.
    pub pid: i32,
    /// Its start time in clock ticks since boot.
    pub started: u64,
}

/// Runs commands. A program has one runner, which its commands share.
#[derive(Default)]
pub struct Runner {
    home: OnceLock<Option<Home>>,
    /// Whether the kernel refuses to start commands in cgroups.
    is_refused: AtomicBool,
    journal: OnceLock<Box<dyn Journal>>,
    /// Locked while a command without a cgroup runs.
    turn: Mutex<()>,
}

impl Runner {
    /// Records all commands from now on in `journal`.
    pub fn record_in(&self, journal: impl Journal + 'static) {
        // Once is enough: all journals of a program are the same.
        let _ = self.journal.set(Box::new(journal));
    }

    /// Returns a runner that never uses cgroups.
    #[cfg(test)]
    pub fn without_cgroups() -> Self {
        Self { home: OnceLock::from(None), ..Self::default() }
    }

    /// Creates a cgroup for one command, if possible.
    pub(super) fn leaf(&self) -> Option<Leaf> {
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let home = self.home.get_or_init(Home::find).as_ref()?;
        // Another run might be removing the cgroup that was just created.
        let is_swept =
            |error: &io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock);
        let mut made = iter::repeat_with(|| home.leaf()).take(ATTEMPTS);
        made.find(|leaf| !leaf.as_ref().is_err_and(is_swept))?.ok()
    }

    /// Stops using cgroups.
    pub(super) fn refused(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Waits until no other command without a cgroup runs.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begun(&self, leaf: &Leaf, next_run: NextRun) {
        if let Some(journal) = self.journal.get() {
            journal.begun(leaf.path(), next_run);
        }
    }

    pub(super) fn started(&self, leaf: &Leaf, head: Pid, next_run: NextRun) {
        if let (Some(journal), Some(record)) = (self.journal.get(), table::one(head)) {
            journal.started(leaf.path(), Head::of(&record), next_run);
        }
    }

    pub(super) fn ended(&self, leaf: &Leaf) {
        if let Some(journal) = self.journal.get() {
            journal.ended(leaf.path());
        }
    }
}

impl Head {
    fn of(record: &Record) -> Self {
        Self { pid: record.pid.as_raw_pid(), started: record.started }
    }

    /// Returns whether the process is still running.
    pub(super) fn is_alive(self) -> bool {
        let record = Pid::from_raw(self.pid).and_then(table::one);
        record.is_some_and(|record| record.alive && Self::of(&record) == self)
    }
}
