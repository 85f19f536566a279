//! The `service` type: running state and start at boot.

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
        self, Before, Behavior, Candidate, Change, Context, Effects, Error, Example, Provider, ResourceType,
        Survey, Trigger, UnitEffect, Watches,
    },
    vocabulary::{Duration, PlainName},
};

/// Manages services: whether they run, whether they start at boot, and when ccm restarts them.
///
/// The running state and the start at boot are independent: a service can run but be disabled, or be stopped but
/// enabled. With `subscribe`, ccm restarts a running service if one of the subscribed resources changes. A service that
/// is not running yet is started instead, and with `ensure: stopped` ccm restarts nothing. If the run ends before a
/// restart, or the restart fails, the next run performs it.
///
/// After a start, ccm waits while the service is activating and checks it again a moment later. If the service did not
/// keep running, the resource fails. A start can take `timeout` (default 30 seconds). Stopping and restarting can take
/// systemd's default time limit in addition.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the service, such as `nginx` or `nginx.service`: letters, digits and `.` `_` `+` `:` `~` `-`, not
    /// beginning with `-`.
    #[schemars(with = "PlainName")]
    pub(crate) name: ServiceName,
    /// Name of the unit, if it differs from the name of the resource: an instance such as `wg-quick@wg0`, or an alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) unit: Option<UnitWord>,
    /// Whether the service runs. `stopped` also stops a service that is starting or restarting.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// If true, the service starts at boot. If not given, ccm does not change it. Units that cannot be disabled
    /// (static, indirect, generated, alias) count as enabled, and ccm does not change them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) enable: Option<bool>,
    /// If true, the unit is masked and cannot be started; this requires `ensure: stopped`. If false, ccm unmasks the
    /// unit before it does anything else. If not given, ccm does not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) masked: Option<bool>,
    /// How ccm refreshes a running service if a subscribed resource changed. `reload` reloads the configuration, or
    /// restarts a service that cannot reload.
    #[serde(default)]
    pub(crate) restart: Refresh,
    /// How long a service must keep running after a start, restart or reload, within `timeout`. `0s` disables the
    /// check.
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
    /// The service runs.
    #[default]
    Running,
    /// The service does not run.
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

/// How a running service is refreshed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Refresh {
    /// The service is stopped and started.
    #[default]
    Restart,
    /// The service reloads its configuration, or restarts if it cannot.
    Reload,
}

/// Longest name of a unit.
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
    /// Returns the name of the unit for systemctl.
    fn unit_word(&self) -> &str {
        self.unit.as_ref().map_or(self.name.as_str(), UnitWord::as_str)
    }

    /// Returns the full name of the unit.
    fn unit_name(&self) -> String {
        unit_name(self.unit_word())
    }
}

/// Steps to bring a service to the desired state, in order.
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
    /// Disables a unit that is enabled until the next boot.
    DisableForNow,
    Mask,
    Unmask,
    /// Unmasks a unit that is masked until the next boot.
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
    /// Returns the effect of the verb on the unit.
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

    fn before(_: &Properties, have: &ServiceState, _: &Action) -> Before {
        Before::resource(have.restoring(), &["running", "enabled"])
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
