//! Ending a command with everything it started: asked first, then made to.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::error::Process;
use super::process_tree::ProcessTree;
use super::streams::Streams;
use super::table::Record;

/// How often to look whether they are gone. A look costs about a millisecond.
const PULSE: Duration = Duration::from_millis(20);

/// How long killed processes may take to disappear. Only the kernel can hold them, for instance on a dead network
/// file system.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Ended {
    /// What was running before.
    pub(super) running: Vec<Process>,
    /// What still is.
    pub(super) survivors: Vec<Process>,
}

/// Asks all of `tree` to end, and kills what has not ended `grace` later.
pub(super) fn end(tree: &ProcessTree<'_>, streams: &mut Streams<'_>, grace: Duration) -> io::Result<Ended> {
    let snapshot = tree.snapshot()?;
    let running = names(&snapshot.living);
    tree.signal(&snapshot, Signal::TERM);
    // A stopped process has to go on to see that it should end.
    tree.signal(&snapshot, Signal::CONT);
    let gone = has_ended_within(grace, tree, streams)?;
    let survivors = if gone { Vec::new() } else { kill(tree, streams)? };
    Ok(Ended { running, survivors })
}

/// What processes start while they end is theirs to clean up with: it is not asked to end, only waited for.
fn has_ended_within(grace: Duration, tree: &ProcessTree<'_>, streams: &mut Streams<'_>) -> io::Result<bool> {
    let end = Instant::now() + grace;
    let mut next = Instant::now();
    while Instant::now() < end {
        if Instant::now() >= next {
            let snapshot = tree.snapshot()?;
            ProcessTree::collect(&snapshot);
            if snapshot.is_empty() {
                return Ok(true);
            }
            next = Instant::now() + PULSE;
        }
        // Their last words must not block them.
        streams.turn(&[], next.saturating_duration_since(Instant::now()))?;
    }
    Ok(false)
}

fn kill(tree: &ProcessTree<'_>, streams: &mut Streams<'_>) -> io::Result<Vec<Process>> {
    let end = Instant::now() + PATIENCE;
    loop {
        let snapshot = tree.snapshot()?;
        // The dead hold the numbers of their groups, so they are collected last.
        tree.signal(&snapshot, Signal::KILL);
        ProcessTree::collect(&snapshot);
        if snapshot.is_empty() || Instant::now() >= end {
            return Ok(names(&snapshot.living));
        }
        // The killed need a moment, but one that got away does not get it.
        let pause = if snapshot.living.is_empty() { Duration::ZERO } else { Duration::from_millis(1) };
        streams.turn(&[], pause)?;
    }
}

fn names(records: &[Record]) -> Vec<Process> {
    let process = |record: &Record| Process { pid: record.pid.as_raw_pid(), name: record.name.clone() };
    records.iter().map(process).collect()
}
