//! Conditions, requirements and refreshes.

use std::collections::HashSet;

use super::{
    super::RunMode::{Noop, Real},
    *,
};
use crate::state::PendingRefresh;

#[test]
fn subscriber_of_an_alias_has_a_pending_refresh_before_the_change() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let folder = folder.join(format!("ccm-owed-to-alias-{}", std::process::id()));
    let state = StateDirectory::at(folder.clone());
    let (changed, mut subscriber) = (part("a", "alias: first"), part("b", ""));
    let because: Reference = "part#first".parse().unwrap();
    Arc::make_mut(&mut subscriber.common).subscribe = vec![because.clone()];
    let store = Some(state.refresh_store().unwrap());
    let mut refreshes = PendingRefreshes::of(&[&changed, &subscriber], store, &Session::begin(), None);
    assert!(refreshes.record(&changed, &[], &[]).is_ok());
    let owed = PendingRefresh { to: subscriber.reference(), because };
    assert!(state.refresh_store().unwrap().owed().holds(&owed));
    let _ = std::fs::remove_dir_all(folder);
}

/// What the gate says of a resource, in a word.
fn gate(resource: &Resource, session: &Session, mode: RunMode) -> String {
    let refreshes = PendingRefreshes::of(&[resource], None, session, None);
    let list = |references: Vec<&Reference>| {
        references.iter().map(|reference| reference.name.clone()).collect::<Vec<_>>().join(" ")
    };
    match gate::check(resource, session, &refreshes, &HashSet::new(), mode, &scope(), &|_| false) {
        Gate::Open(causes) => format!("open {}", list(causes)).trim_end().to_owned(),
        Gate::Excluded(reason) => reason.to_owned(),
        Gate::Unmet(unmet) => format!("unmet {}", list(unmet)),
        Gate::Faulty(Error { kind: ErrorKind::NotSeen { sight, .. }, .. }) => format!("not seen: {sight:?}"),
        Gate::Faulty(Error { kind: ErrorKind::Expression, .. }) => "expression".to_owned(),
        Gate::Faulty(error) => panic!("{error}"),
    }
}

#[test]
fn gate_checks_control_then_requirements_then_changes() {
    let mut session = Session::begin();
    for (name, edit) in [
        ("stable", (|_| {}) as fn(&mut Event)),
        ("changed", |event| event.changed = true),
        ("failed", |event| event.failed = true),
        ("half", |event| (event.changed, event.failed) = (true, true)),
        ("excluded", |event| event.skipped = true),
        ("unmet", |event| event.unmet_requirements = vec!["part#failed".to_owned()]),
        ("foreseen", |event| (event.changed, event.noop) = (true, true)),
    ] {
        let mut event = session.event("part", name);
        edit(&mut event);
        session.record(&event).unwrap();
    }
    for (properties, mode, expected) in [
        ("", Real, "open"),
        ("control: { if: false }, require: [ part#none ]", Real, "control.if is false"),
        ("control: { unless: true }", Real, "control.unless is true"),
        ("control: { if: nonsense }", Real, "expression"),
        ("control: { if: 1 + 1 }", Real, "expression"),
        ("require: [ part#stable, part#changed, part#excluded ]", Real, "open"),
        ("require: [ part#failed, part#stable, part#unmet, part#half ]", Real, "unmet failed unmet half"),
        ("require: [ part#none ]", Real, "not seen: Never"),
        ("require: [ part#foreseen ]", Real, "not seen: OnlyPredicted"),
        ("require: [ part#foreseen ]", Noop, "open"),
    ] {
        assert_eq!(gate(&part("x", properties), &session, mode), expected, "{properties} in {mode:?}");
    }
    for (subscribe, mode, expected) in [
        ("part#stable", Real, "open"),
        ("part#changed", Real, "open changed"),
        ("part#failed", Real, "open"),
        ("part#half", Real, "open"),
        ("part#excluded", Real, "open"),
        ("part#foreseen", Noop, "open foreseen"),
    ] {
        let mut resource = part("x", "");
        Arc::make_mut(&mut resource.common).subscribe = vec![subscribe.parse().unwrap()];
        assert_eq!(gate(&resource, &session, mode), expected, "{subscribe} in {mode:?}");
    }
}
