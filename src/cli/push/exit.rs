//! The exit status of a push.

use crate::{
    cli::Exit,
    push::{Finished, HostResult, Outcome},
};

/// Returns the exit status: the worst result decides.
pub(super) fn exit(finished: &Finished, detailed: bool) -> Exit {
    let has = |outcomes: &[Outcome]| finished.results.iter().any(|result| outcomes.contains(&result.outcome));
    let changed = |result: &HostResult| !result.changes.is_empty();
    if finished.is_interrupted || has(&[Outcome::Failed, Outcome::Unhealthy, Outcome::Refused]) {
        Exit::Failed
    } else if has(&[Outcome::Unreachable]) {
        Exit::Unreachable
    } else if detailed && finished.results.iter().any(changed) {
        Exit::Changed
    } else {
        Exit::Success
    }
}
