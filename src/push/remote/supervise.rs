//! `ccm remote supervise`: starts the run and stores its output as numbered events.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::super::protocol::{End, Event, Stream, ToController};
use crate::host::{interrupt::Interrupt, process::CompanionCommand};

/// Seconds to wait for space for the end of the run.
const ATTEMPTS: u32 = 600;

/// Longest text of one event. Escapes of JSON make it longer on its way.
const LONGEST: usize = 64 * 1024;

/// The events that are stored.
struct Events {
    file: File,
    n: u64,
    lost: u64,
    /// Whether the last line was written in part.
    is_torn: bool,
}

/// Runs `ccm remote run` with the input of this process, and stores events in its output.
pub(crate) fn supervise(program: &Path, interrupt: &Interrupt) -> io::Result<()> {
    let file = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
    let events = Mutex::new(Events { file, n: 0, lost: 0, is_torn: false });
    lock(&events).store(format!("{}\n", rustix::process::getpid().as_raw_nonzero()).as_bytes())?;
    let input = rustix::stdio::stdin().try_clone_to_owned()?;
    let mut run = CompanionCommand::new(program).arguments(["remote", "run"]).piped().input(input).start()?;
    forward(interrupt.clone(), run.pid());
    let (stdout, stderr) = (run.stdout(), run.stderr());
    thread::scope(|scope| {
        scope.spawn(|| stdout.map(|pipe| record(pipe, Stream::Out, &events)));
        scope.spawn(|| stderr.map(|pipe| record(pipe, Stream::Err, &events)));
    });
    let exit = run.wait()?.code().and_then(|code| u8::try_from(code).ok());
    let mut events = lock(&events);
    for _ in 0..ATTEMPTS {
        let end = End { n: events.n + 1, exit, lost: events.lost };
        if events.message(&ToController::End(end)).is_ok() {
            break;
        }
        thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn lock(events: &Mutex<Events>) -> MutexGuard<'_, Events> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes a request to stop on to the run, which stops at its next safe point.
fn forward(interrupt: Interrupt, run: Pid) {
    thread::spawn(move || {
        interrupt.pause(Duration::MAX);
        let _ = kill_process(run, Signal::TERM);
    });
}

impl Events {
    fn event(&mut self, stream: Stream, text: String, more: bool) {
        let n = self.n + 1;
        match self.message(&ToController::Event(Event { n, stream, text, more })) {
            Ok(()) => self.n = n,
            Err(_) => self.lost += 1,
        }
    }

    fn message(&mut self, message: &ToController) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.store(&line)
    }

    fn store(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            // Readers skip the part of a line before this.
            self.file.write_all(b"\n")?;
        }
        let stored = self.file.write_all(line);
        self.is_torn = stored.is_err();
        stored
    }
}

/// Stores each line of a pipe.
fn record(pipe: impl Read, stream: Stream, events: &Mutex<Events>) {
    let mut pipe = BufReader::new(pipe);
    loop {
        let mut piece = Vec::new();
        let read = pipe.by_ref().take(LONGEST as u64).read_until(b'\n', &mut piece);
        if !read.is_ok_and(|count| count > 0) {
            return;
        }
        let more = piece.pop_if(|last| *last == b'\n').is_none();
        lock(events).event(stream, String::from_utf8_lossy(&piece).into_owned(), more);
    }
}
