//! Programs, run with a limit on time and memory.
//!
//! Everything that ccm runs is run here: a guard, a command, `systemctl`, a package manager. A command ends by itself,
//! or is ended together with all it started when its time is up or the program is asked to stop. What it left running on
//! purpose when it ended by itself lives on, but nobody reads its output any more: writing to it is SIGPIPE.

mod ending;
mod error;
mod inherited;
mod launch;
mod output;
mod process_tree;
mod program;
mod streams;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

pub(crate) use self::error::{Cause, ProcessError, Stopped};
pub(crate) use self::inherited::close_inherited;
pub(crate) use self::output::{Keep, Output, Stream};
pub(crate) use self::table::is_run_by;

use self::process_tree::{Adoption, ProcessTree};
use self::streams::Streams;
use super::interrupt::Interrupt;
use crate::redaction::Redactor;

/// How much of each output is kept when the caller does not say.
const DEFAULT_TAIL: usize = 64 * 1024;

/// How long processes may take to end after they were asked to, when the caller does not say.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// How long to go on reading when the command has ended but something in the background holds its output.
const LINGER: Duration = Duration::from_millis(100);

/// Sees each line of output when it comes. It must not run another command.
pub(crate) type Watcher<'w> = dyn FnMut(Stream, &str) + 'w;

/// A program with all it needs to run.
///
/// Of the descriptors that ccm opens it gets none but its three standard streams; signals are as they were when ccm was
/// started. Arguments can be seen by every user of the machine; secrets belong into the environment or the input. There is no
/// `Debug`, because it would show them.
pub(crate) struct Command<'a> {
    program: OsString,
    arguments: Vec<OsString>,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    search_path: Option<OsString>,
    identity: Option<Identity>,
    umask: Option<u32>,
    input: &'a [u8],
    timeout: Option<Duration>,
    grace: Duration,
    keep: Keep,
    redactor: Redactor,
}

/// Who a command runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The supplementary groups, all of them.
    pub(crate) groups: Vec<u32>,
}

/// What a command would find if it were started now.
pub(crate) struct Prospect {
    /// The directory that it would run in.
    pub(crate) directory: Result<PathBuf, ProcessError>,
    /// The file that would be executed.
    pub(crate) program: Result<PathBuf, ProcessError>,
}

/// A command that ended by itself.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) exit: Exit,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        // One that is waited for has either a code or a signal.
        status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(number) => match signal_hook::low_level::signal_name(number) {
                Some(name) => write!(f, "{name}"),
                None => write!(f, "signal {number}"),
            },
        }
    }
}

/// The file that a program's name stands for in the search path that ccm was started with.
pub(crate) fn locate(program: &str) -> Result<PathBuf, ProcessError> {
    program::find(OsStr::new(program), Path::new("/"), &program::inherited_directories())
}

