//! Types without their type parameters, so that the engine and the command line can hold any of them. A function that has
//! the name of one in [`ResourceType`] does the same.

use std::{any::Any, marker::PhantomData, ops::Deref};

use schemars::Schema;
use serde_json::{Map, Value};

use super::{
    AnyCandidate, AnyState, Before, Behavior, Context, Effects, Error, Example, Guard, PlannedChange,
    Properties, Provider, ResourceType, Trigger,
};
use crate::{
    document::{Node, NodeError, from_node},
    vocabulary::schema::{inlined, keys, object, written},
};

/// A resource type, whichever it is.
pub(crate) trait AnyType: Sync {
    fn name(&self) -> &'static str;
    fn examples(&self) -> &'static [Example];
    fn behavior(&self) -> Behavior;
    /// Its providers in order of preference.
    fn providers(&self) -> Vec<AnyCandidate>;
    /// The keys that the type's own properties may have, other spellings included.
    fn keys(&self) -> &'static [&'static str];
    fn properties_schema(&self) -> &'static Schema;
    fn state_schema(&self) -> Schema;
    /// What is wanted, from a map with the type's own keys.
    fn read(&self, map: &Node) -> Result<Box<dyn AnyProperties>, NodeError>;
}

/// The desired state of one resource, whatever its type.
pub(crate) trait AnyProperties: Deref<Target = dyn Properties> + Send + Sync {
    fn to_json(&self) -> Map<String, Value>;
    fn inspect(&self, on: &Provider, cx: &Context) -> Result<AnyState, Error>;
    fn compare(&self, have: &AnyState, trigger: Trigger) -> Result<Option<PlannedChange>, Error>;
    fn preview(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<Option<String>, Error>;
    fn simulate(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<(), Error>;
    fn effects(&self, have: &AnyState, change: &PlannedChange, cx: &Context) -> Effects;
    fn before(&self, have: &AnyState, change: &PlannedChange) -> Before;
    fn enact(
        &self,
        have: &AnyState,
        change: PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<AnyState, Error>;

    /// Adds the checks of a plan or an undo.
    fn guarded(self: Box<Self>, guard: Box<dyn Guard>) -> Box<dyn AnyProperties>;
    fn check_precondition(&self, on: &Provider, cx: &Context) -> Result<(), Error>;
    fn check_effects(&self, effects: &Effects) -> Result<(), Error>;
}

/// A resource type as a value.
pub(crate) struct TypeOf<T>(PhantomData<fn() -> T>);

struct Desired<T: ResourceType> {
    wanted: T::Properties,
    guard: Option<Box<dyn Guard>>,
}

impl<T: ResourceType> TypeOf<T> {
    pub(crate) const NEW: Self = Self(PhantomData);
}

impl<T: ResourceType> AnyType for TypeOf<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn examples(&self) -> &'static [Example] {
        T::EXAMPLES
    }

    fn behavior(&self) -> Behavior {
        T::BEHAVIOR
    }

    fn providers(&self) -> Vec<AnyCandidate> {
        T::PROVIDERS.iter().map(AnyCandidate::of).collect()
    }

    fn keys(&self) -> &'static [&'static str] {
        keys::<T::Properties>()
    }

    fn properties_schema(&self) -> &'static Schema {
        inlined::<T::Properties>()
    }

    fn state_schema(&self) -> Schema {
        written::<T::State>()
    }

    fn read(&self, map: &Node) -> Result<Box<dyn AnyProperties>, NodeError> {
        Ok(Box::new(Desired::<T> { wanted: from_node(map)?, guard: None }))
    }
}

impl<T: ResourceType> Deref for Desired<T> {
    type Target = dyn Properties;

    fn deref(&self) -> &Self::Target {
        &self.wanted
    }
}

impl<T: ResourceType> AnyProperties for Desired<T> {
    fn to_json(&self) -> Map<String, Value> {
        let mut properties = object(&self.wanted);
        if let Some(guard) = &self.guard {
            guard.show(&mut properties);
        }
        properties
    }

    fn inspect(&self, on: &Provider, cx: &Context) -> Result<AnyState, Error> {
        let have = T::inspect(&self.wanted, on.of::<T>(), cx).map(AnyState::of)?;
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check_state(self, &have, cx))?;
        Ok(have)
    }

    fn compare(&self, have: &AnyState, trigger: Trigger) -> Result<Option<PlannedChange>, Error> {
        if self.guard.as_ref().is_some_and(|guard| guard.is_done(trigger)) {
            return Ok(None);
        }
        let change = T::compare(&self.wanted, have.get(), trigger)?.map(PlannedChange::of);
        if let (Some(change), Some(guard)) = (&change, &self.guard) {
            guard.check_change(have, change)?;
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
        T::preview(&self.wanted, have.get(), change.action(), on.of::<T>(), cx)
    }

    fn simulate(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<(), Error> {
        T::simulate(&self.wanted, have.get(), change.action(), on.of::<T>(), cx)
    }

    fn effects(&self, have: &AnyState, change: &PlannedChange, cx: &Context) -> Effects {
        T::effects(&self.wanted, have.get(), change.action(), cx)
    }

    fn before(&self, have: &AnyState, change: &PlannedChange) -> Before {
        T::before(&self.wanted, have.get(), change.action())
    }

    fn enact(
        &self,
        have: &AnyState,
        change: PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<AnyState, Error> {
        T::enact(&self.wanted, have.get(), change.into_action(), on.of::<T>(), cx).map(AnyState::of)
    }

    fn guarded(self: Box<Self>, guard: Box<dyn Guard>) -> Box<dyn AnyProperties> {
        Box::new(Self { guard: Some(guard), ..*self })
    }

    fn check_precondition(&self, on: &Provider, cx: &Context) -> Result<(), Error> {
        let inspect = || T::inspect(&self.wanted, on.of::<T>(), cx).map(AnyState::of);
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check_precondition(self, &inspect, cx))
    }

    fn check_effects(&self, effects: &Effects) -> Result<(), Error> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check_effects(effects))
    }
}

impl dyn Properties {
    /// Returns the properties of one type, if they are of this type.
    pub(crate) fn get<P: Properties>(&self) -> Option<&P> {
        (self as &dyn Any).downcast_ref()
    }
}
