//! Runs programs with limits on time and output, and terminates them with every process that they started.
//!
//! `std::process` starts a program. It does not answer what happens when the program hangs, prints without end, or leaves a
//! daemon behind that keeps the output pipe open. A [`Command`] always comes to an end:
//!
//! - **By itself.** Processes that it deliberately left running live on. Nobody reads their output: writing to it fails with
//!   SIGPIPE. [`Command::run`] returns as soon as the program has ended, even if such a process holds the pipes open.
//! - **By its time limit**, by a signal to the calling program ([`interrupt::Interrupt`]), or by too much output. Then every process that
//!   it started is terminated: SIGTERM, a grace period, SIGKILL. [`Stopped`] names the processes and whether any survived.
//! - **By the next run.** If the calling program is killed, its [`Journal`] has the command, and [`end_abandoned`] terminates it.
//!   Commands that must never be cut short, such as package managers, are exempt ([`Command::uninterrupted`]).
//!
//! Process groups and sessions do not contain a program that calls `setsid`. So each command runs in a cgroup of its own, and
//! `cgroup.kill` terminates all of it at one instant. If the kernel does not permit that (cgroup v1, no delegation), the command's
//! descendants are followed through `/proc`: this process adopts orphans as a child subreaper and stops what it finds before it kills.
//! Only one such command runs at a time.
//!
//! A command gets no descriptor of this process except its three standard streams. It can run as another user
//! ([`Identity`]), with the environment of a login, with a umask, and with a private view of files ([`View`]).
//! A [`Filter`] sees its output before any of it is kept or shown.
//!
//! Messages name programs, never arguments, environment or input, because these can contain secrets. Linux only.

#![allow(clippy::disallowed_methods, reason = "running programs is the purpose of this crate")]
#![warn(missing_docs)]

mod boot;
mod cgroup;
mod companion;
mod core_dumps;
mod detached;
mod ending;
mod environment;
mod error;
mod family;
mod inherited;
pub mod interrupt;
mod launch;
mod output;
mod presses;
mod process_tree;
mod program;
mod recovery;
mod runner;
#[cfg(test)]
#[path = "../../../tests/support/signals.rs"]
mod signals;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
mod streams;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process_group, pidfd_open,
    waitid, waitpid,
};

pub use self::boot::{Boot, since_boot};
pub use self::companion::{Companion, CompanionCommand};
pub use self::core_dumps::disable_core_dumps;
pub use self::detached::{Detached, leave_session};
pub use self::error::{Cause, Process, ProcessError, Remains, Stopped};
pub use self::inherited::close_inherited;
pub use self::output::{Filter, Keep, Output, Stream};
pub use self::presses::Presses;
pub use self::runner::{Head, Journal, Runner};
pub use self::table::{Running, is_run_by, is_unreaped, run_by_user, running_now};
pub use self::view::{Shown, View};
pub use self::{
    cgroup::boot_id,
    recovery::{Abandoned, NextRun, Recovered, end_abandoned},
};

use self::cgroup::Leaf;
use self::environment::Base;
use self::family::{Family, Members};
use self::interrupt::Interrupt;
use self::launch::Started;
use self::process_tree::{Adoption, ProcessTree};
use self::streams::Streams;

/// Default number of bytes that are kept of each output.
const DEFAULT_TAIL: usize = 64 * 1024;

/// Default time between SIGTERM and SIGKILL.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// How long to continue reading if the command has ended, but a background process keeps its output open.
const LINGER: Duration = Duration::from_millis(100);

/// Number of failed attempts to start a command in a cgroup after which cgroups are no longer used.
const CGROUP_ATTEMPTS: u32 = 3;

/// Receives each line of output as it arrives. It must not run another command.
pub type Watcher<'w> = dyn FnMut(Stream, &str) + 'w;

/// Makes the filter of one output.
type MakeFilter<'f> = dyn Fn() -> Box<dyn Filter> + Send + Sync + 'f;

/// A program with its arguments, environment, user and limits.
///
/// It inherits no descriptor of this process except its three standard streams, and the signal dispositions with which this process
/// started. All users of the machine can see arguments: put secrets into the environment or the input. There is no
/// `Debug`, because it would show them.
pub struct Command<'a> {
    program: OsString,
    arguments: Vec<OsString>,
    directory: PathBuf,
    base: Base,
    environment: Vec<(OsString, OsString)>,
    search_path: Option<OsString>,
    identity: Option<Identity>,
    umask: Option<u32>,
    input: &'a [u8],
    timeout: Option<Duration>,
    grace: Duration,
    keep: Keep,
    filter: Option<Box<MakeFilter<'a>>>,
    endurance: Endurance,
    /// A file that only this command sees.
    view: Option<View<'a>>,
}

