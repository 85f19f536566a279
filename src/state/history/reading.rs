//! Reading the history.

use std::{collections::BTreeMap, io::Read};

use serde::Deserialize;

use super::{
    Change, Done, End, HistoryStore, HostRun, Kept, Secrecy, Start, StateError,
    record::{FORMAT, Line},
};

/// A run as the history records it.
#[derive(Clone, Debug)]
pub(crate) struct RunRecord {
    pub(crate) start: Start,
    /// `None` if the run was interrupted or is in progress.
    pub(crate) end: Option<End>,
    /// Changes that were recorded, each with its completion.
    pub(crate) changes: Vec<(Change, Option<Done>)>,
    /// The hosts of a push, in its order.
    pub(crate) hosts: Vec<HostRun>,
    /// Format of the record if it is newer than this version understands.
    pub(crate) newer: Option<u32>,
}

/// A problem of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: String,
    pub(crate) reason: String,
}

/// All runs, oldest first, and lines that could not be read.
pub(crate) struct Log {
    pub(crate) runs: Vec<RunRecord>,
    pub(crate) damage: Vec<Damage>,
}

/// How much of the runs is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Runs,
    Changes,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
    #[serde(default)]
    line: String,
    #[serde(default)]
    run: String,
    #[serde(default)]
    start: String,
}

impl HistoryStore {
    /// Reads all runs with their changes.
    pub(crate) fn read(&self) -> Result<Log, StateError> {
        self.read_with(Detail::Changes)
    }

    /// Reads all runs without their changes.
    pub(crate) fn list(&self) -> Result<Log, StateError> {
        self.read_with(Detail::Runs)
    }

    fn read_with(&self, detail: Detail) -> Result<Log, StateError> {
        let mut reader = Reader { detail, runs: Vec::new(), known: BTreeMap::new(), damage: Vec::new() };
        for name in self.months()? {
            let Some(mut file) = self.folder.open_file(&name)? else { continue };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)
                .map_err(|error| StateError::Io { path: self.folder.path().join(&name), error })?;
            reader.file(&name, &bytes);
        }
        Ok(Log { runs: reader.runs, damage: reader.damage })
    }

    /// Returns the names of the files, oldest first.
    pub(super) fn months(&self) -> Result<Vec<String>, StateError> {
        let names = self.folder.names()?.into_iter().filter_map(|name| name.into_string().ok());
        let mut months: Vec<String> = names.filter(|name| is_month(name)).collect();
        months.sort();
        Ok(months)
    }

    /// Checks every line and every kept copy.
    pub(crate) fn verify(&self) -> Result<(Log, Vec<Damage>), StateError> {
        let log = self.read()?;
        let mut damage = log.damage.clone();
        let objects = self.objects(Secrecy::Public)?;
        let secret = if objects.all()?.is_empty() { None } else { self.objects(Secrecy::Secret).ok() };
        let mut encrypted = std::collections::BTreeSet::new();
        for (change, _) in log.runs.iter().flat_map(|run| &run.changes) {
            for path in change.paths.iter().filter(|path| path.before.kept == Kept::Encrypted) {
                encrypted.extend(path.before.copies(secret.as_ref().unwrap_or(&objects)));
            }
        }
        for copy in objects.all()? {
            let store =
                if encrypted.contains(&copy.digest) { secret.as_ref().unwrap_or(&objects) } else { &objects };
            let checked = store.open(&copy.digest).and_then(|file| match file {
                Some(mut file) => store.check(&mut file, &copy.digest),
                None => Ok(()),
            });
            if let Err(error) = checked {
                damage.push(Damage { at: format!("objects/{}", copy.digest), reason: error.to_string() });
            }
        }
        Ok((log, damage))
    }
}

/// Whether a name is that of a file of records.
pub(super) fn is_month(name: &str) -> bool {
    let Some(month) = name.strip_suffix(".jsonl").filter(|month| month.len() == 7) else { return false };
    month.bytes().enumerate().all(|(at, byte)| if at == 4 { byte == b'-' } else { byte.is_ascii_digit() })
}

struct Reader {
    detail: Detail,
    runs: Vec<RunRecord>,
    /// Positions of runs that have begun, by id.
    known: BTreeMap<String, usize>,
    damage: Vec<Damage>,
}

