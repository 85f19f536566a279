//! A desired state that applies only if the machine still has the state that the run left.

use std::ops::Deref;

use serde_json::{Map, Value};

use crate::resource::{
    AnyProperties, AnyState, Before, Context, Effects, Error, ErrorKind, PlannedChange, Properties, Provider,
    Trigger,
};

/// Properties with a precondition.
pub(super) struct Guarded {
    inner: Box<dyn AnyProperties>,
    /// State that the run left; nothing if it is not checked.
    after: Option<Map<String, Value>>,
    resource: String,
}

impl Guarded {
    pub(super) fn new(
        inner: Box<dyn AnyProperties>,
        after: Option<Map<String, Value>>,
        resource: String,
    ) -> Self {
        Self { inner, after, resource }
    }

    /// Whether all recorded values of the state are still the same.
    fn is_as_left(&self, have: &AnyState) -> bool {
        let Some(after) = &self.after else { return true };
        let (kind, name) = self.resource.split_once('#').unwrap_or_default();
        let now = have.to_json(kind, name);
        let values = |state: &Map<String, Value>| state.get("metadata").and_then(Value::as_object).cloned();
        let (after, now) = (values(after).unwrap_or_default(), values(&now).unwrap_or_default());
        after.iter().all(|(key, value)| now.get(key) == Some(value))
    }
}

impl Deref for Guarded {
    type Target = dyn Properties;

    fn deref(&self) -> &Self::Target {
        &**self.inner
    }
}

impl AnyProperties for Guarded {
    fn to_json(&self) -> Map<String, Value> {
        self.inner.to_json()
    }

    fn inspect(&self, on: &Provider, cx: &Context) -> Result<AnyState, Error> {
        self.inner.inspect(on, cx)
    }

    fn compare(&self, have: &AnyState, trigger: Trigger) -> Result<Option<PlannedChange>, Error> {
        let change = self.inner.compare(have, trigger)?;
        let is_change = change.as_ref().is_some_and(|change| !change.differences.is_empty());
        if is_change && !self.is_as_left(have) {
            return Err(ErrorKind::ChangedSince { path: self.resource.clone() }.into());
        }
        Ok(change)
    }

    fn preview(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        self.inner.preview(have, change, on, cx)
    }

    fn simulate(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<(), Error> {
        self.inner.simulate(have, change, on, cx)
    }

    fn effects(&self, have: &AnyState, change: &PlannedChange, cx: &Context) -> Effects {
        self.inner.effects(have, change, cx)
    }

    fn before(&self, have: &AnyState, change: &PlannedChange) -> Before {
        self.inner.before(have, change)
    }

    fn enact(
        &self,
        have: &AnyState,
        change: PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<AnyState, Error> {
        self.inner.enact(have, change, on, cx)
    }
}
