//! The `exec` type: commands, run when they are needed.

mod decision;
mod executor;
mod state;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{executor::Executor, state::ExecState};
use crate::{
    resource::{
        self, Behavior, Candidate, Change, Common, Context, Coverage, Effects, Error, Example, Makes,
        Managed, PathEffect, ResourceType, Trigger, Unknown, Warning, Watches,
    },
    types::command_line::{self, Inherited, POSIX, Printing, Settings, Through},
    vocabulary::{AbsolutePath, Account, Mode, SearchPath, Secret, Variable},
};

/// Commands, and when they have to be run.
///
/// A command runs whenever its turn comes, unless something says that it is not needed. Asked in this order: a
/// resource in `subscribe` changed (it runs, whatever follows), `creates` exists (it does not run, and the guards are not asked),
/// `onlyif` says no, `unless` says yes, `refresh_only` is set.
///
/// A dry run takes a command to create what `creates` says, and what earlier resources would make or remove counts. Guards
/// are run in a dry run too, so they must change nothing. They see the machine as it is: what they would say once earlier
/// resources of the same run have done their work cannot be known. A guard that cannot be run because an earlier resource
/// would have to make its directory or program first is not asked; a warning says so, and the command is taken to be needed.
/// Before a refresh neither `creates` nor the guards are asked: it happens whatever they would say.
///
/// A command or a guard that takes longer than `timeout`, each on its own, is ended together with everything that it started;
/// so is one that runs when ccm is asked to stop, and one that was running when ccm itself was killed is ended by the next
/// run. Each command has a cgroup of its own for that, where the machine has cgroups of version 2 and ccm may make one. Where
/// it may not, processes that go out of their way to get lost cannot all be found, and the message says when nobody can tell
/// whether all of it has ended. What a command that ended by itself left running in the background lives on, but
/// nobody reads its output any more: if it still has the output of the command, the next time it writes to it ends it. Give a
/// daemon an output of its own, such as `/dev/null`. A command has a session of its own and no terminal: what would ask there
/// for a password fails instead of waiting for ever.
///
/// Values in `environment` and `stdin` are secrets: they are shown nowhere, and where the command prints one, or a line of
/// one, `[secret]` is shown instead. Texts of fewer than four characters are not looked for: they are part of too much else.
/// The command itself can be seen by every user of the machine while it runs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// What the resource is called. It is the command, too, when `command` is not given.
    pub(crate) name: String,
    /// Always `present`: the command has been run, or need not be.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// The command. Without a shell (provider `posix`) it is split into words by the quoting rules of the shell, and
    /// nothing else in it has a meaning: no variables, no `*`, no pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) command: Option<String>,
    /// The directory to run in (default `/`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) cwd: Option<AbsolutePath>,
    /// Variables, as `KEY=value`, to add to the environment that ccm itself was started with, or, with `user`, to one like
    /// that of a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) environment: Vec<Variable>,
    /// Absolute directories with colons between them: where the program is looked up, and the `PATH` that it sees.
    /// Without it, the `PATH` of ccm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<SearchPath>,
    /// Exit codes that mean success (default only 0). Any other, or a signal, is a failure, also when the command left
    /// behind what `creates` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) returns: Vec<u8>,
    /// An absolute path. If anything is there, be it a symbolic link that leads nowhere, the command is not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) creates: Option<AbsolutePath>,
    /// A guard: the command is needed only if this one exits with 0. It runs like the command itself, in the same
    /// directory, environment and time limit, as the same user, but without its input. Exit codes 126 and 127, a signal,
    /// or a guard that cannot be started are no answer but a failure. With the provider `shell`, 126 and 127 mean no if the
    /// guard wrote nothing to its standard error: `command -v` of some shells says so that there is no such program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) onlyif: Option<String>,
    /// A guard like `onlyif` with the opposite meaning: the command is needed only if this one does not exit with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) unless: Option<String>,
    /// Run only when a resource in `subscribe` has changed.
    #[serde(alias = "refreshonly", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refresh_only: bool,
    /// Show what the command prints, line by line, while it runs. Of a command that fails, the last lines are shown anyway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) logoutput: bool,
    /// The user to run as, by name or number, with its group and its other groups. Needs root. Guards run as this user too.
    /// The environment is then like that of a login, so that nothing of ccm's own gets there: `HOME`, `USER`, `LOGNAME`
    /// and `SHELL` of the user, and of ccm only `PATH`, `LANG`, `TZ` and the proxies (`http_proxy`, `no_proxy` and the
    /// like); then `path` and `environment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Account>,
    /// With `user`: start from the whole environment of ccm, with `HOME`, `USER` and `LOGNAME` of the user, instead of one
    /// like that of a login.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) inherit_environment: bool,
    /// The group to run as, by name or number, instead of the user's own. Needs root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// Permissions, in octal, that files made by the command do not get, such as `"0027"`. Without it, the umask of ccm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) umask: Option<Mode>,
    /// Text for the command to read from its standard input, which is empty otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-secret" = true, "x-file-flag" = "stdin-file"))]
    pub(crate) stdin: Option<Secret>,
}

