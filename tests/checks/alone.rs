//! `ccm check`, and checks of `ccm ensure`.

use crate::support::{World, ports};

const LIST: &str = "- { name: good, command: 'true' }\n- { name: hm, command: \"sh -c 'echo hm; exit 1'\" }\n\
                    - { name: bad, command: \"sh -c 'echo \\\"<bad>\\\"; exit 2'\" }\n- { goss_rules: { matching: { m: { content: 1, matches: 2 } } } }\n";

fn world() -> World {
    World::new().beside("list.yaml", LIST)
}

#[test]
fn a_table_tells_each_property() {
    let outcome = world().ccm(["check", "list.yaml"]).run();
    outcome.exits(1).says("FAILED").says("matching m matches").says("expected matches 2, got 1");
    outcome.says("CRITICAL: 4 checked, 2 failed, 0 unknown, 0 skipped");
    let well = World::new().beside("rules.yaml", "file: { /: { exists: true, filetype: directory } }\n");
    well.ccm(["check", "rules.yaml"]).run().exits(0).says("ok       file / exists").says("OK: 2 checked");
}

#[test]
fn every_format_says_the_same() {
    let world = world();
    let run = |format: &str| world.ccm(["check", "list.yaml", "--format", format]).run();
    let nagios = run("nagios");
    nagios.exits(2);
    assert!(
        nagios.stdout.starts_with("CRITICAL - 3 of 4 checks: hm WARNING: hm; bad CRITICAL: <bad>"),
        "{nagios}"
    );
    assert_eq!(nagios.stdout.lines().count(), 1);
    let json = run("json");
    json.exits(1);
    assert_eq!(json.json()["state"], "CRITICAL");
    assert_eq!(json.json()["health_check"].as_array().unwrap().len(), 4);
    let junit = run("junit");
    junit.exits(1).says("<testsuite name=\"bad\" tests=\"1\" failures=\"1\"").says("&lt;bad&gt;");
    assert_eq!(junit.stdout.matches("<testcase").count(), 4);
    let tap = run("tap");
    tap.exits(1).says("1..4\nok 1 - good\nok 2 - hm\nnot ok 3 - bad\n");
}

#[test]
fn what_cannot_be_started_is_told() {
    let world = World::new()
        .beside("bad.yaml", "ports: { 80: { listening: true } }\n")
        .beside("empty.yaml", "[]\n")
        .beside("go.yaml", "file: { '{{ .Env.X }}': { exists: true } }\n")
        .beside("list.yaml", "- { command: 'a | b' }\n");
    world
        .ccm(["check", "bad.yaml"])
        .run()
        .exits(2)
        .complains("did you mean `port`?")
        .complains("bad.yaml:1:1");
    world.ccm(["check", "bad.yaml", "--format", "nagios"]).run().exits(3).says("UNKNOWN");
    world.ccm(["check", "none.yaml"]).run().exits(2).complains("none.yaml");
    world.ccm(["check", "empty.yaml"]).run().exits(2).complains("holds no checks");
    world.ccm(["check", "go.yaml"]).run().exits(2).complains("templates of Go");
    world.ccm(["check", "list.yaml"]).run().exits(2).complains("shell: true").complains("list.yaml:1:");
    let piped = world.ccm(["check", "-"]).input("matching: { m: { content: 1, matches: 1 } }");
    piped.run().exits(0);
}

#[test]
fn a_resource_of_a_script_can_be_checked() {
    let world = World::new().beside("rules.yaml", "file: { w/f: { exists: true } }\n");
    let listener = ports::listen();
    let port = listener.local_addr().unwrap().port();
    let file =
        ["ensure", "file", "$W/f", "--content", "x", "--owner", "$UID", "--group", "$GID", "--mode", "0644"];
    let with = |more: &[&str]| world.ccm(file.iter().chain(more)).run();
    with(&[
        "--check",
        "test -e $W/f",
        "--check-goss",
        "rules.yaml",
        "--check-tcp",
        &format!("127.0.0.1:{port}"),
        "-v",
    ])
    .exits(0)
    .says("health check tcp 127.0.0.1");
    let outcome = with(&["--check", "false", "--check-tries", "2", "--check-sleep", "10ms", "--json"]);
    let event = outcome.event("/f");
    // `false` ends with 1, which is a warning.
    assert_eq!((event["health_check"][0]["status"].as_i64(), outcome.code), (Some(1), 0));
    let outcome =
        with(&["--check", "sh -c 'exit 2'", "--check-tries", "2", "--check-sleep", "10ms", "--json"]);
    outcome.exits(1);
    assert_eq!(outcome.event("/f")["health_check"][0]["tries"], 2);
    with(&["--check-http", "http://127.0.0.1:1/", "--check-tries", "1"]).exits(1).says("CRITICAL");
    with(&["--check", "a | b"]).exits(2).complains("shell: true");
    let silent = with(&["--check", "sh -c 'exit 2'", "--check-tries", "2", "--check-sleep", "10ms"]);
    silent.says("health check sh -c 'exit 2': CRITICAL; trying again");
}

#[test]
fn rules_of_a_script_that_cannot_be_used_are_told_before_anything_is_done() {
    let world = World::new().beside("bad.yaml", "ports: { 80: { listening: true } }\n");
    for (file, said) in [("bad.yaml", "did you mean `port`?"), ("none.yaml", "cannot read rules from")] {
        let call = ["ensure", "file", "$W/f", "--content", "x", "--check-goss", file];
        world.ccm(call).run().exits(2).complains(said);
    }
    assert!(!world.path("f").exists());
}