impl<'a> Command<'a> {
    /// A program by its path, or by its name to be looked up in the search path.
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: PathBuf::from("/"),
            environment: Vec::new(),
            search_path: None,
            identity: None,
            umask: None,
            input: &[],
            timeout: None,
            grace: DEFAULT_GRACE,
            keep: Keep::Tail(DEFAULT_TAIL),
            redactor: Redactor::default(),
        }
    }

    /// A text for the shell.
    pub(crate) fn shell(text: impl Into<OsString>) -> Self {
        // Without the dashes, a text that begins with one would be an option.
        Self::new("/bin/sh").arguments(["-c".into(), "--".into(), text.into()])
    }

    /// Adds arguments.
    pub(crate) fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Runs in this directory instead of `/`.
    pub(crate) fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Adds a variable to the environment that ccm itself has.
    pub(crate) fn variable(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    /// Where the program is looked up, and its `PATH`: absolute directories with colons between them.
    pub(crate) fn search_path(mut self, path: impl Into<OsString>) -> Self {
        self.search_path = Some(path.into());
        self
    }

    /// Runs as somebody else. Not for the user ccm already is: changing groups takes privileges.
    pub(crate) fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Runs with this umask instead of ccm's.
    pub(crate) fn umask(mut self, mask: u32) -> Self {
        self.umask = Some(mask);
        self
    }

    /// Gives this to read, instead of nothing.
    pub(crate) fn input(mut self, input: &'a [u8]) -> Self {
        self.input = input;
        self
    }

    /// Ends the command when it takes longer.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long the command may take to end once it was asked to.
    #[cfg(test)]
    pub(crate) fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How much of each output is kept.
    pub(crate) fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Masks secrets where the command writes them, before its output is cut anywhere.
    pub(crate) fn redactor(mut self, redactor: &Redactor) -> Self {
        self.redactor = redactor.clone();
        self
    }

    /// What the command would find if it were started now. Starts nothing.
    pub(crate) fn prospect(&self) -> Result<Prospect, ProcessError> {
        launch::prospect(self)
    }

    /// Runs the command to its end. Waits while another thread runs one.
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<Finished, ProcessError> {
        self.follow(interrupt, None)
    }

    /// Like [`Command::run`], with every line shown to `watcher`.
    pub(crate) fn run_watched(
        &self,
        interrupt: &Interrupt,
        watcher: &mut Watcher<'_>,
    ) -> Result<Finished, ProcessError> {
        self.follow(interrupt, Some(watcher))
    }

    fn follow(
        &self,
        interrupt: &Interrupt,
        watcher: Option<&mut Watcher<'_>>,
    ) -> Result<Finished, ProcessError> {
        let lost = |source| ProcessError::Follow { program: self.name(), source };
        let adoption =
            Adoption::begin().map_err(|source| ProcessError::Start { program: self.name(), source })?;
        if let Some(signal) = interrupt.requested() {
            return Err(self.stopped(Cause::Interrupt(signal)));
        }
        let started = Instant::now();
        let mut child = launch::launch(self)?;
        let tree = ProcessTree::of(Pid::from_child(&child), &adoption);
        let watcher = watcher.map(|watcher| watcher as &mut Watcher<'_>);
        let outcome = Running::new(&mut child, self, &tree, watcher)
            .and_then(|running| running.finish(started, interrupt));
        match outcome {
            Ok(Outcome::Ended { stdout, stderr }) => {
                let exit = Exit::of(child.wait().map_err(lost)?);
                Ok(Finished { exit, stdout, stderr })
            }
            Ok(Outcome::Stopped(stopped)) => {
                // One that the kernel holds is not waited for.
                let _ = child.try_wait();
                Err(ProcessError::Stopped(Box::new(stopped)))
            }
            Err(source) => {
                tree.kill_group();
                let _ = child.wait();
                Err(lost(source))
            }
        }
    }

    fn stopped(&self, cause: Cause) -> ProcessError {
        let (stdout, stderr) = (Output::default(), Output::default());
        let (program, running, survivors) = (self.name(), Vec::new(), Vec::new());
        ProcessError::Stopped(Box::new(Stopped { program, cause, running, survivors, stdout, stderr }))
    }

    /// The program as messages call it.
    fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// The search path that is not simply the one ccm has.
    fn given_search_path(&self) -> Option<&OsStr> {
        let variable = || self.environment.iter().rfind(|(key, _)| key == "PATH").map(|(_, value)| value);
        self.search_path.as_ref().or_else(variable).map(OsString::as_os_str)
    }
}

/// A command between its start and its end.
struct Running<'r> {
    command: &'r Command<'r>,
    process: OwnedFd,
    tree: &'r ProcessTree<'r>,
    streams: Streams<'r>,
}

enum Outcome {
    Ended { stdout: Output, stderr: Output },
    Stopped(Stopped),
}

impl<'r> Running<'r> {
    fn new(
        child: &mut Child,
        command: &'r Command<'r>,
        tree: &'r ProcessTree<'r>,
        watcher: Option<&'r mut Watcher<'r>>,
    ) -> io::Result<Self> {
        let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        Ok(Self { command, process, tree, streams: Streams::of(child, command, watcher)? })
    }

    fn finish(mut self, started: Instant, interrupt: &Interrupt) -> io::Result<Outcome> {
        let cause = loop {
            if self.has_ended()? {
                break None;
            }
            let left = self.command.timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
            if let Some(timeout) = self.command.timeout.filter(|_| left == Some(Duration::ZERO)) {
                break Some(Cause::Timeout(timeout));
            }
            if let Some(signal) = interrupt.requested() {
                break Some(Cause::Interrupt(signal));
            }
            if let Some(cause) = self.streams.overflow() {
                break Some(cause);
            }
            let wake = [self.process.as_fd(), interrupt.as_fd()];
            self.streams.turn(&wake, left.unwrap_or(Duration::MAX))?;
        };
        match cause {
            Some(cause) => self.stop(cause),
            None => self.conclude(),
        }
    }

    fn conclude(mut self) -> io::Result<Outcome> {
        self.streams.drain(LINGER)?;
        if let Some(cause) = self.streams.overflow() {
            return self.stop(cause);
        }
        let (stdout, stderr) = self.streams.finish();
        Ok(Outcome::Ended { stdout, stderr })
    }

    fn stop(mut self, cause: Cause) -> io::Result<Outcome> {
        let ended = ending::end(self.tree, &mut self.streams, self.command.grace)?;
        self.streams.drain(Duration::ZERO)?;
        let (stdout, stderr) = self.streams.finish();
        let (program, running, survivors) = (self.command.name(), ended.running, ended.survivors);
        Ok(Outcome::Stopped(Stopped { program, cause, running, survivors, stdout, stderr }))
    }

    fn has_ended(&self) -> io::Result<bool> {
        // Left uncollected, so that its pid stays its own until all it started is dealt with.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::PidFd(self.process.as_fd()), options)?.is_some())
    }
}
