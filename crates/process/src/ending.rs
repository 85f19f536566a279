//! Ending a command with everything it started: asked first, then made to.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::error::{Process, Remains};
use super::family::Family;
use super::streams::Streams;
use super::table::Record;

/// How often to look whether they are gone. A look costs about a millisecond.
const PULSE: Duration = Duration::from_millis(20);

/// How long killed processes may take to disappear. Only the kernel can hold them, for instance on a dead network
/// file system.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Ended {
    /// What was running before.
    pub(super) running: Vec<Process>,
    /// What still is.
    pub(super) remains: Remains,
}

/// Asks all of `family` to end, and kills what has not ended `grace` later.
pub(super) fn end(family: &Family<'_>, streams: &mut Streams<'_>, grace: Duration) -> io::Result<Ended> {
    let snapshot = family.snapshot()?;
    let running = names(&snapshot.living);
    family.signal(&snapshot, Signal::TERM);
    // A stopped process has to go on to see that it should end.
    family.signal(&snapshot, Signal::CONT);
    let gone = has_ended_within(grace, family, streams)?;
    let mut remains = if gone { Remains::Nothing } else { kill(family, streams)? };
    if remains == Remains::Nothing && (snapshot.is_unclear || family.snapshot()?.is_unclear) {
        remains = Remains::Unknown;
    }
    Ok(Ended { running, remains })
}

/// What processes start while they end is theirs to clean up with: it is not asked to end, only waited for.
fn has_ended_within(grace: Duration, family: &Family<'_>, streams: &mut Streams<'_>) -> io::Result<bool> {
    let end = Instant::now() + grace;
    let mut next = Instant::now();
    while Instant::now() < end {
        if Instant::now() >= next {
            let snapshot = family.snapshot()?;
            family.collect(&snapshot);
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

fn kill(family: &Family<'_>, streams: &mut Streams<'_>) -> io::Result<Remains> {
    let mut killed = None;
    loop {
        let snapshot = family.snapshot()?;
        // The dead hold the numbers of their groups, so they are collected last.
        family.signal(&snapshot, Signal::KILL);
        family.collect(&snapshot);
        if snapshot.is_empty() {
            return Ok(Remains::Nothing);
        }
        // Looking takes long where many processes are: their time begins when they were first killed.
        if killed.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
            // Where only the dead were seen, others may have been born meanwhile.
            let living = names(&snapshot.living);
            return Ok(if living.is_empty() { Remains::Unknown } else { Remains::Some(living) });
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
