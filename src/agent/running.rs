//! The agent's main thread.

use std::{
    collections::BTreeMap,
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Config, Log, Openings, Surroundings, chance,
    control::{self, Asked},
    due::{Cause, Due, Plan},
    exporter::{self, Exported},
    fleet::Fleet,
    intake::{Intake, Workshop},
    mailbox::Mailbox,
    metrics::{self, Metrics},
    pauses::Pauses,
    round::{Outcome, Round},
    source::{Address, LocalSource, News, Purpose},
    status::{PROTOCOL, PauseStatus, SourceStatus, Status},
    waiting::wait,
    watching::{Drift, OwnWrites, Subject, Watching},
};
use crate::{
    engine::RunMode,
    host::{
        Host,
        bus::UnitSignals,
        files::PrivateFolder,
        interrupt::{Hangups, Interrupt},
        service_manager::ServiceManager,
    },
    state::{AgentLock, Memory},
};

/// How long the first run waits for sources that are asked for the first time.
const FIRST_ANSWERS: Duration = Duration::from_secs(1);
/// How long a single run waits for them.
const ANSWERS: Duration = Duration::from_mins(1);
/// How long is waited for what comes together with an event, so that one run serves all of it.
const TOGETHER: Duration = Duration::from_millis(20);

/// What an agent is started with.
pub(crate) struct Setting<'s> {
    pub(crate) surroundings: &'s dyn Surroundings,
    pub(crate) memory: &'s Memory,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) openings: Openings,
    pub(crate) interrupt: Interrupt,
    pub(crate) service_manager: ServiceManager,
}

/// A message to the main thread.
enum Message {
    /// From a source, by the generation of the configuration and its number.
    News(u64, usize, News),
    Run(Asked),
}

/// A running agent.
pub(crate) struct Agent<'s> {
    setting: Setting<'s>,
    config: Config,
    /// Counts how often the configuration was read: what older sources tell is not heard.
    generation: u64,
    mailbox: Mailbox<Message>,
    intake: Intake,
    fleet: Fleet,
    watching: Option<Watching>,
    /// What systemd tells of units, where it can be heard.
    units: Option<UnitSignals>,
    pauses: Pauses,
    due: Due,
    /// When drift that was noticed is looked at.
    together: Option<Instant>,
    /// When everything is run again.
    next_run: Instant,
    /// Until when the first run waits for sources.
    patience: Instant,
    callers: Vec<Asked>,
    last: BTreeMap<usize, (Timestamp, Outcome)>,
    started: Timestamp,
    status: Arc<Mutex<Value>>,
    exported: Arc<Exported>,
    /// Keeps other agents out.
    lock: Option<AgentLock>,
}

/// What came of a single run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Once {
    Well,
    Failed,
}

impl<'s> Agent<'s> {
    /// Prepares an agent; sources are asked from now on.
    pub(crate) fn new(setting: Setting<'s>, config: Config) -> Result<Self, String> {
        let mailbox = Mailbox::new().map_err(|error| format!("cannot make an event counter: {error}"))?;
        setting.log.set_level(config.written.log_level);
        let context = setting.surroundings.context(&config.written.nats_context);
        let fleet = Fleet::open(&config, context, setting.memory, &setting.log)?;
        let intake = open_intake(&setting, &config, &mailbox, 0, &fleet)?;
        let metrics = if config.metrics.is_some() { Metrics::counting() } else { Metrics::idle() };
        let exported = Exported { metrics, is_ready: false.into(), sources: Mutex::default() };
        let now = Instant::now();
        let mut agent = Self {
            watching: watch(&setting, &config, &intake),
            setting,
            config,
            generation: 0,
            mailbox,
            intake,
            fleet,
            units: None,
            pauses: Pauses::default(),
            due: Due::default(),
            together: None,
            next_run: now,
            patience: now,
            callers: Vec::new(),
            last: BTreeMap::new(),
            started: Timestamp::now(),
            status: Arc::default(),
            exported: Arc::new(exported),
            lock: None,
        };
        agent.due.all(Cause::Start);
        Ok(agent)
    }

    /// Runs everything once, after every source was asked.
    pub(crate) fn once(mut self) -> Once {
        self.patience = Instant::now() + ANSWERS;
        while !self.is_asked() && Instant::now() < self.patience && !self.is_ending() {
            wait(&[self.setting.interrupt.as_fd(), self.mailbox.as_fd()], Some(self.patience));
            self.take_messages();
        }
        self.perform();
        self.fleet.finish();
        let all = self.intake.manifests().count();
        let is_well = self.last.len() == all && self.last.values().all(|(_, outcome)| outcome.is_well());
        let is_stale = self.intake.slots.iter().any(|slot| slot.refused.is_some());
        if is_well && !is_stale && !self.is_ending() { Once::Well } else { Once::Failed }
    }

