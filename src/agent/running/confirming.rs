//! Confirms a run of the agent if all health checks pass for the time that its manifests set.

use std::time::{Duration, Instant};

use super::{Agent, Cause};
use crate::{
    agent::round::Awaiting,
    checks::CheckState,
    run::{self, Answer, Origin, Refused},
    state::history::RunKind,
};

/// Health checks run at least this often while a run awaits confirmation, as a part of the time.
const CHECKS: u32 = 10;
const SHORTEST: Duration = Duration::from_secs(1);

/// A run that the agent confirms.
pub(crate) struct Confirming {
    run: String,
    until: Instant,
    interval: Duration,
    pub(super) next: Instant,
}

impl Agent<'_> {
    /// Begins to check the health after a run that awaits confirmation.
    pub(super) fn await_confirmation(&mut self, awaiting: Option<Awaiting>) {
        let Some(Awaiting { run, time }) = awaiting else { return };
        let own = self.config.written.health_check_interval.map(crate::vocabulary::Duration::as_std);
        let interval = own.unwrap_or(time).min(time / CHECKS).max(SHORTEST).min(time);
        let now = Instant::now();
        self.setting.log.info("the run awaits confirmation", &[("run", &run)]);
        self.confirming = Some(Confirming { run, until: now + time, interval, next: now + interval });
    }

    /// Runs the health checks. Undoes the run if one fails, and confirms it at the end of the time.
    pub(super) fn check_confirmation(&mut self) {
        let Some(mut confirming) = self.confirming.take() else { return };
        self.make_checks();
        let numbers: Vec<usize> = self.intake.manifests().map(|(number, _)| number).collect();
        let worst = numbers.into_iter().filter_map(|number| self.health.worst(number));
        let is_failed =
            worst.into_iter().any(|state| matches!(state, CheckState::Critical | CheckState::Unknown));
        let now = Instant::now();
        if !is_failed && now < confirming.until {
            confirming.next = confirming.until.min(now + confirming.interval);
            self.confirming = Some(confirming);
            return;
        }
        let answer =
            if is_failed { self.undo_unhealthy(&confirming.run) } else { self.confirm(&confirming.run) };
        let log = &self.setting.log;
        match answer {
            Ok(Answer::Confirmed { run }) => {
                log.info("the run is confirmed", &[("run", &run)]);
                self.due.all(Cause::Interval);
            }
            Ok(Answer::Undone { run, undone }) => {
                log.error(
                    "a health check failed: the run was undone",
                    &[("run", &run), ("undo", &undone.run)],
                );
            }
            Ok(Answer::TooLate { run }) => log.error("the run is undone", &[("run", &run)]),
            // Another process confirmed or undid it.
            Ok(Answer::Refused(_)) => self.due.all(Cause::Interval),
            Err(error) => log.error("the run is not confirmed", &[("error", &error)]),
        }
    }

    fn confirm(&self, run: &str) -> Result<Answer, Refused> {
        run::confirm(&self.setting.state().directory, Some(run))
    }

    fn undo_unhealthy(&self, run: &str) -> Result<Answer, Refused> {
        let machine = self.machine();
        let history = machine.environment.history().unwrap_or_default();
        let origin = Origin { history, ..Origin::new("ccm agent", RunKind::Undo) };
        run::undo_now(&machine, &origin, Some(run))
    }
}
