//! What is observed of a command.

use schemars::JsonSchema;
use serde::Serialize;

use crate::resource::{Error, State};

/// What the conditions of a command say and, once it ran, what came of it.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol names three of them")]
pub(crate) struct ExecState {
    /// The exit code, when the command was run and ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exitcode: Option<i32>,
    /// Whether something is at the path that `creates` names. The state is `present` if so, else `absent`.
    pub(super) creates_satisfied: bool,
    /// Whether `onlyif` exited with 0. False, too, when it was not given or not asked.
    pub(super) onlyif_satisfied: bool,
    /// Whether `unless` exited with 0. False, too, when it was not given or not asked.
    pub(super) unless_satisfied: bool,
    /// Why the guards gave no answer.
    #[serde(skip)]
    pub(super) doubt: Option<Error>,
    /// `onlyif` cannot be asked before earlier resources of a dry run have done their work.
    #[serde(skip)]
    pub(super) onlyif_unasked: bool,
    /// An earlier attempt of this run failed: what it left behind says nothing.
    #[serde(skip)]
    pub(super) failed_before: bool,
    /// Whether the command was started, however it ended.
    #[serde(skip)]
    pub(super) was_started: bool,
    /// What came of running the command.
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
