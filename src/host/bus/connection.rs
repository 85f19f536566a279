//! Connection to the system bus.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::geteuid,
};

use super::{
    BUS, BUS_PATH,
    wire::{Answer, Arguments, Call, Header, Kind, length},
};
use crate::host::{files::hex, interrupt::Interrupt};

const SOCKET: &str = "/run/dbus/system_bus_socket";
/// Time limit for a response of the bus.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of calls without a response: a bus limits their number and size.
const MOST_UNANSWERED: usize = 64;

/// Connection for calls and messages.
pub(super) struct Connection {
    stream: UnixStream,
    unread: Vec<u8>,
    /// Serial number of the last call.
    serial: u32,
}

/// Time limit and interrupt for responses.
pub(crate) struct Wait<'w> {
    pub(crate) interrupt: &'w Interrupt,
    pub(crate) at_most: Option<Duration>,
}

impl Connection {
    /// Connects to the bus and authenticates.
    pub(super) fn open() -> io::Result<Self> {
        Self::to(Path::new(SOCKET))
    }

    fn to(socket: &Path) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let identity = hex(geteuid().as_raw().to_string().as_bytes());
        stream.write_all(format!("\0AUTH EXTERNAL {identity}\r\n").as_bytes())?;
        let mut answer = String::new();
        // The bus sends nothing more before it gets a request, so the buffer loses nothing.
        BufReader::new((&stream).take(4096)).read_line(&mut answer)?;
        if !answer.starts_with("OK ") {
            return Err(io::Error::other("the bus does not let us in"));
        }
        stream.write_all(b"BEGIN\r\n")?;
        let mut connection = Self { stream, unread: Vec::new(), serial: 0 };
        connection.send(&[Call {
            to: BUS,
            path: BUS_PATH,
            interface: BUS,
            member: "Hello",
            arguments: Arguments::None,
            answer: Answer::Unwanted,
        }])?;
        connection.stream.set_nonblocking(true)?;
        Ok(connection)
    }

    /// Calls methods. A bus without room for the calls counts as broken.
    pub(super) fn send(&mut self, calls: &[Call]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for call in calls {
            self.serial += 1;
            bytes.extend(call.message(self.serial));
        }
        self.stream.write_all(&bytes)
    }

    /// Returns the messages that have arrived, without waiting; an error if the connection is closed.
    pub(super) fn receive(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let (mut messages, mut begin) = (Vec::new(), 0);
        while let Some(length) = length(&self.unread[begin..])? {
            let Some(message) = self.unread.get(begin..begin + length) else { break };
            messages.push(message.to_vec());
            begin += length;
        }
        self.unread.drain(..begin);
        Ok(messages)
    }

    /// Calls methods, many before the first response, and returns the responses in the order of the calls: `None` for
    /// an error. A returned error means that the bus is unusable.
    pub(super) fn ask(&mut self, calls: &[Call], wait: &Wait) -> io::Result<Vec<Option<Vec<u8>>>> {
        let end = wait.at_most.and_then(|at_most| Instant::now().checked_add(at_most));
        let first = self.serial as usize + 1;
        let mut answers: Vec<Option<Option<Vec<u8>>>> = vec![None; calls.len()];
        let (mut sent, mut answered) = (0, 0);
        while answered < calls.len() {
            // Send calls in batches, to reduce the number of wake-ups.
            if sent - answered <= MOST_UNANSWERED / 2 {
                let next = calls.len().min(answered + MOST_UNANSWERED);
                self.send(&calls[sent..next])?;
                sent = next;
            }
            self.wait(wait.interrupt, end)?;
            for message in self.receive()? {
                let Some(header) = Header::read(&message) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                let place = header.reply_to.and_then(|serial| serial.checked_sub(first));
                let place = place.filter(|place| *place < sent);
                let Some(answer) = place.and_then(|place| answers.get_mut(place)) else { continue };
                let is_answer = header.kind == Kind::Answer;
                if answer.replace(is_answer.then_some(message)).is_none() {
                    answered += 1;
                }
            }
        }
        Ok(answers.into_iter().map(Option::flatten).collect())
    }

    /// Waits until a message arrives, the program is asked to stop, or the time limit is exceeded.
    fn wait(&self, interrupt: &Interrupt, end: Option<Instant>) -> io::Result<()> {
        let left = end.map_or(PATIENCE, |end| PATIENCE.min(end.saturating_duration_since(Instant::now())));
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut descriptors = [
            PollFd::new(&self.stream, PollFlags::IN),
            PollFd::from_borrowed_fd(interrupt.as_fd(), PollFlags::IN),
        ];
        match poll(&mut descriptors, Some(&left)) {
            Ok(_) if !descriptors[1].revents().is_empty() => Err(io::ErrorKind::Interrupted.into()),
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            // After a signal, the caller checks again for messages.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Connection {
    /// Readable when a message has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
