//! The exec type: when a command runs, and what counts as success.

use std::fs;

use serde_json::json;

use crate::support::{Outcome, World};

/// A world whose manifest holds commands, one per line, each a name with its properties. `$RUN` is a command that
/// leaves a line in `$W/ran`.
pub(crate) fn commands(items: &str) -> World {
    let run = "command: \"sh -c 'echo x >> $W/ran'\"";
    let lines: Vec<&str> = items.lines().map(str::trim).collect();
    World::new().manifest(&format!("- exec:\n    - {}\n", lines.join("\n    - ").replace("$RUN", run)))
}

/// How often `$RUN` was run.
pub(crate) fn runs(world: &World) -> usize {
    fs::read_to_string(world.path("ran")).map_or(0, |text| text.lines().count())
}

/// One command fails, and these parts of the reason are printed.
#[track_caller]
pub(crate) fn fails(items: &str, parts: &[&str]) -> Outcome {
    let world = commands(items);
    let outcome = world.apply();
    outcome.exits(1).counts([0, 0, 1, 0]);
    for part in parts {
        outcome.says(part);
    }
    outcome
}

// The decision table.

#[test]
fn a_command_without_conditions_is_executed_every_time() {
    let world = commands("a: { $RUN }");
    world.apply().exits(0).reports("exec#a", "executed");
    let event = world.apply_with(&["--json"]).event("a");
    assert_eq!(runs(&world), 2);
    assert_eq!(event["changed"], true);
    assert_eq!(event["refreshed"], false);
    assert_eq!(event["requested_ensure"], "present");
    assert_eq!(event["provider"], "posix");
}

#[test]
fn a_command_is_skipped_when_what_it_creates_exists_and_the_guards_are_not_asked() {
    for made in ["file", "dir", "dangling"] {
        let guard = "sh -c 'echo g >> $W/asked'";
        let item = format!("a: {{ $RUN, creates: $W/{made}, onlyif: \"{guard}\", unless: \"{guard}\" }}");
        let world = commands(&item).file("file", "").dir("dir").link("dangling", "/nowhere");
        world.apply().exits(0).counts([0, 1, 0, 0]);
        assert_eq!(runs(&world), 0, "{made}");
        assert!(!world.path("asked").exists(), "{made}");
    }
}

#[test]
fn a_command_runs_once_when_it_creates_what_it_says() {
    let world = commands("a: { command: touch $W/made, creates: $W/made }");
    world.apply().counts([1, 0, 0, 0]);
    world.apply().counts([0, 1, 0, 0]);
}

#[test]
fn a_command_is_skipped_when_onlyif_exits_non_zero() {
    let world = commands("a: { $RUN, onlyif: test -e $W/flag }");
    world.apply().exits(0).counts([0, 1, 0, 0]);
    assert_eq!(runs(&world), 0);
    let world = world.file("flag", "");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_command_is_skipped_when_unless_exits_zero() {
    let world = commands("a: { $RUN, unless: test -e $W/flag }");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(runs(&world), 1);
    let world = world.file("flag", "");
    world.apply().exits(0).counts([0, 1, 0, 0]);
    assert_eq!(runs(&world), 1);
}

#[test]
fn both_guards_must_agree() {
    for (onlyif, unless, ran) in
        [("true", "false", 1), ("true", "true", 0), ("false", "false", 0), ("false", "true", 0)]
    {
        let world = commands(&format!("a: {{ $RUN, onlyif: \"{onlyif}\", unless: \"{unless}\" }}"));
        let event = world.apply_with(&["--json"]).event("a");
        assert_eq!(runs(&world), ran, "{onlyif} {unless}");
        assert_eq!(event["status"]["onlyif_satisfied"], onlyif == "true");
        assert_eq!(event["status"]["unless_satisfied"], unless == "true");
    }
}

#[test]
fn a_command_that_is_refresh_only_is_skipped_without_a_trigger() {
    for key in ["refresh_only", "refreshonly"] {
        let world = commands(&format!("a: {{ $RUN, {key}: true }}"));
        world.apply().exits(0).counts([0, 1, 0, 0]);
        assert_eq!(runs(&world), 0, "{key}");
    }
}

#[test]
fn a_dry_run_says_what_would_be_executed_and_asks_the_guards() {
    let world =
        commands("a: { $RUN, onlyif: \"sh -c 'echo g >> $W/asked'\" }\nb: { $RUN, unless: \"true\" }");
    let outcome = world.apply_with(&["--noop"]);
    outcome.exits(0).counts([1, 1, 0, 0]).reports("exec#a", "Would have executed");
    assert_eq!(runs(&world), 0);
    assert_eq!(world.read("asked"), "g\n");
    let event = world.apply_with(&["--noop", "--json"]).event("a");
    assert_eq!(event["noop_message"], "Would have executed");
    assert_eq!((&event["changed"], &event["noop"]), (&json!(true), &json!(true)));
    assert_eq!(event["status"].get("exitcode"), None);
}

// The state.

#[test]
fn the_state_tells_the_exit_code_and_what_the_conditions_said() {
    let world = commands(
        "a: { command: touch $W/made, creates: $W/made, onlyif: \"true\", unless: \"false\" }\nb: { command: sh -c 'exit 7', returns: [7] }",
    );
    let outcome = world.apply_with(&["--json"]);
    let protocol = "io.choria.ccm.v1.resource.exec.state";
    assert_eq!(
        outcome.event("a")["status"],
        json!({"protocol": protocol, "type": "exec", "name": "a", "ensure": "present", "exitcode": 0,
            "creates_satisfied": true, "onlyif_satisfied": true, "unless_satisfied": false})
    );
    assert_eq!(outcome.event("b")["status"]["exitcode"], 7);
    assert_eq!(outcome.event("b")["final_ensure"], "absent");
    let stable = world.apply_with(&["--json"]).event("a");
    assert_eq!(stable["status"].get("exitcode"), None);
    assert_eq!(stable["final_ensure"], "present");
}

// Exit codes.

#[test]
fn exit_codes_in_returns_are_success_and_all_others_failure() {
    for (code, returns, exit) in [
        (0, "", 0),
        (1, "", 1),
        (0, ", returns: []", 0),
        (2, ", returns: [0, 1, 2]", 0),
        (3, ", returns: [0, 1, 2]", 1),
        (0, ", returns: [1]", 1),
        (255, ", returns: [255]", 0),
    ] {
        let world = commands(&format!("a: {{ command: sh -c 'exit {code}'{returns} }}"));
        let outcome = world.apply_with(&["--json"]);
        outcome.exits(exit);
        assert_eq!(outcome.event("a")["status"]["exitcode"], code, "{returns}");
    }
}

#[test]
fn a_failure_tells_program_code_expectation_and_the_last_lines() {
    let script =
        "for i in $(seq 50); do echo out$i; done; printf '\\\\377bad\\\\n' >&2; echo worse >&2; exit 3";
    let outcome = fails(
        &format!("a: {{ command: \"sh -c \\\"{script}\\\"\", returns: [0, 2] }}"),
        &[
            "failed to reach desired state: exit status 3 (expected 0 or 2)\n      command: sh",
            "worse\n",
            "\u{fffd}bad",
        ],
    );
    outcome
        .says("stderr:\n")
        .says("stdout, its end:\n")
        .says("out41\n")
        .says("out50\n")
        .never_says("out40\n");
}

#[test]
fn of_a_long_line_both_ends_are_shown() {
    let outcome = fails(
        "a: { command: sh -c 'printf BEGIN%03000dTHEEND 0; exit 9' }",
        &["| BEGIN000", "0 … 0", "000THEEND\n"],
    );
    let longest = outcome.stdout.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest < 600), "{outcome}");
}

