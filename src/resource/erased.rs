//! Types without their type parameters, so that the engine and the command line can hold any of them.

use std::{any::Any, borrow::Cow, marker::PhantomData, path::Path};

use schemars::Schema;
use serde_json::{Map, Value};

use super::{
    Candidate, Change, Common, Context, Difference, Effects, Error, ErrorKind, Example, Makes, Managed,
    Member, Properties, ResourceType, State, Trigger, Warning, Watches, schema,
};
use crate::{
    document::{Node, NodeError, from_node},
    host::Host,
    template::Scope,
};

/// A resource type, whichever it is.
pub(crate) trait AnyType: Sync {
    fn name(&self) -> &'static str;
    fn examples(&self) -> &'static [Example];
    fn refreshes(&self) -> bool;
    /// Whether a resource of it means something outside of a manifest.
    fn stands_alone(&self) -> bool;
    /// Whether its resources learn facts, each the one that it is called by.
    fn learns_facts(&self) -> bool;
    /// Properties that have to be given, but on the command line keep what is there already.
    fn keeps(&self) -> &'static [&'static str];
    /// How many attempts are made when a resource does not say.
    fn tries(&self) -> u32;
    /// Which files a resource may make.
    fn makes(&self) -> Makes;
    /// How many consecutive resources can be enacted together.
    fn largest_group(&self) -> usize;
    /// Name and summary of each provider, in order of preference.
    fn providers(&self) -> Vec<(&'static str, &'static str)>;
    /// The keys that the type's own properties may have, other spellings included.
    fn keys(&self) -> &'static [&'static str];
    /// The schema of the type's own properties.
    fn properties_schema(&self) -> &'static Schema;
    /// The schema of the type's state.
    fn state_schema(&self) -> Schema;
    /// What is wanted, from a map with the type's own keys.
    fn read(&self, map: &Node) -> Result<Box<dyn AnyProperties>, NodeError>;
    /// The provider asked for, or the first one that suits the machine.
    fn provider(&self, asked: Option<&str>, host: &Host) -> Result<Provider, Error>;
    /// Tells a provider which resources the run will have it serve.
    fn expect(&self, on: &Provider, wanted: &[&dyn AnyProperties]);
}

/// The desired state of one resource, whatever its type.
pub(crate) trait AnyProperties: Any + Send + Sync {
    fn ensure(&self) -> String;
    fn problems(&self) -> Vec<Error>;
    fn problems_with(&self, provider: Option<&str>) -> Vec<Error>;
    fn problems_beside(&self, folder: &Path, scope: &Scope) -> Vec<Error>;
    fn warnings(&self, common: &Common) -> Vec<Warning>;
    fn secrets(&self) -> Vec<Cow<'_, str>>;
    fn to_json(&self) -> Map<String, Value>;
    fn inspect(&self, on: &Provider, cx: &Context) -> Result<AnyState, Error>;
    fn is_read_ahead(&self) -> bool;
    fn look_ahead(&self, cx: &Context) -> Option<AnyState>;
    fn turn(&self, on: &Provider, cx: &Context);
    fn compare(&self, have: &AnyState, trigger: Trigger) -> Result<Option<PlannedChange>, Error>;
    fn preview(
        &self,
        have: &AnyState,
        pending: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<Option<String>, Error>;
    fn simulate(
        &self,
        have: &AnyState,
        pending: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<(), Error>;
    fn effects(&self, have: &AnyState, pending: &PlannedChange, cx: &Context) -> Effects;
    fn watches(&self) -> Watches;
    fn manages(&self) -> Vec<Managed>;
    /// The value of the fact that was learned.
    fn learns<'s>(&self, have: &'s AnyState) -> Option<&'s Value>;
    fn prepare<'w>(
        &'w self,
        next: &mut dyn Iterator<Item = &'w dyn AnyProperties>,
        on: &Provider,
        cx: &Context,
    );
    fn enact(
        &self,
        have: &AnyState,
        pending: PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<AnyState, Error>;
    /// Enacts several resources of this type together, and returns what each left behind.
    fn enact_group(&self, group: &[AnyMember], on: &Provider, cx: &Context) -> Result<Vec<AnyState>, Error>;
}

/// One of several resources that are enacted together, whatever their type.
pub(crate) struct AnyMember<'a> {
    pub(crate) wanted: &'a dyn AnyProperties,
    pub(crate) have: &'a AnyState,
    pub(crate) pending: &'a PlannedChange,
}

/// A provider, whatever its type.
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    instance: Box<dyn Any + Send + Sync>,
}

/// A state, whatever its type.
pub(crate) struct AnyState(Box<dyn StateObject>);

