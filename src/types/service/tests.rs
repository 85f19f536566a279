//! What systemctl prints, from recordings of an old and a new systemd, and what the type makes of it.

use std::fmt::Write;

use super::{
    state::ServiceState,
    systemctl::enablement_word,
    unit::{Unit, unit_name},
    *,
};
use crate::{
    document::{Source, from_node, parse},
    resource::Properties as _,
};

const OLD: &str = include_str!("recordings/systemd-247.txt");
const NEW: &str = include_str!("recordings/systemd-257.txt");

/// What a user asks for, from the properties as they stand in a manifest.
pub(super) fn want(yaml: &str) -> Properties {
    let source = Source::read("test", yaml.as_bytes().to_vec()).unwrap();
    from_node(&parse(&source).unwrap()).unwrap()
}

/// One call in a recording.
struct Call<'a> {
    arguments: Vec<&'a str>,
    stdout: String,
    stderr: String,
}

fn calls(recording: &str) -> Vec<Call<'_>> {
    let call = |text| {
        let (command, output): (&str, &str) = str::split_once(text, '\n').unwrap();
        let mut call =
            Call { arguments: command.split(' ').collect(), stdout: String::new(), stderr: String::new() };
        for line in output.lines().filter(|line| !line.starts_with("exit: ")) {
            match line.strip_prefix("stderr: ") {
                Some(line) => writeln!(call.stderr, "{line}").unwrap(),
                None => writeln!(call.stdout, "{line}").unwrap(),
            }
        }
        call
    };
    recording.split("$ systemctl ").skip(1).map(call).collect()
}

/// The units that were shown, by the names that they were asked for with.
fn shown(recording: &str) -> Vec<(&str, Unit)> {
    let show = calls(recording).into_iter().find(|call| call.arguments[0] == "show").unwrap();
    let names = show.arguments.iter().copied().filter(|argument| argument.starts_with("rec-"));
    let units = Unit::read_all(&show.stdout);
    assert_eq!(names.clone().count(), units.len());
    names.zip(units).collect()
}

#[test]
fn the_units_of_a_recording_are_what_they_were_made_to_be() {
    for recording in [OLD, NEW] {
        let units = shown(recording);
        let unit = |name: &str| &units.iter().find(|(asked, _)| *asked == name).unwrap().1;
        for (name, active, unit_file) in [
            ("rec-running", "active", "enabled"),
            ("rec-stopped", "inactive", "disabled"),
            ("rec-failed", "failed", "disabled"),
            ("rec-activating", "activating", "disabled"),
            ("rec-static", "inactive", "static"),
            ("rec-masked", "inactive", "masked"),
            ("rec-sysv", "inactive", "generated"),
            ("rec-linked", "inactive", "linked"),
            ("rec-indirect", "inactive", "indirect"),
            ("rec-runtime", "inactive", "enabled-runtime"),
            ("rec-reloading", "reloading", "disabled"),
            ("rec-deactivating", "deactivating", "disabled"),
            ("rec-transient", "active", "transient"),
        ] {
            let unit = unit(name);
            assert_eq!((unit.active.as_str(), unit.boot.as_str()), (active, unit_file), "{name}");
            assert_eq!(unit.id, unit_name(name));
            assert!(!unit.has_no_file() && !unit.stale);
            ServiceState::of(&want(&format!("name: {name}")), unit).unwrap();
        }
        assert!(unit("rec-unknown").has_no_file());
        assert!(unit("rec-stale").stale);
        assert_eq!(unit("rec-alias").id, "rec-real.service");
        assert!(unit("rec-activating").is_starting());
        assert!(!unit("rec-looping").is_starting(), "it died, and is tried again");
        let failed = unit("rec-failed");
        assert_eq!((failed.result.as_str(), failed.exit_status.as_str()), ("exit-code", "3"));
    }
}

#[test]
fn what_show_says_is_what_is_active_says() {
    for recording in [OLD, NEW] {
        let units = shown(recording);
        for call in calls(recording).iter().filter(|call| call.arguments[0] == "is-active") {
            let (_, unit) = units.iter().find(|(name, _)| *name == call.arguments[2]).unwrap();
            assert_eq!(unit.active, call.stdout.trim(), "{}", unit.id);
        }
    }
}

#[test]
fn an_unknown_unit_is_not_found_whether_systemd_has_a_word_for_it_or_only_a_message() {
    for recording in [OLD, NEW] {
        let calls = calls(recording);
        let asked = |name: &str| {
            calls.iter().find(|call| call.arguments == ["is-enabled", "--system", name]).unwrap()
        };
        let unknown = asked("rec-unknown");
        assert_eq!(enablement_word(&unknown.stdout, &unknown.stderr, "rec-unknown").unwrap(), None);
        let sysv = asked("rec-sysv");
        assert_eq!(enablement_word(&sysv.stdout, &sysv.stderr, "rec-sysv").unwrap().unwrap(), "disabled");
        let alias = asked("rec-alias");
        assert_eq!(enablement_word(&alias.stdout, &alias.stderr, "rec-alias").unwrap().unwrap(), "alias");
    }
    let error = enablement_word("\n", "", "app").unwrap_err();
    assert_eq!(error, ServiceError::UnknownEnablement { word: String::new() });
    let error = enablement_word("", "Failed to connect to bus: Host is down\n", "app").unwrap_err();
    assert_eq!(error.to_string(), "systemctl is-enabled app failed: Failed to connect to bus: Host is down");
}

#[test]
fn anything_may_be_printed() {
    for output in ["", "\n\n\n", "=", "Id", "NRestarts=many\n\n\n\nId==", "\u{fffd}=\u{fffd}\n"] {
        for unit in Unit::read_all(output) {
            assert!(!unit.is_described());
            assert!(ServiceState::of(&want("name: app"), &unit).is_err());
        }
    }
}

#[test]
fn a_name_is_of_a_service_unless_it_says_otherwise() {
    for (name, unit) in [
        ("nginx", "nginx.service"),
        ("nginx.service", "nginx.service"),
        ("telnet.socket", "telnet.socket"),
        ("php8.2-fpm", "php8.2-fpm.service"),
        (".service", ".service.service"),
        ("a+b~c", "a\\x2bb\\x7ec.service"),
    ] {
        assert_eq!(unit_name(name), unit);
    }
}

#[test]
fn a_name_that_no_unit_can_have_is_a_problem() {
    let name = |length| want(&format!("name: {}", "a".repeat(length)));
    assert!(name(247).problems().is_empty());
    assert_eq!(name(248).problems().len(), 1);
}

#[test]
fn what_is_not_said_has_a_default() {
    let want = want("name: app");
    assert_eq!((want.ensure, want.enable, want.restart), (Ensure::Running, None, Refresh::Restart));
    assert_eq!(want.settle, Duration::from_secs(1));
}

#[test]
fn several_things_done_are_told_in_one_sentence_and_foretold_in_several() {
    let action = Action(vec![Verb::Start, Verb::Enable]);
    assert_eq!(action.to_string(), "started. enabled");
}
