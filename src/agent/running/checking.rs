//! Makes health checks when their time has come, and has manifests applied whose checks are critical.

use std::time::Instant;

use super::{Agent, round};
use crate::{
    agent::{
        Config,
        checkup::{Checked, Checkup},
        log::LogLevel,
        metrics,
    },
    checks::CheckState,
    vocabulary::Duration,
};

/// Returns when health checks are made for the first time; `None` if they are made only by runs.
pub(super) fn first_check(config: &Config) -> Option<Instant> {
    config.written.health_check_interval.map(|interval| Instant::now() + interval.as_std())
}

impl Agent<'_> {
    /// Makes the health checks of all manifests that have some.
    pub(super) fn check_health(&mut self) {
        let Some(interval) = self.config.written.health_check_interval else { return };
        self.make_checks();
        self.next_check = Some(Instant::now() + interval.as_std());
    }

    /// Runs the health checks now.
    pub(super) fn make_checks(&mut self) {
        let has_checks = |number: &usize| self.last.get(number).is_some_and(|(_, last)| last.has_checks);
        let numbers: Vec<usize> =
            self.intake.manifests().map(|(number, _)| number).filter(has_checks).collect();
        if !numbers.is_empty() && self.intake.is_data_there() {
            let busy = self.setting.service_manager.busy();
            let machine = self.machine();
            let checkups = round(&self.setting, &self.exported, &self.fleet, &machine, self.mode(), "health")
                .check(&self.intake, &numbers);
            for checkup in checkups {
                self.take_checkup(checkup);
            }
            drop(busy);
            self.publish();
        }
    }

    /// Tells what is different now, and decides whether the manifest is applied.
    fn take_checkup(&mut self, checkup: Checkup) {
        let Checkup { manifest, source, checks, took } = checkup;
        let log = &self.setting.log;
        let count = checks.len();
        let mut made = Vec::new();
        for Checked { resource, check, state, output } in checks {
            let key = (manifest, resource.clone(), check.clone());
            if self.health.note(key, state).is_some() {
                let level = if state == CheckState::Ok { LogLevel::Info } else { LogLevel::Warn };
                let state = state.word();
                let fields: [(&str, &dyn std::fmt::Display); 4] =
                    [("resource", &resource), ("check", &check), ("state", &state), ("output", &output)];
                log.tell(level, "health", &fields);
            }
            made.push((resource, check));
        }
        self.health.keep_only(manifest, &made);
        let duration = format!("{:.3}s", took.as_secs_f64());
        log.debug("checked", &[("source", &source), ("checks", &count), ("duration", &duration)]);
        let written = &self.config.written;
        let first = written.health_check_interval.map_or(took, Duration::as_std);
        let longest = written.interval.as_std();
        if self.health.is_to_remedy(manifest, Instant::now(), first, longest) {
            log.info("a health check is critical: the manifest is applied", &[("source", &source)]);
            self.exported.metrics.add(&metrics::REMEDIES, &[&source], 1);
            self.due.unhealthy.insert(manifest);
        }
    }
}
