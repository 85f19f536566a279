//! The `apply` type: included manifests. The engine applies their resources; the type only declares the properties.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::resource::{
    self, Before, Behavior, Candidate, Change, ChildState, Context, Effects, Error, Example, FailureResponse,
    Makes, ResourceType, Trigger, Watches,
};

/// Applies another manifest at the position of this resource.
///
/// The manifest is a file, or a directory with a `manifest.yaml`, relative to the directory of this manifest. ccm loads
/// and checks all manifests before it changes anything. Resource names are shared: resources of both manifests can
/// refer to each other. If `control` switches the resource off at load time, ccm does not load the manifest. The
/// resource fails if one of the included resources failed, and is changed if one of them changed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Path of the file or directory.
    pub(crate) name: String,
    /// Always `present`.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Data to merge deeply over the data of the included manifest. Default: all data of this manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub(crate) data: Option<Map<String, Value>>,
    /// If true, ccm changes nothing in the included manifest and reports what it would change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) noop: bool,
    /// If true, ccm changes nothing in the included manifest and runs only the health checks of its resources, as
    /// `--monitor-only` does for all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) health_check_only: bool,
    /// If `undo`, a failure in it stops it and undoes the changes that the run made in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on_failure: Option<FailureResponse>,
    /// If true, the included manifest can include other manifests (default `true`).
    #[serde(default = "yes")]
    pub(crate) allow_apply: bool,
}

fn yes() -> bool {
    true
}

/// Desired state of an included manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// The manifest is applied.
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

/// The type itself has no action.
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

    fn before(_: &Properties, _: &ChildState, action: &Action) -> Before {
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
