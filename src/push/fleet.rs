//! Hosts in batches, each host in progress with a thread of its own.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use super::{
    Destination, Transport,
    binary::Binary,
    connection::Means,
    host::{Archive, Host, News, perform},
    link::Bell,
    protocol::Request,
    result::{HostResult, Outcome},
};

/// Stack of the thread of a host.
const STACK: usize = 512 * 1024;

/// News that wait for the listener: beyond that, hosts wait.
const WAITING: usize = 256;

/// Returns a password, if there is a source of it.
pub(crate) type Password = Box<dyn Fn() -> Result<Option<String>, String> + Send + Sync>;

/// A host and the request for it.
pub(crate) struct Target {
    pub(crate) destination: Destination,
    pub(crate) request: Request,
}

/// Sizes and limits.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Positions of targets.
    pub(crate) batches: Vec<Vec<usize>>,
    /// Hosts at the same time.
    pub(crate) parallel: usize,
    /// More failed, unhealthy and refused hosts than this stop the roll.
    pub(crate) max_fail: Option<usize>,
    /// More unreachable hosts than this stop the roll.
    pub(crate) max_unreachable: Option<usize>,
    /// Between batches.
    pub(crate) pause: Duration,
    /// Arguments for the run that checks the health of a batch after the pause.
    pub(crate) recheck: Option<Vec<String>>,
}

/// Shows the progress of a push.
pub(crate) trait Listener {
    fn started(&mut self, host: &str);
    fn event(&mut self, host: &str, event: Map<String, Value>);
    fn message(&mut self, host: &str, text: &str);
    fn finished(&mut self, result: &HostResult);
    /// Something that concerns no single host.
    fn notice(&mut self, text: &str);
}

/// The results of a push.
pub(crate) struct Finished {
    /// In the order of the targets.
    pub(crate) results: Vec<HostResult>,
    /// Whether the user interrupted.
    pub(crate) is_interrupted: bool,
    /// Why the roll stopped before its end.
    pub(crate) stopped: Option<String>,
}

/// A push that can begin.
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    pace: Pace,
    sender: SyncSender<Message>,
    receiver: Receiver<Message>,
}

struct Shared {
    means: Means,
    archive: Archive,
    hosts: Vec<Host>,
    requests: Vec<Request>,
}

enum Message {
    News(usize, News),
    Press,
}

/// Reports Ctrl-C to a push in progress.
#[derive(Clone)]
pub(crate) struct Presser(SyncSender<Message>);

impl Presser {
    pub(crate) fn press(&self) {
        let _ = self.0.send(Message::Press);
    }
}

impl Fleet {
    pub(crate) fn new(
        targets: Vec<Target>,
        archive: Archive,
        pace: Pace,
        transport: Transport,
        binaries: Vec<Binary>,
        password: Password,
    ) -> io::Result<Self> {
        let (mut hosts, mut requests) = (Vec::new(), Vec::new());
        for Target { destination, request } in targets {
            let bell = Bell::new()?;
            hosts.push(Host { destination, bell, questions: 0.into(), stop: 0.into() });
            requests.push(request);
        }
        let (sender, receiver) = sync_channel(WAITING);
        let means = Means { transport, binaries, password };
        Ok(Self { shared: Arc::new(Shared { means, archive, hosts, requests }), pace, sender, receiver })
    }

    /// Returns a handle that reports Ctrl-C.
    pub(crate) fn presser(&self) -> Presser {
        Presser(self.sender.clone())
    }

