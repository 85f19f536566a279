//! Programs that this process talks to for as long as both live, such as `ssh`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, setsid};

/// A running program that leads a session of its own: it has no terminal, and Ctrl-C does not reach it.
///
/// Dropping it kills its process group, unless [`Companion::release`] was called.
pub struct Companion {
    child: Child,
    is_released: bool,
}

/// How to start a [`Companion`].
pub struct CompanionCommand {
    command: std::process::Command,
}

impl CompanionCommand {
    /// Names the program: a path, or a name that is looked up in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = std::process::Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { command }
    }

    /// Adds arguments, which all users of the machine can see.
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    pub fn variable(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Sets a variable unless this process has it.
    pub fn default_variable(mut self, key: &str, value: &str) -> Self {
        if std::env::var_os(key).is_none() {
            self.command.env(key, value);
        }
        self
    }

    /// Removes a variable.
    pub fn without_variable(mut self, key: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(key);
        self
    }

    /// Sets the working directory.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Connects standard input, output and error with pipes.
    pub fn piped(mut self) -> Self {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self
    }

    /// Connects standard input with a file. Call it after [`CompanionCommand::piped`].
    pub fn input(mut self, input: OwnedFd) -> Self {
        self.command.stdin(Stdio::from(input));
        self
    }

    /// Connects standard output with a file. Call it after [`CompanionCommand::piped`].
    pub fn output(mut self, output: OwnedFd) -> Self {
        self.command.stdout(Stdio::from(output));
        self
    }

    /// Starts the program.
    pub fn start(mut self) -> io::Result<Companion> {
        lead_a_session(&mut self.command);
        Ok(Companion { child: self.command.spawn()?, is_released: false })
    }
}

#[expect(unsafe_code, reason = "the standard library has no other way to make a session")]
fn lead_a_session(command: &mut std::process::Command) {
    // SAFETY: `setsid` is one system call and allocates nothing.
    unsafe { command.pre_exec(|| Ok(setsid().map(|_| ())?)) };
}

impl Companion {
    /// Returns the pipe to its standard input, the first time.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Returns the pipe from its standard output, the first time.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the pipe from its standard error, the first time.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Waits until the program has ended.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Returns the exit status if the program has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Lets the program live on.
    pub fn release(mut self) {
        self.is_released = true;
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        if self.is_released || matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