#[test]
fn a_command_that_fails_is_failed_also_when_what_it_creates_is_there() {
    let world = commands("a: { command: \"sh -c 'touch $W/made; exit 1'\", creates: $W/made }");
    let event = world.apply_with(&["--json"]).event("a");
    assert_eq!((&event["failed"], &event["changed"]), (&json!(true), &json!(true)));
    assert_eq!(event["final_ensure"], "present");
}

#[test]
fn another_attempt_runs_the_command_again_whatever_the_failed_one_left() {
    let script = "echo x >> $W/ran; test $(wc -l < $W/ran) -ge 3";
    let world = commands(&format!(
        "a: {{ command: \"sh -c '{script}'\", creates: $W/ran, tries: 5, try_sleep: 10ms }}"
    ));
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(runs(&world), 3);
}

#[test]
fn a_command_that_succeeds_without_creating_what_it_should_gets_a_warning() {
    let world = commands("a: { command: \"true\", creates: $W/made }");
    world
        .apply()
        .exits(0)
        .counts([1, 0, 0, 0])
        .says("warning: the command succeeded, but")
        .says("made does not exist");
}

#[test]
fn a_command_that_a_signal_ended_has_failed() {
    fails(
        "a: { command: sh -c 'kill -9 $$', returns: [0, 137] }",
        &["terminated by SIGKILL (expected 0 or 137)"],
    );
}

// Guards.

#[test]
fn a_guard_that_cannot_answer_is_a_failure() {
    for guard in ["onlyif", "unless"] {
        for (command, part) in [
            ("sh -c 'exit 126'", "exit status 126"),
            ("sh -c 'exit 127'", "exit status 127"),
            ("sh -c 'kill -TERM $$'", "terminated by SIGTERM"),
            ("no-such-program", "was not found in any directory"),
            ("/etc/passwd", "cannot be executed"),
        ] {
            let world = commands(&format!("a: {{ $RUN, {guard}: {command}, path: /usr/bin:/bin }}"));
            for flags in [&["--noop"][..], &[]] {
                world.apply_with(flags).exits(1).says(&format!("{guard} gave no answer: ")).says(part);
            }
            assert_eq!(runs(&world), 0, "{guard} {command}");
        }
    }
}

#[test]
fn guards_run_where_and_how_the_command_does_but_without_its_input() {
    let guard = "test \\\"$PWD:$KEY:$PATH:$(cat)\\\" = \\\"$W:value:/usr/bin:/bin:\\\"";
    let world = commands(&format!(
        "a: {{ $RUN, cwd: $W, environment: [KEY=value], path: /usr/bin:/bin, stdin: input, onlyif: \"sh -c '{guard}'\" }}"
    ));
    world.apply().exits(0).counts([1, 0, 0, 0]);
}

#[test]
fn guards_share_the_time_limit() {
    let world = commands("a: { $RUN, onlyif: sleep 100, timeout: 300ms }");
    world.apply().exits(1).says("onlyif gave no answer: \"sleep\" timed out after 300ms");
    assert_eq!(runs(&world), 0);
}
