//! Attempts at one check.

use std::time::{Duration, Instant};

use super::{Occasion, Surroundings, include, lens::Lens, plugin, rules};
use crate::{
    checks::{CheckKind, CheckResult, CheckState, FailOn, HealthCheck, Perfdata, PropertyResult, reasons},
    vocabulary::{self, TimeLimit},
};

/// Default time limit of one attempt.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Default pause between two attempts.
const TRY_SLEEP: Duration = Duration::from_secs(1);

/// Result of one attempt.
pub(super) struct Attempt {
    pub(super) state: CheckState,
    pub(super) output: String,
    pub(super) long_output: String,
    pub(super) perfdata: Vec<Perfdata>,
    pub(super) results: Vec<PropertyResult>,
    /// Whether another attempt would give the same result.
    pub(super) is_final: bool,
}

impl Attempt {
    /// Creates a result with status UNKNOWN.
    pub(super) fn unknown(output: impl Into<String>) -> Self {
        Self {
            state: CheckState::Unknown,
            output: output.into(),
            long_output: String::new(),
            perfdata: Vec::new(),
            results: Vec::new(),
            is_final: false,
        }
    }

    pub(super) fn finally(self) -> Self {
        Self { is_final: true, ..self }
    }
}

/// Runs a check, and repeats it while it fails and attempts are left.
pub(super) fn make(check: &HealthCheck, on: &Surroundings, tell: &mut dyn FnMut(&str)) -> CheckResult {
    let begun = Instant::now();
    let pause = check.try_sleep.map_or(TRY_SLEEP, vocabulary::Duration::as_std);
    let allowed = check.tries.unwrap_or(1).max(1);
    let successes = check.successes.unwrap_or(1).max(1);
    let mut stopped = None;
    if let Some(delay) = check.delay.filter(|_| on.occasion == Occasion::Changed) {
        stopped = on.host.interrupt.pause(delay.as_std());
    }
    let (mut tries, mut failures, mut well) = (0, 0, 0);
    let mut last = Attempt::unknown("the check did not run");
    let mut told = String::new();
    while stopped.is_none() {
        last = once(check, on);
        tries += 1;
        stopped = on.host.interrupt.requested();
        if is_failed(check, last.state) {
            (well, failures) = (0, failures + 1);
        } else {
            well += 1;
        }
        // A warning that does not fail the resource needs no further attempt.
        let is_told = last.state == CheckState::Warning && well > 0;
        let is_over = last.is_final || failures >= allowed || well >= successes || is_told;
        let is_late = check.within.is_some_and(|within| begun.elapsed() + pause > within.as_std());
        if is_over || is_late || stopped.is_some() {
            break;
        }
        if well == 0 {
            let reason = reasons(check.format(), &last.output, &last.results).into_iter().next();
            let line = last.state.with(&reason.unwrap_or_default());
            // The same reason is reported once.
            if line != told {
                let message = format!("health check {}: {line}; trying again", check.name());
                tell(&on.redactor.redact(&message));
            }
            told = line;
        }
        stopped = on.host.interrupt.pause(pause);
    }
    if let Some(signal) = stopped {
        last = Attempt { state: CheckState::Unknown, output: format!("interrupted by {signal}"), ..last };
    }
    let Attempt { state, output, long_output, perfdata, results, .. } = last;
    let mut result = CheckResult {
        name: check.name(),
        format: check.format(),
        status: state.number(),
        state,
        tries,
        output,
        long_output,
        perfdata,
        results,
        duration: u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        is_failed: is_failed(check, state),
    };
    result.redact(on.redactor);
    result
}

fn is_failed(check: &HealthCheck, state: CheckState) -> bool {
    match state {
        CheckState::Ok => false,
        CheckState::Warning => check.fail_on == FailOn::Warning,
        CheckState::Critical | CheckState::Unknown => true,
    }
}

fn once(check: &HealthCheck, on: &Surroundings) -> Attempt {
    let limit = check.timeout.map_or(TIMEOUT, TimeLimit::as_std);
    match check.kind() {
        Ok(CheckKind::Command(command)) => plugin::run(check, command, limit, on),
        Ok(CheckKind::Rules(rules)) => match include::resolve(&rules, on.folder) {
            Ok(rules) => rules::judge(&rules, &Lens::new(on, limit)),
            Err(error) => Attempt::unknown(error.to_string()),
        },
        Ok(CheckKind::File(path)) => match include::read_rules(&on.folder.join(path)) {
            Ok(rules) => rules::judge(&rules, &Lens::new(on, limit)),
            Err(error) => Attempt::unknown(error.to_string()),
        },
        Err(problem) => Attempt::unknown(problem).finally(),
    }
}
