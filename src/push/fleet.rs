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
    confirmation::{Verdict, settle},
    connection::Means,
    host::{Archive, Host, News, perform},
    link::Bell,
    opened::Opened,
    protocol::Request,
    result::{HostResult, Outcome},
};

/// Stack of the thread of a host.
const STACK: usize = 512 * 1024;

/// News that wait for the listener: beyond that, hosts wait.
const WAITING: usize = 256;

/// Returns a password, if there is a source of it.
pub(crate) type Password = Box<dyn Fn() -> Result<Option<String>, String> + Send + Sync>;

/// Opens encrypted parts of the files of a request, by their digests.
pub(crate) type Open = Box<dyn Fn(&Request, &[String]) -> Opened + Send + Sync>;

/// A host and the request for it.
pub(crate) struct Target {
    pub(crate) destination: Destination,
    /// The request, or the result of a host to which ccm does not connect.
    pub(crate) request: Result<Request, Box<HostResult>>,
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
    /// How long runs wait for their confirmation, if they do.
    pub(crate) confirm: Option<Duration>,
}

impl Pace {
    /// Returns whether the result of a host can depend on the other hosts of its batch.
    fn has_limits(&self) -> bool {
        self.max_fail.is_some() || self.max_unreachable.is_some() || self.recheck.is_some()
    }
}

/// Shows the progress of a push.
pub(crate) trait Listener {
    fn started(&mut self, host: &str);
    fn event(&mut self, host: &str, event: Map<String, Value>);
    fn message(&mut self, host: &str, text: &str);
    /// The result of a host is known. The listener takes the plan of the host.
    fn finished(&mut self, result: &mut HostResult);
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
    requests: Vec<Result<Request, Box<HostResult>>>,
}

/// What the thread of a host does.
enum Work {
    /// Performs the request, with more arguments.
    Run(Vec<String>),
    /// Confirms the run of this result, or undoes it.
    Settle(Box<HostResult>, Verdict),
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
        open: Open,
    ) -> io::Result<Self> {
        let (mut hosts, mut requests) = (Vec::new(), Vec::new());
        for Target { destination, request } in targets {
            let bell = Bell::new()?;
            hosts.push(Host { destination, bell, questions: 0.into(), stop: 0.into() });
            requests.push(request);
        }
        let (sender, receiver) = sync_channel(WAITING);
        let means = Means { transport, binaries, password, open };
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
        let confirms = self.pace.confirm.is_some();
        let mut roll = Roll {
            results: self.shared.hosts.iter().map(|_| None).collect(),
            presses: 0,
            exceeded: None,
            fleet: &self,
            listener,
        };
        for (number, batch) in batches.iter().enumerate() {
            roll.batch(number, batch);
            let is_last = number + 1 == batches.len();
            let mut is_good = !roll.is_over(batch);
            if is_good && roll.presses == 0 && (confirms || !is_last) {
                is_good = roll.rest(batch);
            }
            roll.settle(batch, is_good);
            if !is_good || roll.presses > 0 {
                break;
            }
        }
        roll.finish()
    }

    /// Starts the thread of a host.
    fn start(&self, at: usize, work: Work) {
        let (shared, sender) = (Arc::clone(&self.shared), self.sender.clone());
        let (has_limits, confirm) = (self.pace.has_limits(), self.pace.confirm);
        let thread = move || {
            let mut report = |news| drop(sender.send(Message::News(at, news)));
            let Shared { means, archive, hosts, requests } = &*shared;
            let result = match (work, &requests[at]) {
                (Work::Settle(mut result, verdict), _) => {
                    settle(&hosts[at], means, &mut result, &verdict, &mut report);
                    *result
                }
                (Work::Run(_), Err(result)) => (**result).clone(),
                (Work::Run(extra), Ok(request)) => {
                    let request = with_arguments(request, &extra);
                    let mut result = perform(&hosts[at], means, &request, archive, confirm, &mut report);
                    if !has_limits {
                        settle(&hosts[at], means, &mut result, &Verdict::Keep, &mut report);
                    }
                    result
                }
            };
            report(News::End(Box::new(result)));
        };
        let name = self.shared.hosts[at].destination.name.clone();
        if let Err(error) = thread::Builder::new().stack_size(STACK).spawn(thread) {
            let reason = Some(format!("cannot start a thread: {error}"));
            let result = HostResult::without_run(&name, Outcome::Unreachable, reason);
            let _ = self.sender.try_send(Message::News(at, News::End(Box::new(result))));
        }
    }
}

/// Returns a request with more arguments. Options come before the names of manifests.
fn with_arguments(request: &Request, extra: &[String]) -> Request {
    let mut request = request.clone();
    let options = request.arguments.iter().position(|word| word == "--").unwrap_or(request.arguments.len());
    request.arguments.splice(options..options, extra.iter().cloned());
    request
}

