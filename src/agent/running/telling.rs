//! Tells callers, metrics and the service manager how things are.

use std::{sync::PoisonError, time::Instant};

use jiff::Timestamp;
use serde_json::json;

use super::Agent;
use crate::agent::{
    control::Asked,
    metrics,
    round::Outcome,
    source::Purpose,
    status::{PROTOCOL, PauseStatus, SourceStatus, Status},
    watching::{Subject, Watching},
};

impl Agent<'_> {
    /// Tells callers what came of the run that they asked for.
    pub(super) fn answer_callers(&mut self) {
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
    pub(super) fn publish(&mut self) {
        let status = self.status();
        let stale = status.manifests.iter().chain(&status.data).filter(|source| source.stale).count();
        let failed: usize = status.manifests.iter().map(|manifest| manifest.failed).sum();
        let line =
            format!("{} manifests, {failed} resources failed, {stale} sources stale", status.manifests.len());
        self.setting.service_manager.status(&line);
        let metrics = &self.exported.metrics;
        metrics.clear(&metrics::BACKOFF);
        for (Subject { resource, .. }, pause) in self.pauses.all(Instant::now()) {
            let name = if pause.is_sensitive { "hidden" } else { &resource.name };
            metrics.set(&metrics::BACKOFF, &[&resource.kind, name], pause.length.as_secs_f64());
        }
        for manifest in &status.manifests {
            let is_error = f64::from(u8::from(manifest.error.is_some()));
            metrics.set(&metrics::NOT_APPLIED, &[&manifest.source], is_error);
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
        Status {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            started: self.started,
            config: self.config.path.display().to_string(),
            manifests: self
                .intake
                .manifests()
                .map(|(number, slot)| {
                    SourceStatus::of(slot, self.last.get(&number), self.health.worst(number))
                })
                .collect(),
            data: self
                .intake
                .slots
                .first()
                .filter(|slot| slot.purpose == Purpose::Data)
                .map(|slot| SourceStatus::of(slot, None, None)),
            next_run: Some(moment(self.next_run)),
            nats: self.fleet.status(),
            watching: self.watching.as_ref().map(Watching::count).unwrap_or_default(),
            pauses: self
                .pauses
                .all(now)
                .into_iter()
                .map(|(subject, pause)| PauseStatus {
                    resource: format!("{}#{}", subject.resource.kind, subject.resource.name),
                    manifest: self.intake.address_of(subject.manifest),
                    until: moment(pause.until),
                })
                .collect(),
        }
    }
}
