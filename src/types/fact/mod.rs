//! The `fact` type: values that commands return during the run.

mod learning;
mod parse;

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::{learning::FactState, parse::Parse};
use crate::{
    resource::{
        self, Before, Behavior, Candidate, Change, Common, Context, Coverage, Effects, Error, Example,
        ResourceType, Trigger, Warning, Watches,
    },
    types::command_line::{self, POSIX, Printing, Settings, Through},
    vocabulary::{AbsolutePath, FactName, SearchPath, Variable},
};

/// Sets a run-time fact to the output of a command.
///
/// Later resources, and resources in manifests included later, refer to the value as `Facts.NAME` in `control` and in
/// run-time properties such as the `content` of a file or the `command` of an exec. A fact never counts as a change. A
/// run of selected resources evaluates the fact, too, unless `--skip` names it.
///
/// The command must not change anything, because a dry run runs it, too. If it cannot run there because an earlier
/// resource would have to provide its program, the value is `default`; without a default, ccm prints a warning and the
/// fact has no value.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the fact: letters, digits and `_`. It must differ from the names of machine facts.
    pub(crate) name: FactName,
    /// Always `present`.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Command that prints the value. It must exit with status 0.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-late" = true, "x-argument" = true))]
    pub(crate) command: String,
    /// Format of the output: a string (without its last newline), a list of lines, JSON or YAML.
    #[serde(default)]
    pub(crate) parse: Parse,
    /// Output stream that has the value.
    #[serde(default)]
    pub(crate) stream: Source,
    /// Value, of any type, if the command cannot run or fails. Without it, or with `null`, the resource fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<Value>,
    /// Directory to run the command in (default `/`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) cwd: Option<AbsolutePath>,
    /// Variables (`KEY=value`) to add to the environment of ccm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) environment: Vec<Variable>,
    /// Absolute directories, separated by colons, to search for the program; also the `PATH` of the command. Default:
    /// the `PATH` of ccm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<SearchPath>,
}

/// Desired state of a fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// The fact has a value.
    #[default]
    Present,
}

/// Output stream of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Source {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        "present".to_owned()
    }

    fn problems_with(&self, provider: Option<&str>) -> Vec<Error> {
        command_line::problem("command", &self.command, provider).into_iter().collect()
    }

    fn warnings(&self, common: &Common) -> Vec<Warning> {
        command_line::warning("command", &self.command, common.provider.as_deref()).into_iter().collect()
    }

    fn secrets(&self) -> Vec<Cow<'_, str>> {
        self.environment.iter().map(|variable| Cow::Borrowed(variable.value.reveal())).collect()
    }

    fn watches(&self) -> Watches {
        Watches { completeness: Coverage::Poll, ..Watches::default() }
    }
}

impl Properties {
    fn settings(&self) -> Settings<'_> {
        Settings {
            environment: &self.environment,
            path: self.path.as_ref(),
            cwd: self.cwd.as_ref(),
            printing: Printing::Read,
            ..Settings::default()
        }
    }
}

/// A fact has no action.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {}

impl fmt::Display for Action {
    fn fmt(&self, _: &mut fmt::Formatter) -> fmt::Result {
        match *self {}
    }
}

/// The `fact` type.
pub(crate) struct Fact;

impl ResourceType for Fact {
    const NAME: &'static str = "fact";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "The version of a program, which prints it to its standard error",
            manifest: "- fact:\n    - nginx_version:\n        command: nginx -v\n        stream: stderr\n        default: none\n",
        },
        Example {
            title: "What a program says of itself in JSON",
            manifest: "- fact:\n    - docker:\n        command: docker info --format json\n        parse: json\n        timeout: 10s\n",
        },
        Example {
            title: "The lines of a pipe, which takes a shell",
            manifest: "- fact:\n    - shells:\n        command: \"grep -v '^#' /etc/shells | sort\"\n        parse: lines\n        \
                       provider: shell\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[
        Candidate {
            name: POSIX,
            summary: "runs the program directly, without a shell.",
            make: |_| Ok(Box::new(Through::Nothing)),
        },
        Candidate {
            name: "shell",
            summary: "runs the command as a text for `/bin/sh -c`; only when asked for.",
            make: |_| Ok(Box::new(Through::Shell)),
        },
    ];
    const BEHAVIOR: Behavior = Behavior { stands_alone: false, learns_facts: true, ..Behavior::USUAL };

    type Properties = Properties;
    type State = FactState;
    type Action = Action;
    type Provider = Through;

    fn inspect(want: &Properties, on: &Through, cx: &Context) -> Result<FactState, Error> {
        learning::learn(want, *on, cx)
    }

    fn compare(_: &Properties, _: &FactState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        Ok(None)
    }

    fn effects(_: &Properties, _: &FactState, action: &Action, _: &Context) -> Effects {
        match *action {}
    }

    fn before(_: &Properties, _: &FactState, action: &Action) -> Before {
        match *action {}
    }

    fn enact(
        _: &Properties,
        _: &FactState,
        action: Action,
        _: &Through,
        _: &Context,
    ) -> Result<FactState, Error> {
        match action {}
    }
}
