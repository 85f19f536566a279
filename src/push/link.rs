//! One running `ssh`: bytes in both directions, with deadlines.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

use crate::host::process::{Companion, CompanionCommand};

/// Bytes of messages that are kept for the user.
const KEPT: usize = 4096;

/// Bytes that wait to be processed: reading pauses beyond that.
const WAITING: usize = 2 * super::frame::LARGEST;

/// `ssh` and its pipes.
pub(super) struct Link {
    child: Companion,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    /// Output of the target that was not processed yet.
    pub(super) received: Vec<u8>,
    /// The end of the standard error of `ssh` and of the target.
    pub(super) errors: Vec<u8>,
    outgoing: VecDeque<(Arc<Vec<u8>>, usize)>,
}

/// Reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Bytes arrived or were sent.
    Moved,
    /// The target's output has ended.
    Closed,
    /// The deadline has passed.
    TimedOut,
    /// The controller has something else to do.
    Woken,
}

impl Link {
    pub(super) fn start(command: CompanionCommand) -> io::Result<Self> {
        let mut child = command.piped().start()?;
        let stdin = child.stdin().map(OwnedFd::from);
        let stdout = child.stdout().map(OwnedFd::from);
        let stderr = child.stderr().map(OwnedFd::from);
        for pipe in [&stdin, &stdout, &stderr].into_iter().flatten() {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        let (received, errors, outgoing) = (Vec::new(), Vec::new(), VecDeque::new());
        Ok(Self { child, stdin, stdout, stderr, received, errors, outgoing })
    }

    /// Queues bytes for the target.
    pub(super) fn send(&mut self, bytes: Vec<u8>) {
        self.send_shared(Arc::new(bytes));
    }

    /// Queues bytes that other hosts get, too.
    pub(super) fn send_shared(&mut self, bytes: Arc<Vec<u8>>) {
        self.outgoing.push_back((bytes, 0));
    }

    /// Returns whether the target has not taken everything yet.
    pub(super) fn is_sending(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Waits until something happens.
    pub(super) fn wait(&mut self, deadline: Option<Instant>, wake: BorrowedFd) -> io::Result<Waited> {
        let left = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return Ok(Waited::TimedOut),
            left => left,
        };
        if self.stdout.is_none() {
            return Ok(Waited::Closed);
        }
        let [readable, writable, errors] = self.ready(left, wake)?;
        let Some([readable, writable, errors]) =
            Some([readable, writable, errors]).filter(|found| found.contains(&true))
        else {
            return Ok(if is_readable(wake) { Waited::Woken } else { Waited::TimedOut });
        };
        if errors {
            self.read_errors();
        }
        if writable {
            self.write();
        }
        if readable && self.read()? == 0 {
            self.stdout = None;
            return Ok(Waited::Closed);
        }
        Ok(Waited::Moved)
    }

    /// Polls the pipes: readable, writable, messages.
    fn ready(&self, left: Option<Duration>, wake: BorrowedFd) -> io::Result<[bool; 3]> {
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let reads = self.stdout.as_ref().filter(|_| self.received.len() < WAITING);
        let writes = self.stdin.as_ref().filter(|_| self.is_sending());
        let pipes = [(reads, PollFlags::IN), (writes, PollFlags::OUT), (self.stderr.as_ref(), PollFlags::IN)];
        let mut polled = vec![PollFd::new(&wake, PollFlags::IN)];
        polled.extend(pipes.iter().filter_map(|(pipe, flags)| Some(PollFd::new((*pipe)?, *flags))));
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = polled[1..].iter().map(|polled| !polled.revents().is_empty());
        Ok(pipes.map(|(pipe, _)| pipe.is_some() && found.next().unwrap_or(false)))
    }

    fn read(&mut self) -> io::Result<usize> {
        let Some(stdout) = &self.stdout else { return Ok(0) };
        let mut buffer = vec![0; 64 * 1024];
        match rustix::io::read(stdout, &mut buffer) {
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(count)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(1),
            Err(error) => Err(error.into()),
        }
    }

    fn read_errors(&mut self) {
        let Some(stderr) = &self.stderr else { return };
        let mut buffer = [0; 4096];
        match rustix::io::read(stderr, &mut buffer) {
            Ok(0) => self.stderr = None,
            Ok(count) => {
                self.errors.extend_from_slice(&buffer[..count]);
                let excess = self.errors.len().saturating_sub(KEPT);
                self.errors.drain(..excess);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.stderr = None,
        }
    }

    fn write(&mut self) {
        let (Some(stdin), Some((bytes, sent))) = (&self.stdin, self.outgoing.front_mut()) else { return };
        match rustix::io::write(stdin, &bytes[*sent..]) {
            Ok(count) => *sent += count,
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The reason follows on standard error or as the end of standard output.
            Err(_) => {
                self.stdin = None;
                self.outgoing.clear();
                return;
            }
        }
        if *sent == bytes.len() {
            self.outgoing.pop_front();
        }
    }

    /// Reads the last messages after the target's output has ended, and returns the exit status of `ssh`.
    pub(super) fn end(mut self) -> (Option<i32>, Vec<u8>) {
        self.stdin = None;
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.stderr.is_some() && Instant::now() < deadline {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
            if let Some(stderr) = &self.stderr
                && poll(&mut [PollFd::new(stderr, PollFlags::IN)], left.as_ref()).is_ok_and(|ready| ready > 0)
            {
                self.read_errors();
            }
        }
        let status = if self.stderr.is_none() { self.child.wait().ok() } else { None };
        (status.and_then(|status| status.code()), std::mem::take(&mut self.errors))
    }
}

fn is_readable(wake: BorrowedFd) -> bool {
    let mut polled = [PollFd::new(&wake, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Wakes the thread of a host.
pub(super) struct Bell {
    read: OwnedFd,
    write: OwnedFd,
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let (read, write) = rustix::pipe::pipe_with(flags)?;
        Ok(Self { read, write })
    }

    pub(super) fn ring(&self) {
        let _ = rustix::io::write(&self.write, &[0]);
    }

    pub(super) fn silence(&self) {
        while rustix::io::read(&self.read, &mut [0; 16]).is_ok_and(|count| count > 0) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