impl Reader {
    fn file(&mut self, name: &str, bytes: &[u8]) {
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            if self.detail == Detail::Runs && is_of_a_change(line) {
                continue;
            }
            if let Err(reason) = self.line(line) {
                self.damage.push(Damage { at: format!("{name}:{}", number + 1), reason });
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let version: Version =
            serde_json::from_slice(line).map_err(|_| "the line is incomplete".to_owned())?;
        if version.v > FORMAT {
            return self.newer(version);
        }
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        match line {
            Line::Run { start, outcome } => self.begin(start, Some(outcome)),
            Line::Begin(start) => self.begin(start, None),
            Line::End(end) => {
                if let Some(run) = self.run(&end.run) {
                    if !end.hosts.is_empty() {
                        run.hosts.clone_from(&end.hosts);
                    }
                    run.end = Some(end);
                }
            }
            Line::Host { run, host } => {
                let known = self.run(&run).into_iter().flat_map(|run| &mut run.hosts);
                if let Some(known) = known.into_iter().find(|known| known.host == host.host) {
                    *known = host;
                }
            }
            Line::Change(change) => {
                if let Some(run) = self.run(&change.run) {
                    run.changes.push((*change, None));
                }
            }
            Line::Done(done) => {
                let run = self.run(&done.run);
                let changes = run.into_iter().flat_map(|run| run.changes.iter_mut());
                if let Some(change) = changes.rev().find(|(change, _)| change.number == done.number) {
                    change.1 = Some(*done);
                }
            }
        }
        Ok(())
    }

    /// Lists a run whose record is in a newer format.
    fn newer(&mut self, version: Version) -> Result<(), String> {
        let Version { v, line, run, start } = version;
        if let Some(known) = self.run(&run) {
            known.newer = Some(v);
            return Ok(());
        }
        if line != "begin" && line != "run" || run.is_empty() {
            return Err(format!("format {v} is newer than this version understands"));
        }
        self.begin(Start { run, start, ..Start::default() }, None);
        if let Some(last) = self.runs.last_mut() {
            last.newer = Some(v);
        }
        Ok(())
    }

    fn begin(&mut self, start: Start, end: Option<End>) {
        self.known.insert(start.run.clone(), self.runs.len());
        let untouched = |host: &String| HostRun::new(host, "untouched");
        let mut hosts: Vec<HostRun> = start.hosts.iter().map(untouched).collect();
        if let Some(end) = end.as_ref().filter(|end| !end.hosts.is_empty()) {
            hosts.clone_from(&end.hosts);
        }
        self.runs.push(RunRecord { start, end, changes: Vec::new(), hosts, newer: None });
    }

    fn run(&mut self, id: &str) -> Option<&mut RunRecord> {
        self.runs.get_mut(*self.known.get(id)?)
    }
}

/// Whether a line is about a change: those are most lines, and a list of runs does not need them.
fn is_of_a_change(line: &[u8]) -> bool {
    let head = &line[..line.len().min(40)];
    let Some(rest) = head.strip_prefix(format!("{{\"v\":{FORMAT},\"line\":\"").as_bytes()) else {
        return false;
    };
    rest.starts_with(b"change\"") || rest.starts_with(b"done\"")
}

impl RunRecord {
    pub(crate) fn changed(&self) -> usize {
        self.end.as_ref().map_or_else(|| self.made().count(), |end| end.changed)
    }

    /// Returns the changes that were made. A change of a killed run could be incomplete, unless it was recorded ahead: then it
    /// was probably not begun.
    pub(crate) fn made(&self) -> impl DoubleEndedIterator<Item = &(Change, Option<Done>)> {
        let is_over = self.end.is_some();
        self.changes.iter().filter(move |(change, done)| done.is_some() || !is_over && !change.is_ahead)
    }
}

impl Log {
    /// Returns the run that an id, an unambiguous beginning of one, or `last` names.
    pub(crate) fn find(&self, name: &str) -> Result<&RunRecord, String> {
        if name == "last" {
            let is_change =
                |run: &&RunRecord| run.newer.is_none() && run.end.as_ref().is_none_or(|end| end.changed > 0);
            return self
                .runs
                .iter()
                .rev()
                .find(is_change)
                .ok_or_else(|| "no run changed anything yet".to_owned());
        }
        let mut matching = self.runs.iter().filter(|run| !name.is_empty() && run.start.run.starts_with(name));
        let exact = self.runs.iter().find(|run| run.start.run == name);
        let run = match (exact, matching.next(), matching.next()) {
            (Some(run), ..) | (None, Some(run), None) => run,
            (None, None, _) => return Err(format!("the history has no run `{name}`")),
            (None, Some(_), Some(_)) => return Err(format!("several runs begin with `{name}`")),
        };
        match run.newer {
            None => Ok(run),
            Some(format) => Err(format!(
                "run `{}` was recorded by a newer ccm: format {format} (this version understands {FORMAT})",
                run.start.run
            )),
        }
    }
}