    /// Runs until it is asked to end.
    pub(crate) fn run(mut self, mut hangups: Hangups) -> Result<(), String> {
        self.open_doors()?;
        self.patience = Instant::now() + FIRST_ANSWERS;
        self.publish();
        self.setting.service_manager.ready();
        let log = Arc::clone(&self.setting.log);
        log.info(
            "started",
            &[("config", &self.config.path.display()), ("manifests", &self.config.manifests.len())],
        );
        while !self.is_ending() {
            self.setting.service_manager.alive();
            let now = Instant::now();
            if now >= self.next_run {
                self.due.all(Cause::Interval);
            }
            if self.is_time(now) {
                self.perform();
                continue;
            }
            self.sleep(&hangups, now);
            if hangups.take() {
                self.reload();
            }
            self.take_messages();
            self.notice();
        }
        self.setting.service_manager.stopping();
        log.info("ended", &[]);
        Ok(())
    }

    /// Returns the machine, with the fleet that templates may ask.
    fn host(&self) -> Host {
        Host { nats: self.fleet.nats(), ..self.setting.surroundings.host() }
    }

    fn is_ending(&self) -> bool {
        self.setting.interrupt.requested().is_some()
    }

    /// Keeps other agents out and listens for callers.
    fn open_doors(&mut self) -> Result<(), String> {
        let directory = &self.setting.memory.directory;
        let lock = directory.lock_agent().map_err(|error| error.to_string())?;
        let Some(lock) = lock else {
            return Err("another agent uses the same state directory; see `ccm agent status`".to_owned());
        };
        let asked = self.mailbox.sender(Message::Run);
        control::listen(&lock.socket, Arc::clone(&self.status), asked)
            .map_err(|error| format!("cannot listen at {}: {error}", lock.socket.display()))?;
        self.lock = Some(lock);
        if let Some(address) = &self.config.metrics {
            exporter::serve(address, Arc::clone(&self.exported))
                .map_err(|error| format!("cannot serve metrics on {address}: {error}"))?;
            self.setting.log.info("metrics are served", &[("address", address)]);
        }
        Ok(())
    }

    /// Whether every source has answered once.
    fn is_asked(&self) -> bool {
        self.intake.slots.iter().all(|slot| slot.is_asked || slot.address.is_local())
    }

    /// Whether something is due and need not wait for anything.
    fn is_time(&self, now: Instant) -> bool {
        if self.due.everything == Some(Cause::Start) && !self.is_asked() && now < self.patience {
            return false;
        }
        let is_due = self.due.everything.is_some() || !self.due.manifests.is_empty();
        is_due || self.together.is_none_or(|moment| now >= moment) && self.due.is_anything(&self.pauses, now)
    }

    fn sleep(&self, hangups: &Hangups, now: Instant) {
        let pulse = self.setting.service_manager.pulse().map(|pulse| now + pulse);
        let first = (self.due.everything == Some(Cause::Start)).then_some(self.patience);
        let pause = self.due.next(&self.pauses, now);
        // What is left alone is not waited for together with anything.
        let together = self.together.filter(|_| self.due.is_anything(&self.pauses, now));
        let moments = [Some(self.next_run), pulse, first, together, pause];
        let until = moments.into_iter().flatten().min();
        let mut descriptors = vec![self.setting.interrupt.as_fd(), hangups.as_fd(), self.mailbox.as_fd()];
        descriptors.extend(self.watching.as_ref().map(|watching| watching.inotify().as_fd()));
        descriptors.extend(self.units.as_ref().map(AsFd::as_fd));
        wait(&descriptors, until);
    }

    fn take_messages(&mut self) {
        let host = self.host();
        for message in self.mailbox.take() {
            match message {
                Message::Run(asked) => {
                    self.callers.push(asked);
                    self.intake.ask_all();
                    self.due.all(Cause::Asked);
                }
                Message::News(generation, number, news) if generation == self.generation => {
                    self.count_news(number, &news);
                    let is_new = matches!(news, News::Arrived(_));
                    let workshop =
                        Workshop { host: &host, memory: self.setting.memory, log: &*self.setting.log };
                    self.intake.news(number, news, workshop);
                    if is_new {
                        self.settle(&host);
                    }
                    self.publish();
                }
                Message::News(..) => {}
            }
        }
    }

