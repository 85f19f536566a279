//! What an agent has to do with NATS: sources, registrations, events. Where the configuration names none of it, there is no
//! connection and no thread.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    Config, Log,
    config::{self, Written},
    fitness::Fitness,
    source::Address,
    status::NatsStatus,
};
use crate::{
    engine::{Registrations, Report, Task},
    host::Host,
    nats::{
        Connection, ContextChoice, Listening, MAX_REGISTRATIONS, Nats, Persistence, REGISTRATION_STREAM,
        Status,
    },
    outbox::{Limits, Outbox, Run},
    registration::{Publisher, Transport},
    run::Machine,
    session::{Event, Summary},
    vocabulary::{Reference, Size},
};

/// The folder in the state directory in which events wait.
const SPOOL: &str = "events";

/// How long a single run waits for what it has to tell, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// An agent's part in a fleet.
pub(crate) struct Fleet {
    /// What templates ask.
    nats: Arc<Nats>,
    connection: Option<Arc<Connection>>,
    publisher: Option<Publisher>,
    /// Which resources are not to be registered.
    fitness: Mutex<Fitness>,
    outbox: Option<Outbox>,
    host: String,
    wish: Wish,
    /// Tells the log what becomes of the connection.
    _listening: Option<Listening>,
}

/// What of a configuration NATS is used for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    context: String,
    is_used: bool,
    registration: config::Registration,
    stream: Option<String>,
    max_registrations: Size,
    events: Option<String>,
}

impl Wish {
    fn of(config: &Config, context: &ContextChoice) -> Self {
        let Written { registration, registration_stream, max_registrations, events, .. } = &config.written;
        Self {
            context: context.name.clone(),
            is_used: uses_nats(config),
            registration: *registration,
            stream: registration_stream.clone(),
            max_registrations: *max_registrations,
            events: events.clone(),
        }
    }
}

impl Fleet {
    /// Returns the part of an agent that is alone.
    pub(crate) fn alone(context: ContextChoice) -> Self {
        let wish = Wish {
            context: String::new(),
            is_used: false,
            registration: config::Registration::Off,
            stream: None,
            max_registrations: MAX_REGISTRATIONS,
            events: None,
        };
        let nats = Arc::new(Nats::new(context, REGISTRATION_STREAM.to_owned()));
        Self {
            nats,
            connection: None,
            publisher: None,
            fitness: Mutex::default(),
            outbox: None,
            host: String::new(),
            wish,
            _listening: None,
        }
    }

    /// Returns whether it is what a configuration asks for.
    pub(crate) fn fits(&self, config: &Config, context: &ContextChoice) -> bool {
        self.wish == Wish::of(config, context)
    }

