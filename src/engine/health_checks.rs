//! The health checks of a resource, made when it is done with.

use std::{borrow::Cow, fmt::Write};

use super::{Observer, Outcome, Run, included::Place};
use crate::{
    checks::{CheckState, HealthCheck},
    health::{self, Occasion, Surroundings},
    resource::{Error, Resource},
    session::Event,
    types,
};

impl<'a> Run<'a, '_> {
    /// Makes the health checks of a resource that was applied, and lets it fail where they do. What a dry run would have
    /// changed is not there to be checked.
    pub(super) fn check_health(
        &self,
        place: &Place<'a>,
        resource: &'a Resource,
        outcome: &mut Outcome,
        event: &mut Event,
        observer: &mut dyn Observer,
    ) {
        let is_changed = outcome.summary.is_some() || outcome.refreshed || outcome.begun;
        let is_predicted = event.noop && is_changed;
        if !resource.is_checked() || !outcome.errors.is_empty() || is_predicted {
            return;
        }
        let checks = match resource.checks_now(&place.scope, &place.manifest.source) {
            Ok(checks) => checks,
            Err(errors) => return outcome.errors.extend(errors),
        };
        let occasion = match (event.health_check_only, is_changed) {
            (true, _) => Occasion::Monitor,
            (false, true) => Occasion::Changed,
            (false, false) => Occasion::Unchanged,
        };
        let own = resource.redactor(resource.wanted.as_ref());
        let redactor = match &checks {
            Cow::Borrowed(_) if !event.health_check_only && resource.included.is_none() => {
                outcome.redactor.clone()
            }
            Cow::Borrowed(_) => own,
            Cow::Owned(checks) => {
                let base = if event.health_check_only { own } else { outcome.redactor.clone() };
                base.and(checks.iter().flat_map(HealthCheck::secrets))
            }
        };
        let on = Surroundings {
            host: self.engine.host,
            package_type: types::package(),
            folder: &place.manifest.working_directory,
            redactor: &redactor,
            occasion,
        };
        let sensitive = resource.is_sensitive();
        let results = health::run(&checks, &on, &mut |line| {
            if !sensitive {
                observer.output(resource, line);
            }
        });
        for (at, result) in results.into_iter().enumerate() {
            let result = if sensitive { result.status_only(at + 1) } else { result.for_event() };
            if result.is_failed {
                let error = Error::new(format!("health check {}", result.complaint())).on("health_checks");
                outcome.errors.push(error);
            } else if result.state == CheckState::Warning {
                outcome.warnings.push(format!("health check {}", result.complaint()));
            }
            event.health_check.push(result);
        }
    }
}

impl Event {
    /// Says in a dry run which checks a real one would make after the change.
    pub(super) fn announce_checks(&mut self, resource: &Resource) {
        let count = resource.check_count();
        if let Some(message) = self.noop_message.as_mut().filter(|_| count > 0) {
            let noun = if count == 1 { "health check" } else { "health checks" };
            let _ = write!(message, ", would run {count} {noun}");
        }
    }
}
