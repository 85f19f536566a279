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

/// How long commands that are awaited can take.
const AWAITED: Duration = Duration::from_mins(1);

/// What the next run does about a command if its run was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextRun {
    /// It terminates the command.
    #[default]
    Terminates,
    /// It waits until the command has ended.
    Waits,
}

/// A command that was running when its run was killed.
pub struct Abandoned {
    /// Path of its cgroup.
    pub cgroup: PathBuf,
    /// Its first process; `None` if the run was killed before it could record the process.
    pub head: Option<Head>,
    /// What the next run does about it.
    pub next_run: NextRun,
}

/// What happened to a command of a killed run.
#[derive(Debug, PartialEq, Eq)]
pub enum Recovered {
    /// It had ended by itself. Processes that it left running live on.
    Finished,
    /// It was still running, and these processes were terminated.
    Ended(Vec<Process>),
    /// It was still running, and ended while the run waited.
    Awaited,
    /// It is still running, although the run waited for it.
    AtWork(Vec<Process>),
    /// These processes are still running.
    Surviving(Vec<Process>),
}

impl Abandoned {
    /// Returns the cgroup of the command if the command is still running.
    fn running(&self) -> Option<Leaf> {
        let leaf = Leaf::open(&self.cgroup).ok()?;
        let has_ended = self.head.is_some_and(|head| !head.is_alive())
            || leaf.is_populated().is_ok_and(|populated| !populated);
        (!has_ended).then_some(leaf)
    }
}

impl Recovered {
    /// Returns a warning for the user.
    pub fn warning(&self) -> Option<String> {
        let (what, processes) = match self {
            Self::Finished | Self::Awaited => return None,
            Self::AtWork(processes) => ("waited in vain for a command that", processes),
            Self::Ended(processes) => ("ended a command that", processes),
            Self::Surviving(processes) => ("cannot end a command that", processes),
        };
        let names: Vec<String> =
            processes.iter().take(MOST_NAMES).map(|one| format!("{} ({})", one.name, one.pid)).collect();
        Some(format!("{what} a run that was killed had left running: {}", names.join(", ")))
    }
}

/// Terminates a command that is still running, with all processes in its cgroup, or waits until it has ended. Before a wait,
/// this calls `waits` with a message.
pub fn end_abandoned(abandoned: &Abandoned, interrupt: &Interrupt, waits: &mut dyn FnMut(&str)) -> Recovered {
    if abandoned.next_run == NextRun::Waits {
        return await_end(abandoned, AWAITED, interrupt, waits);
    }
    end_within(abandoned, DEFAULT_GRACE, PATIENCE, interrupt)
}

/// Like [`end_abandoned`], with a time limit after SIGTERM (`grace`) and after SIGKILL (`patience`).
pub(super) fn end_within(
    abandoned: &Abandoned,
    grace: Duration,
    patience: Duration,
    interrupt: &Interrupt,
) -> Recovered {
    let Some(leaf) = abandoned.running() else { return Recovered::Finished };
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

/// Waits until a command has ended.
fn await_end(
    abandoned: &Abandoned,
    patience: Duration,
    interrupt: &Interrupt,
    waits: &mut dyn FnMut(&str),
) -> Recovered {
    let Some(leaf) = abandoned.running() else { return Recovered::Finished };
    let names = |leaf: &Leaf| names(&members(leaf));
    let listed: Vec<String> = names(&leaf).iter().map(|one| format!("{} ({})", one.name, one.pid)).collect();
    waits(&format!(
        "waiting for a command that a run that was killed had left running: {}",
        listed.join(", ")
    ));
    let end = Instant::now() + patience;
    while let Some(leaf) = abandoned.running() {
        if Instant::now() >= end || interrupt.pause(PULSE).is_some() {
            return Recovered::AtWork(names(&leaf));
        }
    }
    let _ = leaf.remove();
    Recovered::Awaited
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
