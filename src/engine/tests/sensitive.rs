//! Errors of sensitive resources.

use super::*;

/// Applies a part, and returns what is wrong with it.
fn errors(resource: Resource) -> Vec<String> {
    let (_, mut events) = apply_all(vec![vec![resource]], RunMode::Real, OnFailure::Continue, &host());
    events.remove(0).error
}

#[test]
fn error_of_a_sensitive_resource_does_not_show_its_state() {
    shelf(|shelf| shelf.slips = Some("b".to_owned()));
    for (properties, expected) in
        [("", "place is the floor, wanted the shelf"), ("sensitive: true", "place differs")]
    {
        let help = "something else may be changing it at the same time";
        let expected = format!("failed to reach desired state: {expected}; {help}");
        assert_eq!(errors(part("b", properties)), [expected], "{properties}");
    }
}

#[test]
fn error_of_a_sensitive_resource_does_not_show_its_control() {
    let undefined = "control: { if: \"1 + 'hunter2' > 1\" }";
    let told = errors(part("x", undefined)).concat();
    assert!(told.starts_with("control.if: "), "{told}");
    let covered = errors(part("x", &format!("sensitive: true, {undefined}")));
    assert_eq!(covered, ["its control cannot be worked out"]);
    // A requirement is not worked out from anything.
    let unseen = errors(part("x", "sensitive: true, require: [ part#none ]")).concat();
    assert!(unseen.starts_with("there is no session in which [secret] could have been seen; "), "{unseen}");
}
