//! The agent's main thread.

mod checking;
mod confirming;
mod noticing;
mod performing;
mod reloading;
mod telling;

use std::{
    collections::BTreeMap,
    os::fd::AsFd,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::Value;

use self::{
    checking::first_check,
    confirming::Confirming,
    reloading::{open_intake, watch},
};
use super::{
    Config, Log, Openings,
    apart::{Leftovers, apart},
    control::{self, Asked},
    due::{Cause, Due},
    exporter::{self, Exported},
    fleet::Fleet,
    health::Health,
    intake::Intake,
    mailbox::Mailbox,
    metrics::BUILD,
    pauses::Pauses,
    round::{Outcome, Round},
    source::News,
    waiting::wait,
    watching::Watching,
};
use crate::{
    engine::RunMode,
    host::{bus::UnitSignals, interrupt::Hangups, service_manager::ServiceManager},
    metrics::Metrics,
    nats::ContextChoice,
    run::Machine,
    state::{AgentLock, LocalState},
};

/// How long the first run waits for sources that are asked for the first time.
const FIRST_ANSWERS: Duration = Duration::from_secs(1);
/// How long a single run waits for them.
const ANSWERS: Duration = Duration::from_mins(1);

/// What an agent is started with.
pub(crate) struct Setting<'s> {
    pub(crate) machine: Machine,
    /// The NATS context that takes precedence over that of the configuration.
    pub(crate) nats_context: Option<String>,
    /// Reads the configuration again.
    pub(crate) read_config: &'s (dyn Fn() -> Result<Config, String> + Sync),
    pub(crate) log: Arc<dyn Log>,
    pub(crate) openings: Openings,
    pub(crate) service_manager: ServiceManager,
}

impl Setting<'_> {
    fn is_ending(&self) -> bool {
        self.machine.host.interrupt.requested().is_some()
    }

    fn state(&self) -> &LocalState {
        &self.machine.state
    }

    /// Returns the NATS context that a configuration selects, unless a flag or variable did.
    fn context(&self, config: &Config) -> ContextChoice {
        let name = self.nats_context.as_ref().unwrap_or(&config.written.nats_context);
        self.machine.environment.nats_context(name.clone())
    }
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
    health: Health,
    due: Due,
    /// When drift that was noticed is looked at.
    together: Option<Instant>,
    /// When everything is run again.
    next_run: Instant,
    /// When health checks are made again.
    next_check: Option<Instant>,
    /// The run that the agent confirms if all health checks pass.
    confirming: Option<Confirming>,
    /// When memory that runs needed is given back.
    leftovers: Leftovers,
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

/// Returns what a run is made with.
fn round<'r>(
    setting: &'r Setting,
    exported: &'r Exported,
    fleet: &'r Fleet,
    machine: &'r Machine,
    mode: RunMode,
    cause: &'r str,
) -> Round<'r> {
    Round { machine, log: &*setting.log, metrics: &exported.metrics, fleet, mode, cause }
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
        let fleet = Fleet::open(&config, setting.context(&config), &setting.machine, &setting.log)?;
        let intake = open_intake(&setting, &config, &mailbox, 0, &fleet)?;
        let metrics = if config.metrics.is_some() { Metrics::counting() } else { Metrics::idle() };
        metrics.set(&BUILD, &[env!("CARGO_PKG_VERSION")], 1.0);
        let exported = Exported { metrics, is_ready: false.into(), sources: Mutex::default() };
        let now = Instant::now();
        let mut agent = Self {
            watching: watch(&setting, &config, &intake),
            next_check: first_check(&config),
            setting,
            config,
            generation: 0,
            mailbox,
            intake,
            fleet,
            units: None,
            pauses: Pauses::default(),
            health: Health::default(),
            due: Due::default(),
            together: None,
            next_run: now,
            confirming: None,
            leftovers: Leftovers::default(),
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
            wait(&[self.setting.machine.host.interrupt.as_fd(), self.mailbox.as_fd()], Some(self.patience));
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
            self.leftovers.give_back(now);
            if self.is_time(now) {
                apart(|| self.perform());
                self.leftovers.note();
                continue;
            }
            if self.confirming.as_ref().is_some_and(|confirming| now >= confirming.next) {
                apart(|| self.check_confirmation());
                self.leftovers.note();
            } else if self.next_check.is_some_and(|moment| now >= moment) {
                apart(|| self.check_health());
                self.leftovers.note();
            } else {
                self.sleep(&hangups, now);
            }
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

    /// Returns the machine for one run: nothing is cached, and templates query the fleet.
    fn machine(&self) -> Machine {
        self.setting.machine.afresh(self.fleet.nats())
    }

    fn mode(&self) -> RunMode {
        if self.config.written.noop { RunMode::Noop } else { RunMode::Real }
    }

    fn is_ending(&self) -> bool {
        self.setting.is_ending()
    }

    /// Keeps other agents out and listens for callers.
    fn open_doors(&mut self) -> Result<(), String> {
        let directory = &self.setting.state().directory;
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
        self.due.is_whole()
            || self.together.is_none_or(|moment| now >= moment) && self.due.is_anything(&self.pauses, now)
    }

    fn sleep(&self, hangups: &Hangups, now: Instant) {
        let pulse = self.setting.service_manager.pulse().map(|pulse| now + pulse);
        let first = (self.due.everything == Some(Cause::Start)).then_some(self.patience);
        let pause = self.due.next(&self.pauses, now);
        // What is left alone is not waited for together with anything.
        let together = self.together.filter(|_| self.due.is_anything(&self.pauses, now));
        let leftovers = self.leftovers.due();
        let confirming = self.confirming.as_ref().map(|confirming| confirming.next);
        let moments =
            [Some(self.next_run), self.next_check, confirming, pulse, first, together, pause, leftovers];
        let until = moments.into_iter().flatten().min();
        let mut descriptors =
            vec![self.setting.machine.host.interrupt.as_fd(), hangups.as_fd(), self.mailbox.as_fd()];
        descriptors.extend(self.watching.as_ref().map(|watching| watching.inotify().as_fd()));
        descriptors.extend(self.units.as_ref().map(AsFd::as_fd));
        wait(&descriptors, until);
    }
}