/// Whether a command can be terminated early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endurance {
    /// Its time limit, a signal to this process, too much output, or the next run terminates it.
    Mortal,
    /// As [`Endurance::Mortal`], but the next run waits for it.
    Awaited,
    /// It always runs to its end.
    ToItsEnd,
}

/// User and groups of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Effective, real and saved UID.
    pub uid: u32,
    /// Effective, real and saved GID.
    pub gid: u32,
    /// All supplementary groups.
    pub groups: Vec<u32>,
}

/// Directory and program that a command would use if it were started now.
pub struct Prospect {
    /// Its working directory.
    pub directory: Result<PathBuf, ProcessError>,
    /// Path of the program.
    pub program: Result<PathBuf, ProcessError>,
}

/// A command that ended by itself.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status or signal.
    pub exit: Exit,
    /// What it wrote to standard output.
    pub stdout: Output,
    /// What it wrote to standard error.
    pub stderr: Output,
    /// Why it would have been terminated without [`Command::uninterrupted`].
    pub overdue: Option<Cause>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// This signal terminated it.
    Signal(i32),
}

impl Exit {
    fn of(status: WaitStatus) -> Self {
        // A process that was waited for has either a status or a signal.
        let signal = || Exit::Signal(status.terminating_signal().unwrap_or_default());
        status.exit_status().map_or_else(signal, Exit::Code)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Exit::Code(code) => write!(f, "exit status {code}"),
            Exit::Signal(number) => match signal_hook::low_level::signal_name(number) {
                Some(name) => write!(f, "{name}"),
                None => write!(f, "signal {number}"),
            },
        }
    }
}

/// Returns the path of a program in the `PATH` of this process.
pub fn locate(program: &str) -> Result<PathBuf, ProcessError> {
    program::find(OsStr::new(program), Path::new("/"), &program::inherited_directories())
}

