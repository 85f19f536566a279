//! Resources that are enacted together, and checked after their change.

use super::{parts::Shelf, *};
use crate::types;

#[test]
fn consecutive_resources_are_enacted_together_with_one_event_each() {
    let parts = || ["a", "b", "c", "d"].map(|name| part(name, ""));
    shelf(|shelf| shelf.parts.insert("b".to_owned()));
    assert_eq!(apply(parts(), RunMode::Noop), [(true, false), (false, false), (true, false), (true, false)]);
    assert!(log().is_empty(), "a dry run does nothing");
    assert_eq!(apply(parts(), RunMode::Real), [(true, false), (false, false), (true, false), (true, false)]);
    assert_eq!(log(), ["put together a c d"]);
    assert_eq!(apply(parts(), RunMode::Real), [(false, false); 4]);
}

#[test]
fn group_leaves_out_resources_with_conditions_or_another_provider() {
    for (properties, expected) in [
        ("", &["put together a b c"][..]),
        ("control: { if: true }", &["put a", "put together b c"]),
        ("require: [ part#a ]", &["put a", "put together b c"]),
        ("timeout: 1m", &["put a", "put b", "put c"]),
        ("provider: right", &["put a", "put b", "put c"]),
    ] {
        shelf(|shelf| *shelf = Shelf::default());
        apply([part("a", ""), part("b", properties), part("c", "")], RunMode::Real);
        assert_eq!(log(), expected, "{properties}");
    }
}

#[test]
fn group_is_limited_by_its_type() {
    apply(["a", "b", "c", "d", "e"].map(|name| part(name, "")), RunMode::Real);
    assert_eq!(log(), ["put together a b c", "put together d e"]);
}

#[test]
fn resource_with_health_checks_is_enacted_alone_and_another_type_ends_the_group() {
    let checked = part("b", "health_checks: [ { file: / } ]");
    apply([part("a", ""), checked, part("c", ""), part("d", "")], RunMode::Real);
    assert_eq!(log(), ["put a", "put b", "put together c d"]);
    let (properties, name) = (Vec::new(), "/bin/true".to_owned());
    let other = Declaration::new(types::find("exec").unwrap(), name, Span::default(), properties);
    let other = other.resolve(Completeness::Whole, &mut Diagnostics::default()).unwrap();
    shelf(|shelf| *shelf = Shelf::default());
    apply([part("a", ""), part("b", ""), other, part("c", "")], RunMode::Real);
    assert_eq!(log(), ["put together a b", "put c"]);
}

#[test]
fn group_without_a_state_for_each_resource_is_treated_as_failed() {
    shelf(|shelf| shelf.is_forgetful = true);
    let parts = ["a", "b", "c"].map(|name| part(name, ""));
    assert_eq!(apply(parts, RunMode::Real), [(true, false); 3]);
    assert_eq!(log(), ["put together a b c", "put a"]);
}

#[test]
fn resources_of_a_failed_group_are_enacted_alone() {
    shelf(|shelf| shelf.jams_at = Some("c".to_owned()));
    let parts = ["a", "b", "c"].map(|name| part(name, ""));
    // The group came as far as the second, which therefore has changed although nothing is left to do for it.
    assert_eq!(apply(parts, RunMode::Real), [(true, false), (true, false), (false, true)]);
    assert_eq!(log(), ["put together a b c", "put a", "put c"]);
}

#[test]
fn resource_that_still_differs_after_its_change_fails() {
    shelf(|shelf| shelf.slips = Some("b".to_owned()));
    assert_eq!(apply([part("b", "")], RunMode::Real), [(false, true)]);
    assert_eq!(log(), ["put b"]);
    // In a group it fails alone, after another attempt that is its own. What the group did to it counts as a change.
    let parts = ["a", "b", "c"].map(|name| part(name, ""));
    assert_eq!(apply(parts, RunMode::Real), [(true, false), (true, true), (true, false)]);
    assert_eq!(log(), ["put together a b c", "put b"]);
}
