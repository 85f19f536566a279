//! What a run prints: to people, how much they want to read, on how wide a terminal.

use std::{fmt::Write, fs};

use serde_json::json;

use crate::{
    golden::{assert_golden, settled},
    progress::{left, on_a_terminal},
    support::World,
};

/// Fifty files, of which one is not as it should be.
fn fifty() -> World {
    let mut items = String::new();
    let mut world = World::new();
    for number in 0..50 {
        let name = format!("etc/application/conf.d/{number:02}-settings-of-a-part-with-a-long-name.conf");
        items.push_str("- $W/");
        items.push_str(&name);
        items.push_str(": { content: x, mode: '0644' }\n");
        world = world.file(&name, if number == 17 { "old" } else { "x" }).mode(&name, 0o644);
    }
    world.files(&items)
}

#[test]
fn of_fifty_resources_the_one_that_changed_is_on_the_screen() {
    let world = fifty();
    let Some(written) = on_a_terminal(&world, "stty cols 80; ccm apply site.yaml") else { return };
    let screen = left(&written).join("\n");
    for line in anstream::adapter::strip_str(&screen).to_string().lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // How much of the name is left depends on where the tests run.
    let shown = screen.replace('\u{1b}', "ESC");
    let (before, rest) = shown.split_once("file#").unwrap();
    let (_, after) = rest.split_once("a-part-with-a-long-name.conf").unwrap();
    assert_golden("fifty.txt", &settled(&format!("{before}file#NAME{after}\n"), &world));
    // The second time there is nothing to tell.
    let written = on_a_terminal(&world, "stty cols 80; ccm apply site.yaml").unwrap();
    assert_golden("fifty-again.txt", &settled(&(left(&written).join("\n") + "\n"), &world));
}

#[test]
fn three_thousand_unchanged_files_print_one_line() {
    let mut items = String::new();
    let world = World::new();
    for number in 0..3000 {
        fs::write(world.path(&format!("f{number}")), "x").unwrap();
        let _ = writeln!(items, "- $W/f{number}: {{ content: x }}");
    }
    let world = world.files(&items);
    // Their mode may not be what the manifest says.
    world.apply_with(&["-q"]).exits(0);
    let outcome = world.apply_with(&[]);
    outcome.exits(0).counts([0, 3000, 0, 0]);
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome}");
}

