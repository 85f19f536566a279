//! The `apply` type: a manifest inside a manifest. Its resources are loaded with the manifest and applied by the engine;
//! the type itself only says what can be asked for.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::resource::{
    self, Behavior, Candidate, Change, ChildState, Context, Effects, Error, Example, Makes, ResourceType,
    Trigger, Watches,
};

/// Another manifest, whose resources run in the place of this one.
///
/// It is a file, or a folder that holds `manifest.yaml`, relative to the folder of this manifest. It is loaded and checked
/// together with this one: nothing is touched before all of them are valid. Names are one space: resources of both can
/// refer to each other. ccm does not load it if `control` excludes it before the run. The resource itself failed when
/// something in it failed, and changed when something in it changed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// The file or folder.
    pub(crate) name: String,
    /// Only `present`.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Data that goes over its own, deep. When it is not given, all of the data of this manifest does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub(crate) data: Option<Map<String, Value>>,
    /// Change nothing in it and say what would be done, also when the rest is applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) noop: bool,
    /// Change nothing in it and make only the health checks of its resources, as `--monitor-only` does for all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) health_check_only: bool,
    /// Whether it may have children of its own (default `true`).
    #[serde(default = "yes")]
    pub(crate) allow_apply: bool,
}

fn yes() -> bool {
    true
}

/// The state of a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// It is applied.
    #[default]
    Present,
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        "present".to_owned()
    }

    fn watches(&self) -> Watches {
        Watches::default()
    }
}

/// Nothing that the type itself would do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {}

impl fmt::Display for Action {
    fn fmt(&self, _: &mut fmt::Formatter) -> fmt::Result {
        match *self {}
    }
}

/// The `apply` type.
pub(crate) struct Apply;

impl ResourceType for Apply {
    const NAME: &'static str = "apply";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "The manifest in a folder, with data of its own",
            manifest: "- apply:\n    - web/:\n        data:\n          port: 8080\n",
        },
        Example {
            title: "A file that is only looked at",
            manifest: "- apply:\n    - new.yaml:\n        noop: true\n",
        },
        Example {
            title: "Somebody else's manifest, of which only the health checks are made",
            manifest: "- apply:\n    - database/:\n        health_check_only: true\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] =
        &[Candidate { name: "manifest", summary: "every machine.", make: |_| Ok(Box::new(())) }];
    const BEHAVIOR: Behavior = Behavior { makes: Makes::Anything, stands_alone: false, ..Behavior::USUAL };

    type Properties = Properties;
    type State = ChildState;
    type Action = Action;
    type Provider = ();

    fn inspect(_: &Properties, (): &(), _: &Context) -> Result<ChildState, Error> {
        Err(Error::new("it can only be applied as part of a manifest").with_help("use `ccm apply`"))
    }

    fn compare(_: &Properties, _: &ChildState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        Ok(None)
    }

    fn effects(_: &Properties, _: &ChildState, action: &Action, _: &Context) -> Effects {
        match *action {}
    }

    fn enact(
        _: &Properties,
        _: &ChildState,
        action: Action,
        (): &(),
        _: &Context,
    ) -> Result<ChildState, Error> {
        match action {}
    }
}
