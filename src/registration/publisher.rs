//! Publishes the entries of a machine and renews them, from a thread of its own: no run waits for NATS.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::Registration;
use crate::{
    nats::{Connection, Listening, NatsError, REGISTRATION_STREAM, StreamSettings},
    vocabulary::Reference,
};

/// How entries are published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// To whoever listens.
    Core,
    /// To a stream, which says that it has them; to a certain one if one was named.
    JetStream { stream: Option<String> },
}

/// What could not be published is tried again after this.
const RETRY: Duration = Duration::from_secs(5);
/// `JetStream` says with this that a stream takes no message with a ttl.
const TTL_DISABLED: u64 = 10_166;

/// Publishes entries until it is dropped. What waits while NATS is away is the last entry of each subject.
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    /// Wakes the thread when the connection was made or lost.
    _listening: Listening,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    /// The entries of each resource of each manifest.
    entries: BTreeMap<(String, String), Vec<Registration>>,
    /// When the entry of a subject is to be published next; those that are good for ever are not here.
    due: BTreeMap<String, Instant>,
    ended: bool,
}

impl Publisher {
    /// Starts the thread. `tell` says what the owner of the machine should know.
    pub(crate) fn start(
        connection: Arc<Connection>,
        transport: Transport,
        tell: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let on_change = Arc::clone(&shared);
        let listening = connection.on_change(move |_| on_change.wake());
        let working = Arc::clone(&shared);
        thread::Builder::new().name("registration".to_owned()).stack_size(512 * 1024).spawn(move || {
            let told = Told::default();
            Work { connection, transport, shared: working, tell: Box::new(tell), told, max_age: None }
                .go_on();
        })?;
        Ok(Self { shared, _listening: listening })
    }

    /// Notes the entries of a resource that had its turn, and publishes them; none if it is not well.
    pub(crate) fn note(&self, manifest: &str, resource: &Reference, entries: Vec<Registration>) {
        let mut state = self.shared.state();
        let key = (manifest.to_owned(), resource.to_string());
        let now = Instant::now();
        state.due.extend(entries.iter().map(|entry| (entry.subject(), now)));
        if entries.is_empty() {
            state.entries.remove(&key);
        } else {
            state.entries.insert(key, entries);
        }
        drop(state);
        self.shared.woken.notify_all();
    }

    /// Returns whether nothing waits to be published now.
    pub(crate) fn is_idle(&self) -> bool {
        let now = Instant::now();
        self.shared.state().due.values().all(|at| *at > now)
    }

    /// Forgets the entries of resources that a manifest does not have any more.
    pub(crate) fn keep_only(&self, manifest: &str, resources: &[Reference]) {
        let names: HashSet<String> = resources.iter().map(ToString::to_string).collect();
        self.shared.state().entries.retain(|(of, resource), _| of != manifest || names.contains(resource));
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.woken.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread, also one that has just decided to wait.
    fn wake(&self) {
        drop(self.state());
        self.woken.notify_all();
    }
}

impl State {
    /// Returns the entry that is to be published next, if its time has come, or how long there is nothing to do.
    fn next(&mut self, now: Instant) -> Result<(String, Registration), Option<Duration>> {
        loop {
            let Some((subject, at)) = self.due.iter().min_by_key(|(_, at)| **at) else { return Err(None) };
            let (subject, at) = (subject.clone(), *at);
            let all = self.entries.values().flatten();
            match all.into_iter().find(|entry| entry.subject() == subject) {
                Some(_) if at > now => return Err(Some(at - now)),
                Some(entry) => return Ok((subject, entry.clone())),
                // Nobody vouches for it any more.
                None => drop(self.due.remove(&subject)),
            }
        }
    }
}

/// What was told already.
#[derive(Default)]
struct Told {
    failure: Option<String>,
    no_ttl: bool,
}

struct Work {
    connection: Arc<Connection>,
    transport: Transport,
    shared: Arc<Shared>,
    tell: Box<dyn Fn(&str) + Send>,
    told: Told,
    /// How long the stream keeps entries, and the connection with which that was asked.
    max_age: Option<(u64, Option<Duration>)>,
}

impl Work {
    fn go_on(mut self) {
        loop {
            let shared = Arc::clone(&self.shared);
            let mut state = shared.state();
            if state.ended {
                return;
            }
            let is_connected = self.connection.status().connected;
            let (subject, entry) = match state.next(Instant::now()) {
                Ok(next) if is_connected => next,
                Ok(_) | Err(None) => {
                    drop(shared.woken.wait(state).unwrap_or_else(PoisonError::into_inner));
                    continue;
                }
                Err(Some(pause)) => {
                    drop(shared.woken.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner));
                    continue;
                }
            };
            drop(state);
            let published = self.publish(&entry);
            let pause = match &published {
                Ok(()) => self.renewal(&entry),
                Err(_) => Some(RETRY),
            };
            self.tell_failure(published.err());
            let mut state = shared.state();
            match pause {
                Some(pause) => state.due.insert(subject, Instant::now() + pause),
                None => state.due.remove(&subject),
            };
        }
    }

