//! Limits of the history: age and number of runs, and the size of kept copies.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    io::Read,
    str::FromStr,
};

use jiff::Timestamp;
use serde::Deserialize;

use super::{HistoryStore, Kept, RunRecord, Secrecy, StateError, UNDONE};
use crate::vocabulary::{Duration, Size};

/// Unchanged runs are small and have a limit of their own, so that they cannot displace the others.
const UNCHANGED: usize = 10;

/// Limits of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Most bytes of kept copies.
    pub(crate) size: u64,
    pub(crate) keep: Keep,
}

/// How long runs are kept, and how many that changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) age: std::time::Duration,
    pub(crate) runs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { size: 1 << 30, keep: Keep { age: std::time::Duration::from_hours(90 * 24), runs: 1000 } }
    }
}

impl Limits {
    /// Returns limits with the given texts in place of the defaults.
    pub(crate) fn parse(size: Option<&str>, keep: Option<&str>) -> Result<Self, String> {
        let mut limits = Self::default();
        if let Some(size) = size.filter(|text| !text.is_empty()) {
            limits.size = size.parse::<Size>().map_err(|error| format!("history size: {error}"))?.bytes();
        }
        if let Some(keep) = keep.filter(|text| !text.is_empty()) {
            limits.keep = keep.parse()?;
        }
        Ok(limits)
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an age and a number of runs, such as `90d,1000`");
        let (age, runs) = text.split_once(',').ok_or_else(wrong)?;
        let age: Duration = age.trim().parse().map_err(|_| wrong())?;
        Ok(Self { age: age.as_std(), runs: runs.trim().parse().map_err(|_| wrong())? })
    }
}

/// How much was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    pub(crate) runs: usize,
    pub(crate) copies: usize,
    pub(crate) bytes: u64,
}

#[derive(Deserialize)]
struct Named {
    run: String,
}

impl HistoryStore {
    /// Applies the limits. Runs in `untouched` and runs of a newer format keep their records and copies.
    pub(crate) fn prune(&self, limits: Limits, untouched: &[String]) -> Result<Pruned, StateError> {
        let mut untouched = untouched.to_vec();
        untouched.extend(self.state.awaiting_confirmation()?.map(|pending| pending.run));
        let untouched = &untouched[..];
        let log = self.list()?;
        let dropped = surplus(&log.runs, limits.keep, untouched, Timestamp::now());
        let mut pruned = Pruned { runs: dropped.len(), ..Pruned::default() };
        if !dropped.is_empty() {
            self.drop_runs(&dropped)?;
        }
        let objects = self.objects(Secrecy::Public)?;
        let mut copies = objects.all()?;
        let total: u64 = copies.iter().map(|copy| copy.size).sum();
        if dropped.is_empty() && total <= limits.size {
            return Ok(pruned);
        }
        let (used, needed) = self.used_copies(untouched)?;
        let mut left = total;
        let mut remove = |digest: &str, size: u64| {
            objects.remove(digest)?;
            (pruned.copies, pruned.bytes) = (pruned.copies + 1, pruned.bytes + size);
            left -= size;
            Ok::<_, StateError>(left)
        };
        copies.sort_by_key(|copy| copy.used);
        // A copy that no record refers to can belong to a change that another process is about to record.
        let young = (Timestamp::now().as_nanosecond()) - 3_600_000_000_000;
        let mut size = total;
        for copy in copies.iter().filter(|copy| !used.contains(&copy.digest) && copy.used < young) {
            size = remove(&copy.digest, copy.size)?;
        }
        for copy in copies.iter().filter(|copy| used.contains(&copy.digest) && !needed.contains(&copy.digest))
        {
            if size <= limits.size {
                break;
            }
            size = remove(&copy.digest, copy.size)?;
        }
        Ok(pruned)
    }

    /// Returns the copies that records refer to, and those that must stay.
    fn used_copies(&self, untouched: &[String]) -> Result<(BTreeSet<String>, BTreeSet<String>), StateError> {
        let log = self.read()?;
        let public = self.objects(Secrecy::Public)?;
        let secret = self.state.identity()?.map(|_| self.objects(Secrecy::Secret)).transpose()?;
        let (mut used, mut needed) = (BTreeSet::new(), BTreeSet::new());
        for run in &log.runs {
            let is_needed = untouched.contains(&run.start.run) || run.newer.is_some();
            for (change, _) in &run.changes {
                for path in &change.paths {
                    let is_secret = path.before.kept == Kept::Encrypted;
                    let objects = secret.as_ref().filter(|_| is_secret).unwrap_or(&public);
                    let copies = path.before.copies(objects);
                    if is_needed {
                        needed.extend(copies.iter().cloned());
                    }
                    used.extend(copies);
                }
            }
        }
        Ok((used, needed))
    }