impl<'a> Command<'a> {
    /// Creates a command from the path of a program, or from a name to search for in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: PathBuf::from("/"),
            base: Base::Own,
            environment: Vec::new(),
            search_path: None,
            identity: None,
            umask: None,
            input: &[],
            timeout: None,
            grace: DEFAULT_GRACE,
            keep: Keep::Tail(DEFAULT_TAIL),
            filter: None,
            endurance: Endurance::Mortal,
            view: None,
        }
    }

    /// Creates a command that `/bin/sh` runs.
    pub fn shell(text: impl Into<OsString>) -> Self {
        // Without `--`, a text that starts with a dash would be an option.
        Self::new("/bin/sh").arguments(["-c".into(), "--".into(), text.into()])
    }

    /// Adds arguments.
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory, instead of `/`.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Starts with the environment of a login instead of the environment of this process: `PATH`, language, time zone and
    /// proxies are inherited. Add the variables of the user with [`Command::variable`].
    pub fn login_environment(mut self) -> Self {
        self.base = Base::Login;
        self
    }

    /// Adds a variable to the environment.
    pub fn variable(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    /// Sets `PATH`, which is also searched for the program: absolute directories, separated by colons.
    pub fn search_path(mut self, path: impl Into<OsString>) -> Self {
        self.search_path = Some(path.into());
        self
    }

    /// Runs as another user. Do not use this for the current user: changing groups requires privileges.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the umask, instead of the umask of this process.
    pub fn umask(mut self, mask: u32) -> Self {
        self.umask = Some(mask);
        self
    }

    /// Sets the standard input, which is empty by default.
    pub fn input(mut self, input: &'a [u8]) -> Self {
        self.input = input;
        self
    }

    /// Terminates the command if it takes longer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Never terminates the command: neither its time limit, nor a signal to this process, nor the next run. Use this for
    /// commands that leave a machine broken if they are cut short, such as package managers.
    pub fn uninterrupted(mut self) -> Self {
        self.endurance = Endurance::ToItsEnd;
        self
    }

    /// If this process is killed, makes the next run wait for the command instead of terminating it. Use this for commands
    /// that are quick and do not remove their locks if they are terminated.
    pub fn awaited(mut self) -> Self {
        self.endurance = Endurance::Awaited;
        self
    }

    /// Sets the time between SIGTERM and SIGKILL.
    #[cfg(test)]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how much of each output is kept.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Shows the command files that no other process sees. Requires privileges.
    pub fn view(mut self, view: View<'a>) -> Self {
        self.view = Some(view);
        self
    }

    /// Passes each output through a filter of its own before any of it is kept, shown or cut, for example to mask secrets.
    pub fn filter(mut self, filter: impl Fn() -> Box<dyn Filter> + Send + Sync + 'a) -> Self {
        self.filter = Some(Box::new(filter));
        self
    }

    /// Returns the directory and program that the command would use now, without starting it.
    pub fn prospect(&self) -> Result<Prospect, ProcessError> {
        launch::prospect(self)
    }

    /// Runs the command to its end.
    pub fn run(&self, runner: &Runner, interrupt: &Interrupt) -> Result<Finished, ProcessError> {
        self.follow(runner, interrupt, None)
    }

    /// Like [`Command::run`], and passes each line of output to `watcher`.
    pub fn run_watched(
        &self,
        runner: &Runner,
        interrupt: &Interrupt,
        watcher: &mut Watcher<'_>,
    ) -> Result<Finished, ProcessError> {
        self.follow(runner, interrupt, Some(watcher))
    }

    fn follow(
        &self,
        runner: &Runner,
        interrupt: &Interrupt,
        mut watcher: Option<&mut Watcher<'_>>,
    ) -> Result<Finished, ProcessError> {
        if let Some(signal) = interrupt.requested() {
            return Err(self.stopped(Cause::Interrupt(signal)));
        }
        // Another run might have removed the first cgroup before the command started in it.
        for attempt in 1..=CGROUP_ATTEMPTS {
            let Some(leaf) = runner.leaf() else { break };
            let watcher = watcher.as_mut().map(|watcher| &mut **watcher as &mut Watcher<'_>);
            if let Some(result) = self.follow_in(&leaf, runner, interrupt, watcher).transpose() {
                return result;
            }
            if attempt == CGROUP_ATTEMPTS {
                runner.refused();
            }
        }
        let failed = |source| ProcessError::Start { program: self.name(), source };
        let adoption = Adoption::begin(runner).map_err(failed)?;
        // The lock might have taken time.
        if let Some(signal) = interrupt.requested() {
            return Err(self.stopped(Cause::Interrupt(signal)));
        }
        let Some(started) = launch::launch(self, None)? else {
            return Err(failed(io::ErrorKind::Unsupported.into()));
        };
        let family = Family::Adopted(ProcessTree::of(started.head, &adoption));
        self.accompany(started, &family, &|| (), interrupt, watcher)
    }

    /// Runs the command in its own cgroup; `None` if the kernel does not permit that.
    fn follow_in(
        &self,
        leaf: &Leaf,
        runner: &Runner,
        interrupt: &Interrupt,
        watcher: Option<&mut Watcher<'_>>,
    ) -> Result<Option<Finished>, ProcessError> {
        let next_run = match self.endurance {
            Endurance::Mortal => Some(NextRun::Terminates),
            Endurance::Awaited => Some(NextRun::Waits),
            Endurance::ToItsEnd => None,
        };
        if let Some(next_run) = next_run {
            runner.begun(leaf, next_run);
        }
        let started = match launch::launch(self, Some(leaf)) {
            Ok(Some(started)) => started,
            other => {
                let _ = leaf.remove();
                runner.ended(leaf);
                return other.map(|_| None);
            }
        };
        if let Some(next_run) = next_run {
            runner.started(leaf, started.head, next_run);
        }
        let family = Family::Cgroup(Members::of(leaf, started.head));
        // What it leaves running is no longer the command: from here on a later run must let it live.
        let result = self.accompany(started, &family, &|| runner.ended(leaf), interrupt, watcher);
        // What it left running keeps it.
        let removed = leaf.remove();
        if result.is_err() && removed.is_ok() {
            runner.ended(leaf);
        }
        result.map(Some)
    }

    /// Follows a started command until it has ended.
    fn accompany(
        &self,
        started: Started,
        family: &Family<'_>,
        ended: &dyn Fn(),
        interrupt: &Interrupt,
        watcher: Option<&mut Watcher<'_>>,
    ) -> Result<Finished, ProcessError> {
        let lost = |source| ProcessError::Follow { program: self.name(), source };
        let head = started.head;
        let watcher = watcher.map(|watcher| watcher as &mut Watcher<'_>);
        let on_abort =
            (self.endurance != Endurance::ToItsEnd).then(|| interrupt.on_abort(family.killer(head)));
        let outcome =
            Follow::new(started, self, family, watcher).and_then(|running| running.finish(interrupt, ended));
        // From here on, the kernel can reuse its process ID.
        drop(on_abort);
        match outcome {
            Ok(Outcome::Ended { stdout, stderr, overdue }) => {
                let exit = collected(head, WaitOptions::empty()).map_err(lost)?;
                let exit = exit.ok_or_else(|| lost(io::ErrorKind::NotFound.into()))?;
                Ok(Finished { exit, stdout, stderr, overdue })
            }
            Ok(Outcome::Stopped(stopped)) => {
                // Does not wait for a process that the kernel blocks.
                let _ = collected(head, WaitOptions::NOHANG);
                Err(ProcessError::Stopped(Box::new(stopped)))
            }
            Err(source) => {
                family.signal(&process_tree::Snapshot::default(), Signal::KILL);
                let _ = kill_process_group(head, Signal::KILL);
                let _ = collected(head, WaitOptions::empty());
                Err(lost(source))
            }
        }
    }

    fn stopped(&self, cause: Cause) -> ProcessError {
        let (stdout, stderr) = (Output::default(), Output::default());
        let (program, running, remains) = (self.name(), Vec::new(), Remains::Nothing);
        ProcessError::Stopped(Box::new(Stopped { program, cause, running, remains, stdout, stderr }))
    }

    /// Returns the name of the program for messages.
    fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// Returns the `PATH` of the command if it differs from the `PATH` of this process.
    fn given_search_path(&self) -> Option<&OsStr> {
        let variable = || self.environment.iter().rfind(|(key, _)| key == "PATH").map(|(_, value)| value);
        self.search_path.as_ref().or_else(variable).map(OsString::as_os_str)
    }
}

/// Collects the exit status of a child, which frees its process ID; `None` if it is still running.
fn collected(head: Pid, options: WaitOptions) -> io::Result<Option<Exit>> {
    Ok(waitpid(Some(head), options)?.map(|(_, status)| Exit::of(status)))
}

/// A command between its start and its end.
struct Follow<'r> {
    command: &'r Command<'r>,
    started: Instant,
    process: OwnedFd,
    family: &'r Family<'r>,
    streams: Streams<'r>,
    overdue: Option<Cause>,
}

enum Outcome {
    Ended { stdout: Output, stderr: Output, overdue: Option<Cause> },
    Stopped(Stopped),
}

impl<'r> Follow<'r> {
    fn new(
        mut started: Started,
        command: &'r Command<'r>,
        family: &'r Family<'r>,
        watcher: Option<&'r mut Watcher<'r>>,
    ) -> io::Result<Self> {
        let process = pidfd_open(started.head, PidfdFlags::empty())?;
        let streams = Streams::of(&mut started.child, command, watcher)?;
        Ok(Self { command, started: Instant::now(), process, family, streams, overdue: None })
    }

    fn finish(mut self, interrupt: &Interrupt, ended: &dyn Fn()) -> io::Result<Outcome> {
        while !self.has_ended()? {
            if self.overdue.is_none() {
                match (self.reason_to_stop(interrupt), self.command.endurance) {
                    (Some(cause), Endurance::Mortal | Endurance::Awaited) => return self.stop(cause),
                    (cause, _) => self.overdue = cause,
                }
            }
            // After a reason to stop was recorded, its source is not polled again.
            let (also, limit) = match self.overdue {
                None => {
                    let limit = self.time_left().unwrap_or(Duration::MAX);
                    match interrupt.grace_left() {
                        Some((_, grace)) => (None, limit.min(grace)),
                        None => (Some(interrupt.as_fd()), limit),
                    }
                }
                Some(_) => (None, Duration::MAX),
            };
            let wake: Vec<_> = also.into_iter().chain([self.process.as_fd()]).collect();
            self.streams.turn(&wake, limit)?;
        }
        ended();
        self.conclude()
    }

    fn reason_to_stop(&self, interrupt: &Interrupt) -> Option<Cause> {
        let timeout = self.command.timeout.filter(|_| self.time_left() == Some(Duration::ZERO));
        timeout
            .map(Cause::Timeout)
            .or_else(|| match interrupt.grace_left()? {
                (signal, Duration::ZERO) => Some(Cause::Interrupt(signal)),
                _ => None,
            })
            .or_else(|| self.streams.overflow())
    }

    fn time_left(&self) -> Option<Duration> {
        self.command.timeout.map(|timeout| timeout.saturating_sub(self.started.elapsed()))
    }

    fn conclude(mut self) -> io::Result<Outcome> {
        self.streams.drain(LINGER)?;
        if let Some(cause) = self.streams.overflow().filter(|_| self.command.endurance != Endurance::ToItsEnd)
        {
            return self.stop(cause);
        }
        let (stdout, stderr) = self.streams.finish();
        Ok(Outcome::Ended { stdout, stderr, overdue: self.overdue })
    }

    fn stop(mut self, cause: Cause) -> io::Result<Outcome> {
        let ended = ending::end(self.family, &mut self.streams, self.command.grace)?;
        self.streams.drain(Duration::ZERO)?;
        let (stdout, stderr) = self.streams.finish();
        let (program, running, remains) = (self.command.name(), ended.running, ended.remains);
        Ok(Outcome::Stopped(Stopped { program, cause, running, remains, stdout, stderr }))
    }

    fn has_ended(&self) -> io::Result<bool> {
        // The status stays uncollected, so that the kernel does not reuse the process ID.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::PidFd(self.process.as_fd()), options)?.is_some())
    }
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
