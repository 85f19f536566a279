//! The run on one host: connect, begin or resume, collect events, reconnect.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    Destination,
    confirmation::GRACE,
    connection::{Connection, Means, Problem},
    frame,
    link::Bell,
    opened::Opened,
    protocol::{End, Request, RunId, ToController, ToTarget},
    random_hex,
    result::{Collected, HostResult, Line, Outcome},
};
use crate::{host::files::hex, visible::visible_line};

/// Connections in a row without a new event before a host is unreachable.
const CONNECTIONS: u32 = 5;

/// The files that all hosts get: a compressed tar archive.
pub(crate) struct Archive {
    length: usize,
    content: Vec<u8>,
    frames: Arc<Vec<u8>>,
}

impl Archive {
    /// An archive of no files.
    pub(super) fn empty() -> Self {
        Self::new(Vec::new())
    }

    pub(crate) fn new(content: Vec<u8>) -> Self {
        let frames = Arc::new(frame::bytes(&content).flatten().collect());
        Self { length: content.len(), content, frames }
    }
}

/// News from the thread of a host.
pub(super) enum News {
    Event(Map<String, Value>),
    Message(String),
    End(Box<HostResult>),
}

/// A host and its part of a push.
pub(super) struct Host {
    pub(super) destination: Destination,
    pub(super) bell: Bell,
    /// Questions of `ssh` that wait for an answer.
    pub(super) questions: AtomicUsize,
    /// Whether the run has to stop at its next safe point.
    pub(super) stop: AtomicUsize,
}

impl Host {
    /// Waits, unless the bell rings.
    pub(super) fn pause(&self, pause: Duration) {
        let pause = Timespec::try_from(pause).ok();
        let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN)], pause.as_ref());
        self.bell.silence();
    }
}

/// Performs the run on a host, and returns its result. `confirm` is how long a run waits for its confirmation: a host that a change
/// cut off can be reached again when it has undone the change.
pub(super) fn perform(
    host: &Host,
    means: &Means,
    request: &Request,
    archive: &Archive,
    confirm: Option<Duration>,
    report: &mut dyn FnMut(News),
) -> HostResult {
    let open = |digests: &[String]| (means.open)(request, digests);
    let request = serde_json::to_vec(request).unwrap_or_default();
    let mut digest = Sha256::new();
    digest.update(&request);
    digest.update(&archive.content);
    let run = RunId::new(&random_hex());
    let begin = ToTarget::Begin {
        run: run.clone(),
        request: request.len(),
        archive: archive.length,
        sha256: hex(&digest.finalize()),
    };
    let mut push = Push {
        host,
        means,
        run,
        begin,
        request: Arc::new(frame::bytes(&request).flatten().collect()),
        archive,
        open: &open,
        report,
        collected: Collected::default(),
        seen: 0,
        is_begun: false,
        patience: confirm.map(|time| time + GRACE).unwrap_or_default(),
        heard: Instant::now(),
    };
    push.perform()
}

struct Push<'a> {
    host: &'a Host,
    means: &'a Means,
    run: RunId,
    begin: ToTarget,
    request: Arc<Vec<u8>>,
    archive: &'a Archive,
    open: &'a dyn Fn(&[String]) -> Opened,
    report: &'a mut dyn FnMut(News),
    collected: Collected,
    /// Number of the last event.
    seen: u64,
    /// Whether the host can have begun the run.
    is_begun: bool,
    /// How long to try after the last event, at least.
    patience: Duration,
    heard: Instant,
}

