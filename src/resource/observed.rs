//! States and changes without the type parameters of their types.

use std::{
    any::Any,
    fmt,
    ops::{Deref, DerefMut},
};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Change, Difference, Properties, State};
use crate::vocabulary::schema::object;

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

impl PlannedChange {
    pub(super) fn of<A: fmt::Display + Send + 'static>(change: Change<A>) -> Self {
        let Change { action, differences, refreshes } = change;
        Self { refreshes, ..Self::new(action.to_string(), differences, Box::new(action)) }
    }

    /// Returns a change that is not a refresh.
    pub(crate) fn new(summary: String, differences: Vec<Difference>, action: Box<dyn Any + Send>) -> Self {
        Self { summary, differences, refreshes: false, action }
    }

    /// Returns the action of the type that decided on it.
    pub(crate) fn action<A: 'static>(&self) -> &A {
        self.action.downcast_ref().expect("an action goes back only to the type that decided on it")
    }

    /// Returns the action to the type that decided on it.
    pub(crate) fn into_action<A: 'static>(self) -> A {
        *self.action.downcast().expect("an action goes back only to the type that decided on it")
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
