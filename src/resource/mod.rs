//! What it takes to be a type of resource.
//!
//! A type observes, decides and acts in three separate functions. Everything else — order, dry runs, requirements,
//! retries, time limits, verification, events — is the engine's and is written once for all types.
//!
//! A property is one field of the type's `Properties` struct: the field's type parses and prints it, its doc comment
//! is its help text, its schema description and its entry in the manual.

mod child;
mod common;
mod context;
mod declaration;
mod effects;
mod elsewhere;
mod erased;
mod error;
mod expansion;
mod faults;
mod health_checks;
mod managed;
#[cfg(test)]
mod manual;
mod prediction;
mod rendering;
mod schema;
mod secrets;
mod shell_signs;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, path::Path};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use child::{Child, ChildCounts, ChildState, flattened};
pub(crate) use common::Common;
pub(crate) use context::{Context, RunMode};
pub(crate) use declaration::{Completeness, Declaration, Resource};
pub(crate) use effects::{
    AccountEffect, AccountLeft, Content, Coverage, Effects, History, Moment, PackageEffect, PackageLeft,
    PathEffect, UnitEffect, Unknown, Watches,
};
pub(crate) use elsewhere::meant_state;
pub(crate) use erased::{AnyMember, AnyProperties, AnyState, AnyType, PlannedChange, Provider, TypeOf};
pub(crate) use error::{Error, ErrorKind, Retry, Sight, Warning};
pub(crate) use expansion::{Expansion, Management};
pub(crate) use health_checks::SECRET as SECRET_IN_CHECKS;
pub(crate) use managed::{Managed, ManagedPaths, Standing};
#[cfg(test)]
pub(crate) use manual::{health_checks_page, keys_page, reference_page};
pub(crate) use prediction::{AccountKind, Prediction};
pub(crate) use rendering::{Elements, HIDDEN};
pub(crate) use schema::{
    Field, FieldKind, common_fields, declaration_schema, document, fields, inlined, keys, own_fields,
    spellings, written,
};

pub(crate) use shell_signs::meant_for_a_shell;

use crate::{host::Host, template::Scope};

/// A kind of thing on a machine that can be brought to a desired state.
pub(crate) trait ResourceType: Sized + 'static {
    /// Its name in manifests, on the command line and in references.
    const NAME: &'static str;
    /// Manifests that show its use; help, manual and tests read them.
    const EXAMPLES: &'static [Example];
    /// Its providers in order of preference.
    const PROVIDERS: &'static [Candidate<Self>];
    /// Whether a change of another resource can refresh it through `subscribe`.
    const REFRESHES: bool = false;
    /// How many attempts are made when the resource does not say.
    const TRIES: u32 = 1;
    /// Which files a resource of this type may make.
    const MAKES: Makes = Makes::ItsName;

    /// Whether a resource of it means something outside of a manifest.
    const STANDS_ALONE: bool = true;
    /// Whether its resources learn facts, each the one that it is called by.
    const LEARNS_FACTS: bool = false;

    /// Properties that have to be given, but on the command line keep what is there already.
    const KEEPS: &'static [&'static str] = &[];

    /// What a user may ask for.
    type Properties: Properties;
    /// What was observed.
    type State: State;
    /// What has to happen; its text completes "Would have ...", and separates several deeds by ". ".
    type Action: fmt::Display + Send + 'static;
    /// The platform-specific half, made once per run: a trait object where a type has several kinds of it.
    type Provider: ?Sized + Send + Sync + 'static;

    /// How many consecutive resources [`ResourceType::enact_group`] carries out at once; 1 if it cannot.
    const LARGEST_GROUP: usize = 1;

    /// Returns the provider that this machine calls for, where several could be used and nobody asks for one. The others
    /// come after it, in the order of [`ResourceType::PROVIDERS`].
    fn preferred(_host: &Host) -> Option<&'static str> {
        None
    }

    /// Tells a provider which resources the run will have it serve, so that it can look at all of them in one go when it
    /// is asked for the first. Said again with more when it turns out to serve more.
    fn expect(_on: &Self::Provider, _wants: &[&Self::Properties]) {}

    /// Reads everything the decision needs. Changes nothing that anybody manages; but in a real run the machine may be
    /// made to take note of what is already there, as `systemctl daemon-reload` does.
    fn inspect(want: &Self::Properties, on: &Self::Provider, cx: &Context) -> Result<Self::State, Error>;

    /// Whether [`ResourceType::look_ahead`] can be asked for a resource.
    fn is_read_ahead(_want: &Self::Properties) -> bool {
        false
    }

    /// Reads the state of a resource before its turn, on another thread, while earlier ones are dealt with. Runs nothing and
    /// changes nothing at all; what it returns is used only if no other resource was acted on since.
    fn look_ahead(_want: &Self::Properties, _cx: &Context) -> Result<Self::State, Error> {
        Err(Error::new("resources of this type are looked at in their turn"))
    }

    /// Notes that the turn has come of a resource that was looked at before: it is not inspected.
    fn turn(_want: &Self::Properties, _on: &Self::Provider, _cx: &Context) {}

    /// Decides what to do, if anything. Reads nothing.
    fn compare(
        want: &Self::Properties,
        have: &Self::State,
        trigger: Trigger,
    ) -> Result<Option<Change<Self::Action>>, Error>;

    /// The change of content as a unified diff, where there is content to show. Changes nothing.
    fn preview(
        _want: &Self::Properties,
        _have: &Self::State,
        _action: &Self::Action,
        _on: &Self::Provider,
        _cx: &Context,
    ) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Fails in a dry run where the action certainly would, and warns about what cannot be told, beyond what its effects
    /// tell. Changes nothing.
    fn simulate(
        _want: &Self::Properties,
        _have: &Self::State,
        _action: &Self::Action,
        _on: &Self::Provider,
        _cx: &Context,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Says what an action leaves behind, or may leave behind. A dry run remembers it for later resources; in a real run
    /// those that hold on to what they learnt are told.
    fn effects(want: &Self::Properties, have: &Self::State, action: &Self::Action, cx: &Context) -> Effects;

    /// Says what the state of a resource depends on.
    fn watches(want: &Self::Properties) -> Watches;

    /// Says which parts of the file system a resource is responsible for, so that nobody takes them for litter.
    fn manages(_want: &Self::Properties) -> Vec<Managed> {
        Vec::new()
    }

    /// Returns the value of the fact that was learned.
    fn learns(_have: &Self::State) -> Option<&serde_json::Value> {
        None
    }

    /// Begins what is better done for several resources at once, before the first of them is enacted: `next` are those
    /// whose turns follow. Nothing of it may be seen before each is enacted in its turn.
    fn prepare<'w>(
        _want: &'w Self::Properties,
        _next: &mut dyn Iterator<Item = &'w Self::Properties>,
        _on: &Self::Provider,
        _cx: &Context,
    ) {
    }

    /// Does it, and returns what it left behind.
    fn enact(
        want: &Self::Properties,
        have: &Self::State,
        action: Self::Action,
        on: &Self::Provider,
        cx: &Context,
    ) -> Result<Self::State, Error>;

    /// Does what was planned for consecutive resources in one go, as a package manager does in one transaction, and
    /// returns what each left behind, in the same order. Each still has its own event. When this fails, each is enacted
    /// alone in its turn, and only that decides; so it must be safe to try again.
    fn enact_group(
        _group: &[Member<Self>],
        _on: &Self::Provider,
        _cx: &Context,
    ) -> Result<Vec<Self::State>, Error> {
        Err(Error::new("resources of this type are enacted one by one"))
    }
}