    fn publish(&mut self, entry: &Registration) -> Result<(), NatsError> {
        let (subject, payload) = (entry.subject(), entry.payload());
        let Transport::JetStream { stream } = &self.transport else {
            return self.connection.publish(&subject, &[], payload);
        };
        let mut headers = entry.headers(stream.as_deref());
        match self.connection.put(&subject, &headers, payload.clone()) {
            Err(NatsError::Api { code: TTL_DISABLED, .. }) => {
                self.tell_no_ttl();
                headers.retain(|(name, _)| *name != "Nats-TTL");
                self.connection.put(&subject, &headers, payload).map(drop)
            }
            result => result.map(drop),
        }
    }

    /// Returns when an entry is to be published again: at a third of the time for which it is good.
    fn renewal(&mut self, entry: &Registration) -> Option<Duration> {
        let ttl = entry.ttl.and_then(super::Ttl::length);
        let shortest = [ttl, self.max_age()].into_iter().flatten().min()?;
        Some((shortest / 3).max(Duration::from_millis(500)))
    }

    /// Returns how long the stream keeps entries; asked once per connection.
    fn max_age(&mut self) -> Option<Duration> {
        let connects = self.connection.status().connects;
        if let Some((asked, age)) = self.max_age
            && asked == connects
        {
            return age;
        }
        let stream = match &self.transport {
            Transport::JetStream { stream: Some(stream) } => stream.as_str(),
            _ => REGISTRATION_STREAM,
        };
        // Without the right to ask, the ttl alone tells.
        let StreamSettings(settings) = self.connection.stream_settings(stream).ok().flatten()?;
        let nanoseconds = settings.get("max_age").and_then(serde_json::Value::as_u64).filter(|age| *age > 0);
        let age = nanoseconds.map(Duration::from_nanos);
        let takes_ttl =
            settings.get("allow_msg_ttl").and_then(serde_json::Value::as_bool).unwrap_or_default();
        if !takes_ttl && self.shared.state().entries.values().flatten().any(|entry| entry.ttl.is_some()) {
            self.tell_no_ttl();
        }
        self.max_age = Some((connects, age));
        age
    }

    fn tell_no_ttl(&mut self) {
        if !std::mem::replace(&mut self.told.no_ttl, true) {
            (self.tell)(
                "the registration stream knows no ttl per message: entries are good as long as it keeps them",
            );
        }
    }

    /// Tells why entries are not published, once per reason. That NATS is away, the agent tells itself.
    fn tell_failure(&mut self, failure: Option<NatsError>) {
        let text = failure.filter(|error| !error.may_pass()).map(|error| error.to_string());
        if let Some(text) = text.as_ref().filter(|text| Some(*text) != self.told.failure.as_ref()) {
            (self.tell)(&format!("cannot publish registrations: {text}"));
        }
        self.told.failure = text;
    }
}