/// The one thing that can be wanted of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// It has been run, or need not be.
    #[default]
    Present,
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        "present".to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let mut problems = Vec::new();
        if self.path.is_some() && self.environment.iter().any(|variable| variable.name == "PATH") {
            problems.push(
                Error::new("`path` and the variable PATH in `environment` cannot be given together")
                    .on("path")
                    .with_help("keep `path`"),
            );
        }
        problems
    }

    fn problems_with(&self, provider: Option<&str>) -> Vec<Error> {
        let texts = self.texts().into_iter();
        texts.filter_map(|(property, text)| command_line::problem(property, text, provider)).collect()
    }

    fn warnings(&self, common: &Common) -> Vec<Warning> {
        let provider = common.provider.as_deref();
        let texts = self.texts().into_iter();
        let expanded = texts.filter_map(|(property, text)| command_line::warning(property, text, provider));
        let never = (self.refresh_only && common.subscribe.is_empty()).then(|| Warning {
            id: "never-refreshed",
            message: "`refresh_only` without `subscribe`: the command never runs".to_owned(),
            property: Some("refresh_only"),
            help: Some(
                "name the resources whose change it is for: `subscribe: [\"file#/etc/app.conf\"]`".to_owned(),
            ),
        });
        expanded.chain(never).collect()
    }

    fn secrets(&self) -> Vec<Cow<'_, str>> {
        let values = self.environment.iter().map(|variable| &variable.value).chain(&self.stdin);
        values.map(|value| Cow::Borrowed(value.reveal())).collect()
    }

    fn watches(&self) -> Watches {
        let needs_asking = self.creates.is_none() || self.onlyif.is_some() || self.unless.is_some();
        Watches {
            paths: self.creates.iter().map(|path| path.as_path().to_owned()).collect(),
            completeness: if needs_asking && !self.refresh_only { Coverage::Poll } else { Coverage::Whole },
            ..Watches::default()
        }
    }

    fn manages(&self) -> Vec<Managed> {
        self.creates.iter().map(|path| Managed::Path(path.as_path().to_owned())).collect()
    }
}

impl Properties {
    /// The command to run.
    fn command(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.name)
    }

    /// How command and guards are run.
    fn settings(&self) -> Settings<'_> {
        Settings {
            environment: &self.environment,
            path: self.path.as_ref(),
            cwd: self.cwd.as_ref(),
            user: self.user.as_ref(),
            group: self.group.as_ref(),
            inherited: if self.inherit_environment { Inherited::Everything } else { Inherited::Login },
            umask: self.umask,
            input: self.stdin.as_ref(),
            printing: if self.logoutput { Printing::Shown } else { Printing::Kept },
        }
    }

    /// The command lines that were given, each with its property.
    fn texts(&self) -> Vec<(&'static str, &str)> {
        let guards = [("onlyif", self.onlyif.as_deref()), ("unless", self.unless.as_deref())];
        let guards = guards.into_iter().filter_map(|(property, text)| Some((property, text?)));
        std::iter::once(("command", self.command())).chain(guards).collect()
    }

    /// Whether an exit code means success.
    fn accepts(&self, code: i32) -> bool {
        match self.returns.as_slice() {
            [] => code == 0,
            returns => returns.iter().any(|accepted| i32::from(*accepted) == code),
        }
    }
}