    /// Opens what the configuration asks for. The connection is made whenever a server is there.
    pub(crate) fn open(
        config: &Config,
        context: ContextChoice,
        Machine { state, host: Host { interrupt, .. }, .. }: &Machine,
        log: &Arc<dyn Log>,
    ) -> Result<Self, String> {
        let wish = Wish::of(config, &context);
        let written = &config.written;
        let stream = written.registration_stream.clone();
        let named = stream.clone().unwrap_or_else(|| REGISTRATION_STREAM.to_owned());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        if !wish.is_used {
            let nats = Nats::new(context, named).limited_to(written.max_registrations);
            let nats = Arc::new(nats.interruptible(interrupt.clone()));
            return Ok(Self {
                nats,
                connection: None,
                publisher: None,
                fitness: Mutex::default(),
                outbox: None,
                host,
                wish,
                _listening: None,
            });
        }
        let connection = Connection::open(&context, Persistence::Forever, Some(interrupt.clone()))
            .map_err(|error| error.to_string())?;
        let connection = Arc::new(connection);
        let told = Arc::new(Mutex::new(Status::default()));
        let keeper = Arc::clone(log);
        let note = move |status: &Status| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if status.connects >= told.connects {
                tell(&told, status, &*keeper);
                *told = status.clone();
            }
        };
        let listening = connection.on_change(note.clone());
        // On a busy machine it is made before anybody listens.
        note(&connection.status());
        let teller = |log: &Arc<dyn Log>| {
            let log = Arc::clone(log);
            move |text: &str| log.warn(text, &[])
        };
        let transport = match written.registration {
            config::Registration::Off => None,
            config::Registration::Nats => Some(Transport::Core),
            config::Registration::Jetstream => Some(Transport::JetStream { stream }),
        };
        let publisher = transport
            .map(|transport| Publisher::start(Arc::clone(&connection), transport, teller(log)))
            .transpose()
            .map_err(|error| format!("cannot publish registrations: {error}"))?;
        let outbox = written.events.as_ref().map(|subject| {
            let folder = state.directory.make_folder(SPOOL).map_err(|error| error.to_string())?;
            Outbox::start(Arc::clone(&connection), folder, Limits::default(), subject.clone(), teller(log))
                .map_err(|error| error.to_string())
        });
        let outbox = outbox.transpose().map_err(|error| format!("cannot keep events: {error}"))?;
        let nats = Nats::over(Arc::clone(&connection), named).limited_to(written.max_registrations);
        let nats = Arc::new(nats);
        Ok(Self {
            nats,
            connection: Some(connection),
            publisher,
            fitness: Mutex::default(),
            outbox,
            host,
            wish,
            _listening: Some(listening),
        })
    }

    /// Returns what templates ask.
    pub(crate) fn nats(&self) -> Arc<Nats> {
        Arc::clone(&self.nats)
    }

    /// Returns the connection, if there is one.
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        self.connection.clone()
    }

    /// Returns whether the engine is to work out what resources register.
    pub(crate) fn registrations(&self) -> Registrations {
        if self.publisher.is_some() { Registrations::Wanted } else { Registrations::Unwanted }
    }

    /// Notes what a resource registers that had its turn.
    pub(crate) fn note(&self, manifest: &str, task: Task, report: &Report) {
        let Some(publisher) = &self.publisher else { return };
        let resource = report.resource.reference();
        let is_fit = self.fitness().is_fit(manifest, &resource, task, &report.event);
        let entries = if is_fit { report.registrations.clone() } else { Vec::new() };
        publisher.note(manifest, &resource, entries);
    }

    fn fitness(&self) -> MutexGuard<'_, Fitness> {
        self.fitness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what resources registered that a manifest does not have any more.
    pub(crate) fn keep_only(&self, manifest: &str, resources: &[Reference]) {
        if let Some(publisher) = &self.publisher {
            publisher.keep_only(manifest, resources);
            self.fitness().keep_only(manifest, &resources.iter().collect());
        }
    }

    /// Tells the stream of events what a run did. What cannot be kept is told to the log.
    pub(crate) fn tell(&self, manifest: &str, summary: &Summary, events: &[Event], log: &dyn Log) {
        let Some(outbox) = &self.outbox else { return };
        match outbox.post(&Run { host: &self.host, manifest, summary, events }) {
            Ok(0) => {}
            Ok(dropped) => log.warn("too many events wait: the oldest are lost", &[("lost", &dropped)]),
            Err(error) => log.warn("events are lost", &[("error", &error)]),
        }
    }

    /// Waits until everything is out, but not long: whoever runs once does not come back to it.
    pub(crate) fn finish(&self) {
        let begun = Instant::now();
        let is_idle = || {
            self.publisher.as_ref().is_none_or(Publisher::is_idle)
                && self.outbox.as_ref().is_none_or(Outbox::is_idle)
        };
        while !is_idle() && begun.elapsed() < PATIENCE {
            thread::sleep(LOOK);
        }
    }

    /// Returns how the connection is.
    pub(crate) fn status(&self) -> Option<NatsStatus> {
        let Status { connected, server, .. } = self.connection.as_ref()?.status();
        Some(NatsStatus { connected, server })
    }
}

/// Whether anything in the configuration needs NATS.
fn uses_nats(config: &Config) -> bool {
    let is_there = |address: &Address| matches!(address, Address::Nats(_));
    config.manifests.iter().chain(&config.data).any(is_there)
        || config.written.registration != config::Registration::Off
        || config.written.events.is_some()
}

/// Tells what became of the connection, each thing once.
fn tell(before: &Status, now: &Status, log: &dyn Log) {
    let is_new = now.connects != before.connects;
    if is_new {
        log.info("connected to NATS", &[("server", &now.server)]);
    }
    if (is_new || before.connected) && !now.connected {
        log.warn("the connection to NATS is lost", &[("server", &now.server)]);
    }
    if let Some(complaint) = now.complaint.as_ref().filter(|_| now.complaint != before.complaint) {
        log.warn("NATS", &[("server", &now.server), ("problem", complaint)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::log::LogLevel;

    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    impl Log for Kept {
        fn write(&self, _: LogLevel, message: &str, _: &[(&str, String)]) {
            self.0.lock().unwrap().push(message.to_owned());
        }

        fn set_level(&self, _: LogLevel) {}
    }

    #[test]
    fn what_becomes_of_the_connection_is_told_once_and_a_loss_always() {
        let (made, lost) = ("connected to NATS", "the connection to NATS is lost");
        // How often it was made before and now, and whether it is there.
        for (before, now, expected) in [
            ((0, false), (0, false), &[][..]),
            ((0, false), (1, true), &[made]),
            ((1, true), (1, true), &[]),
            ((1, true), (1, false), &[lost]),
            ((1, false), (1, false), &[]),
            ((1, false), (2, true), &[made]),
            // It was made before anybody listened.
            ((0, false), (1, false), &[made, lost]),
        ] {
            let status = |(connects, connected)| Status { connected, connects, ..Status::default() };
            let log = Kept::default();
            tell(&status(before), &status(now), &log);
            assert_eq!(*log.0.lock().unwrap(), expected, "{before:?} {now:?}");
        }
    }
}