    fn count_news(&self, number: usize, news: &News) {
        let metrics = &self.exported.metrics;
        let Some(slot) = self.intake.slots.get(number) else { return };
        let source = slot.address.to_string();
        match (news, slot.purpose) {
            (News::Same, _) => {}
            (News::Arrived(_), _) => metrics.add(&metrics::FETCH, &[&source], 1),
            (News::Failed(_), Purpose::Manifest) => metrics.add(&metrics::FETCH_ERROR, &[&source], 1),
            (News::Failed(_), Purpose::Data) => metrics.add(&metrics::DATA_RESOLVE_ERROR, &[&source], 1),
        }
    }

    /// Judges what has arrived, and has it run.
    fn settle(&mut self, host: &Host) {
        let setting = &self.setting;
        let round = Round {
            surroundings: setting.surroundings,
            host,
            memory: setting.memory,
            log: &*setting.log,
            metrics: &self.exported.metrics,
            fleet: &self.fleet,
            mode: RunMode::Real,
            cause: "changed",
        };
        for number in self.intake.settle(&round, &*setting.log) {
            // What somebody fights about may be something else now.
            self.pauses.end(number);
            self.due.manifests.insert(number);
        }
    }

    /// Takes in what happened on the machine.
    fn notice(&mut self) {
        let drift = self.watching.as_mut().map(|watching| watching.drift(&OwnWrites::default()));
        if let Some(drift) = drift {
            self.take_drift(drift);
        }
        let Some(signals) = self.units.as_mut().map(UnitSignals::take) else { return };
        match (signals, &self.watching) {
            (Ok(signals), Some(watching)) => {
                let drift = watching.unit_drift(&signals);
                self.take_drift(drift);
            }
            (Ok(_), None) => {}
            (Err(error), _) => {
                let effect = "units are looked at when their time comes, and the bus is tried again then";
                self.setting.log.warn("the bus is gone", &[("error", &error), ("effect", &effect)]);
                self.units = None;
            }
        }
    }

    /// Listens to systemd, if a resource depends on a unit and nobody listens yet.
    fn listen_to_units(&mut self) {
        let is_wanted = self.watching.as_ref().is_some_and(Watching::has_units);
        if !is_wanted {
            self.units = None;
        } else if self.units.is_none() {
            match UnitSignals::connect() {
                Ok(units) => self.units = Some(units),
                Err(error) => {
                    let effect = "units are looked at when their time comes";
                    self.setting.log.debug("there is no bus", &[("error", &error), ("effect", &effect)]);
                }
            }
        }
    }

    fn take_drift(&mut self, drift: Drift) {
        if drift.is_empty() {
            return;
        }
        let now = Instant::now();
        self.together.get_or_insert(now + TOGETHER);
        self.due.noticed.get_or_insert(now);
        if drift.anything {
            self.setting.log.warn("too much happened at once to be followed: everything is looked at", &[]);
            self.due.all(Cause::Drift);
        }
        if !drift.sources.is_empty() {
            let host = self.host();
            let workshop = Workshop { host: &host, memory: self.setting.memory, log: &*self.setting.log };
            self.intake.look_at_local(workshop);
            if self.intake.has_candidates() {
                self.settle(&host);
            }
        }
        self.due.subjects.extend(drift.subjects);
    }

    /// Runs what is due.
    fn perform(&mut self) {
        let busy = self.setting.service_manager.busy();
        let host = self.host();
        if self.due.everything.is_some() {
            let workshop = Workshop { host: &host, memory: self.setting.memory, log: &*self.setting.log };
            self.intake.look_at_local(workshop);
            if self.intake.has_candidates() {
                self.settle(&host);
            }
            let splay = chance::up_to(self.config.splay);
            self.next_run = Instant::now() + self.config.written.interval.as_std() + splay;
        }
        self.together = None;
        let (noticed, now) = (self.due.noticed.take(), Instant::now());
        let count = self.intake.manifests().count();
        let plan = self.due.plan(count, &self.pauses, now);
        match plan.filter(|_| self.intake.is_data_there()) {
            Some(plan) => self.apply(&host, &plan, noticed),
            None if !self.intake.is_data_there() => {
                self.setting.log.warn("nothing is applied before the data is there", &[]);
            }
            None => {}
        }
        drop(busy);
        self.publish();
        self.answer_callers();
    }