/// Which files a resource may make, as far as that is known before anything is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    /// The one that its name is the path of, and what is in that.
    ItsName,
    Anything,
}

/// One of several resources that are enacted together.
pub(crate) struct Member<'a, T: ResourceType> {
    pub(crate) want: &'a T::Properties,
    pub(crate) have: &'a T::State,
    pub(crate) action: &'a T::Action,
}

/// What a user asks of one resource.
pub(crate) trait Properties:
    Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// The desired state in one word.
    fn ensure(&self) -> String;
    /// What is wrong with the combination of properties, each being right on its own. It is known before templates are
    /// expanded, so it must not depend on a text that can hold one.
    fn problems(&self) -> Vec<Error>;
    /// Values that are wrong for one provider only; `None` is the first of them.
    fn problems_with(&self, _provider: Option<&str>) -> Vec<Error> {
        Vec::new()
    }
    /// What is wrong with the files beside the manifest that it is made from, as far as that can be told before the run.
    fn problems_beside(&self, _folder: &Path, _scope: &Scope) -> Vec<Error> {
        Vec::new()
    }
    /// What is allowed and was probably not meant, together with the properties that every resource has.
    fn warnings(&self, _common: &Common) -> Vec<Warning> {
        Vec::new()
    }
    /// The values of its secret properties, which are hidden wherever they turn up.
    fn secrets(&self) -> Vec<Cow<'_, str>> {
        Vec::new()
    }
}

/// What was observed of one resource. Its serialized fields join the event's `status`.
pub(crate) trait State: Serialize + JsonSchema + Send + Sync + 'static {
    /// The observed state in one word.
    fn ensure(&self) -> String;
    /// Forgets everything from which a secret could be guessed.
    fn redact(&mut self) {}
    /// Whether the machine is as it was in an earlier state, whatever was tried in between.
    fn agrees_with(&self, earlier: &Self) -> bool
    where
        Self: Sized,
    {
        schema::object(self) == schema::object(earlier)
    }
}

/// A provider that may suit this machine.
pub(crate) struct Candidate<T: ResourceType> {
    /// Its name in the `provider` property and in events.
    pub(crate) name: &'static str,
    /// What it works with, for the manual.
    pub(crate) summary: &'static str,
    /// The provider, or why this machine cannot have it.
    pub(crate) make: fn(&Host) -> Result<Box<T::Provider>, String>,
}

/// A manifest that shows a type at work.
pub(crate) struct Example {
    /// What it shows.
    pub(crate) title: &'static str,
    /// A manifest with one resource of the type.
    pub(crate) manifest: &'static str,
}

/// Why a resource is being looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// It is its turn.
    Turn,
    /// A resource that it subscribes to has changed.
    Refresh,
}

/// A decision to act.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change<A> {
    /// What to do.
    pub(crate) action: A,
    /// What differs from the desired state.
    pub(crate) differences: Vec<Difference>,
    /// Whether the action is the refresh that was asked for.
    pub(crate) refreshes: bool,
}

/// One property that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The property's name.
    pub(crate) property: &'static str,
    /// The values that differ, left out where they are too large to show.
    pub(crate) values: Option<Values>,
}

/// What is and what should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) have: String,
    pub(crate) want: String,
}

impl Difference {
    /// A difference whose values fit on a line.
    pub(crate) fn between(property: &'static str, have: impl fmt::Display, want: impl fmt::Display) -> Self {
        Self { property, values: Some(Values { have: have.to_string(), want: want.to_string() }) }
    }

    /// A difference whose values are not for a line.
    pub(crate) fn of(property: &'static str) -> Self {
        Self { property, values: None }
    }
}
