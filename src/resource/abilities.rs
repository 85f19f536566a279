//! What only some types can do. A desired state offers an ability, and the engine uses it where it is offered.
//!
//! An ability is written without type parameters: the type asks [`Provider`], [`AnyState`] and its siblings for its own values.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Map, Value};

use super::{
    AnyMember, AnyProperties, AnyState, Context, Drafts, Effects, Error, PlannedChange, Properties, Provider,
    Trigger,
};

/// Reads the state of a resource before the run reaches it.
pub(crate) trait ReadAhead: Sync {
    /// Reads the state on another thread, while the run applies earlier resources. Runs and changes nothing. The engine
    /// discards the state if any resource was acted on since.
    fn look_ahead(&self, cx: &Context) -> Result<AnyState, Error>;

    /// Notes that the run has reached a resource whose state was read ahead: it is not inspected.
    fn reached(&self, on: &Provider, cx: &Context);
}

/// Inspects many resources together.
pub(crate) trait Survey {
    /// Tells a provider which resources the run will have it serve, so that it can inspect them together when the first is
    /// inspected. Called again with more if it turns out to serve more.
    fn expect(&self, wanted: &[&dyn Properties], on: &Provider);
}

/// Begins several resources together.
pub(crate) trait Preparation {
    /// Begins `next`, the resources that follow this one. Nothing of it may be visible before each is enacted.
    fn prepare(&self, next: &mut dyn Iterator<Item = &dyn Properties>, on: &Provider, cx: &Context);
}

/// Enacts consecutive resources together, as a package manager does in one transaction.
pub(crate) trait Grouping {
    /// Returns the largest number of resources in a group.
    fn most(&self) -> usize;

    /// Enacts the group and returns what it left of each resource, in the same order. Each resource has its own event. If
    /// the group fails, the engine enacts each resource alone, and only that decides; so it must be safe to try again.
    fn enact_group(&self, group: &[AnyMember], on: &Provider, cx: &Context) -> Result<Vec<AnyState>, Error>;
}

/// Validates resources together, before any of them is published.
pub(crate) trait JointValidation {
    /// Returns the commands that validate the configuration as a whole; none if the resource is validated alone.
    fn commands(&self) -> Vec<&str>;

    /// Returns whether a change has to be validated: a change of owner, group or mode does not.
    fn concerns(&self, change: &PlannedChange) -> bool;

    /// Prepares new content in `drafts`, and returns the effects of publishing it.
    fn stage(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        drafts: &Drafts,
        cx: &Context,
    ) -> Result<Effects, Error>;

    /// Runs the commands. They see the machine that the context predicts.
    fn validate(&self, drafts: &Drafts, cx: &Context) -> Result<(), Error>;
}

/// Fixes the inputs and choices of a resource for a plan that is applied later.
pub(crate) trait Pinning {
    /// Returns the resource as it is planned. It depends neither on files of the manifest nor on a choice that could be
    /// made differently later.
    fn pin(&self, have: &AnyState, change: Option<&PlannedChange>, cx: &Context) -> Result<Pinned, Error>;
}

/// Checks that a plan or an undo adds to the desired state of a resource.
pub(crate) trait Guard: Send + Sync {
    /// Completes the properties as events and records show them.
    fn show(&self, _properties: &mut Map<String, Value>) {}

    /// Fails if the machine differs from the state that the resource relies on. Checked before the first change of a run.
    fn check_precondition(
        &self,
        _wanted: &dyn AnyProperties,
        _inspect: &dyn Fn() -> Result<AnyState, Error>,
        _cx: &Context,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Fails if an observed state differs from the state that the change relies on.
    fn check_state(&self, _wanted: &dyn AnyProperties, _have: &AnyState, _cx: &Context) -> Result<(), Error> {
        Ok(())
    }

    /// Returns whether an earlier run made the change.
    fn is_done(&self, _trigger: Trigger) -> bool {
        false
    }

    /// Fails if a change must not be made.
    fn check_change(&self, _have: &AnyState, _change: &PlannedChange) -> Result<(), Error> {
        Ok(())
    }

    /// Fails if a change would have other effects than those that were announced.
    fn check_effects(&self, _effects: &Effects) -> Result<(), Error> {
        Ok(())
    }
}

/// Properties of a resource in a plan.
#[derive(Default)]
pub(crate) struct Pinned {
    /// Values that replace those of the properties; null removes a property.
    pub(crate) properties: Map<String, Value>,
    /// The content of `source`: its files by their paths below it, or one file with an empty path.
    pub(crate) source: BTreeMap<PathBuf, Vec<u8>>,
}
