//! What systemd tells of its units over the system bus, as far as a watcher needs it: that something about a unit changed.
//!
//! A small part of D-Bus, spoken by hand: say who we are, ask for two kinds of signals, and read which unit each is about.
//! What the state of the unit is, is asked elsewhere.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::Duration,
};

use rustix::process::geteuid;

use super::files::hex;

const SOCKET: &str = "/run/dbus/system_bus_socket";
const BUS: &str = "org.freedesktop.DBus";
const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "/org/freedesktop/systemd1";
const UNITS: &str = "/org/freedesktop/systemd1/unit/";

/// Larger messages are not sent by anybody who means well.
const LARGEST: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to the bus on which signals about units arrive.
pub(crate) struct UnitSignals {
    stream: UnixStream,
    unread: Vec<u8>,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnitSignal {
    /// The state of one unit.
    Unit(String),
    /// Which units are enabled, or what they are.
    Files,
}

impl UnitSignals {
    /// Connects to the bus and asks for signals about units.
    pub(crate) fn connect() -> io::Result<Self> {
        Self::connect_to(Path::new(SOCKET))
    }

    fn connect_to(socket: &Path) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let identity = hex(geteuid().as_raw().to_string().as_bytes());
        write!(stream, "\0AUTH EXTERNAL {identity}\r\n")?;
        let mut answer = String::new();
        // The bus says nothing more before it is spoken to, so nothing is lost in the buffer.
        BufReader::new((&stream).take(4096)).read_line(&mut answer)?;
        if !answer.starts_with("OK ") {
            return Err(io::Error::other("the bus does not let us in"));
        }
        stream.write_all(b"BEGIN\r\n")?;
        let rule = |what: &str| format!("type='signal',sender='{SYSTEMD}',{what}");
        let units = rule(
            "interface='org.freedesktop.DBus.Properties',path_namespace='/org/freedesktop/systemd1/unit'",
        );
        let files = rule("member='UnitFilesChanged'");
        for (number, call) in [
            Call { to: BUS, path: "/org/freedesktop/DBus", interface: BUS, member: "Hello", argument: None },
            Call {
                to: BUS,
                path: "/org/freedesktop/DBus",
                interface: BUS,
                member: "AddMatch",
                argument: Some(&units),
            },
            Call {
                to: BUS,
                path: "/org/freedesktop/DBus",
                interface: BUS,
                member: "AddMatch",
                argument: Some(&files),
            },
            Call {
                to: SYSTEMD,
                path: MANAGER,
                interface: "org.freedesktop.systemd1.Manager",
                member: "Subscribe",
                argument: None,
            },
        ]
        .into_iter()
        .enumerate()
        {
            stream.write_all(&call.message(u32::try_from(number + 1).unwrap_or(1)))?;
        }
        stream.set_nonblocking(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Returns what has changed since; an error when the bus is gone.
    pub(crate) fn take(&mut self) -> io::Result<Vec<UnitSignal>> {
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
        let mut signals = Vec::new();
        while let Some(length) = length(&self.unread)? {
            if self.unread.len() < length {
                break;
            }
            let message: Vec<u8> = self.unread.drain(..length).collect();
            signals.extend(signal(&message));
        }
        signals.sort();
        signals.dedup();
        Ok(signals)
    }
}

impl AsFd for UnitSignals {
    /// Readable when something was told.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A method that is called without waiting for an answer.
struct Call<'a> {
    to: &'a str,
    path: &'a str,
    interface: &'a str,
    member: &'a str,
    argument: Option<&'a str>,
}

impl Call<'_> {
    fn message(&self, serial: u32) -> Vec<u8> {
        const METHOD_CALL: u8 = 1;
        // The bus answers `Hello` in any case.
        const NO_REPLY: u8 = 1;
        let mut fields = Vec::new();
        for (code, kind, value) in
            [(1, b'o', self.path), (2, b's', self.interface), (3, b's', self.member), (6, b's', self.to)]
        {
            pad(&mut fields, 8);
            fields.extend([code, 1, kind, 0]);
            push_text(&mut fields, value);
        }
        let mut body = Vec::new();
        if let Some(argument) = self.argument {
            pad(&mut fields, 8);
            fields.extend([8, 1, b'g', 0, 1, b's', 0]);
            push_text(&mut body, argument);
        }
        let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        let mut message = vec![b'l', METHOD_CALL, NO_REPLY, 1];
        message.extend(number(body.len()));
        message.extend(serial.to_le_bytes());
        message.extend(number(fields.len()));
        message.extend(fields);
        pad(&mut message, 8);
        message.extend(body);
        message
    }
}

fn pad(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    pad(out, 4);
    out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(text.as_bytes());
    out.push(0);
}

/// Reads a number in the order of bytes that the first byte of a message tells.
fn number(message: &[u8], at: usize) -> Option<usize> {
    let bytes: [u8; 4] = message.get(at..at + 4)?.try_into().ok()?;
    let number = if message[0] == b'B' { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    usize::try_from(number).ok()
}

/// Returns how long the first message is; `None` if too little has come to tell.
fn length(bytes: &[u8]) -> io::Result<Option<usize>> {
    if bytes.len() < 16 {
        return Ok(None);
    }
    let (Some(body), Some(fields)) = (number(bytes, 4), number(bytes, 12)) else { return Ok(None) };
    let length = (16 + fields).next_multiple_of(8) + body;
    if length > LARGEST { Err(io::ErrorKind::InvalidData.into()) } else { Ok(Some(length)) }
}

/// Returns what a message tells of units, if it is a signal about some.
fn signal(message: &[u8]) -> Option<UnitSignal> {
    const SIGNAL: u8 = 4;
    if *message.get(1)? != SIGNAL {
        return None;
    }
    let end = 16 + number(message, 12)?;
    let (mut at, mut path, mut member) = (16, None, None);
    while at < end {
        at = at.next_multiple_of(8);
        let (code, kind) = (*message.get(at)?, *message.get(at + 2)?);
        at += 4;
        match kind {
            b's' | b'o' => {
                at = at.next_multiple_of(4);
                let text = message.get(at + 4..at + 4 + number(message, at)?)?;
                at += 4 + text.len() + 1;
                match code {
                    1 => path = Some(text),
                    3 => member = Some(text),
                    _ => {}
                }
            }
            b'g' => at += 1 + usize::from(*message.get(at)?) + 1,
            b'u' => at = at.next_multiple_of(4) + 4,
            _ => return None,
        }
    }
    if member == Some(b"UnitFilesChanged") {
        return Some(UnitSignal::Files);
    }
    path?.strip_prefix(UNITS.as_bytes()).map(|escaped| UnitSignal::Unit(unescaped(escaped)))
}

/// Returns the name of a unit: in paths, what is neither letter nor digit is written as `_` and its number.
fn unescaped(path: &[u8]) -> String {
    let mut name = Vec::new();
    let mut rest = path;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'_') {
            Some(byte) => {
                name.push(byte);
                rest = &tail[2..];
            }
            None => {
                name.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_signal_is_read_from_its_path() {
        let call = Call {
            to: "org.freedesktop.systemd1",
            path: "/org/freedesktop/systemd1/unit/wg_2dquick_40wg0_2eservice",
            interface: "org.freedesktop.DBus.Properties",
            member: "PropertiesChanged",
            argument: Some("x"),
        };
        let mut message = call.message(7);
        assert_eq!(length(&message).unwrap(), Some(message.len()));
        assert_eq!(signal(&message), None, "a call is no signal");
        message[1] = 4;
        assert_eq!(signal(&message), Some(UnitSignal::Unit("wg-quick@wg0.service".to_owned())));
        for cut in 0..message.len() {
            let _ = (length(&message[..cut]), signal(&message[..cut]));
        }
        assert_eq!(length(&message[..15]).unwrap(), None);
        message[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(length(&message).is_err());
    }

    #[test]
    fn changed_unit_files_concern_all_units() {
        let call = Call {
            to: "x",
            path: "/org/freedesktop/systemd1",
            interface: "a.b",
            member: "UnitFilesChanged",
            argument: None,
        };
        let mut message = call.message(1);
        message[1] = 4;
        assert_eq!(signal(&message), Some(UnitSignal::Files));
    }
}
