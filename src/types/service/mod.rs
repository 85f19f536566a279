//! The `service` type: what runs, and what starts at boot.

mod bus;
mod decision;
mod error;
mod journal;
mod name;
mod prediction;
mod reload_tracker;
mod settling;
mod state;
mod systemctl;
mod systemd;
#[cfg(test)]
mod tests;
mod unit;
mod unit_cache;
mod words;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{
    error::ServiceError,
    name::{ServiceName, UnitWord},
    state::ServiceState,
    systemd::Systemd,
    unit::unit_name,
};
use crate::{
    resource::{
        self, Behavior, Candidate, Change, Context, Effects, Error, Example, Provider, ResourceType, Survey,
        Trigger, UnitEffect, Watches,
    },
    vocabulary::{Duration, PlainName},
};

/// Services: whether they run, whether they start at boot, and when they are restarted.
///
/// Whether a service runs and whether it starts at boot are managed apart: it can be running but disabled, or stopped
/// but enabled. With `subscribe`, a change of another resource restarts the service if it is to run and is running; one
/// that is not yet running is started, and with `ensure: stopped` nothing is restarted. A restart that is owed is not
/// forgotten when the run ends before it, or when it fails: the next run does it.
///
/// A service that was started is waited for while it is still activating, and looked at again a moment later: one that
/// did not stay is a failure. Starting may take `timeout`, by default 30 seconds; stopping and restarting get as long as
/// systemd itself allows by default in addition.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the service, such as `nginx` or `nginx.service`: letters, digits and `.` `_` `+` `:` `~` `-`, not beginning
    /// with `-`.
    #[schemars(with = "PlainName")]
    pub(crate) name: ServiceName,
    /// The unit, where its name differs from the resource's: an instance such as `wg-quick@wg0`, or a unit under an alias
    /// of one's own. The resource's name otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) unit: Option<UnitWord>,
    /// Whether the service runs. `stopped` also stops one that is on its way up or is being started again and again.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Whether the service starts at boot. Left as it is when not given. Units that cannot be disabled (static,
    /// indirect, generated, alias) count as enabled and are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) enable: Option<bool>,
    /// Whether the unit is masked, so that nobody can start it. Left as it is when not given. `true` needs `ensure:
    /// stopped`; `false` unmasks the unit before anything else is done to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) masked: Option<bool>,
    /// What a change of a subscribed resource does to the running service. `reload` makes it read its configuration
    /// again where it can do that, and restarts it where it cannot.
    #[serde(default)]
    pub(crate) restart: Refresh,
    /// How long a service that was just started, restarted or reloaded has to stay running to count as such, as far as
    /// `timeout` leaves time for it. `0s` does not look again.
    #[serde(default = "settle")]
    pub(crate) settle: Duration,
}

fn settle() -> Duration {
    Duration::from_secs(1)
}

/// Whether a service runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// It runs.
    #[default]
    Running,
    /// It does not run.
    Stopped,
}

impl Ensure {
    fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// How a running service takes notice of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Refresh {
    /// It is stopped and started.
    #[default]
    Restart,
    /// It reads its configuration again, or is restarted if it cannot.
    Reload,
}

/// The longest name that a unit can have.
const LONGEST_NAME: usize = 255;

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let is_too_long = self.unit_name().len() > LONGEST_NAME;
        let problem = || ServiceError::LongName { name: self.unit_word().to_owned() };
        let mut problems: Vec<ServiceError> = is_too_long.then(problem).into_iter().collect();
        if self.masked == Some(true) {
            let starts = [("ensure", self.ensure == Ensure::Running), ("enable", self.enable == Some(true))];
            let starts = starts.into_iter().filter(|(_, starts)| *starts);
            problems.extend(starts.map(|(property, _)| ServiceError::MaskedAndStarted { property }));
        }
        problems.into_iter().map(Error::from).collect()
    }

    fn watches(&self) -> Watches {
        Watches { units: vec![self.unit_name()], ..Watches::default() }
    }

    fn survey(&self) -> Option<&dyn Survey> {
        Some(self)
    }
}

impl Survey for Properties {
    fn expect(&self, wanted: &[&dyn resource::Properties], on: &Provider) {
        let units = wanted.iter().filter_map(|wanted| wanted.get()).map(Self::unit_word);
        on.of::<Service>().expect(units.map(str::to_owned).collect());
    }
}

impl Properties {
    /// Returns the unit's name as it is given to systemctl.
    fn unit_word(&self) -> &str {
        self.unit.as_ref().map_or(self.name.as_str(), UnitWord::as_str)
    }

