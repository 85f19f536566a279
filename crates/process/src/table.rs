//! The kernel's table of processes, as far as it tells who descends from whom.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, getpid};

/// One process at the moment it was read.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) pid: Pid,
    pub(super) name: String,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// When it was started, in the kernel's ticks: with the pid it names one process for good.
    pub(super) started: u64,
    pub(super) alive: bool,
}

impl Record {
    pub(super) fn is_same_process(&self, other: &Record) -> bool {
        self.pid == other.pid && self.started == other.started
    }
}

/// Every process there is, the newest first where pids have not wrapped around.
///
/// A process that was alive when this began is in the result, unless its parent collected it meanwhile.
pub(super) fn all() -> io::Result<Vec<Record>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw));
    }
    // One that forks and exits in a loop is caught by being quick about the newest.
    Ok(pids.into_iter().rev().filter_map(one).collect())
}

/// The process with this pid, if there is one.
pub(super) fn one(pid: Pid) -> Option<Record> {
    let mut line = Vec::with_capacity(512);
    File::open(format!("/proc/{pid}/stat")).ok()?.read_to_end(&mut line).ok()?;
    parse(pid, &String::from_utf8_lossy(&line))
}

/// Whether this process is a command that `runner` is running, or was started by one. What a command left in the
/// background, so that `runner` does not wait for it, is neither: the leader of its session is gone.
pub fn is_run_by(runner: i32) -> bool {
    let parent = |record: &Record| one(Pid::from_raw(record.parent)?);
    std::iter::successors(one(getpid()), parent)
        .find(|record| record.parent == runner)
        .is_some_and(|record| record.session == record.pid.as_raw_pid())
}

/// A process that is alive.
pub struct Running {
    /// Its process ID.
    pub pid: i32,
    /// The kernel's short name of it.
    pub name: String,
}

impl Running {
    /// Returns what it was started with; nothing of one that is gone or belongs to the kernel.
    pub fn arguments(&self) -> Vec<String> {
        let text = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words = text.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }
}

/// Returns all processes that are alive; those that only wait to be collected are not.
pub fn running_now() -> io::Result<Vec<Running>> {
    let alive = all()?.into_iter().filter(|record| record.alive);
    Ok(alive.map(|record| Running { pid: record.pid.as_raw_pid(), name: record.name }).collect())
}

/// Returns whether a process has ended and was not reaped by its parent.
pub fn is_unreaped(pid: i32) -> bool {
    Pid::from_raw(pid).and_then(one).is_some_and(|record| !record.alive)
}

/// Returns the pid and the name of a living process that runs as a user, if there is one.
pub fn run_by_user(uid: u32) -> Option<(i32, String)> {
    let owner = |pid: Pid| fs::metadata(format!("/proc/{pid}")).ok().map(|entry| entry.uid());
    let found = all().ok()?.into_iter().find(|record| record.alive && owner(record.pid) == Some(uid))?;
    Some((found.pid.as_raw_pid(), found.name))
}

fn parse(pid: Pid, line: &str) -> Option<Record> {
    // The name stands in parentheses and may itself hold any character, also these.
    let (before, after) = line.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    // Numbered as in proc_pid_stat(5), where the field after the name is the third.
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |at: usize| field(at).and_then(|text| text.parse().ok());
    // The first thread of a program may be gone while others go on.
    let threads = number(20)?;
    Some(Record {
        pid,
        name: name.to_owned(),
        parent: number(4)?,
        group: number(5)?,
        session: number(6)?,
        started: field(22)?.parse().ok()?,
        alive: threads > 1 || !matches!(field(3)?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_finds_itself_and_its_child() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let everyone = all().unwrap();
        let find = |pid: Pid| everyone.iter().find(|record| record.pid == pid).unwrap();
        let (own, other) = (find(getpid()), find(Pid::from_child(&child)));
        assert!(own.alive && own.started > 0);
        assert!(other.alive && other.started >= own.started);
        assert_eq!(other.parent, own.pid.as_raw_pid());
        // In a container they may have started outside: they have no number there, and read as 0.
        assert_eq!((other.group, other.session), (own.group, own.session));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_name_may_look_like_the_fields_after_it() {
        let pid = Pid::from_raw(7).unwrap();
        let line = "7 (a) Z 1 (b) S 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0";
        let record = parse(pid, line).unwrap();
        assert_eq!(record.name, "a) Z 1 (b");
        assert_eq!((record.parent, record.group, record.session, record.started), (2, 3, 4, 99));
        assert!(record.alive);
    }

    #[test]
    fn a_program_lives_while_one_of_its_threads_does() {
        let pid = Pid::from_raw(7).unwrap();
        let line = |threads: u8| format!("7 (a) Z 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 0 0");
        assert!(!parse(pid, &line(1)).unwrap().alive);
        assert!(parse(pid, &line(2)).unwrap().alive);
    }
}
