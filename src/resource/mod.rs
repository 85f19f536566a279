//! What it takes to be a type of resource.
//!
//! A type observes, decides and acts in three separate functions. Everything else — order, dry runs, requirements,
//! retries, time limits, verification, events — is the engine's and is written once for all types.
//!
//! A property is one field of the type's `Properties` struct: the field's type parses and prints it, its doc comment
//! is its help text, its schema description and its entry in the manual.

mod abilities;
mod before;
mod common;
mod context;
mod drafts;
mod effects;
mod erased;
mod error;
mod file_help;
mod fingerprint;
mod instance;
mod managed;
mod manifest;
#[cfg(test)]
mod manual;
mod observed;
mod prediction;
mod provider;
mod run_as;
pub(crate) mod schema;
mod secrets;
mod shell_signs;
#[cfg(test)]
mod tests;
mod validation_groups;

use std::{any::Any, borrow::Cow, fmt, path::Path};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

pub(crate) use abilities::{
    Grouping, Guard, JointValidation, Pinned, Pinning, Preparation, ReadAhead, Survey,
};
pub(crate) use before::Before;
pub(crate) use common::{Common, IF_IS_FALSE, Keep, REGISTRATIONS, UNLESS_IS_TRUE, text_as_boolean};
pub(crate) use context::Context;
pub(crate) use drafts::{Draft, Drafts};
pub(crate) use effects::{
    AccountEffect, AccountLeft, Content, Coverage, Effects, History, Moment, PackageEffect, PackageLeft,
    PathEffect, UnitEffect, Unknown, Watches,
};
pub(crate) use erased::{AnyProperties, AnyType, TypeOf};
pub(crate) use error::{Error, ErrorKind, Retry, Sight, Warning};
pub(crate) use file_help::file_help;
pub(crate) use fingerprint::{
    Discrepancy, Fingerprint, Observation, discrepancies, hidden, is_hidden, shown,
};
pub(crate) use instance::{Places, Resource, validators};
pub(crate) use managed::{Managed, ManagedPaths, Standing};
pub(crate) use manifest::{
    ChildCounts, ChildState, FailureResponse, Manifest, ManifestSettings, OnFailure, Task, flattened,
};
#[cfg(test)]
pub(crate) use manual::{common_page, health_checks_page, keys_page, reference_page};
pub(crate) use observed::{AnyMember, AnyState, PlannedChange};
pub(crate) use prediction::{AccountKind, Prediction};
pub(crate) use provider::{AnyCandidate, Candidate, Provider, Providers, known_name};
pub(crate) use run_as::{Inherited, RunAs, run_as};
pub(crate) use schema::{Field, FieldKind, common_fields, declaration_schema, fields, own_fields, spellings};
pub(crate) use secrets::{OF_SENSITIVE, OPEN as ALWAYS_SHOWN, SECRET_ARGUMENT, SecretMark, secret_argument};
pub(crate) use shell_signs::meant_for_a_shell;
pub(crate) use validation_groups::{misplaced_references, validation_groups};

use crate::{document::Severity, template::Scope};

/// A kind of thing on a machine that can be brought to a desired state.
pub(crate) trait ResourceType: Sized + 'static {
    /// Its name in manifests, on the command line and in references.
    const NAME: &'static str;
    /// Manifests that show its use; help, manual and tests read them.
    const EXAMPLES: &'static [Example];
    /// Its providers in order of preference.
    const PROVIDERS: &'static [Candidate<Self>];
    /// In what it differs from most types.
    const BEHAVIOR: Behavior = Behavior::USUAL;

    /// What a user may ask for.
    type Properties: Properties + Serialize + DeserializeOwned + JsonSchema;
    /// What was observed. Its serialized fields join the event's `status`.
    type State: State + Serialize + JsonSchema;
    /// What has to happen; its text completes "Would have ...", and separates several deeds by ". ".
    type Action: fmt::Display + Send + 'static;
    /// The platform-specific half, made once per run: a trait object where a type has several kinds of it.
    type Provider: ?Sized + Send + Sync + 'static;

    /// Reads everything the decision needs. Changes nothing that anybody manages; but in a real run the machine may be
    /// made to take note of what is already there, as `systemctl daemon-reload` does.
    fn inspect(want: &Self::Properties, on: &Self::Provider, cx: &Context) -> Result<Self::State, Error>;

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

    /// Returns the state that undo restores. The engine calls it before the action.
    fn before(want: &Self::Properties, have: &Self::State, action: &Self::Action) -> Before;

    /// Does it, and returns what it left behind.
    fn enact(
        want: &Self::Properties,
        have: &Self::State,
        action: Self::Action,
        on: &Self::Provider,
        cx: &Context,
    ) -> Result<Self::State, Error>;
}

