//! Processes that outlive the process that starts them.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, setsid};

use super::runner::Head;
use super::table;

/// A process that goes on when this one ends.
pub struct Detached(Child);

impl Detached {
    /// Starts a program in `/` without input and output. The program has to call [`leave_session`].
    pub fn start(program: &Path, arguments: &[OsString]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Terminates the process.
    pub fn kill(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Puts this process into a session of its own, so that it has no terminal that could hang up.
pub fn leave_session() {
    // A service manager starts its processes as leaders already.
    let _ = setsid();
}

impl Head {
    /// Returns this process.
    pub fn of_this_process() -> Option<Self> {
        let record = table::one(rustix::process::getpid())?;
        Some(Self { pid: record.pid.as_raw_pid(), started: record.started })
    }

    /// Requests the process to stop, or kills it. Returns whether it existed.
    pub fn stop(self, kill: bool) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // The descriptor refers to one process from now on; only then its start time means something.
        let is_same = table::one(pid).is_some_and(|record| record.started == self.started);
        let signal = if kill { Signal::KILL } else { Signal::TERM };
        is_same && pidfd_send_signal(process, signal).is_ok()
    }
}
