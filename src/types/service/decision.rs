//! Decision table of services: a pure function of the properties and the state.

use super::{
    Action, Ensure, Properties, Refresh, Verb,
    error::ServiceError,
    state::ServiceState,
    words::{Activity, Enablement},
};
use crate::resource::{Change, Difference, Error, Trigger};

/// Returns the verbs that bring the service to the desired state, running first and enabling second, or the reason why
/// none can.
pub(super) fn compare(
    want: &Properties,
    have: &ServiceState,
    trigger: Trigger,
) -> Result<Option<Change<Action>>, Error> {
    let running = running(want, have, trigger);
    let masking = masking(want, have);
    let is_unmasked = matches!(masking, Some(Verb::Unmask | Verb::UnmaskForNow));
    let enabling = if is_unmasked { enabling_unmasked(want) } else { enabling(want, have) };
    if have.enablement == Enablement::Masked && !is_unmasked {
        if running == Some(Verb::Start) {
            return Err(masked(have, "ensure"));
        }
        if want.enable == Some(true) {
            return Err(masked(have, "enable"));
        }
    }
    if have.enablement == Enablement::NotFound && want.enable == Some(true) {
        return Err(ServiceError::NoUnitFile { unit: have.metadata.unit.clone() }.into());
    }
    let mut differences = Vec::new();
    if matches!(running, Some(Verb::Start | Verb::Stop)) {
        let is = match have.activity {
            Activity::Running => Ensure::Running.word(),
            Activity::Stopped => Ensure::Stopped.word(),
            Activity::Starting => &have.metadata.active_state,
        };
        differences.push(Difference::between("ensure", is, want.ensure.word()));
    }
    if let Some(wanted) = want.enable.filter(|_| enabling.is_some()) {
        differences.push(Difference::between("enable", have.metadata.enabled, wanted));
    }
    if let Some(wanted) = want.masked.filter(|_| masking.is_some()) {
        differences.push(Difference::between("masked", &have.metadata.unit_file_state, wanted));
    }
    let refreshes = matches!(running, Some(Verb::Restart | Verb::Reload));
    let (first, last) = if is_unmasked { (masking, None) } else { (None, masking) };
    let verbs: Vec<Verb> = [first, running, enabling, last].into_iter().flatten().collect();
    Ok((!verbs.is_empty()).then_some(Change { action: Action(verbs), differences, refreshes }))
}

fn running(want: &Properties, have: &ServiceState, trigger: Trigger) -> Option<Verb> {
    match (want.ensure, have.activity, trigger) {
        (Ensure::Running, Activity::Stopped | Activity::Starting, _) => Some(Verb::Start),
        (Ensure::Running, Activity::Running, Trigger::Refresh) => Some(match want.restart {
            Refresh::Restart => Verb::Restart,
            Refresh::Reload => Verb::Reload,
        }),
        (Ensure::Stopped, Activity::Running | Activity::Starting, _) => Some(Verb::Stop),
        (Ensure::Running, Activity::Running, Trigger::Turn) | (Ensure::Stopped, Activity::Stopped, _) => None,
    }
}

fn enabling(want: &Properties, have: &ServiceState) -> Option<Verb> {
    match (want.enable?, have.enablement) {
        (true, Enablement::Disabled) => Some(Verb::Enable),
        (false, Enablement::Enabled) => Some(Verb::Disable),
        (false, Enablement::EnabledForNow) => Some(Verb::DisableForNow),
        (true, Enablement::Enabled | Enablement::EnabledForNow)
        | (false, Enablement::Disabled)
        | (_, Enablement::Fixed | Enablement::Masked | Enablement::NotFound) => None,
    }
}

/// Returns the verb for a masked unit, whose enablement is hidden.
fn enabling_unmasked(want: &Properties) -> Option<Verb> {
    want.enable.map(|enable| if enable { Verb::Enable } else { Verb::Disable })
}

fn masking(want: &Properties, have: &ServiceState) -> Option<Verb> {
    match (want.masked?, have.metadata.unit_file_state.as_str()) {
        (true, "masked") => None,
        (true, _) => Some(Verb::Mask),
        (false, "masked") => Some(Verb::Unmask),
        (false, "masked-runtime") => Some(Verb::UnmaskForNow),
        (false, _) => None,
    }
}