    /// Returns the unit's whole name.
    fn unit_name(&self) -> String {
        unit_name(self.unit_word())
    }
}

/// What has to be done to a service, in this order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Action(Vec<Verb>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Start,
    Stop,
    Restart,
    Reload,
    Enable,
    Disable,
    /// Disables what is enabled until the next boot only.
    DisableForNow,
    Mask,
    Unmask,
    /// Unmasks what is masked until the next boot only.
    UnmaskForNow,
}

impl Verb {
    fn done(self) -> &'static str {
        match self {
            Self::Start => "started",
            Self::Stop => "stopped",
            Self::Restart => "restarted",
            Self::Reload => "reloaded",
            Self::Enable => "enabled",
            Self::Disable | Self::DisableForNow => "disabled",
            Self::Mask => "masked",
            Self::Unmask | Self::UnmaskForNow => "unmasked",
        }
    }
}

impl Action {
    /// What is left of the unit that it is done to.
    fn effect(&self, unit: String) -> UnitEffect {
        let mut effect = UnitEffect { unit, running: None, enabled: None, masked: None };
        for verb in &self.0 {
            match verb {
                Verb::Start | Verb::Restart | Verb::Reload => effect.running = Some(true),
                Verb::Stop => effect.running = Some(false),
                Verb::Enable => effect.enabled = Some(true),
                Verb::Disable | Verb::DisableForNow => effect.enabled = Some(false),
                Verb::Mask => effect.masked = Some(true),
                Verb::Unmask | Verb::UnmaskForNow => effect.masked = Some(false),
            }
        }
        effect
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let done: Vec<&str> = self.0.iter().map(|verb| verb.done()).collect();
        f.write_str(&done.join(". "))
    }
}

/// The `service` type.
pub(crate) struct Service;

impl ResourceType for Service {
    const NAME: &'static str = "service";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A service that runs, now and after the next boot",
            manifest: "- service:\n    - nginx:\n        ensure: running\n        enable: true\n",
        },
        Example {
            title: "A service that is restarted when its configuration changes",
            manifest: "- file:\n    - /etc/myapp/config.yaml:\n        content: |\n          port: 8080\n        owner: root\n        \
                       group: root\n        mode: \"0644\"\n- service:\n    - myapp:\n        enable: true\n        \
                       subscribe:\n          - file#/etc/myapp/config.yaml\n",
        },
        Example {
            title: "A service that must not run",
            manifest: "- service:\n    - telnet.socket:\n        ensure: stopped\n        enable: false\n",
        },
        Example {
            title: "An instance of a template, and a unit that nobody shall start",
            manifest: "- service:\n    - vpn:\n        unit: wg-quick@wg0\n        enable: true\n    - rpcbind:\n        \
                       ensure: stopped\n        masked: true\n",
        },
        Example {
            title: "A service that reads its configuration again instead of being restarted, and may take long to start",
            manifest: "- file:\n    - /etc/haproxy/haproxy.cfg:\n        source: haproxy.cfg\n        owner: root\n        \
                       group: root\n        mode: \"0640\"\n- service:\n    - haproxy:\n        restart: reload\n        \
                       settle: 5s\n        timeout: 2m\n        subscribe:\n          - file#/etc/haproxy/haproxy.cfg\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "systemd",
        summary: "machines with `systemctl` in the search path.",
        make: |_| Systemd::new().map(Box::new),
    }];
    const BEHAVIOR: Behavior = Behavior { refreshes: true, ..Behavior::USUAL };

    type Properties = Properties;
    type State = ServiceState;
    type Action = Action;
    type Provider = Systemd;

    fn inspect(want: &Properties, on: &Systemd, cx: &Context) -> Result<ServiceState, Error> {
        on.inspect(want, cx)
    }

    fn compare(
        want: &Properties,
        have: &ServiceState,
        trigger: Trigger,
    ) -> Result<Option<Change<Action>>, Error> {
        decision::compare(want, have, trigger)
    }

    fn effects(want: &Properties, _: &ServiceState, action: &Action, _: &Context) -> Effects {
        Effects { units: vec![action.effect(want.unit_name())], ..Effects::default() }
    }

    fn enact(
        want: &Properties,
        _: &ServiceState,
        action: Action,
        on: &Systemd,
        cx: &Context,
    ) -> Result<ServiceState, Error> {
        on.enact(&action.0, want, cx)
    }
}