/// A reason to run the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing says that it is not needed.
    Execute,
    /// A subscribed resource has changed.
    Refresh,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Execute => "executed",
            Self::Refresh => "executed via subscribe",
        })
    }
}

/// The `exec` type.
pub(crate) struct Exec;

impl ResourceType for Exec {
    const NAME: &'static str = "exec";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Once: not again when its result is there",
            manifest: "- exec:\n    - extract-app:\n        command: tar xzf /tmp/app.tar.gz -C /opt\n        \
                       creates: /opt/app/bin/app\n",
        },
        Example {
            title: "Only if another command says that it can",
            manifest: "- exec:\n    - install-app:\n        command: /usr/local/bin/install-app\n        \
                       onlyif: test -f /tmp/app-package.tar.gz\n",
        },
        Example {
            title: "Unless another command says that it is done",
            manifest: "- exec:\n    - open-port:\n        command: iptables -A INPUT -p tcp --dport 8080 -j ACCEPT\n        \
                       unless: iptables -C INPUT -p tcp --dport 8080 -j ACCEPT\n        path: /usr/sbin:/sbin\n",
        },
        Example {
            title: "A command that reports success with several exit codes, within five minutes",
            manifest: "- exec:\n    - check-health:\n        command: /usr/local/bin/check-health\n        \
                       returns: [0, 1, 2]\n        timeout: 5m\n",
        },
        Example {
            title: "A pipe, which takes a shell",
            manifest: "- exec:\n    - list-users:\n        command: 'cut -d: -f1 /etc/passwd | sort > /srv/users'\n        \
                       creates: /srv/users\n        provider: shell\n",
        },
        Example {
            title: "As another user, with secrets that nobody sees",
            manifest: "- exec:\n    - register:\n        command: /opt/app/bin/register --token-from-stdin\n        \
                       user: app\n        cwd: /opt/app\n        environment:\n            - \"API_KEY=${ Environ.API_KEY }\"\n        \
                       stdin: \"${ Environ.TOKEN }\"\n        umask: \"0077\"\n        creates: /opt/app/.registered\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[
        Candidate {
            name: POSIX,
            summary: "runs the program directly, without a shell.",
            make: |_| Ok(Box::new(Executor::new(Through::Nothing))),
        },
        Candidate {
            name: "shell",
            summary: "runs the command as a text for `/bin/sh -c`; only when asked for.",
            make: |_| Ok(Box::new(Executor::new(Through::Shell))),
        },
    ];
    const BEHAVIOR: Behavior = Behavior { refreshes: true, makes: Makes::Anything, ..Behavior::USUAL };

    type Properties = Properties;
    type State = ExecState;
    type Action = Action;
    type Provider = Executor;

    fn inspect(want: &Properties, on: &Executor, cx: &Context) -> Result<ExecState, Error> {
        on.inspect(want, cx)
    }

    fn compare(
        want: &Properties,
        have: &ExecState,
        trigger: Trigger,
    ) -> Result<Option<Change<Action>>, Error> {
        decision::compare(want, have, trigger)
    }

    fn simulate(
        want: &Properties,
        _: &ExecState,
        _: &Action,
        on: &Executor,
        cx: &Context,
    ) -> Result<(), Error> {
        on.simulate(want, cx)
    }

    fn effects(want: &Properties, _: &ExecState, _: &Action, cx: &Context) -> Effects {
        let Some(creates) = &want.creates else { return Effects::anything() };
        let (uid, gid) = command_line::ids(want.settings(), cx);
        let path = creates.as_path().to_owned();
        Effects {
            paths: vec![PathEffect::Appears { path, uid, gid }],
            unknown: Unknown::NotPaths,
            ..Effects::default()
        }
    }

    fn enact(
        want: &Properties,
        have: &ExecState,
        _: Action,
        on: &Executor,
        cx: &Context,
    ) -> Result<ExecState, Error> {
        Ok(on.execute(want, have, cx))
    }
}