fn masked(have: &ServiceState, property: &'static str) -> Error {
    ServiceError::Masked { unit: have.metadata.unit.clone(), property }.into()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{tests::want, unit::Unit},
        *,
    };

    fn have(active: &str, unit_file: &str) -> ServiceState {
        let unit = Unit {
            id: "app.service".to_owned(),
            load: "loaded".to_owned(),
            active: active.to_owned(),
            boot: unit_file.to_owned(),
            ..Unit::default()
        };
        ServiceState::of(&want("name: app"), &unit).unwrap()
    }

    fn decide(properties: &str, active: &str, unit_file: &str, trigger: Trigger) -> String {
        let wanted = want(&format!("name: app\n{properties}"));
        let change = compare(&wanted, &have(active, unit_file), trigger).unwrap();
        change.map_or_else(|| "none".to_owned(), |change| change.action.to_string())
    }

    #[test]
    fn running_and_enabled_are_decided_apart() {
        for (ensure, active, verb) in [
            ("running", "active", None),
            ("running", "inactive", Some("started")),
            ("running", "failed", Some("started")),
            ("running", "activating", Some("started")),
            ("stopped", "activating", Some("stopped")),
            ("stopped", "deactivating", None),
            ("stopped", "inactive", None),
            ("stopped", "active", Some("stopped")),
        ] {
            for (enable, unit_file, enabling) in [
                ("enable: true", "enabled", None),
                ("enable: true", "disabled", Some("enabled")),
                ("enable: false", "enabled", Some("disabled")),
                ("enable: false", "enabled-runtime", Some("disabled")),
                ("enable: false", "disabled", None),
                ("", "enabled", None),
                ("", "disabled", None),
            ] {
                let expected: Vec<&str> = verb.into_iter().chain(enabling).collect();
                let expected = match expected.join(". ") {
                    nothing if nothing.is_empty() => "none".to_owned(),
                    verbs => verbs,
                };
                let found = decide(&format!("ensure: {ensure}\n{enable}"), active, unit_file, Trigger::Turn);
                assert_eq!(found, expected, "ensure: {ensure}, {enable} on {active}, {unit_file}");
            }
        }
    }

    #[test]
    fn a_refresh_restarts_what_runs_starts_what_does_not_and_leaves_what_shall_not() {
        for (properties, active, verb, refreshes) in [
            ("ensure: running", "active", "restarted", true),
            ("restart: reload", "active", "reloaded", true),
            ("restart: restart", "reloading", "restarted", true),
            ("ensure: running", "inactive", "started", false),
            ("restart: reload", "inactive", "started", false),
            ("ensure: stopped", "active", "stopped", false),
        ] {
            let wanted = want(&format!("name: app\n{properties}"));
            let change = compare(&wanted, &have(active, "enabled"), Trigger::Refresh).unwrap().unwrap();
            assert_eq!(
                (change.action.to_string().as_str(), change.refreshes),
                (verb, refreshes),
                "{properties}"
            );
        }
        assert_eq!(decide("ensure: stopped", "inactive", "enabled", Trigger::Refresh), "none");
    }

    #[test]
    fn a_unit_is_masked_last_and_unmasked_first() {
        for (properties, active, unit_file, verbs) in [
            ("ensure: stopped\nmasked: true", "active", "enabled", "stopped. masked"),
            (
                "ensure: stopped\nenable: false\nmasked: true",
                "active",
                "enabled",
                "stopped. disabled. masked",
            ),
            ("ensure: stopped\nmasked: true", "inactive", "masked", "none"),
            ("ensure: stopped\nmasked: true", "inactive", "masked-runtime", "masked"),
            ("ensure: stopped\nmasked: true", "active", "masked", "stopped"),
            ("masked: false", "inactive", "masked", "unmasked. started"),
            ("masked: false\nenable: true", "inactive", "masked-runtime", "unmasked. started. enabled"),
            ("ensure: stopped\nmasked: false\nenable: false", "inactive", "masked", "unmasked. disabled"),
            ("masked: false", "active", "enabled", "none"),
        ] {
            assert_eq!(
                decide(properties, active, unit_file, Trigger::Turn),
                verbs,
                "{properties} on {active}, {unit_file}"
            );
        }
    }

    #[test]
    fn units_that_cannot_be_disabled_are_left_alone() {
        for word in ["static", "indirect", "generated", "alias", "transient"] {
            for enable in ["true", "false"] {
                assert_eq!(
                    decide(&format!("enable: {enable}"), "active", word, Trigger::Turn),
                    "none",
                    "{word}"
                );
            }
        }
    }

    #[test]
    fn a_unit_that_runs_without_a_file_cannot_be_enabled_and_is_not_disabled() {
        for (properties, verb) in
            [("", "none"), ("enable: false", "none"), ("ensure: stopped\nenable: false", "stopped")]
        {
            assert_eq!(decide(properties, "active", "not-found", Trigger::Turn), verb, "{properties}");
        }
        let error = compare(&want("name: app\nenable: true"), &have("active", "not-found"), Trigger::Turn)
            .unwrap_err();
        assert_eq!(error.property, Some("enable"));
        assert_eq!(error.message, "app.service runs without a unit file: it cannot be enabled");
    }

    #[test]
    fn a_masked_unit_is_an_error_only_where_it_is_to_start() {
        for (properties, active, property) in [
            ("ensure: running", "inactive", Some("ensure")),
            ("ensure: stopped\nenable: true", "inactive", Some("enable")),
            ("ensure: stopped\nenable: false", "inactive", None),
            ("ensure: running", "active", None),
        ] {
            for word in ["masked", "masked-runtime"] {
                let wanted = want(&format!("name: app\n{properties}"));
                match (compare(&wanted, &have(active, word), Trigger::Turn), property) {
                    (Err(error), Some(property)) => {
                        assert_eq!(error.property, Some(property));
                        assert!(error.message.contains("app.service is masked"), "{error}");
                        assert!(error.help.unwrap().contains("systemctl unmask app.service"));
                    }
                    (Ok(None), None) => {}
                    (other, _) => panic!("{properties} on {active}: {other:?}"),
                }
            }
        }
    }
}
