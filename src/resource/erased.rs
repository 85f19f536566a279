//! Types without their type parameters, so that the engine and the command line can hold any of them. A function that has
//! the name of one in [`ResourceType`] does the same.

use std::{
    any::Any,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Before, Behavior, Change, Context, Difference, Effects, Error, Example, Properties, Provider,
    ResourceType, State, Trigger, provider,
};
use crate::{
    document::{Node, NodeError, from_node},
    host::Host,
    vocabulary::schema::{inlined, keys, object, written},
};

/// A resource type, whichever it is.
pub(crate) trait AnyType: Sync {
    fn name(&self) -> &'static str;
    fn examples(&self) -> &'static [Example];
    fn behavior(&self) -> Behavior;
    /// Name and summary of each provider, in order of preference.
    fn providers(&self) -> Vec<(&'static str, &'static str)>;
    /// The keys that the type's own properties may have, other spellings included.
    fn keys(&self) -> &'static [&'static str];
    fn properties_schema(&self) -> &'static Schema;
    fn state_schema(&self) -> Schema;
    /// What is wanted, from a map with the type's own keys.
    fn read(&self, map: &Node) -> Result<Box<dyn AnyProperties>, NodeError>;
    /// The provider asked for, or the first one that suits the machine.
    fn provider(&self, asked: Option<&str>, host: &Host) -> Result<Provider, Error>;
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

    /// Fails if the machine differs from the state that the resource relies on. Checked before the first change of a run.
    fn check_precondition(&self, _on: &Provider, _cx: &Context) -> Result<(), Error> {
        Ok(())
    }
    /// Fails if a change would have other effects than those that were announced.
    fn check_effects(&self, _effects: &Effects) -> Result<(), Error> {
        Ok(())
    }
}

/// One of several resources that are enacted together.
pub(crate) struct AnyMember<'a> {
    pub(crate) wanted: &'a dyn Properties,
    pub(crate) have: &'a AnyState,
    pub(crate) change: &'a PlannedChange,
}

/// A state, whatever its type.
pub(crate) struct AnyState(Box<dyn AnyFields>);

/// The fields of a state, whatever its type.
trait AnyFields: State {
    fn fields(&self) -> Map<String, Value>;
}

/// A change that was decided on, whatever its type.
pub(crate) struct PlannedChange {
    /// Completes "Would have ..."; several deeds are separated by ". ".
    pub(crate) summary: String,
    pub(crate) differences: Vec<Difference>,
    pub(crate) refreshes: bool,
    action: Box<dyn Any + Send>,
}

/// A resource type as a value.
pub(crate) struct TypeOf<T>(PhantomData<fn() -> T>);

struct Desired<T: ResourceType>(T::Properties);

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

    fn providers(&self) -> Vec<(&'static str, &'static str)> {
        T::PROVIDERS.iter().map(|candidate| (candidate.name, candidate.summary)).collect()
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
        Ok(Box::new(Desired::<T>(from_node(map)?)))
    }

    fn provider(&self, asked: Option<&str>, host: &Host) -> Result<Provider, Error> {
        provider::choose::<T>(asked, host)
    }
}

impl<T: ResourceType> Deref for Desired<T> {
    type Target = dyn Properties;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: ResourceType> AnyProperties for Desired<T> {
    fn to_json(&self) -> Map<String, Value> {
        object(&self.0)
    }

    fn inspect(&self, on: &Provider, cx: &Context) -> Result<AnyState, Error> {
        T::inspect(&self.0, on.of::<T>(), cx).map(AnyState::of)
    }

    fn compare(&self, have: &AnyState, trigger: Trigger) -> Result<Option<PlannedChange>, Error> {
        let change = T::compare(&self.0, have.get(), trigger)?;
        Ok(change.map(|Change { action, differences, refreshes }| PlannedChange {
            refreshes,
            ..PlannedChange::new(action.to_string(), differences, Box::new(action))
        }))
    }

    fn preview(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        T::preview(&self.0, have.get(), change.action(), on.of::<T>(), cx)
    }

    fn simulate(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<(), Error> {
        T::simulate(&self.0, have.get(), change.action(), on.of::<T>(), cx)
    }

    fn effects(&self, have: &AnyState, change: &PlannedChange, cx: &Context) -> Effects {
        T::effects(&self.0, have.get(), change.action(), cx)
    }

    fn before(&self, have: &AnyState, change: &PlannedChange) -> Before {
        T::before(&self.0, have.get(), change.action())
    }

    fn enact(
        &self,
        have: &AnyState,
        change: PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<AnyState, Error> {
        T::enact(&self.0, have.get(), change.into_action(), on.of::<T>(), cx).map(AnyState::of)
    }
}

impl dyn Properties {
    /// Returns the properties of one type, if they are of this type.
    pub(crate) fn get<P: Properties>(&self) -> Option<&P> {
        (self as &dyn Any).downcast_ref()
    }
}

impl PlannedChange {
    /// A change that is no refresh.
    pub(crate) fn new(summary: String, differences: Vec<Difference>, action: Box<dyn Any + Send>) -> Self {
        Self { summary, differences, refreshes: false, action }
    }

    /// Returns the action to the type that decided on it.
    pub(crate) fn into_action<A: 'static>(self) -> A {
        *self.action.downcast().expect("an action goes back only to the type that decided on it")
    }

    /// Returns the action of the type that decided on it.
    pub(crate) fn action<A: 'static>(&self) -> &A {
        self.action.downcast_ref().expect("an action goes back only to the type that decided on it")
    }
}

impl AnyState {
    pub(crate) fn of(state: impl State + Serialize) -> Self {
        Self(Box::new(state))
    }

    /// Returns the state of the type that observed it.
    pub(crate) fn get<S: State>(&self) -> &S {
        let state: &dyn Any = &*self.0;
        state.downcast_ref().expect("a state goes back only to the type that observed it")
    }

    /// Returns the fields as they are serialized.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        self.0.fields()
    }

    /// Whether the machine is as it was in an earlier state, whatever was tried in between.
    pub(crate) fn agrees_with(&self, earlier: &Self) -> bool {
        !self.hides_a_change() && self.0.fields() == earlier.0.fields()
    }

    /// The state as events and `ccm status` show it.
    pub(crate) fn to_json(&self, kind: &str, name: &str) -> Map<String, Value> {
        let mut status = Map::new();
        status.insert("protocol".to_owned(), format!("io.choria.ccm.v1.resource.{kind}.state").into());
        status.insert("type".to_owned(), kind.into());
        status.insert("name".to_owned(), name.into());
        status.insert("ensure".to_owned(), self.ensure().into());
        status.extend(self.0.fields());
        status
    }
}

impl Deref for AnyState {
    type Target = dyn State;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for AnyState {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl<S: State + Serialize> AnyFields for S {
    fn fields(&self) -> Map<String, Value> {
        object(self)
    }
}
