//! What happened: the events of a run, in order, and their sum.

mod event;
mod id;
mod metrics;
mod schema;
mod store;
mod summary;

pub(crate) use event::Event;
#[cfg(test)]
pub(crate) use metrics::CHECK_METRICS;
pub(crate) use metrics::{count_checks, metrics};
pub(crate) use schema::{event_schema, summary_schema};
pub(crate) use store::{Store, StoreError};
pub(crate) use summary::Summary;

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use jiff::Timestamp;

use self::id::Ids;
use crate::vocabulary::{Reference, RunMode};

/// Returns a unique id. Ids sort by the second in which they were made.
pub(crate) fn new_id(now: Timestamp) -> String {
    Ids::new().give(now)
}

/// The events of one run, or of a script.
pub(crate) struct Session {
    started: Timestamp,
    /// When this process joined it.
    joined: Timestamp,
    ids: Ids,
    events: Vec<Event>,
    /// The last event of each resource, by its name.
    last: HashMap<Reference, usize>,
    /// What resources are called besides.
    aliases: HashMap<Reference, Reference>,
    store: Option<Store>,
}

impl Session {
    /// A session that begins now and is forgotten with the process.
    pub(crate) fn begin() -> Self {
        let now = Timestamp::now();
        Self {
            started: now,
            joined: now,
            ids: Ids::new(),
            events: Vec::new(),
            last: HashMap::new(),
            aliases: HashMap::new(),
            store: None,
        }
    }

    /// A session that goes on in a store; also how many torn lines were passed over.
    pub(crate) fn resume(store: Store) -> Result<(Self, usize), StoreError> {
        let recorded = store.read()?;
        let mut session = Self { started: recorded.started, ..Self::begin() };
        for event in recorded.events {
            session.remember(event);
        }
        session.store = Some(store);
        Ok((session, recorded.torn))
    }

    /// Whether its events outlive this process.
    pub(crate) fn is_kept(&self) -> bool {
        self.store.is_some()
    }

    /// Returns what tells it from every other session, if it outlives this process: no two begin in the same nanosecond.
    pub(crate) fn name(&self) -> Option<String> {
        self.store.as_ref().map(|_| self.started.to_string())
    }

    /// Returns the folder that it is kept in, if it outlives this process.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.store.as_ref().map(Store::folder)
    }

    /// An event of which nothing is known yet but whom it is about; it is no part of the session until it is recorded.
    pub(crate) fn event(&mut self, kind: &str, name: &str) -> Event {
        Event::begin(kind, name, &mut self.ids)
    }

    /// Makes room for this many more events, so that none are copied to make it.
    pub(crate) fn expect(&mut self, events: usize) {
        self.events.reserve_exact(events);
        self.last.reserve(events);
    }

    /// Adds an event that was reported. Of properties, state and diff, which may be large, nothing is kept in memory:
    /// later resources and the sum ask only how it went.
    pub(crate) fn record(&mut self, event: &Event) -> Result<(), StoreError> {
        let stored = self.store.as_ref().map_or(Ok(()), |store| store.append(event));
        self.remember(event.outline());
        stored
    }

    fn remember(&mut self, event: Event) {
        let reference = |name: &String| Reference { kind: event.kind.clone(), name: name.clone() };
        if let Some(alias) = event.alias.as_ref().or(event.hidden_alias.as_ref()) {
            self.aliases.insert(reference(alias), reference(&event.name));
        }
        self.last.insert(reference(&event.name), self.events.len());
        self.events.push(event);
    }

    /// The last event of a resource that counts in such a run.
    pub(crate) fn find(&self, reference: &Reference, mode: RunMode) -> Option<&Event> {
        let counts = |event: &&Event| event.counts(mode);
        let last = self.last.get(reference).or_else(|| self.last.get(self.aliases.get(reference)?));
        let last = last.map(|&at| &self.events[at])?;
        let is_it = |event: &&Event| event.kind == last.kind && event.name == last.name;
        Some(last).filter(counts).or_else(|| self.events.iter().rev().filter(is_it).find(counts))
    }

    /// Returns the resources whose name or alias a pattern matches, if an event of them counts in such a run. A resource
    /// with the very name of the pattern is the only match.
    pub(crate) fn matching(&self, pattern: &Reference, mode: RunMode) -> Vec<Reference> {
        if self.find(pattern, mode).is_some() {
            return vec![pattern.clone()];
        }
        let matches = pattern.matcher();
        let aliased = self.aliases.iter().filter(|(alias, _)| matches(alias)).map(|(_, name)| name);
        let names = self.last.keys().filter(|name| matches(name)).chain(aliased);
        let found = names.filter(|name| self.find(name, mode).is_some()).cloned();
        found.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// All events in the order they were recorded.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// The sum so far.
    pub(crate) fn summary(&self) -> Summary {
        Summary::of(&self.events, self.started)
    }

    /// The sum of what this process did: all events but the first few.
    pub(crate) fn summary_since(&self, first: usize) -> Summary {
        Summary::of(&self.events[first..], self.joined)
    }
}
