//! Nagios plugins: programs whose exit status is the state of a check.

use std::time::Duration;

use super::{Surroundings, attempts::Attempt};
use crate::{
    checks::{CheckState, HealthCheck, nagios},
    host::process::{Cause, Command, Exit, Finished, Keep, ProcessError},
    resource::{RunAs, run_as},
    vocabulary::command_words,
};

/// Maximum size of a plugin's output.
const MOST_OUTPUT: usize = 64 << 10;

/// Number of lines of standard error that are shown if a plugin prints nothing else.
const ERROR_LINES: usize = 5;

/// Runs a plugin and parses its output.
pub(super) fn run(check: &HealthCheck, command: &str, limit: Duration, on: &Surroundings) -> Attempt {
    let program = if check.shell {
        Command::shell(command)
    } else {
        match command_words::split(command) {
            Ok(words) => {
                let mut words = words.into_iter();
                Command::new(words.next().unwrap_or_default()).arguments(words)
            }
            Err(reason) => return Attempt::unknown(format!("the command {reason}")).finally(),
        }
    };
    let as_user = RunAs { user: check.user.as_ref(), ..RunAs::default() };
    let mut program = match run_as(program, as_user, &on.host.users) {
        Ok(program) => program.filter(on.redactor.filter()).timeout(limit).keep(Keep::Head(MOST_OUTPUT)),
        Err(error) => return Attempt::unknown(error.to_string()).finally(),
    };
    for variable in &check.environment {
        program = program.variable(&variable.name, variable.value.reveal());
    }
    match program.run(&on.host.runner, &on.host.interrupt) {
        Ok(finished) => judge(&finished),
        Err(ProcessError::Stopped(stopped)) => match stopped.cause {
            Cause::Timeout(limit) => {
                let limit = crate::vocabulary::Duration::from(limit);
                Attempt::unknown(format!("timed out after {limit}"))
            }
            cause => Attempt::unknown(cause.to_string()),
        },
        Err(error @ (ProcessError::NotFound { .. } | ProcessError::Missing { .. })) => {
            Attempt::unknown(error.to_string()).finally()
        }
        Err(error) => Attempt::unknown(error.to_string()),
    }
}

fn judge(finished: &Finished) -> Attempt {
    let nagios::PluginOutput { mut summary, mut long, perfdata } = nagios::read(&finished.stdout.text());
    if finished.stdout.is_empty() {
        let stderr = finished.stderr.text();
        let lines: Vec<&str> = stderr.lines().collect();
        let last = &lines[lines.len().saturating_sub(ERROR_LINES)..];
        last.first().copied().unwrap_or_default().clone_into(&mut summary);
        long = last.get(1..).unwrap_or_default().join("\n");
    }
    if finished.stdout.dropped > 0 {
        let mark = format!("[{} bytes more were cut]", finished.stdout.dropped);
        long = if long.is_empty() { mark } else { format!("{long}\n{mark}") };
    }
    let state = match finished.exit {
        Exit::Code(code) => CheckState::of_exit_code(code),
        Exit::Signal(_) => CheckState::Unknown,
    };
    // Report an exit status that plugins do not use, because the output does not explain it.
    let is_odd = !matches!(finished.exit, Exit::Code(0..=3));
    if is_odd && summary.is_empty() {
        summary = format!("ended with {}", finished.exit);
    } else if is_odd {
        summary = format!("{summary} (ended with {})", finished.exit);
    }
    Attempt { state, output: summary, long_output: long, perfdata, results: Vec::new(), is_final: false }
}
