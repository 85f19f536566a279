//! Observed state of a command.

use schemars::JsonSchema;
use serde::Serialize;

use crate::resource::{Error, State};

/// Results of the conditions of a command and, if it ran, of the command.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol names three of them")]
pub(crate) struct ExecState {
    /// Exit status, if the command ran and terminated by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exitcode: Option<i32>,
    /// Whether the path in `creates` exists. The state is `present` if so, else `absent`.
    pub(super) creates_satisfied: bool,
    /// Whether `onlyif` exited with status 0. False if it was not given or did not run.
    pub(super) onlyif_satisfied: bool,
    /// Whether `unless` exited with status 0. False if it was not given or did not run.
    pub(super) unless_satisfied: bool,
    /// Reason why the guards gave no answer.
    #[serde(skip)]
    pub(super) doubt: Option<Error>,
    /// Whether `onlyif` cannot run in a dry run because it depends on earlier resources.
    #[serde(skip)]
    pub(super) onlyif_unasked: bool,
    /// Whether an earlier attempt of this run failed, so that its results do not count.
    #[serde(skip)]
    pub(super) failed_before: bool,
    /// Whether the command was started, however it ended.
    #[serde(skip)]
    pub(super) was_started: bool,
    /// Result of running the command.
    #[serde(skip)]
    pub(super) outcome: Option<Result<(), Error>>,
}

impl State for ExecState {
    fn ensure(&self) -> String {
        if self.creates_satisfied { "present" } else { "absent" }.to_owned()
    }

    fn hides_a_change(&self) -> bool {
        // A command that failed may have done anything before.
        self.was_started
    }
}
