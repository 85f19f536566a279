//! From an outcome to the event that tells of it.

use super::{Detail, RunMode, converge::Outcome};
use crate::{
    redaction::Redactor,
    resource::{OF_SENSITIVE, Resource},
    session::{Event, Session},
};

impl Event {
    /// The event of a resource whose turn has come.
    pub(super) fn of(resource: &Resource, mode: RunMode, detail: Detail, session: &mut Session) -> Self {
        let mut event = session.event(resource.kind.name(), &resource.name);
        let alias = if resource.is_sensitive() { &mut event.hidden_alias } else { &mut event.alias };
        alias.clone_from(&resource.common.alias);
        event.requested_ensure = resource.wanted.ensure();
        if detail == Detail::Whole {
            event.properties = resource.to_json(resource.wanted.as_ref());
        }
        event.noop = mode == RunMode::Noop;
        event
    }

    /// Notes what came of the resource, without what must not be shown.
    pub(super) fn record(&mut self, outcome: &mut Outcome, resource: &Resource, detail: Detail) {
        if let Some(observed) = &mut outcome.observed {
            if resource.is_sensitive() {
                observed.redact();
            }
            self.final_ensure = observed.ensure();
            self.status = (detail == Detail::Whole).then(|| observed.to_json(&self.kind, &self.name));
        }
        if resource.is_sensitive() {
            // A secret that was found at run time.
            self.properties.retain(|key, _| OF_SENSITIVE.contains(&key.as_str()));
            self.hidden_alias = self.alias.take().or(self.hidden_alias.take());
        }
        self.hide(&outcome.redactor);
        self.failed = !outcome.errors.is_empty();
        self.error = outcome.errors.iter().map(ToString::to_string).collect();
        self.changed = outcome.summary.is_some() || outcome.begun;
        self.refreshed = outcome.refreshed;
        self.diff = outcome.diff.take().filter(|_| !self.failed);
        if let Some(summary) = outcome.summary.as_ref().filter(|_| self.noop) {
            let deeds: Vec<_> = summary.split(". ").map(|deed| format!("Would have {deed}")).collect();
            self.noop_message = Some(deeds.join(". "));
        }
    }

    /// Masks secrets in properties and state. Their names and what the state is in one word stay.
    fn hide(&mut self, redactor: &Redactor) {
        const OPEN: [&str; 4] = ["protocol", "type", "name", "ensure"];
        let values = self.properties.iter_mut().chain(self.status.iter_mut().flatten());
        values
            .filter(|(key, _)| !OPEN.contains(&key.as_str()))
            .for_each(|(_, value)| redactor.mask_json(value));
    }
}