/// What holds for all resources of a type.
#[derive(Clone, Copy)]
pub(crate) struct Behavior {
    /// Whether a change of another resource can refresh it through `subscribe`.
    pub(crate) refreshes: bool,
    /// Maximum number of attempts if the resource does not set `tries`.
    pub(crate) tries: u32,
    /// Which files a resource of this type may make.
    pub(crate) makes: Makes,
    /// Whether a resource of it means something outside of a manifest.
    pub(crate) stands_alone: bool,
    /// Whether its resources learn facts, each the one that it is called by.
    pub(crate) learns_facts: bool,
    /// Required properties that keep their current value if the command line does not set them.
    pub(crate) keeps: &'static [&'static str],
    /// Returns the provider that is native to the machine and goes before the others in [`ResourceType::PROVIDERS`].
    pub(crate) native: Option<fn() -> &'static str>,
    /// Returns another spelling of a name that stands for the same thing, the same for all of its spellings.
    pub(crate) canonical: Option<fn(&str) -> Option<String>>,
}

impl Behavior {
    /// The behavior of most types.
    pub(crate) const USUAL: Self = Self {
        refreshes: false,
        tries: 1,
        makes: Makes::ItsName,
        stands_alone: true,
        learns_facts: false,
        keeps: &[],
        native: None,
        canonical: None,
    };
}

/// Which files a resource may make, as far as that is known before anything is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    /// The one that its name is the path of, and what is in that.
    ItsName,
    Anything,
}

/// What a user asks of one resource.
pub(crate) trait Properties: Any + Send + Sync {
    /// The desired state in one word.
    fn ensure(&self) -> String;
    /// What is wrong with the combination of properties, each being right on its own. It is known before templates are
    /// expanded, so it must not depend on a text that can hold one.
    fn problems(&self) -> Vec<Error> {
        Vec::new()
    }
    /// Values that are wrong for one provider only; `None` is the first of them.
    fn problems_with(&self, _provider: Option<&str>) -> Vec<Error> {
        Vec::new()
    }
    /// What is wrong with the files beside the manifest that it is made from, as far as that can be told before the run.
    fn problems_beside(&self, _folder: &Path, _scope: &Scope) -> Vec<Error> {
        Vec::new()
    }
    /// Probable errors in the files beside the manifest that it is made from.
    fn warnings_beside(&self, _folder: &Path) -> Vec<Warning> {
        Vec::new()
    }
    /// What is allowed and was probably not meant, together with the properties that every resource has.
    fn warnings(&self, _common: &Common) -> Vec<Warning> {
        Vec::new()
    }

    /// What `ccm validate` reports in addition: warnings that a run gives when they matter, and notes.
    fn remarks(&self, _common: &Common, _folder: &Path) -> Vec<(Severity, Warning)> {
        Vec::new()
    }
    /// The values of its secret properties, which are hidden wherever they turn up.
    fn secrets(&self) -> Vec<Cow<'_, str>> {
        Vec::new()
    }
    /// Says what the state of the resource depends on.
    fn watches(&self) -> Watches;
    /// Says which parts of the file system the resource is responsible for, so that no purge removes them.
    fn manages(&self) -> Vec<Managed> {
        Vec::new()
    }

    fn read_ahead(&self) -> Option<&dyn ReadAhead> {
        None
    }
    fn survey(&self) -> Option<&dyn Survey> {
        None
    }
    fn preparation(&self) -> Option<&dyn Preparation> {
        None
    }
    fn grouping(&self) -> Option<&dyn Grouping> {
        None
    }
    fn joint_validation(&self) -> Option<&dyn JointValidation> {
        None
    }
    fn pinning(&self) -> Option<&dyn Pinning> {
        None
    }
}

/// What was observed of one resource.
pub(crate) trait State: Any + Send + Sync {
    /// The observed state in one word.
    fn ensure(&self) -> String;
    /// Forgets everything from which a secret could be guessed.
    fn redact(&mut self) {}
    /// Whether something may have changed that the state does not show.
    fn hides_a_change(&self) -> bool {
        false
    }
    /// Returns the value of the fact that was learned.
    fn learned(&self) -> Option<&Value> {
        None
    }
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
