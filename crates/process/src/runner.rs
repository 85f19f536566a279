//! What commands of one program share: where their cgroups are made, whose turn it is where there are none, and who
//! is told what runs.

use std::io::{self, ErrorKind};
use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::Pid;

use super::cgroup::{Home, Leaf};
use super::table::{self, Record};

/// How often a cgroup is made for a command before it does without.
const ATTEMPTS: usize = 8;

/// Remembers the commands that are running, so that the next run can end them if this one is killed.
pub trait Journal: Send + Sync {
    /// Notes that a command is about to be started in this cgroup.
    fn begun(&self, cgroup: &Path);
    /// Notes which process the command is.
    fn started(&self, cgroup: &Path, head: Head);
    /// Notes that the command has ended. What is left in its cgroup is not the command any more.
    fn ended(&self, cgroup: &Path);
}

/// The process that a command is, unlike any other since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its process ID.
    pub pid: i32,
    /// When it was started, in the kernel's ticks.
    pub started: u64,
}

/// What all commands of a program share.
#[derive(Default)]
pub struct Runner {
    home: OnceLock<Option<Home>>,
    /// Whether the kernel does not start commands in cgroups.
    is_refused: AtomicBool,
    journal: OnceLock<Box<dyn Journal>>,
    /// Held while a command runs that has no cgroup.
    turn: Mutex<()>,
}

impl Runner {
    /// Writes down from now on which commands run.
    pub fn record_in(&self, journal: impl Journal + 'static) {
        // Once is enough: all journals of a program are the same.
        let _ = self.journal.set(Box::new(journal));
    }

    /// One that never uses cgroups.
    #[cfg(test)]
    pub fn without_cgroups() -> Self {
        Self { home: OnceLock::from(None), ..Self::default() }
    }

    /// Makes a cgroup for one command, where that is possible.
    pub(super) fn leaf(&self) -> Option<Leaf> {
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let home = self.home.get_or_init(Home::find).as_ref()?;
        // Another run may be sweeping one away that was made this very moment.
        let is_swept =
            |error: &io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock);
        let mut made = iter::repeat_with(|| home.leaf()).take(ATTEMPTS);
        made.find(|leaf| !leaf.as_ref().is_err_and(is_swept))?.ok()
    }

    /// Makes no more cgroups.
    pub(super) fn refused(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Waits until no other command without a cgroup runs.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begun(&self, leaf: &Leaf) {
        if let Some(journal) = self.journal.get() {
            journal.begun(leaf.path());
        }
    }

    pub(super) fn started(&self, leaf: &Leaf, head: Pid) {
        if let (Some(journal), Some(record)) = (self.journal.get(), table::one(head)) {
            journal.started(leaf.path(), Head::of(&record));
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

    /// Whether the process is still running.
    pub(super) fn is_alive(self) -> bool {
        let record = Pid::from_raw(self.pid).and_then(table::one);
        record.is_some_and(|record| record.alive && Self::of(&record) == self)
    }
}