    fn apply(&mut self, host: &Host, plan: &Plan, noticed: Option<Instant>) {
        let setting = &self.setting;
        let cause = plan.cause.to_string();
        setting.service_manager.status(&format!("applying ({cause})"));
        let round = Round {
            surroundings: setting.surroundings,
            host,
            memory: setting.memory,
            log: &*setting.log,
            metrics: &self.exported.metrics,
            fleet: &self.fleet,
            mode: if self.config.written.noop { RunMode::Noop } else { RunMode::Real },
            cause: &cause,
        };
        let mut own = OwnWrites::default();
        let outcomes = round.run(&self.intake, &plan.extents, self.watching.as_mut(), &mut own);
        if plan.cause == Cause::Drift {
            self.note_repairs(&outcomes, noticed);
        } else {
            self.listen_to_units();
        }
        let now = Timestamp::now();
        let disturbed = outcomes.iter().flat_map(|outcome| outcome.disturbed.clone()).collect();
        self.take_drift(Drift { subjects: disturbed, ..Drift::default() });
        for outcome in outcomes {
            self.last.insert(outcome.manifest, (now, outcome));
        }
        self.exported.metrics.set(&metrics::LAST_RUN, &[], now.as_duration().as_secs_f64());
        self.exported.is_ready.store(true, Ordering::Relaxed);
        let drift = self.watching.as_mut().map(|watching| watching.drift(&own));
        if let Some(drift) = drift {
            self.take_drift(drift);
        }
        if self.watching.as_ref().is_some_and(Watching::is_limited) {
            let hint =
                "raise fs.inotify.max_user_watches; until then what is not watched waits for the interval";
            self.setting.log.warn("the kernel allows no more watches", &[("hint", &hint)]);
        }
    }

    /// Counts repairs, and leaves alone what needs them again and again.
    fn note_repairs(&mut self, outcomes: &[Outcome], noticed: Option<Instant>) {
        let now = Instant::now();
        let repaired: Vec<&Subject> = outcomes.iter().flat_map(|outcome| &outcome.repaired).collect();
        if let Some(noticed) = noticed.filter(|_| !repaired.is_empty()) {
            self.exported.metrics.observe(&metrics::REPAIR_LATENCY, &[], now - noticed);
        }
        for subject in repaired {
            if let Some(pause) = self.pauses.repaired(subject, now) {
                let resource = format!("{}#{}", subject.resource.kind, subject.resource.name);
                let length = crate::vocabulary::Duration::from(pause.length);
                let message = "somebody else changes it again and again: it is left alone for a while";
                self.setting.log.warn(message, &[("resource", &resource), ("pause", &length)]);
            }
        }
    }

    /// Reads the configuration again. A bad one changes nothing.
    fn reload(&mut self) {
        self.setting.service_manager.reloading();
        match self.setting.surroundings.configuration() {
            Err(error) => {
                let effect = "the configuration stays as it was";
                self.setting
                    .log
                    .error("the new configuration is not used", &[("error", &error), ("effect", &effect)]);
            }
            Ok(config) => match self.open_all(&config) {
                Err(error) => {
                    self.setting.log.error("the new configuration is not used", &[("error", &error)]);
                }
                Ok(intake) => {
                    self.generation += 1;
                    self.setting.log.set_level(config.written.log_level);
                    if config.metrics != self.config.metrics {
                        self.setting.log.warn("a new address for metrics is used after a restart", &[]);
                    }
                    (self.intake, self.pauses) = (intake, Pauses::default());
                    self.watching = watch(&self.setting, &config, &self.intake);
                    self.config = config;
                    self.last.clear();
                    self.due = Due::default();
                    self.setting.log.info("the configuration was read again", &[]);
                }
            },
        }
        self.intake.ask_all();
        self.due.all(Cause::Hangup);
        self.setting.service_manager.ready();
    }

    /// Opens what another configuration asks for. Of NATS, what is the same stays.
    fn open_all(&mut self, config: &Config) -> Result<Intake, String> {
        let Setting { surroundings, memory, log, .. } = &self.setting;
        let context = surroundings.context(&config.written.nats_context);
        if !self.fleet.fits(config, &context) {
            // Two must not send the same events.
            self.fleet = Fleet::alone(context.clone());
            self.fleet = match Fleet::open(config, context, memory, log) {
                Ok(fleet) => fleet,
                Err(error) => {
                    let context = surroundings.context(&self.config.written.nats_context);
                    if let Ok(fleet) = Fleet::open(&self.config, context, memory, log) {
                        self.fleet = fleet;
                    }
                    return Err(error);
                }
            };
        }
        open_intake(&self.setting, config, &self.mailbox, self.generation + 1, &self.fleet)
    }

