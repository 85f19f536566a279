//! Repeated requests to stop, for programs that react differently to each.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Signals within this time are one request: `timeout` signals a process and then its group.
const ONE_REQUEST: Duration = Duration::from_millis(50);

/// Counts SIGINT, SIGTERM and SIGHUP from now until the program ends. The program no longer ends because of them.
pub struct Presses {
    signals: UnixStream,
    last: Option<Instant>,
}

impl Presses {
    /// Starts listening.
    pub fn listen() -> io::Result<Self> {
        let (signals, signal) = UnixStream::pair()?;
        for number in [SIGINT, SIGTERM, SIGHUP] {
            pipe::register(number, signal.try_clone()?)?;
        }
        Ok(Self { signals, last: None })
    }

    /// Waits for the next request.
    pub fn next_press(&mut self) -> io::Result<()> {
        loop {
            self.signals.read_exact(&mut [0])?;
            let is_new = self.last.is_none_or(|last| last.elapsed() > ONE_REQUEST);
            self.last = Some(Instant::now());
            if is_new {
                return Ok(());
            }
        }
    }
}
