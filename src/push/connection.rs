//! From the start of `ssh` to a program that answers: marker, privilege, upload, greeting.

use std::{
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Destination, PROTOCOL,
    binary::Binary,
    fleet::{Open, Password},
    frame::{self, Frame},
    link::{Bell, Link, Waited},
    opened::{Opened, encode},
    protocol::{ToController, ToTarget},
    random_hex,
    ssh::Transport,
    stub::{self, Become, Report},
    version,
};
use crate::visible::visible_line;

/// Most that a host can print before the marker.
const NOISE: usize = 1 << 20;

/// How long an upload can make no progress.
const STALLED: Duration = Duration::from_mins(1);

/// Reason for a missing or broken connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The host was not reached, with the reason of `ssh`.
    Unreachable(String),
    /// The host was reached and nothing was attempted.
    Refused(String),
    /// The host does not follow the protocol.
    Protocol(String),
    /// The connection broke.
    Broken(String),
}

/// Settings of every connection.
pub(super) struct Means {
    pub(super) transport: Transport,
    pub(super) binaries: Vec<Binary>,
    /// Returns the password for `sudo`, if there is a source of it.
    pub(super) password: Password,
    pub(super) open: Open,
}

/// A connection to a program that has answered.
pub(super) struct Connection {
    link: Link,
}

/// A connection that is being made.
struct Opening<'a> {
    means: &'a Means,
    host: &'a Destination,
    bell: &'a Bell,
    questions: &'a AtomicUsize,
    link: Link,
    marker: String,
    prompt: String,
    /// Whether the login shell has answered.
    is_in: bool,
    passwords: usize,
}

impl Connection {
    /// Connects and starts the program. `questions` counts the questions of `ssh` that are open.
    pub(super) fn open(
        means: &Means,
        host: &Destination,
        bell: &Bell,
        questions: &AtomicUsize,
    ) -> Result<Self, Problem> {
        let (marker, prompt) = (random_hex(), random_hex());
        let becomes = host.becomes(&means.transport.becomes);
        let remote = stub::command(&marker, &prompt, &means.binaries, &becomes);
        let started = Link::start(means.transport.command(host, &remote));
        let link = started.map_err(|error| {
            let program = means.transport.program.to_string_lossy();
            Problem::Unreachable(format!("cannot start `{}`: {error}", visible_line(&program)))
        })?;
        let mut opening =
            Opening { means, host, bell, questions, link, marker, prompt, is_in: false, passwords: 0 };
        match opening.establish(&becomes) {
            Ok(()) => Ok(Self { link: opening.link }),
            Err(Problem::Broken(_)) => Err(opening.explain()),
            Err(problem) => Err(problem),
        }
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &ToTarget) {
        self.link.send(frame::message(message));
    }

    /// Sends encrypted data in plain text.
    pub(super) fn send_opened(&mut self, opened: &Opened) {
        let text = encode(opened);
        self.send(&ToTarget::Opened { length: text.len() });
        frame::bytes(&text).for_each(|frame| self.link.send(frame));
    }

    /// Sends bytes that other hosts get, too.
    pub(super) fn send_shared(&mut self, bytes: &Arc<Vec<u8>>) {
        self.link.send_shared(Arc::clone(bytes));
    }

    /// Returns the next message; `None` if the bell rang first.
    pub(super) fn receive(&mut self, bell: &Bell) -> Result<Option<ToController>, Problem> {
        loop {
            if let Some(message) = next(&mut self.link)? {
                return Ok(Some(message));
            }
            match self.link.wait(None, bell.as_fd()).map_err(|error| Problem::Broken(error.to_string()))? {
                Waited::Moved => {}
                Waited::Woken => {
                    bell.silence();
                    return Ok(None);
                }
                Waited::Closed | Waited::TimedOut => {
                    return Err(Problem::Broken("the connection ended".to_owned()));
                }
            }
        }
    }

    /// Sends queued bytes, waits until the target closes the connection, and returns the last message of `ssh`.
    pub(super) fn close(mut self, bell: &Bell) -> String {
        let deadline = Instant::now() + Duration::from_secs(10);
        while let Ok(Waited::Moved | Waited::Woken) = self.link.wait(Some(deadline), bell.as_fd()) {
            bell.silence();
            self.link.received.clear();
        }
        last_line(&self.link.end().1)
    }
}

