//! The `exec` type: runs commands when they are needed.

mod decision;
mod executor;
mod state;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::{executor::Executor, state::ExecState};
use crate::{
    document::Severity,
    resource::{
        self, Before, Behavior, Candidate, Change, Common, Context, Coverage, Effects, Error, Example,
        Inherited, Makes, Managed, PathEffect, ResourceType, Trigger, Unknown, Warning, Watches,
    },
    types::command_line::{self, POSIX, Printing, Settings, Through},
    vocabulary::{AbsolutePath, Account, Mode, SearchPath, Secret, Variable},
};

/// Runs commands, if they are needed.
///
/// ccm runs the command unless a condition says that it is not needed. The conditions are evaluated in this order: a
/// resource in `subscribe` changed (ccm runs the command), `creates` exists (ccm runs neither command nor guards),
/// `onlyif` says no, `unless` says yes, `refresh_only` is set.
///
/// A dry run assumes that a command creates the path in `creates`, and considers the predicted changes of earlier
/// resources. Guards run in a dry run, too, so they must not change anything. They see the machine as it is, without
/// the predicted changes. If a guard cannot run because an earlier resource would have to create its directory or
/// program first, ccm prints a warning and assumes that the command is needed. A refresh ignores `creates` and the
/// guards.
///
/// If a command or guard exceeds `timeout`, ccm terminates it with all processes that it started. The same happens if
/// ccm is asked to stop; if ccm itself was killed, the next run terminates the command. For this, each command runs in
/// a cgroup of its own where cgroups version 2 are available. Without a cgroup, ccm might not find processes that
/// detach themselves, and the message says so. Background processes of a command that terminated by itself keep
/// running, but ccm no longer reads their output: if they still write to the output of the command, the next write
/// kills them. Redirect the output of a daemon, for example to `/dev/null`. Commands run in a session of their own
/// without a terminal, so a password prompt fails instead of waiting forever.
///
/// Values in `environment` and `stdin` are secret: ccm never shows them, and replaces them, and each of their lines, by
/// `[secret]` in the output of the command. ccm does not search for strings of fewer than four characters. Every user
/// of the machine can see the command itself while it runs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the resource. Also the command, if `command` is not given.
    pub(crate) name: String,
    /// Always `present`: the command has run, or does not have to.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Command to run. The provider `posix` uses no shell: it splits the command into words by the quoting rules of the
    /// shell, and variables, `*` and pipes have no special meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-argument" = true))]
    pub(crate) command: Option<String>,
    /// Directory to run the command in (default `/`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) cwd: Option<AbsolutePath>,
    /// Variables (`KEY=value`) to add to the environment: that of ccm, or with `user` that of a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) environment: Vec<Variable>,
    /// Absolute directories, separated by colons, to search for the program; also the `PATH` of the command. Default:
    /// the `PATH` of ccm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<SearchPath>,
    /// Exit statuses that mean success (default: only 0). Any other status, or a signal, is a failure, even if the
    /// command created the path in `creates`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) returns: Vec<u8>,
    /// Absolute path. If it exists, even as a dangling symbolic link, ccm does not run the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) creates: Option<AbsolutePath>,
    /// Guard: ccm runs the command only if the guard exits with status 0. The guard runs in the same directory and
    /// environment, with the same time limit and user, but without standard input. If the guard cannot be started, ends
    /// by a signal, or exits with status 126 or 127, the resource fails. With the provider `shell`, a guard that exits
    /// with status 126 or 127 and writes nothing to standard error means no, because `command -v` of some shells
    /// reports a missing program this way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-argument" = true))]
    pub(crate) onlyif: Option<String>,
    /// Guard with the opposite meaning of `onlyif`: ccm runs the command only if the guard does not exit with status 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-argument" = true))]
    pub(crate) unless: Option<String>,
    /// If true, ccm runs the command only if a resource in `subscribe` changed.
    #[serde(alias = "refreshonly", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refresh_only: bool,
    /// If true, ccm shows the output of the command line by line while it runs. If the command fails, ccm always shows
    /// the last lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) logoutput: bool,
    /// User to run the command and its guards as, by name or UID, with the user's primary and supplementary groups.
    /// Requires root. The environment is then that of a login: `HOME`, `USER`, `LOGNAME` and `SHELL` of the user, and
    /// of ccm's environment only `PATH`, `LANG`, `TZ` and the proxy variables such as `http_proxy` and `no_proxy`.
    /// `path` and `environment` are added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Account>,
    /// If true, a command with `user` gets the complete environment of ccm instead of that of a login, with `HOME`,
    /// `USER` and `LOGNAME` of the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) inherit_environment: bool,
    /// Group to run the command as, by name or GID, instead of the user's primary group. Requires root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// File mode creation mask in octal, such as `"0027"`. Default: the mask of ccm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) umask: Option<Mode>,
    /// Command that undoes this one. `ccm undo` runs it in the same directory and environment, as the same user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-argument" = true))]
    pub(crate) undo: Option<String>,
    /// Text that the command reads from standard input. Default: empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-secret" = true, "x-file-flag" = "stdin-file"))]
    pub(crate) stdin: Option<Secret>,
}

/// Desired state of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// The command has run, or does not have to.
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

    fn remarks(&self, common: &Common, _: &Path) -> Vec<(Severity, Warning)> {
        self.without_guard(common).map(|note| (Severity::Note, note)).into_iter().collect()
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
    /// Notes that the command runs in every run.
    fn without_guard(&self, common: &Common) -> Option<Warning> {
        let guards =
            [self.creates.is_some(), self.onlyif.is_some(), self.unless.is_some(), self.refresh_only];
        let is_guarded = guards.contains(&true) || common.control.is_some();
        (!is_guarded).then(|| Warning {
            id: "no-guard",
            message: "the command runs in every run, because the resource has no guard".to_owned(),
            property: None,
            help: Some(
                "add `creates`, `onlyif`, `unless` or `refresh_only`, or leave it so if it is meant"
                    .to_owned(),
            ),
        })
    }

    /// Returns the command to run.
    fn command(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.name)
    }

    /// Returns the properties of the resource that undoes the command, if it has one.
    fn undo_properties(&self) -> Option<Map<String, Value>> {
        let undo = self.undo.as_ref()?;
        let revealed = Secret::revealed(|| serde_json::to_value(self));
        let Ok(Value::Object(mut properties)) = revealed else { return None };
        for guard in ["creates", "onlyif", "unless", "refresh_only", "undo", "stdin", "returns"] {
            properties.remove(guard);
        }
        properties.insert("command".to_owned(), undo.clone().into());
        Some(properties)
    }

    /// Returns the settings that command and guards share.
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

    /// Returns the given command lines, each with its property.
    fn texts(&self) -> Vec<(&'static str, &str)> {
        let guards = [
            ("onlyif", self.onlyif.as_deref()),
            ("unless", self.unless.as_deref()),
            ("undo", self.undo.as_deref()),
        ];
        let guards = guards.into_iter().filter_map(|(property, text)| Some((property, text?)));
        std::iter::once(("command", self.command())).chain(guards).collect()
    }

    /// Returns whether an exit status means success.
    fn accepts(&self, code: i32) -> bool {
        match self.returns.as_slice() {
            [] => code == 0,
            returns => returns.iter().any(|accepted| i32::from(*accepted) == code),
        }
    }
}

/// Reason to run the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// No condition says that the command is not needed.
    Execute,
    /// A subscribed resource changed.
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

    fn before(want: &Properties, _: &ExecState, _: &Action) -> Before {
        Before::Command(want.undo_properties())
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
