//! Ending a command with everything it started: asked first, then made to.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::error::Process;
use super::offspring::Offspring;
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

/// Asks all of `offspring` to end, and kills what has not ended `grace` later.
pub(super) fn end(
    offspring: &Offspring<'_>,
    streams: &mut Streams<'_>,
    grace: Duration,
) -> io::Result<Ended> {
    let census = offspring.census()?;
    let running = names(&census.living);
    offspring.signal(&census, Signal::TERM);
    // A stopped process has to go on to see that it should end.
    offspring.signal(&census, Signal::CONT);
    let gone = has_ended_within(grace, offspring, streams)?;
    let survivors = if gone { Vec::new() } else { kill(offspring, streams)? };
    Ok(Ended { running, survivors })
}

/// What processes start while they end is theirs to clean up with: it is not asked to end, only waited for.
fn has_ended_within(
    grace: Duration,
    offspring: &Offspring<'_>,
    streams: &mut Streams<'_>,
) -> io::Result<bool> {
    let end = Instant::now() + grace;
    let mut next = Instant::now();
    while Instant::now() < end {
        if Instant::now() >= next {
            let census = offspring.census()?;
            Offspring::collect(&census);
            if census.is_empty() {
                return Ok(true);
            }
            next = Instant::now() + PULSE;
        }
        // Their last words must not block them.
        streams.turn(&[], next.saturating_duration_since(Instant::now()))?;
    }
    Ok(false)
}

fn kill(offspring: &Offspring<'_>, streams: &mut Streams<'_>) -> io::Result<Vec<Process>> {
    let end = Instant::now() + PATIENCE;
    loop {
        let census = offspring.census()?;
        // The dead hold the numbers of their groups, so they are collected last.
        offspring.signal(&census, Signal::KILL);
        Offspring::collect(&census);
        if census.is_empty() || Instant::now() >= end {
            return Ok(names(&census.living));
        }
        // The killed need a moment, but one that got away does not get it.
        let pause = if census.living.is_empty() { Duration::ZERO } else { Duration::from_millis(1) };
        streams.turn(&[], pause)?;
    }
}

fn names(records: &[Record]) -> Vec<Process> {
    let process = |record: &Record| Process { pid: record.pid.as_raw_pid(), name: record.name.clone() };
    records.iter().map(process).collect()
}