    /// Removes the lines of runs from all files.
    fn drop_runs(&self, dropped: &HashSet<String>) -> Result<(), StateError> {
        let _lock = self.lock()?;
        if let Some(undone) = self.folder.folder(UNDONE)? {
            dropped.iter().try_for_each(|run| undone.remove(run.as_ref()))?;
        }
        for name in self.months()? {
            let Some(mut file) = self.folder.open_file(&name)? else { continue };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)
                .map_err(|error| StateError::Io { path: self.folder.path().join(&name), error })?;
            let is_dropped = |line: &[u8]| {
                serde_json::from_slice(line).is_ok_and(|named: Named| dropped.contains(&named.run))
            };
            let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let kept: Vec<&[u8]> = lines.iter().filter(|line| !is_dropped(line)).copied().collect();
            if kept.is_empty() {
                self.folder.remove(name.as_ref())?;
            } else if kept.len() < lines.len() {
                self.folder.replace(&name, |out| kept.iter().try_for_each(|line| out.write_all(line)))?;
            }
        }
        Ok(())
    }
}

/// Returns the runs that exceed the limits.
fn surplus(runs: &[RunRecord], keep: Keep, untouched: &[String], now: Timestamp) -> HashSet<String> {
    let oldest = now.as_second() - i64::try_from(keep.age.as_secs()).unwrap_or(i64::MAX / 2);
    let mut counts: BTreeMap<bool, usize> = BTreeMap::new();
    let mut dropped = HashSet::new();
    for run in runs.iter().rev() {
        if untouched.contains(&run.start.run) || run.newer.is_some() {
            continue;
        }
        let has_changed = run.end.as_ref().is_none_or(|end| end.changed > 0 || end.failed > 0);
        let count = counts.entry(has_changed).or_default();
        *count += 1;
        let most = if has_changed { keep.runs } else { keep.runs.saturating_mul(UNCHANGED) };
        let started: Option<Timestamp> = run.start.start.parse().ok();
        if *count > most || started.is_some_and(|started| started.as_second() < oldest) {
            dropped.insert(run.start.run.clone());
        }
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::history::{End, Start};

    fn run(id: usize, day: u32, changed: usize) -> RunRecord {
        let start =
            Start { run: format!("r{id}"), start: format!("2026-01-{day:02}T00:00:00Z"), ..Start::default() };
        RunRecord {
            start,
            end: Some(End { changed, ..End::default() }),
            changes: Vec::new(),
            hosts: Vec::new(),
            newer: None,
        }
    }

    #[test]
    fn unchanged_runs_do_not_displace_runs_that_changed_something() {
        let now: Timestamp = "2026-01-31T00:00:00Z".parse().unwrap();
        let keep: Keep = "30d,2".parse().unwrap();
        let mut runs: Vec<RunRecord> = (0..4).map(|id| run(id, 10, 1)).collect();
        runs.extend((4..30).map(|id| run(id, 11, 0)));
        let dropped = surplus(&runs, keep, &["r0".to_owned()], now);
        let is_dropped = |id: usize| dropped.contains(&format!("r{id}"));
        assert_eq!((0..4).map(is_dropped).collect::<Vec<_>>(), [false, true, false, false]);
        assert_eq!((4..30).filter(|id| is_dropped(*id)).count(), 6);
    }

    #[test]
    fn old_runs_are_dropped() {
        let now: Timestamp = "2026-01-31T00:00:00Z".parse().unwrap();
        let runs = [run(0, 1, 1), run(1, 20, 1)];
        let dropped = surplus(&runs, "20d,1000".parse().unwrap(), &[], now);
        assert_eq!(dropped, HashSet::from(["r0".to_owned()]));
    }

    #[test]
    fn keep_is_an_age_and_a_number() {
        for wrong in ["", "90d", "1000", "90d,many", "90,10"] {
            assert!(wrong.parse::<Keep>().is_err(), "{wrong}");
        }
        let expected = Keep { age: std::time::Duration::from_hours(7 * 24), runs: 5 };
        assert_eq!("7d,5".parse(), Ok(expected));
    }
}