    /// Returns a function that changes the number of open questions of a host.
    pub(crate) fn questions(&self) -> impl Fn(&str, bool) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |name, is_open| {
            for host in shared.hosts.iter().filter(|host| host.destination.name == name) {
                if is_open {
                    host.questions.fetch_add(1, Ordering::Relaxed);
                } else {
                    host.questions.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Runs all batches.
    pub(crate) fn run(self, listener: &mut dyn Listener) -> Finished {
        let batches = self.pace.batches.clone();
        let mut roll = Roll {
            results: self.shared.hosts.iter().map(|_| None).collect(),
            presses: 0,
            stopped: None,
            fleet: &self,
            listener,
        };
        for (number, batch) in batches.iter().enumerate() {
            roll.batch(number, batch);
            if roll.presses > 0 || roll.is_over(batch) {
                break;
            }
            let is_last = number + 1 == batches.len();
            if !is_last && !roll.rest(batch) {
                break;
            }
        }
        roll.finish()
    }

    /// Starts the thread of a host.
    fn start(&self, at: usize, extra: &[String]) {
        let (shared, sender) = (Arc::clone(&self.shared), self.sender.clone());
        let mut request = self.shared.requests[at].clone();
        // Options come before the names of manifests.
        let options =
            request.arguments.iter().position(|word| word == "--").unwrap_or(request.arguments.len());
        request.arguments.splice(options..options, extra.iter().cloned());
        let work = move || {
            let mut report = |news| drop(sender.send(Message::News(at, news)));
            let host = &shared.hosts[at];
            let result = perform(host, &shared.means, &request, &shared.archive, &mut report);
            report(News::End(Box::new(result)));
        };
        let name = self.shared.hosts[at].destination.name.clone();
        if let Err(error) = thread::Builder::new().stack_size(STACK).spawn(work) {
            let reason = Some(format!("cannot start a thread: {error}"));
            let result = HostResult::without_run(&name, Outcome::Unreachable, reason);
            let _ = self.sender.try_send(Message::News(at, News::End(Box::new(result))));
        }
    }
}

/// A push in progress.
struct Roll<'a> {
    fleet: &'a Fleet,
    results: Vec<Option<HostResult>>,
    presses: usize,
    stopped: Option<String>,
    listener: &'a mut dyn Listener,
}

impl Roll<'_> {
    /// Runs a batch and stores its results.
    fn batch(&mut self, number: usize, batch: &[usize]) {
        let number = (self.fleet.pace.batches.len() > 1).then_some(number + 1);
        let mut store = |roll: &mut Self, at: usize, mut result: HostResult| {
            result.batch = number;
            roll.listener.finished(&result);
            roll.results[at] = Some(result);
        };
        self.perform(batch, &[], &mut store);
    }

    /// Runs hosts, up to `parallel` of them at the same time, and passes the results on as they come.
    fn perform(
        &mut self,
        hosts: &[usize],
        extra: &[String],
        store: &mut dyn FnMut(&mut Self, usize, HostResult),
    ) {
        let mut waiting: VecDeque<usize> = hosts.iter().copied().collect();
        let mut running: Vec<usize> = Vec::new();
        loop {
            while self.presses == 0
                && running.len() < self.fleet.pace.parallel
                && let Some(at) = waiting.pop_front()
            {
                self.listener.started(&self.fleet.shared.hosts[at].destination.name);
                self.fleet.start(at, extra);
                running.push(at);
            }
            if running.is_empty() {
                return;
            }
            match self.fleet.receiver.recv() {
                Ok(Message::News(at, News::End(result))) => {
                    running.retain(|other| *other != at);
                    store(self, at, *result);
                }
                Ok(Message::News(at, news)) => self.news(at, news),
                Ok(Message::Press) => self.press(&running),
                Err(_) => return,
            }
            if self.presses > 2 {
                for at in running {
                    let left = self.left(at);
                    store(self, at, left);
                }
                return;
            }
        }
    }

    fn news(&mut self, at: usize, news: News) {
        let name = &self.fleet.shared.hosts[at].destination.name;
        match news {
            News::Event(event) => self.listener.event(name, event),
            News::Message(text) => self.listener.message(name, &text),
            News::End(_) => {}
        }
    }

    fn press(&mut self, running: &[usize]) {
        self.presses += 1;
        let count = running.len();
        match self.presses {
            1 => self.listener.notice(&format!(
                "interrupted: no further host is started; waiting for {count} (interrupt again to stop their runs)"
            )),
            2 => {
                self.listener.notice("interrupted again: stopping the runs at their next safe point (once more to leave)");
                for &at in running {
                    let host = &self.fleet.shared.hosts[at];
                    host.stop.store(1, Ordering::Relaxed);
                    host.bell.ring();
                }
            }
            _ => {}
        }
    }

    fn left(&self, at: usize) -> HostResult {
        let name = &self.fleet.shared.hosts[at].destination.name;
        let reason = "the controller left before the end of the run".to_owned();
        HostResult::without_run(name, Outcome::Failed, Some(reason))
    }

    fn count(&self, outcomes: &[Outcome]) -> usize {
        let results = self.results.iter().flatten();
        results.filter(|result| outcomes.contains(&result.outcome)).count()
    }

    /// Returns whether the limits stop the roll after a batch.
    fn is_over(&mut self, batch: &[usize]) -> bool {
        let failed = self.count(&[Outcome::Failed, Outcome::Unhealthy, Outcome::Refused]);
        let unreachable = self.count(&[Outcome::Unreachable]);
        let exceeds = |limit: Option<usize>, count| limit.is_some_and(|limit| count > limit);
        let is_good =
            |at: &usize| self.results[*at].as_ref().is_some_and(|result| result.outcome == Outcome::Ok);
        let has_more = self.results.iter().any(Option::is_none);
        let reason = if exceeds(self.fleet.pace.max_fail, failed) {
            format!("{failed} hosts are failed, unhealthy or refused")
        } else if exceeds(self.fleet.pace.max_unreachable, unreachable) {
            format!("{unreachable} hosts are unreachable")
        } else if !batch.iter().any(is_good) {
            "no host of the batch is ok".to_owned()
        } else {
            return false;
        };
        if has_more {
            self.stopped = Some(reason);
        }
        true
    }

    /// Pauses after a batch, checks its health again, and returns whether the roll goes on.
    fn rest(&mut self, batch: &[usize]) -> bool {
        let until = Instant::now() + self.fleet.pace.pause;
        loop {
            match self.fleet.receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Press) => {
                    self.presses += 1;
                    return false;
                }
                Ok(Message::News(..)) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let Some(recheck) = self.fleet.pace.recheck.clone() else { return true };
        let is_good =
            |at: &usize| self.results[*at].as_ref().is_some_and(|result| result.outcome == Outcome::Ok);
        let good: Vec<usize> = batch.iter().copied().filter(is_good).collect();
        let mut store = |roll: &mut Self, at: usize, checked: HostResult| {
            // Without health checks, nothing is attempted.
            if matches!(checked.outcome, Outcome::Ok | Outcome::Refused) {
                return;
            }
            let is_gone = checked.outcome == Outcome::Unreachable;
            if let Some(result) = &mut roll.results[at] {
                let reason = checked.reason.unwrap_or_default();
                result.outcome = if is_gone { Outcome::Unreachable } else { Outcome::Unhealthy };
                result.reason = Some(format!("after the pause: {reason}"));
                roll.listener.finished(result);
            }
        };
        self.perform(&good, &recheck, &mut store);
        self.presses == 0 && !self.is_over(batch)
    }

    fn finish(self) -> Finished {
        let hosts = &self.fleet.shared.hosts;
        let untouched =
            |at: usize| HostResult::without_run(&hosts[at].destination.name, Outcome::Untouched, None);
        let results =
            self.results.into_iter().enumerate().map(|(at, result)| result.unwrap_or_else(|| untouched(at)));
        Finished { results: results.collect(), is_interrupted: self.presses > 0, stopped: self.stopped }
    }
}