/// Takes a message out of the received bytes.
fn next(link: &mut Link) -> Result<Option<ToController>, Problem> {
    let protocol = |error: frame::FrameError| Problem::Protocol(format!("the host sent {error}"));
    match frame::take(&mut link.received).map_err(protocol)? {
        None => Ok(None),
        Some(Frame::Message(content)) => frame::parse(&content).map(Some).map_err(protocol),
        Some(Frame::Bytes(_)) => {
            Err(Problem::Protocol("the host sent bytes instead of a message".to_owned()))
        }
    }
}

impl Opening<'_> {
    fn establish(&mut self, becomes: &Become) -> Result<(), Problem> {
        loop {
            match self.report()? {
                Report::Login => self.is_in = true,
                Report::Have => break,
                Report::Need { architecture, gzip } => {
                    self.is_in = true;
                    self.upload(&architecture, gzip)?;
                    break;
                }
                Report::UnknownArchitecture(architecture) => {
                    return Err(Problem::Refused(format!(
                        "no ccm for architecture `{}`: use `--target-binary {0}=FILE`",
                        visible_line(&architecture)
                    )));
                }
                Report::Nowhere { free } => return Err(self.nowhere(&free, becomes)),
                Report::Failed => return Err(self.failed()),
            }
        }
        self.is_in = true;
        self.greet()
    }

    /// Waits for the next report of the stub, and answers `sudo`.
    fn report(&mut self) -> Result<Report, Problem> {
        let timeout = self.means.transport.connect_timeout;
        let mut deadline = Instant::now() + timeout;
        loop {
            if let Some((report, length)) = stub::find(&self.marker, &self.link.received) {
                self.link.received.drain(..length);
                return Ok(report);
            }
            if self.link.received.len() > NOISE {
                let message = format!("the host printed more than {NOISE} bytes before ccm could start");
                return Err(Problem::Unreachable(message));
            }
            self.answer_sudo()?;
            match self.wait(deadline)? {
                Waited::TimedOut if self.questions.load(Ordering::Relaxed) > 0 => {
                    deadline = Instant::now() + timeout;
                }
                Waited::TimedOut => {
                    let message = format!("no answer within {} s after ssh was started", timeout.as_secs());
                    return Err(Problem::Unreachable(message));
                }
                Waited::Closed => return Err(Problem::Broken(String::new())),
                Waited::Moved | Waited::Woken => {}
            }
        }
    }

    fn wait(&mut self, deadline: Instant) -> Result<Waited, Problem> {
        let waited = self.link.wait(Some(deadline), self.bell.as_fd());
        let waited = waited.map_err(|error| Problem::Unreachable(error.to_string()))?;
        if waited == Waited::Woken {
            // A stop that arrives now counts as soon as the program has answered.
            self.bell.silence();
        }
        Ok(waited)
    }

    /// Answers the prompt of `sudo` once. A second prompt is a wrong password or another question.
    fn answer_sudo(&mut self) -> Result<(), Problem> {
        let Some(at) = stub::position(&self.link.errors, self.prompt.as_bytes()) else { return Ok(()) };
        self.link.errors.drain(..at + self.prompt.len());
        self.passwords += 1;
        if self.passwords > 1 {
            return Err(Problem::Refused("sudo: wrong password, or sudo has another question".to_owned()));
        }
        match (self.means.password)() {
            Ok(Some(password)) => {
                self.link.send(format!("{password}\n").into_bytes());
                Ok(())
            }
            Ok(None) => Err(Problem::Refused(
                "sudo requires a password: use `--ask-password` or `CCM_SUDO_PASSWORD_COMMAND`".to_owned(),
            )),
            Err(reason) => Err(Problem::Refused(reason)),
        }
    }

    /// Sends the program and waits until it has been stored.
    fn upload(&mut self, architecture: &str, gzip: bool) -> Result<(), Problem> {
        let found = self.means.binaries.iter().find(|binary| binary.architecture == architecture);
        let binary =
            found.ok_or_else(|| Problem::Protocol("the host changed its architecture".to_owned()))?;
        let content = binary.content(gzip).map_err(Problem::Refused)?;
        self.link.send(format!("{} {}\n", if gzip { "gzip" } else { "plain" }, content.len()).into_bytes());
        self.link.send_shared(content);
        while self.link.is_sending() {
            match self.wait(Instant::now() + STALLED)? {
                Waited::TimedOut => return Err(Problem::Unreachable("the upload of ccm stalled".to_owned())),
                Waited::Closed => return Err(Problem::Broken(String::new())),
                Waited::Moved | Waited::Woken => {}
            }
        }
        Ok(())
    }

    /// Waits for the greeting of the program.
    fn greet(&mut self) -> Result<(), Problem> {
        let deadline = Instant::now() + STALLED.max(self.means.transport.connect_timeout);
        loop {
            if let Some((Report::Failed, _)) = stub::find(&self.marker, &self.link.received) {
                return Err(self.failed());
            }
            match next(&mut self.link)? {
                Some(ToController::Hello { protocol: PROTOCOL, version: theirs }) if theirs == version() => {
                    return Ok(());
                }
                Some(ToController::Hello { version: theirs, .. }) => {
                    return Err(Problem::Refused(format!(
                        "ccm {} on the host does not match ccm {} on the controller",
                        visible_line(&theirs),
                        version()
                    )));
                }
                Some(_) => {
                    return Err(Problem::Protocol("the host did not begin with a greeting".to_owned()));
                }
                None => {}
            }
            match self.wait(deadline)? {
                Waited::TimedOut => {
                    return Err(Problem::Unreachable("ccm on the host does not answer".to_owned()));
                }
                Waited::Closed => return Err(Problem::Broken(String::new())),
                Waited::Moved | Waited::Woken => {}
            }
        }
    }

    fn nowhere(&self, free: &str, becomes: &Become) -> Problem {
        let as_root = match (becomes, self.host.user.as_deref()) {
            (Become::Nothing, Some("root")) => true,
            (Become::Sudo { user } | Become::Doas { user }, _) => {
                user.as_deref().is_none_or(|user| user == "root")
            }
            _ => false,
        };
        let directories = if as_root {
            "/var/lib/ccm/bin, /usr/local/lib/ccm/bin and /run/ccm/bin"
        } else {
            "~/.cache/ccm/bin and $XDG_RUNTIME_DIR/ccm/bin"
        };
        let free = visible_line(free).into_owned();
        Problem::Refused(format!(
            "no directory for ccm: {directories} are not writable, do not permit programs, or are full ({free} KiB free)"
        ))
    }

    fn failed(&mut self) -> Problem {
        // The reason can arrive after the report.
        let deadline = Instant::now() + Duration::from_secs(5);
        while let Ok(Waited::Moved | Waited::Woken) = self.link.wait(Some(deadline), self.bell.as_fd()) {}
        let reason = last_line(&self.link.errors);
        Problem::Refused(if reason.is_empty() {
            "ccm could not be stored, or does not run there".to_owned()
        } else {
            format!("ccm could not be stored: {reason}")
        })
    }

    /// Explains why `ssh` ended.
    fn explain(self) -> Problem {
        let printed = first_line(&self.link.received);
        let (status, errors) = self.link.end();
        let reason = last_line(&errors);
        if self.is_in {
            let reason = if reason.is_empty() { "the login shell ended".to_owned() } else { reason };
            return Problem::Refused(reason);
        }
        Problem::Unreachable(match (status, reason.as_str(), printed.as_str()) {
            (Some(255), "", _) | (_, "", "") => "ssh ended without a reason".to_owned(),
            (Some(255), reason, _) | (_, reason, "") => reason.to_owned(),
            (_, _, printed) => format!("the host runs another command: {printed}"),
        })
    }
}

fn first_line(bytes: &[u8]) -> String {
    line(String::from_utf8_lossy(bytes).lines().find(|line| !line.trim().is_empty()))
}

/// Returns the last line that says something.
pub(super) fn last_line(bytes: &[u8]) -> String {
    line(String::from_utf8_lossy(bytes).lines().rev().find(|line| !line.trim().is_empty()))
}

fn line(line: Option<&str>) -> String {
    let shown = visible_line(line.unwrap_or_default().trim()).into_owned();
    shown.chars().take(300).collect()
}
