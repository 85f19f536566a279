//! Failures, signals and time limits.

use std::{cell::RefCell, time::Duration};

use super::*;

#[test]
fn failure_stops_its_manifest_and_remaining_resources_are_counted() {
    shelf(|shelf| shelf.jams_at = Some("jam".to_owned()));
    let parts = |names: &[&str]| names.iter().map(|name| part(name, "")).collect::<Vec<_>>();
    let manifests = vec![parts(&["jam", "a", "b"]), parts(&["c"]), parts(&["d", "jam", "e"]), parts(&["f"])];
    let (finished, events) = apply_all(manifests, RunMode::Real, OnFailure::Stop, &host());
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["jam", "c", "d", "jam", "f"]);
    let stopped = finished.stopped.unwrap();
    assert!(matches!(stopped.reason, Reason::Failure));
    assert_eq!(stopped.remaining, 3);
}

#[test]
fn failure_of_the_last_resource_does_not_stop_the_run() {
    shelf(|shelf| shelf.jams_at = Some("jam".to_owned()));
    let (finished, events) =
        apply_all(vec![vec![part("a", ""), part("jam", "")]], RunMode::Real, OnFailure::Stop, &host());
    assert_eq!(events.iter().map(|event| event.failed).collect::<Vec<_>>(), [false, true]);
    assert!(finished.stopped.is_none());
}

#[test]
fn signal_stops_all_manifests_including_empty_ones() {
    let _turn = crate::signals::turn();
    let host = Host { interrupt: Interrupt::install().unwrap(), ..host() };
    crate::signals::send(Signal::Terminate.number());
    host.interrupt.pause(Duration::MAX);
    let manifests = vec![vec![part("a", "")], vec![part("b", ""), part("c", "")], Vec::new()];
    let (finished, events) = apply_all(manifests, RunMode::Real, OnFailure::Stop, &host);
    assert!(events.is_empty());
    let stopped = finished.stopped.unwrap();
    assert!(matches!(stopped.reason, Reason::Signal(Signal::Terminate)));
    assert_eq!(stopped.remaining, 3);
}

#[test]
fn pause_ends_at_the_time_limit_of_its_attempt() {
    let (host, state, prediction) =
        (host(), LocalState::at(StateDirectory::none()), RefCell::<Prediction>::default());
    let mut silent = |_: &str| {};
    let cx = Context::new(&host, &state, &prediction, Path::new("/"), Some(Duration::ZERO), &mut silent);
    let kind = cx.pause(Duration::MAX).unwrap_err().kind;
    assert!(matches!(kind, ErrorKind::TimedOut { .. }), "{kind:?}");
}