    /// Tells callers what came of the run that they asked for.
    fn answer_callers(&mut self) {
        let outcomes: Vec<&Outcome> = self.last.values().map(|(_, outcome)| outcome).collect();
        let answer = json!({
            "resources": outcomes.iter().map(|outcome| outcome.resources).sum::<usize>(),
            "changed": outcomes.iter().map(|outcome| outcome.changed).sum::<usize>(),
            "failed": outcomes.iter().map(|outcome| outcome.failed).sum::<usize>(),
            "not_applied": outcomes.iter().filter(|outcome| outcome.error.is_some()).count()
                + self.intake.manifests().count() - outcomes.len(),
        });
        for Asked(caller) in self.callers.drain(..) {
            let _ = caller.send(answer.clone());
        }
    }

    /// Tells everybody how things are: callers, metrics, the service manager.
    fn publish(&mut self) {
        let status = self.status();
        let stale = status.manifests.iter().chain(&status.data).filter(|source| source.stale).count();
        let failed: usize = status.manifests.iter().map(|manifest| manifest.failed).sum();
        let line =
            format!("{} manifests, {failed} resources failed, {stale} sources stale", status.manifests.len());
        self.setting.service_manager.status(&line);
        let metrics = &self.exported.metrics;
        metrics.clear(&metrics::BACKOFF);
        for (Subject { resource, .. }, pause) in self.pauses.all(Instant::now()) {
            metrics.set(&metrics::BACKOFF, &[&resource.kind, &resource.name], pause.length.as_secs_f64());
        }
        let mut sources = Vec::new();
        for slot in &self.intake.slots {
            let name = slot.address.to_string();
            metrics.set(&metrics::SOURCE_STALE, &[&name], f64::from(u8::from(slot.is_stale())));
            sources.push((name, slot.fetched()));
        }
        *self.exported.sources.lock().unwrap_or_else(PoisonError::into_inner) = sources;
        let value = serde_json::to_value(&status).unwrap_or_default();
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn status(&self) -> Status {
        let now = Instant::now();
        let moment = |at: Instant| {
            Timestamp::now().checked_add(at.saturating_duration_since(now)).unwrap_or(Timestamp::MAX)
        };
        let manifest = |number| {
            self.intake.manifests().find(|(own, _)| *own == number).map(|(_, slot)| slot.address.to_string())
        };
        Status {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            started: self.started,
            config: self.config.path.display().to_string(),
            manifests: self
                .intake
                .manifests()
                .map(|(number, slot)| SourceStatus::of(slot, self.last.get(&number)))
                .collect(),
            data: self
                .intake
                .slots
                .first()
                .filter(|slot| slot.purpose == Purpose::Data)
                .map(|slot| SourceStatus::of(slot, None)),
            next_run: Some(moment(self.next_run)),
            nats: self.fleet.status(),
            watching: self.watching.as_ref().map(Watching::count).unwrap_or_default(),
            pauses: self
                .pauses
                .all(now)
                .into_iter()
                .map(|(subject, pause)| PauseStatus {
                    resource: format!("{}#{}", subject.resource.kind, subject.resource.name),
                    manifest: manifest(subject.manifest).unwrap_or_default(),
                    until: moment(pause.until),
                })
                .collect(),
        }
    }
}

fn open_intake(
    setting: &Setting,
    config: &Config,
    mailbox: &Mailbox<Message>,
    generation: u64,
    fleet: &Fleet,
) -> Result<Intake, String> {
    let cache = match &config.cache_dir {
        Some(path) => PrivateFolder::make(path).map_err(|error| error.to_string())?,
        None => setting.memory.directory.make_folder("sources").map_err(|error| error.to_string())?,
    };
    let host = Host { nats: fleet.nats(), ..setting.surroundings.host() };
    let openings = Openings { connection: fleet.connection(), ..setting.openings.clone() };
    let workshop = Workshop { host: &host, memory: setting.memory, log: &*setting.log };
    let tell = |number| mailbox.sender(move |news| Message::News(generation, number, news));
    Intake::open(config, &cache, &openings, &tell, workshop)
}

/// Begins to watch the sources of this machine; `None` if nothing is to be watched or the kernel does not let it.
fn watch(setting: &Setting, config: &Config, intake: &Intake) -> Option<Watching> {
    if !config.written.watch {
        return None;
    }
    let mut watching = match Watching::new() {
        Ok(watching) => watching,
        Err(error) => {
            let effect = "drift is repaired at the next run";
            setting.log.warn("nothing is watched", &[("error", &error), ("effect", &effect)]);
            return None;
        }
    };
    for (number, slot) in intake.slots.iter().enumerate() {
        if let Address::Path(path) = &slot.address {
            watching.add_source(number, &LocalSource(path.clone()).file());
        }
    }
    Some(watching)
}
