//! The three standard streams of a running program, moved side by side so that none can block another.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::error::Cause;
use super::output::{Collector, Filter, Keep, Lines, Output, Stream};
use super::{Command, Watcher};

/// As much as a pipe holds: one read empties it.
const CHUNK: usize = 64 * 1024;

pub(super) struct Streams<'a> {
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Source,
    stderr: Source,
    watcher: Option<&'a mut Watcher<'a>>,
    chunk: Box<[u8]>,
}

impl<'a> Streams<'a> {
    pub(super) fn of(
        child: &mut Child,
        command: &Command<'a>,
        watcher: Option<&'a mut Watcher<'a>>,
    ) -> io::Result<Self> {
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            never_block(stdin)?;
        }
        Ok(Self {
            stdin,
            input: command.input,
            stdout: Source::new(Stream::Stdout, child.stdout.take(), command)?,
            stderr: Source::new(Stream::Stderr, child.stderr.take(), command)?,
            watcher,
            chunk: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    /// Waits until something can be moved, `also` has something to read, or `limit` has passed; then moves what can be.
    pub(super) fn turn(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> io::Result<()> {
        self.wait(also, limit)?;
        self.feed();
        for source in [&mut self.stdout, &mut self.stderr] {
            source.read(&mut self.chunk, self.watcher.as_deref_mut());
        }
        Ok(())
    }

    /// Reads what is there, and up to `linger` longer when a process in the background keeps an output open.
    pub(super) fn drain(&mut self, linger: Duration) -> io::Result<()> {
        self.stdin = None;
        let end = Instant::now() + linger;
        while self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            self.turn(&[], end.saturating_duration_since(Instant::now()))?;
            if Instant::now() >= end {
                break;
            }
        }
        Ok(())
    }

    /// Whether more was written than was allowed.
    pub(super) fn overflow(&self) -> Option<Cause> {
        [&self.stdout, &self.stderr].into_iter().find_map(Source::overflow)
    }

    /// What was kept of standard output and standard error.
    pub(super) fn finish(mut self) -> (Output, Output) {
        let stdout = self.stdout.finish(self.watcher.as_deref_mut());
        let stderr = self.stderr.finish(self.watcher);
        (stdout, stderr)
    }

    fn wait(&self, also: &[BorrowedFd<'_>], limit: Duration) -> io::Result<()> {
        let outputs = [&self.stdout, &self.stderr].into_iter().filter_map(|source| source.pipe.as_ref());
        let mut waiting: Vec<PollFd<'_>> = outputs.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        waiting.extend(self.stdin.as_ref().map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
        waiting.extend(also.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        // More than can be written down is no limit.
        let limit = Timespec::try_from(limit).ok();
        match poll(&mut waiting, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes as much of the input as the pipe takes. A program is free not to read it.
    fn feed(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        while !self.input.is_empty() {
            match stdin.write(self.input) {
                Ok(count) => self.input = &self.input[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.stdin = None;
    }
}

/// One output of the program.
struct Source {
    stream: Stream,
    /// Gone once the other end was closed.
    pipe: Option<Box<dyn Pipe>>,
    filter: Option<Box<dyn Filter>>,
    collector: Collector,
    lines: Lines,
    keep: Keep,
}

/// What the two outputs of a child have in common.
trait Pipe: Read + AsFd {}
impl<P: Read + AsFd> Pipe for P {}

impl Source {
    fn new(stream: Stream, pipe: Option<impl Pipe + 'static>, command: &Command<'_>) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            never_block(pipe)?;
        }
        let pipe = pipe.map(|pipe| Box::new(pipe) as Box<dyn Pipe>);
        let keep = match (command.keep, stream) {
            (Keep::Head(limit), Stream::Stderr) => Keep::Tail(limit),
            (keep, _) => keep,
        };
        let filter = command.filter.as_ref().map(|filter| filter());
        Ok(Self { stream, pipe, filter, collector: Collector::new(keep), lines: Lines::default(), keep })
    }

    fn read(&mut self, chunk: &mut [u8], watcher: Option<&mut Watcher<'_>>) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(chunk) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Ok(0) | Err(_) => self.pipe = None,
            Ok(count) => {
                let bytes = &chunk[..count];
                let seen = match &mut self.filter {
                    Some(filter) => filter.pass(bytes),
                    None => Cow::Borrowed(bytes),
                };
                self.take(&seen, watcher);
            }
        }
    }

    fn take(&mut self, seen: &[u8], watcher: Option<&mut Watcher<'_>>) {
        self.collector.push(seen);
        if let Some(watcher) = watcher {
            self.lines.push(seen, |line| watcher(self.stream, line));
        }
    }

    fn overflow(&self) -> Option<Cause> {
        match self.keep {
            Keep::Whole(limit) if self.collector.overflowed() => {
                Some(Cause::TooMuchOutput { stream: self.stream, limit })
            }
            _ => None,
        }
    }

    fn finish(mut self, mut watcher: Option<&mut Watcher<'_>>) -> Output {
        let seen = self.filter.as_mut().map(|filter| filter.finish()).unwrap_or_default();
        self.take(&seen, watcher.as_deref_mut());
        if let Some(watcher) = watcher {
            self.lines.finish(|line| watcher(self.stream, line));
        }
        self.collector.finish()
    }
}

/// Only this end: the other one is a file of its own, and programs rely on it to block.
fn never_block(pipe: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&pipe)?;
    Ok(fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn input_that_nobody_will_read_is_given_up() {
        let command = Command::new("true").input(b"text");
        let mut program = std::process::Command::new("true");
        let mut child = program.stdin(Stdio::piped()).spawn().unwrap();
        let mut streams = Streams::of(&mut child, &command, None).unwrap();
        child.wait().unwrap();
        streams.feed();
        assert!(streams.stdin.is_none());
    }
}
