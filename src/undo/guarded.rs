//! A desired state that applies only if the machine still has the state that the run left.

use serde_json::{Map, Value};

use crate::resource::{AnyState, Error, ErrorKind, Guard, PlannedChange};

/// Allows a change only if the machine still has the state that the run left.
pub(super) struct Guarded {
    pub(super) after: Map<String, Value>,
    pub(super) resource: String,
}

impl Guarded {
    /// Returns whether all recorded values of the state are still the same.
    fn is_as_left(&self, have: &AnyState) -> bool {
        let (kind, name) = self.resource.split_once('#').unwrap_or_default();
        let now = have.to_json(kind, name);
        let values = |state: &Map<String, Value>| state.get("metadata").and_then(Value::as_object).cloned();
        let (after, now) = (values(&self.after).unwrap_or_default(), values(&now).unwrap_or_default());
        after.iter().all(|(key, value)| now.get(key) == Some(value))
    }
}

impl Guard for Guarded {
    fn check_change(&self, have: &AnyState, change: &PlannedChange) -> Result<(), Error> {
        if change.differences.is_empty() || self.is_as_left(have) {
            return Ok(());
        }
        Err(ErrorKind::ChangedSince { path: self.resource.clone() }.into())
    }
}