impl Push<'_> {
    fn perform(&mut self) -> HostResult {
        let (mut failures, mut lost) = (0, None);
        loop {
            let seen = self.seen;
            let problem = match self.connect() {
                Ok(end) => {
                    let result = std::mem::take(&mut self.collected).end(&self.host.destination.name, &end);
                    return HostResult { lost, ..result };
                }
                Err(problem) => problem,
            };
            failures = if self.seen > seen { 1 } else { failures + 1 };
            let reason = match problem {
                Problem::Refused(reason) if !self.is_begun => return self.result(Outcome::Refused, reason),
                Problem::Protocol(reason) => return self.result(Outcome::Failed, reason),
                Problem::Unreachable(reason) | Problem::Refused(reason) | Problem::Broken(reason) => reason,
            };
            lost.get_or_insert_with(|| reason.clone());
            let has_time =
                self.heard.elapsed() < self.patience && self.host.stop.load(Ordering::Relaxed) == 0;
            if !self.is_begun || failures >= CONNECTIONS && !has_time {
                let reason = if self.is_begun {
                    format!("{reason} (the run can be in progress; `ccm history --on` has it)")
                } else {
                    reason
                };
                return self.result(Outcome::Unreachable, reason);
            }
            self.host.pause(Duration::from_millis(500 << failures.min(5)));
        }
    }

    fn result(&mut self, outcome: Outcome, reason: String) -> HostResult {
        let Destination { name, address, .. } = &self.host.destination;
        std::mem::take(&mut self.collected).cut_off(name, outcome, reason).without_address(address)
    }

    /// Connects once, and returns the end of the run if it arrives.
    fn connect(&mut self) -> Result<End, Problem> {
        let Host { destination, bell, questions, .. } = self.host;
        let mut connection = Connection::open(self.means, destination, bell, questions)?;
        if self.is_begun {
            connection.send(&ToTarget::Attach { run: self.run.clone(), after: self.seen });
        } else {
            self.begin(&mut connection);
        }
        let end = self.converse(&mut connection);
        match end {
            Ok(end) => {
                connection.send(&ToTarget::Done);
                connection.close(bell);
                Ok(end)
            }
            Err(Problem::Broken(reason)) => {
                let explained = connection.close(bell);
                Err(Problem::Broken(if explained.is_empty() { reason } else { explained }))
            }
            Err(problem) => Err(problem),
        }
    }

    fn begin(&mut self, connection: &mut Connection) {
        self.is_begun = true;
        connection.send(&self.begin);
        connection.send_shared(&self.request);
        connection.send_shared(&self.archive.frames);
    }

    fn converse(&mut self, connection: &mut Connection) -> Result<End, Problem> {
        let mut is_stopping = false;
        let mut is_started = false;
        loop {
            if is_started && !is_stopping && self.host.stop.load(Ordering::Relaxed) > 0 {
                connection.send(&ToTarget::Stop);
                is_stopping = true;
            }
            let Some(message) = connection.receive(&self.host.bell)? else { continue };
            match message {
                ToController::Started if !is_started => is_started = true,
                ToController::Sealed { digests } if !is_started => {
                    connection.send_opened(&(self.open)(&digests));
                }
                ToController::Unknown if !is_started && self.seen == 0 => self.begin(connection),
                ToController::Unknown if !is_started => return Err(protocol("the host has lost the run")),
                ToController::Refused { reason } if !is_started => {
                    self.is_begun = false;
                    return Err(Problem::Refused(visible_line(&reason).into_owned()));
                }
                ToController::Event(event) if is_started => {
                    self.number(event.n)?;
                    match self.collected.add(event.stream, &event.text, event.more).map_err(protocol)? {
                        Some(Line::Event(event)) => (self.report)(News::Event(event)),
                        Some(Line::Message(text)) => (self.report)(News::Message(text)),
                        Some(Line::Other) | None => {}
                    }
                }
                ToController::End(end) if is_started => {
                    self.number(end.n)?;
                    return Ok(end);
                }
                ToController::Died if is_started => {
                    return Err(Problem::Protocol("the run was killed".to_owned()));
                }
                _ => return Err(protocol("a message came at the wrong time")),
            }
        }
    }

    fn number(&mut self, n: u64) -> Result<(), Problem> {
        if self.seen.checked_add(1) != Some(n) {
            return Err(protocol("the events are not numbered without gaps"));
        }
        self.seen = n;
        self.heard = Instant::now();
        Ok(())
    }
}

fn protocol(problem: &'static str) -> Problem {
    Problem::Protocol(format!("protocol error: {problem}"))
}
