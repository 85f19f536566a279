//! Whether the command has to be run: the decision table, without looking at anything.

use super::{Action, Properties, state::ExecState};
use crate::resource::{Change, Error, Trigger};

/// The reason to run the command, if there is one, or why none can be told.
pub(super) fn compare(
    want: &Properties,
    have: &ExecState,
    trigger: Trigger,
) -> Result<Option<Change<Action>>, Error> {
    if let Some(outcome) = &have.outcome {
        // It was run, and that decides: guards were asked whether to run it, not whether it went well.
        return outcome.clone().map(|()| None);
    }
    if trigger == Trigger::Refresh {
        return Ok(Some(Change { action: Action::Refresh, differences: Vec::new(), refreshes: true }));
    }
    let execute = Ok(Some(Change { action: Action::Execute, differences: Vec::new(), refreshes: false }));
    if have.failed_before {
        return execute;
    }
    if have.creates_satisfied {
        return Ok(None);
    }
    if let Some(doubt) = &have.doubt {
        return Err(doubt.clone());
    }
    let needless = want.onlyif.is_some() && !have.onlyif_satisfied && !have.onlyif_unasked
        || want.unless.is_some() && have.unless_satisfied
        || want.refresh_only;
    if needless { Ok(None) } else { execute }
}
