//! Observes the exit status and output of commands.

use std::{cell::OnceCell, time::Duration};

use super::{
    super::lens::{Lens, Unseen},
    Observer,
};
use crate::{
    checks::{Observed, Rule},
    host::process::{Cause, Command, Exit, Finished, Keep, ProcessError},
};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of the compared output.
const MOST_OUTPUT: usize = 1 << 20;

/// Runs the command when its first property is requested.
pub(super) fn observer<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    let ran: OnceCell<Result<Finished, ProcessError>> = OnceCell::new();
    let own = rule.options.timeout.unwrap_or(TIMEOUT);
    Box::new(move |property| {
        let run = || {
            let command =
                Command::shell(&rule.subject).keep(Keep::Head(MOST_OUTPUT)).filter(lens.redactor.filter());
            command.timeout(lens.within(own)).run(&lens.host.runner, &lens.host.interrupt)
        };
        match (ran.get_or_init(run), property) {
            (Err(ProcessError::Stopped(stopped)), _) => Err(match stopped.cause {
                Cause::Timeout(_) => lens.too_slow(own),
                cause => Unseen::Cannot(cause.to_string()),
            }),
            (Err(error), _) => Err(Unseen::Cannot(error.to_string())),
            (Ok(finished), "stdout") => Ok(Observed::Text(finished.stdout.text().into_owned())),
            (Ok(finished), "stderr") => Ok(Observed::Text(finished.stderr.text().into_owned())),
            (Ok(Finished { exit: Exit::Code(code), .. }), _) => Ok(Observed::Value((*code).into())),
            (Ok(Finished { exit, .. }), _) => Err(Unseen::Not(format!("it was ended by {exit}"))),
        }
    })
}
