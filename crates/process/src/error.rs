//! Why a program could not be run to its end.
//!
//! Messages name the program, never its arguments, environment or input, because these can contain secrets.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use super::output::{Output, Stream};
use crate::interrupt::Signal;

/// Why a program could not be run to its end.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message of each error names all of its fields")]
pub enum ProcessError {
    #[error("{program:?} was not found in any directory of the search path {searched:?}")]
    NotFound { program: String, searched: String },

    #[error("{program:?} does not exist")]
    Missing { program: PathBuf },

    #[error("{program:?} cannot be executed: {source}")]
    NotExecutable { program: PathBuf, source: io::Error },

    #[error("{program:?} cannot be executed: exec format error: built for {machine}")]
    OtherMachine { program: PathBuf, machine: &'static str },

    #[error("{program:?} needs the interpreter {interpreter:?}, which does not exist")]
    Interpreter { program: PathBuf, interpreter: String },

    #[error("{entry:?} in the search path is not an absolute directory")]
    SearchPath { entry: String },

    #[error("cannot run {program:?} in the directory {directory:?}: {source}")]
    Directory { program: String, directory: PathBuf, source: io::Error },

    #[error("cannot run {program:?} as user {uid} and group {gid}: {source}")]
    Identity { program: String, uid: u32, gid: u32, source: io::Error },

    #[error("cannot run {program:?} with mounts of its own: {source}")]
    View { program: String, source: io::Error },

    #[error("cannot start {program:?}: {source}")]
    Start { program: String, source: io::Error },

    #[error("cannot follow {program:?}, and ended it: {source}")]
    Follow { program: String, source: io::Error },

    #[error(transparent)]
    Stopped(Box<Stopped>),
}

/// A program that was terminated early, with all processes that it started.
#[derive(Debug, Error)]
#[error("{program:?} {cause}{}", Names { running, remains })]
pub struct Stopped {
    /// The program, as the caller named it.
    pub program: String,
    /// Why it was terminated.
    pub cause: Cause,
    /// Processes that ran at that time; empty if the program was not started.
    pub running: Vec<Process>,
    /// Processes that survived.
    pub remains: Remains,
    /// What it wrote to standard output.
    pub stdout: Output,
    /// What it wrote to standard error.
    pub stderr: Output,
}

/// Processes that survived the termination of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    /// All processes were terminated.
    Nothing,
    /// These processes survived: they belong to another user, or the kernel blocks them.
    Some(Vec<Process>),
    /// Unknown: without a cgroup, a process might have escaped.
    Unknown,
}

impl Remains {
    fn survivors(&self) -> &[Process] {
        if let Self::Some(survivors) = self { survivors } else { &[] }
    }
}

/// Why a program was terminated.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the message of each cause names all of its fields")]
pub enum Cause {
    #[error("timed out after {0:?}")]
    Timeout(Duration),
    #[error("was interrupted by {0}")]
    Interrupt(Signal),
    #[error("wrote more than {limit} bytes to {}", match stream {
        Stream::Stdout => "its standard output",
        Stream::Stderr => "its standard error",
    })]
    TooMuchOutput { stream: Stream, limit: usize },
}

/// A process in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its process ID.
    pub pid: i32,
    /// Its short name in the kernel, because its arguments can contain secrets.
    pub name: String,
}

struct Names<'a> {
    running: &'a [Process],
    remains: &'a Remains,
}

impl std::fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (what, processes) in
            [("running then", self.running), ("could not be ended", self.remains.survivors())]
        {
            for (index, Process { pid, name }) in processes.iter().take(MOST_NAMES).enumerate() {
                match index {
                    0 => write!(f, "; {what}: {name} ({pid})")?,
                    _ => write!(f, ", {name} ({pid})")?,
                }
            }
            if let Some(more) = processes.len().checked_sub(MOST_NAMES).filter(|&more| more > 0) {
                write!(f, " and {more} more")?;
            }
        }
        Ok(())
    }
}

/// Maximum number of processes in a message.
pub(super) const MOST_NAMES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_was_running_but_not_without_end() {
        let running = |count| (1..=count).map(|pid| Process { pid, name: "sleep".to_owned() }).collect();
        let mut stopped = Stopped {
            program: "sh".to_owned(),
            cause: Cause::Timeout(Duration::from_millis(1500)),
            running: running(7),
            remains: Remains::Some(vec![Process { pid: 9, name: "sudo".to_owned() }]),
            stdout: Output::default(),
            stderr: Output::default(),
        };
        assert_eq!(
            stopped.to_string(),
            "\"sh\" timed out after 1.5s; running then: sleep (1), sleep (2), sleep (3), sleep (4), sleep (5) \
             and 2 more; could not be ended: sudo (9)"
        );
        stopped.running = running(5);
        assert!(stopped.to_string().contains("sleep (5); could"), "{stopped}");
    }
}
