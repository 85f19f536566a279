//! Health checks between runs: nothing is inspected or changed but what they look at.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    intake::Intake,
    metrics,
    round::{Extent, Ready, Round},
};
use crate::{
    checks::CheckState,
    engine::{Observer, Report, Task},
};

/// What came of a check.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) resource: String,
    pub(crate) check: String,
    pub(crate) state: CheckState,
    /// What it said.
    pub(crate) output: String,
}

/// What came of the checks of a manifest.
#[derive(Debug)]
pub(crate) struct Checkup {
    pub(crate) manifest: usize,
    pub(crate) source: String,
    pub(crate) checks: Vec<Checked>,
    pub(crate) took: Duration,
}

impl Round<'_> {
    /// Makes the health checks of manifests, one manifest after the other. The run lock is not taken: nothing is changed.
    pub(crate) fn check(&self, intake: &Intake, manifests: &[usize]) -> Vec<Checkup> {
        let extents: Vec<_> = manifests.iter().map(|number| (*number, Extent::Whole)).collect();
        let ready = match self.load(intake, &extents, BTreeMap::new(), None, &mut Vec::new()) {
            Ok(ready) => ready,
            Err(error) => {
                self.log.error("nothing is checked", &[("error", &error)]);
                return Vec::new();
            }
        };
        let all = ready.iter().take_while(|_| self.machine.host.interrupt.requested().is_none());
        all.map(|ready| self.check_one(intake, ready)).collect()
    }

    fn check_one(&self, intake: &Intake, ready: &Ready) -> Checkup {
        let number = ready.number;
        let source = intake.address_of(number);
        let started = Instant::now();
        let mut listener = Listener { round: self, source: &source, checks: Vec::new() };
        self.engine(self.settings(Task::Monitor)).apply(
            &ready.manifest,
            &ready.selected,
            None,
            &mut listener,
        );
        let (checks, took) = (listener.checks, started.elapsed());
        self.metrics.observe(&metrics::HEALTH_CHECKS, &[&source], took);
        Checkup { manifest: number, source, checks, took }
    }
}

/// Hears what came of checks.
struct Listener<'l> {
    round: &'l Round<'l>,
    source: &'l str,
    checks: Vec<Checked>,
}

impl Observer for Listener<'_> {
    fn finished(&mut self, report: &Report) {
        let Report { resource, event, .. } = report;
        self.round.fleet.note(self.source, Task::Monitor, report);
        metrics::count_checks(self.round.metrics, event, resource.is_sensitive());
        self.checks.extend(event.health_check.iter().map(|result| Checked {
            resource: resource.to_string(),
            check: result.name.clone(),
            state: result.state,
            output: result.output.clone(),
        }));
    }
}
