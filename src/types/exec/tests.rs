//! Decisions and secrecy of the exec type, without running anything.

use super::*;
use crate::document::{Source, from_node, parse};

fn properties(text: &str) -> Properties {
    let source = Source { name: "test".to_owned(), text: format!("{{ name: run, {text} }}") };
    from_node(&parse(&source).unwrap()).unwrap()
}

fn decide(text: &str, have: &ExecState, trigger: Trigger) -> Result<Option<Action>, Error> {
    let change = decision::compare(&properties(text), have, trigger)?;
    Ok(change.map(|change| {
        assert_eq!(change.refreshes, change.action == Action::Refresh);
        change.action
    }))
}

#[test]
fn every_row_of_the_decision_table_is_taken_in_its_order() {
    let no = ExecState::default;
    let created = || ExecState { creates_satisfied: true, ..no() };
    let doubtful = || ExecState { doubt: Some(Error::new("no answer")), ..no() };
    let onlyif = || ExecState { onlyif_satisfied: true, ..no() };
    let unasked = || ExecState { onlyif_unasked: true, ..no() };
    let unless = || ExecState { unless_satisfied: true, ..no() };
    for (text, have, action) in [
        ("", no(), Some(Action::Execute)),
        ("creates: /x", no(), Some(Action::Execute)),
        ("creates: /x", created(), None),
        ("onlyif: x", no(), None),
        ("onlyif: x", onlyif(), Some(Action::Execute)),
        ("onlyif: x", unasked(), Some(Action::Execute)),
        ("onlyif: x, unless: x", ExecState { unless_satisfied: true, ..unasked() }, None),
        ("onlyif: x, refresh_only: true", unasked(), None),
        ("unless: x", no(), Some(Action::Execute)),
        ("unless: x", unless(), None),
        ("refresh_only: true", no(), None),
        ("refreshonly: true, onlyif: x", onlyif(), None),
        ("creates: /x, onlyif: x", ExecState { onlyif_satisfied: true, ..created() }, None),
        ("creates: /x", ExecState { failed_before: true, ..created() }, Some(Action::Execute)),
    ] {
        assert_eq!(decide(text, &have, Trigger::Turn), Ok(action), "{text}");
        assert_eq!(decide(text, &have, Trigger::Refresh), Ok(Some(Action::Refresh)), "{text}");
    }
    assert_eq!(decide("onlyif: x", &doubtful(), Trigger::Turn), Err(Error::new("no answer")));
    assert_eq!(decide("onlyif: x", &doubtful(), Trigger::Refresh), Ok(Some(Action::Refresh)));
    let created_in_doubt = ExecState { creates_satisfied: true, ..doubtful() };
    assert_eq!(decide("creates: /x, onlyif: x", &created_in_doubt, Trigger::Turn), Ok(None));
}

#[test]
fn once_it_ran_only_its_outcome_counts() {
    let ran = |outcome| ExecState { outcome: Some(outcome), ..ExecState::default() };
    for text in ["", "onlyif: x", "refresh_only: true", "creates: /x"] {
        assert_eq!(decide(text, &ran(Ok(())), Trigger::Turn), Ok(None), "{text}");
        let failed = ExecState { creates_satisfied: true, ..ran(Err(Error::new("failed"))) };
        assert_eq!(decide(text, &failed, Trigger::Turn), Err(Error::new("failed")), "{text}");
    }
}

#[test]
fn secrets_are_not_in_what_events_and_logs_show_of_the_properties() {
    let want = properties("environment: [A=canary], stdin: canary");
    let json = serde_json::to_string(&want).unwrap();
    assert!(json.contains("A=[secret]") && !json.contains("canary"), "{json}");
    assert!(!format!("{want:?}").contains("canary"));
}