trait StateObject: Send + Sync {
    fn ensure(&self) -> String;
    fn redact(&mut self);
    fn agrees_with(&self, earlier: &dyn Any) -> bool;
    fn to_json(&self) -> Map<String, Value>;
    fn as_any(&self) -> &dyn Any;
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

impl<T> TypeOf<T> {
    pub(crate) const NEW: Self = Self(PhantomData);
}

struct Desired<T: ResourceType>(T::Properties);

impl<T: ResourceType> AnyType for TypeOf<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn examples(&self) -> &'static [Example] {
        T::EXAMPLES
    }

    fn refreshes(&self) -> bool {
        T::REFRESHES
    }

    fn stands_alone(&self) -> bool {
        T::STANDS_ALONE
    }

    fn learns_facts(&self) -> bool {
        T::LEARNS_FACTS
    }

    fn keeps(&self) -> &'static [&'static str] {
        T::KEEPS
    }

    fn tries(&self) -> u32 {
        T::TRIES
    }

    fn makes(&self) -> Makes {
        T::MAKES
    }

    fn largest_group(&self) -> usize {
        T::LARGEST_GROUP
    }

    fn providers(&self) -> Vec<(&'static str, &'static str)> {
        T::PROVIDERS.iter().map(|candidate| (candidate.name, candidate.summary)).collect()
    }

    fn keys(&self) -> &'static [&'static str] {
        schema::keys::<T::Properties>()
    }

    fn properties_schema(&self) -> &'static Schema {
        schema::inlined::<T::Properties>()
    }

    fn state_schema(&self) -> Schema {
        schema::written::<T::State>()
    }

    fn read(&self, map: &Node) -> Result<Box<dyn AnyProperties>, NodeError> {
        Ok(Box::new(Desired::<T>(from_node(map)?)))
    }

    fn provider(&self, asked: Option<&str>, host: &Host) -> Result<Provider, Error> {
        let mut reasons = Vec::new();
        let fits = |candidate: &&Candidate<T>| asked.is_none_or(|asked| asked == candidate.name);
        let mut candidates: Vec<&Candidate<T>> = T::PROVIDERS.iter().filter(fits).collect();
        if candidates.len() > 1 {
            let preferred = T::preferred(host);
            candidates.sort_by_key(|candidate| Some(candidate.name) != preferred);
        }
        for candidate in candidates {
            match (candidate.make)(host) {
                Ok(instance) => return Ok(Provider { name: candidate.name, instance: Box::new(instance) }),
                Err(reason) => reasons.push(format!("{}: {reason}", candidate.name)),
            }
        }
        let asked = asked.map(str::to_owned);
        let property = asked.as_ref().map(|_| "provider");
        let known = names(&self.providers());
        Err(Error { property, ..ErrorKind::NoProvider { of: T::NAME, asked, reasons, known }.into() })
    }

    fn expect(&self, on: &Provider, wanted: &[&dyn AnyProperties]) {
        let wants: Vec<&T::Properties> = wanted
            .iter()
            .filter_map(|&wanted| (wanted as &dyn Any).downcast_ref::<Desired<T>>())
            .map(|desired| &desired.0)
            .collect();
        T::expect(Desired::<T>::provider(on), &wants);
    }
}