#[test]
fn a_quiet_run_that_goes_well_prints_nothing() {
    let world = World::new().manifest("- exec: { echo hello: { logoutput: true } }\n");
    for flags in [&["-q"][..], &["--quiet", "--noop"]] {
        let outcome = world.apply_with(flags);
        assert_eq!((outcome.exits(0).stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    }
    let world = World::new().manifest("- exec: { 'false': {} }\n");
    let outcome = world.apply_with(&["-q"]);
    outcome.exits(1).says("! exec#false failed").never_says("1 resource in");
}

#[test]
fn marks_tell_what_became_of_a_resource() {
    let world = World::new().file("there", "x").file("other", "old").manifest(
        "
- file:
    - $W/there: { ensure: absent }
    - $W/new: { content: x, $OWN, mode: '0644' }
    - $W/other: { content: new, $OWN, mode: '0644' }
- exec:
    - once: { command: 'true' }
    - after: { command: 'true', refresh_only: true, subscribe: ['file#$W/new'] }
    - never: { command: 'false' }
    - behind: { command: 'true', require: ['exec#never'] }
    - off: { command: 'true', control: { if: 'false' } }
    - still: { command: 'true', creates: $W/other }
",
    );
    let marks = |outcome: &crate::support::Outcome| -> String {
        let is_resource =
            |line: &&str| line.get(1..2) == Some(" ") && !line.starts_with(' ') && line.contains('#');
        outcome.stdout.lines().filter(is_resource).filter_map(|line| line.chars().next()).collect()
    };
    assert_eq!(marks(&world.apply_with(&["-n", "-v", "--no-diff"])), "-+~~*~~.=");
    assert_eq!(marks(&world.apply_with(&["-n", "--no-diff"])), "-+~~*~~");
    assert_eq!(marks(&world.apply_with(&["-v"])), "-+~~*!?.=");
}

#[test]
fn whoever_asks_twice_is_told_what_was_looked_at_and_why() {
    let world = World::new().file("x", "old").mode("x", 0o600).manifest(
        "
- file: { $W/x: { content: x, $OWN, mode: '0644' } }
- exec: { after: { command: 'true', refresh_only: true, subscribe: ['file#$W/x'] } }
",
    );
    let outcome = world.apply_with(&["-vv"]);
    outcome.exits(0);
    for (line, told) in [
        (1, "      why: content differed; mode was 0600, wanted 0644"),
        (2, "      asked for: ensure=present content=x owner="),
        (3, "      left as:"),
        (4, "        checksum=2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
    ] {
        assert!(outcome.stdout.lines().nth(line).unwrap().starts_with(told), "{told}\n{outcome}");
    }
    outcome.says(&world.fill("      why: file#$W/x changed\n")).says("onlyif_satisfied=");
    world
        .apply_with(&["-vv"])
        .exits(0)
        .says("      why: nothing differs\n")
        .says("      found:\n        checksum=");
}

#[test]
fn failures_are_listed_once_more_with_their_place() {
    let world =
        World::new().manifest("- exec:\n    - a: { command: 'false' }\n    - b: { command: 'true' }\n");
    let outcome = world.apply_with(&[]);
    let (_, end) = outcome.exits(1).stdout.split_once("1 failed").unwrap();
    assert!(end.ends_with("\n\nfailed:\n  exec#a  site.yaml:2:21 (command)\n"), "{outcome}");
}

#[test]
fn a_command_that_went_well_is_not_said_to_be_absent() {
    let world = World::new().manifest("- exec: { 'true': {} }\n");
    world.apply_with(&["-v"]).exits(0).says("provider=posix").never_says("ensure=absent");
}

#[test]
fn colours_are_used_as_asked() {
    let world = World::new().manifest("- exec: { 'true': {} }\n- fiel: []\n");
    let good = World::new().manifest("- exec: { 'true': {} }\n");
    let escape = '\u{1b}';
    for (color, colourful) in [("always", true), ("never", false), ("auto", false)] {
        let outcome = good.apply_with(&["--color", color]);
        assert_eq!(outcome.exits(0).stdout.contains(escape), colourful, "{color}\n{outcome}");
        let outcome = world.ccm(["--color", color, "validate", "site.yaml"]).run();
        assert_eq!(outcome.exits(2).stderr.contains(escape), colourful, "{color}\n{outcome}");
    }
    let Some(written) = on_a_terminal(&good, "ccm apply --color never site.yaml") else { return };
    assert!(!written.contains(escape), "{written}");
    good.apply_with(&["--color", "sometimes"]).exits(2).complains("always");
}

#[test]
fn a_session_shows_each_event_once() {
    let world = World::new();
    let store = world.base().join("session").display().to_string();
    world.ccm(["session", "new", "--directory", &store]).run().exits(0);
    let ensure =
        |command: &str| world.ccm(["ensure", "exec", "a", "--command", command, "--session", &store]).run();
    ensure("true").exits(0).reports("exec#a", "executed");
    ensure("false").exits(1);
    let outcome = world.ccm(["session", "report", "--session", &store]).run();
    assert_eq!(outcome.exits(1).stdout.matches("exec#a").count(), 1, "{outcome}");
    outcome.counts([0, 0, 1, 0]).says("failed:\n  exec#a  failed to reach desired state: ");
}

#[test]
fn a_summary_says_what_it_is() {
    let world = World::new().manifest("- exec: { 'true': {} }\n");
    let summary = world.apply_with(&["--json"]).exits(0).summary();
    assert_eq!(summary["protocol"], "io.choria.ccm.v1.session.summary");
    let schema = world.ccm(["schema", "summary"]).run().exits(0).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&summary), "{summary}");
    assert!(!validator.is_valid(&json!({ "protocol": "other" })));
}

#[test]
fn the_id_of_a_request_comes_back() {
    let protocol = "io.choria.ccm.v1.resource.ensure.request";
    let request = |id| {
        json!({ "protocol": protocol, "id": id, "type": "exec", "properties": { "name": "true" } })
            .to_string()
    };
    let broken = json!({ "protocol": protocol, "id": "broken", "type": "exce" }).to_string();
    let input =
        [request(json!("a")), request(json!(7)), broken, request(json!([])), "{}".to_owned()].join("\n");
    let outcome = World::new().ccm(["ensure", "api", "serve"]).input(input).run();
    let answers = outcome.exits(0).json_lines();
    let ids: Vec<_> = answers.iter().map(|answer| answer.get("id").cloned().unwrap_or_default()).collect();
    assert_eq!(ids, [json!("a"), json!(7), json!("broken"), json!(null), json!(null)], "{outcome}");
    let errors: Vec<_> = answers.iter().map(|answer| answer.get("error").is_some()).collect();
    assert_eq!(errors, [false, false, true, true, true], "{outcome}");
    assert!(answers[3]["error"].as_str().unwrap().contains("`id` must be a string or a number"), "{outcome}");
}

#[test]
fn the_version_tells_what_the_program_was_built_for() {
    let outcome = World::new().ccm(["--version"]).run();
    let start = concat!("ccm ", env!("CARGO_PKG_VERSION"), " (");
    assert!(outcome.exits(0).stdout.starts_with(start), "{outcome}");
    outcome.says(std::env::consts::ARCH).says("-linux-");
}
