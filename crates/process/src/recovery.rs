//! Terminates commands of an earlier run that was killed.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cgroup::Leaf;
use super::error::{MOST_NAMES, Process};
use super::process_tree::signal_each;
use super::runner::Head;
use super::table::{self, Record};
use super::{DEFAULT_GRACE, Interrupt};

/// Interval between checks whether all processes have ended.
const PULSE: Duration = Duration::from_millis(10);

/// How long killed processes may take to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command that was running when its run was killed.
pub struct Abandoned {
    /// Path of its cgroup.
    pub cgroup: PathBuf,
    /// Its first process; `None` if the run was killed before it could record the process.
    pub head: Option<Head>,
}

/// What happened to a command of a killed run.
#[derive(Debug, PartialEq, Eq)]
pub enum Recovered {
    /// It had ended by itself. Processes that it left running live on.
    Finished,
    /// It was still running, and these processes were terminated.
    Ended(Vec<Process>),
    /// These processes are still running.
    Surviving(Vec<Process>),
}

impl Recovered {
    /// Returns a warning for the user.
    pub fn warning(&self) -> Option<String> {
        let (what, processes) = match self {
            Self::Finished => return None,
            Self::Ended(processes) => ("ended a command that", processes),
            Self::Surviving(processes) => ("cannot end a command that", processes),
        };
        let names: Vec<String> =
            processes.iter().take(MOST_NAMES).map(|one| format!("{} ({})", one.name, one.pid)).collect();
        Some(format!("{what} a run that was killed had left running: {}", names.join(", ")))
    }
}

/// Terminates a command that is still running, with all processes in its cgroup.
pub fn end_abandoned(abandoned: &Abandoned, interrupt: &Interrupt) -> Recovered {
    end_within(abandoned, DEFAULT_GRACE, PATIENCE, interrupt)
}

/// Like [`end_abandoned`], with a time limit after SIGTERM (`grace`) and after SIGKILL (`patience`).
pub(super) fn end_within(
    abandoned: &Abandoned,
    grace: Duration,
    patience: Duration,
    interrupt: &Interrupt,
) -> Recovered {
    let Ok(leaf) = Leaf::open(&abandoned.cgroup) else { return Recovered::Finished };
    if abandoned.head.is_some_and(|head| !head.is_alive())
        || leaf.is_populated().is_ok_and(|populated| !populated)
    {
        return Recovered::Finished;
    }
    let running = members(&leaf);
    for signal in [Signal::TERM, Signal::CONT] {
        signal_each(&running, signal);
    }
    if !is_empty_within(&leaf, grace, || interrupt.pause(PULSE).is_none()) {
        let _ = leaf.kill();
        // The killed need a moment, also when this run is asked to stop: else they would be told to have survived.
        let pause = || {
            thread::sleep(PULSE);
            true
        };
        if !is_empty_within(&leaf, patience, pause) {
            return Recovered::Surviving(names(&members(&leaf)));
        }
    }
    let _ = leaf.remove();
    Recovered::Ended(names(&running))
}

/// Checks until the cgroup is empty, the time is up, or `pause`, which runs between checks, returns false.
fn is_empty_within(leaf: &Leaf, limit: Duration, pause: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if leaf.is_populated().is_ok_and(|populated| !populated) {
            return true;
        }
        if Instant::now() >= end || !pause() {
            return false;
        }
    }
}

fn members(leaf: &Leaf) -> Vec<Record> {
    leaf.pids().into_iter().filter_map(table::one).collect()
}

fn names(records: &[Record]) -> Vec<Process> {
    let process = |record: &Record| Process { pid: record.pid.as_raw_pid(), name: record.name.clone() };
    records.iter().map(process).collect()
}