/// A push in progress.
struct Roll<'a> {
    fleet: &'a Fleet,
    results: Vec<Option<HostResult>>,
    presses: usize,
    /// Why the limits are exceeded.
    exceeded: Option<String>,
    listener: &'a mut dyn Listener,
}

impl Roll<'_> {
    /// Runs a batch and stores its results.
    fn batch(&mut self, number: usize, batch: &[usize]) {
        let number = (self.fleet.pace.batches.len() > 1).then_some(number + 1);
        let is_final = !self.fleet.pace.has_limits();
        let mut store = |roll: &mut Self, at: usize, mut result: HostResult| {
            result.batch = number;
            if is_final {
                roll.listener.finished(&mut result);
            }
            roll.results[at] = Some(result);
        };
        self.perform(batch, &|_, _| Work::Run(Vec::new()), &mut store);
    }

    /// Confirms the runs of a batch that is good, undoes the others, and reports the results.
    fn settle(&mut self, batch: &[usize], is_good: bool) {
        if !self.fleet.pace.has_limits() {
            return;
        }
        let awaits = |at: &usize| self.results[*at].as_ref().is_some_and(|result| result.awaited().is_some());
        let awaiting: Vec<usize> = batch.iter().copied().filter(awaits).collect();
        let stopped = self.exceeded.clone().unwrap_or_default();
        let work = |roll: &Self, at: usize| {
            let result = roll.results[at].clone().unwrap_or_else(|| roll.left(at));
            let verdict = if is_good { Verdict::Keep } else { Verdict::Undo(stopped.clone()) };
            Work::Settle(Box::new(result), verdict)
        };
        let mut store = |roll: &mut Self, at: usize, result: HostResult| roll.results[at] = Some(result);
        self.perform(&awaiting, &work, &mut store);
        for at in batch {
            if let Some(result) = &mut self.results[*at] {
                self.listener.finished(result);
            }
        }
    }

    /// Returns whether another host can start. Runs that have ended are settled in spite of one interrupt.
    fn can_start(&self, work: &Work) -> bool {
        match work {
            Work::Run(_) => self.presses == 0,
            Work::Settle(..) => self.presses < 3,
        }
    }

    /// Does work on hosts, up to `parallel` of them at the same time, and passes the results on as they come.
    fn perform(
        &mut self,
        hosts: &[usize],
        work: &dyn Fn(&Self, usize) -> Work,
        store: &mut dyn FnMut(&mut Self, usize, HostResult),
    ) {
        let mut waiting: VecDeque<usize> = hosts.iter().copied().collect();
        let mut running: Vec<usize> = Vec::new();
        loop {
            while running.len() < self.fleet.pace.parallel
                && let Some(&at) = waiting.front()
                && let work = work(self, at)
                && self.can_start(&work)
            {
                waiting.pop_front();
                if matches!(work, Work::Run(_)) {
                    self.listener.started(&self.fleet.shared.hosts[at].destination.name);
                }
                self.fleet.start(at, work);
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
        let reason = if exceeds(self.fleet.pace.max_fail, failed) {
            format!("{failed} hosts are failed, unhealthy or refused")
        } else if exceeds(self.fleet.pace.max_unreachable, unreachable) {
            format!("{unreachable} hosts are unreachable")
        } else if !batch.iter().any(is_good) {
            "no host of the batch is ok".to_owned()
        } else {
            return false;
        };
        self.exceeded = Some(reason);
        true
    }

    /// Pauses after a batch, checks its health again, and returns whether the roll goes on.
    fn rest(&mut self, batch: &[usize]) -> bool {
        let until = Instant::now() + self.fleet.pace.pause;
        loop {
            match self.fleet.receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Press) => {
                    self.presses += 1;
                    return !self.is_over(batch);
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
                (result.reason, result.common) = (Some(format!("after the pause: {reason}")), None);
            }
        };
        self.perform(&good, &|_, _| Work::Run(recheck.clone()), &mut store);
        !self.is_over(batch)
    }

    fn finish(self) -> Finished {
        let hosts = &self.fleet.shared.hosts;
        let has_more = self.results.iter().any(Option::is_none);
        let untouched =
            |at: usize| HostResult::without_run(&hosts[at].destination.name, Outcome::Untouched, None);
        let results =
            self.results.into_iter().enumerate().map(|(at, result)| result.unwrap_or_else(|| untouched(at)));
        Finished {
            results: results.collect(),
            is_interrupted: self.presses > 0,
            stopped: self.exceeded.filter(|_| has_more),
        }
    }
}