/// The names of providers as a list for a sentence.
pub(super) fn names(providers: &[(&'static str, &'static str)]) -> String {
    providers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl<T: ResourceType> Desired<T> {
    fn state(have: &AnyState) -> &T::State {
        have.0.as_any().downcast_ref().expect("a state goes back only to the type that observed it")
    }

    fn provider(on: &Provider) -> &T::Provider {
        let instance: Option<&Box<T::Provider>> = on.instance.downcast_ref();
        instance.expect("a provider is used only by the type that made it")
    }

    fn action(pending: &PlannedChange) -> &T::Action {
        pending.action.downcast_ref().expect("an action goes back only to the type that decided on it")
    }
}

impl<T: ResourceType> AnyProperties for Desired<T> {
    fn ensure(&self) -> String {
        self.0.ensure()
    }

    fn problems(&self) -> Vec<Error> {
        self.0.problems()
    }

    fn problems_with(&self, provider: Option<&str>) -> Vec<Error> {
        self.0.problems_with(provider)
    }

    fn problems_beside(&self, folder: &Path, scope: &Scope) -> Vec<Error> {
        self.0.problems_beside(folder, scope)
    }

    fn warnings(&self, common: &Common) -> Vec<Warning> {
        self.0.warnings(common)
    }

    fn secrets(&self) -> Vec<Cow<'_, str>> {
        self.0.secrets()
    }

    fn to_json(&self) -> Map<String, Value> {
        schema::object(&self.0)
    }

    fn inspect(&self, on: &Provider, cx: &Context) -> Result<AnyState, Error> {
        T::inspect(&self.0, Self::provider(on), cx).map(|state| AnyState(Box::new(state)))
    }

    fn is_read_ahead(&self) -> bool {
        T::is_read_ahead(&self.0)
    }

    fn look_ahead(&self, cx: &Context) -> Option<AnyState> {
        T::look_ahead(&self.0, cx).ok().map(|state| AnyState(Box::new(state)))
    }

    fn turn(&self, on: &Provider, cx: &Context) {
        T::turn(&self.0, Self::provider(on), cx);
    }

    fn compare(&self, have: &AnyState, trigger: Trigger) -> Result<Option<PlannedChange>, Error> {
        let change = T::compare(&self.0, Self::state(have), trigger)?;
        Ok(change.map(|Change { action, differences, refreshes }| PlannedChange {
            summary: action.to_string(),
            differences,
            refreshes,
            action: Box::new(action),
        }))
    }

    fn preview(
        &self,
        have: &AnyState,
        pending: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        T::preview(&self.0, Self::state(have), Self::action(pending), Self::provider(on), cx)
    }

    fn simulate(
        &self,
        have: &AnyState,
        pending: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<(), Error> {
        T::simulate(&self.0, Self::state(have), Self::action(pending), Self::provider(on), cx)
    }

    fn effects(&self, have: &AnyState, pending: &PlannedChange, cx: &Context) -> Effects {
        T::effects(&self.0, Self::state(have), Self::action(pending), cx)
    }

    fn manages(&self) -> Vec<Managed> {
        T::manages(&self.0)
    }

    fn learns<'s>(&self, have: &'s AnyState) -> Option<&'s Value> {
        T::learns(Self::state(have))
    }

    fn watches(&self) -> Watches {
        T::watches(&self.0)
    }

    fn prepare<'w>(
        &'w self,
        next: &mut dyn Iterator<Item = &'w dyn AnyProperties>,
        on: &Provider,
        cx: &Context,
    ) {
        let mut same = next.map_while(|wanted| Some(&(wanted as &dyn Any).downcast_ref::<Self>()?.0));
        T::prepare(&self.0, &mut same, Self::provider(on), cx);
    }

    fn enact(
        &self,
        have: &AnyState,
        pending: PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<AnyState, Error> {
        let action =
            pending.action.downcast().expect("an action goes back only to the type that decided on it");
        T::enact(&self.0, Self::state(have), *action, Self::provider(on), cx)
            .map(|state| AnyState(Box::new(state)))
    }

    fn enact_group(&self, group: &[AnyMember], on: &Provider, cx: &Context) -> Result<Vec<AnyState>, Error> {
        let same = |wanted: &'_ dyn AnyProperties| (wanted as &dyn Any).is::<Self>();
        debug_assert!(group.iter().all(|member| same(member.wanted)), "a group is of one type");
        let members: Vec<Member<T>> = group
            .iter()
            .filter_map(|member| {
                let want = &(member.wanted as &dyn Any).downcast_ref::<Self>()?.0;
                Some(Member { want, have: Self::state(member.have), action: Self::action(member.pending) })
            })
            .collect();
        let states = T::enact_group(&members, Self::provider(on), cx)?;
        Ok(states.into_iter().map(|state| AnyState(Box::new(state))).collect())
    }
}

impl AnyState {
    pub(crate) fn of(state: impl State) -> Self {
        Self(Box::new(state))
    }

    pub(crate) fn ensure(&self) -> String {
        self.0.ensure()
    }

    /// Forgets everything from which a secret could be guessed.
    pub(crate) fn redact(&mut self) {
        self.0.redact();
    }

    /// Whether the machine is as it was in an earlier state.
    pub(crate) fn agrees_with(&self, earlier: &Self) -> bool {
        self.0.agrees_with(earlier.0.as_any())
    }

    /// The state as events and `ccm status` show it.
    pub(crate) fn to_json(&self, kind: &str, name: &str) -> Map<String, Value> {
        let mut status = Map::new();
        status.insert("protocol".to_owned(), format!("io.choria.ccm.v1.resource.{kind}.state").into());
        status.insert("type".to_owned(), kind.into());
        status.insert("name".to_owned(), name.into());
        status.insert("ensure".to_owned(), self.ensure().into());
        status.extend(self.0.to_json());
        status
    }
}

impl<S: State> StateObject for S {
    fn ensure(&self) -> String {
        State::ensure(self)
    }

    fn redact(&mut self) {
        State::redact(self);
    }

    fn agrees_with(&self, earlier: &dyn Any) -> bool {
        earlier.downcast_ref().is_some_and(|earlier| State::agrees_with(self, earlier))
    }

    fn to_json(&self) -> Map<String, Value> {
        schema::object(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
