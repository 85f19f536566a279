//! When checks are made, and what follows when they fail.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{checked, first};
use crate::support::{World, finish, wait_until};

#[test]
fn a_dry_run_checks_only_what_it_would_not_change() {
    let manifest = "- file:\n    - $W/f: { content: x, $OWN, mode: '0644', health_checks: [{ command: \"sh -c 'echo x >> $W/log; exit 2'\" }, { file: w/f }] }\n";
    let world = World::new().manifest(manifest);
    world.apply_with(&["--noop"]).exits(0).says("would run 2 health checks");
    let outcome = world.apply_with(&["--noop", "--json"]);
    let message = outcome.event("f")["noop_message"].as_str().unwrap().to_owned();
    assert_eq!(message, "Would have created the file, would run 2 health checks");
    assert!(outcome.event("f").get("health_check").is_none());
    assert!(!world.path("log").exists());
    let world = world.file("f", "x");
    let outcome = world.apply_with(&["--noop", "--json"]);
    outcome.exits(1);
    assert_eq!(outcome.event("f")["failed"], true);
    assert_eq!(outcome.event("f")["health_check"][0]["state"], "CRITICAL");
}

#[test]
fn a_check_that_fails_after_a_change_keeps_the_refresh_owed() {
    let world = World::new().manifest(
        "- file:\n    - $W/f: { content: x, $OWN, mode: '0644', health_checks: [{ file: w/well }] }\n\
         - exec:\n    - needs: { command: 'touch $W/needed', require: ['file#$W/f'] }\n    \
         - reload: { command: \"sh -c 'echo x >> $W/log'\", refresh_only: true, subscribe: ['file#$W/f'] }\n",
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1);
    let event = outcome.event("/f");
    assert_eq!((&event["failed"], &event["changed"]), (&json!(true), &json!(true)));
    assert!(
        event["error"][0].as_str().unwrap().starts_with("health check file w/well: CRITICAL: "),
        "{event}"
    );
    assert_eq!(outcome.event("needs")["unmet_requirements"], json!([world.fill("file#$W/f")]));
    assert!(!world.path("log").exists() && !world.path("needed").exists());
    // It still is not well, and the file needs no change any more.
    world.apply().exits(1);
    assert!(!world.path("log").exists());
    let world = world.file("well", "");
    world.apply().exits(0).reports("exec#reload", "executed via subscribe");
    world.apply().exits(0);
    assert_eq!(world.read("log"), "x\n");
}

#[test]
fn a_refresh_that_happened_is_paid_although_a_check_fails() {
    let world = World::new().manifest(
        "- file:\n    - $W/f: { content: x, $OWN, mode: '0644' }\n\
         - exec:\n    - reload: { command: \"sh -c 'echo x >> $W/log'\", refresh_only: true, subscribe: ['file#$W/f'], health_checks: [{ file: w/well }] }\n",
    );
    world.apply().exits(1);
    let world = world.file("well", "");
    world.apply().exits(0);
    assert_eq!(world.read("log"), "x\n");
}

#[test]
fn all_checks_are_made_but_none_after_a_failure_to_apply() {
    let world = checked(World::new(), "[{ file: w/none }, { command: 'touch $W/made' }]");
    world.apply().exits(1);
    assert!(world.path("made").exists());
    let world = World::new().dir("f").manifest(
        "- file:\n    - $W/f: { content: x, $OWN, mode: '0644', health_checks: [{ command: 'touch $W/made' }] }\n",
    );
    world.apply().exits(1);
    assert!(!world.path("made").exists());
}

#[test]
fn a_check_can_be_for_changes_only() {
    let world = World::new().manifest(
        "- file:\n    - $W/f: { content: x, $OWN, mode: '0644', health_checks: [{ command: \"sh -c 'echo x >> $W/log'\", when: changed }] }\n",
    );
    world.apply().exits(0);
    world.apply().exits(0);
    assert_eq!(world.read("log"), "x\n");
    world.apply_with(&["--monitor-only"]).exits(0);
    assert_eq!(world.read("log"), "x\nx\n");
}

#[test]
fn a_run_that_only_monitors_touches_nothing() {
    let world = World::new().file("f", "drifted").manifest(
        "- file:\n    - $W/f: { content: x, $OWN, mode: '0600', health_checks: [{ file: w/f }] }\n    \
         - $W/g: { content: x, $OWN, mode: '0600' }\n    \
         - $W/off: { content: x, $OWN, mode: '0600', control: { if: 'false' }, health_checks: [{ file: w/none }] }\n",
    );
    let before = world.tree();
    let outcome = world.apply_with(&["--monitor-only", "--json"]);
    outcome.exits(0);
    assert_eq!(world.tree(), before);
    assert_eq!(outcome.events().len(), 3);
    for event in outcome.events() {
        assert_eq!((&event["health_check_only"], &event["changed"]), (&json!(true), &json!(false)));
    }
    assert_eq!(outcome.event("off")["skipped"], true);
    let text = world.apply_with(&["--monitor-only"]);
    text.exits(0).says("checked (1 check)").never_says("/g ");
    assert!(fs::read_dir(world.state()).unwrap().next().is_none(), "nothing is remembered");
    world.apply_with(&["--monitor-only", "--noop"]).exits(2);
    World::new().manifest("- exec:\n    - \"true\": {}\n").apply_with(&["--monitor-only"]).exits(2);
}

#[test]
fn a_run_that_only_monitors_tells_what_fails() {
    let world = World::new().manifest(
        "- exec:\n    - first: { command: 'touch $W/x', health_checks: [{ file: w/none }] }\n    \
         - second: { command: 'touch $W/x', require: ['exec#first'], health_checks: [{ command: 'touch $W/checked' }] }\n",
    );
    world.apply_with(&["--monitor-only"]).exits(1).says("health check file w/none: CRITICAL");
    assert!(!world.path("x").exists() && !world.path("checked").exists());
}

#[test]
fn a_run_can_be_a_plugin_itself() {
    let plugin = |code: i32| {
        format!(
            "    - e{code}: {{ command: 'true', health_checks: [{{ name: c{code}, command: \"sh -c 'echo said {code}; exit {code}'\" }}] }}\n"
        )
    };
    let world = World::new().manifest(&format!("- exec:\n{}{}{}", plugin(0), plugin(1), plugin(2)));
    let outcome = world.apply_with(&["--monitor-only", "--format", "nagios"]);
    outcome.exits(2);
    assert_eq!(
        outcome.stdout,
        "CRITICAL - 2 of 3 checks: exec#e1 c1 WARNING: said 1; exec#e2 c2 CRITICAL: said 2\n"
    );
    let world = World::new()
        .manifest("- exec:\n    - e: { command: 'true', health_checks: [{ name: c, command: \"echo 'fine|t=5ms;;10'\" }] }\n");
    let outcome = world.apply_with(&["--monitor-only", "--format", "nagios"]);
    outcome.exits(0);
    assert_eq!(outcome.stdout, "OK - 1 check | 'c::t'=5ms;;10\n");
    World::new()
        .manifest("nonsense: [")
        .apply_with(&["--monitor-only", "--format", "nagios"])
        .exits(3)
        .says("UNKNOWN");
    let none = World::new().manifest("- exec:\n    - \"true\": {}\n");
    none.apply_with(&["--monitor-only", "--format", "nagios"]).exits(3).says("UNKNOWN - nothing was checked");
    none.apply_with(&["--format", "nagios"]).exits(2).complains("--monitor-only");
}

#[test]
fn secrets_in_what_a_check_says_are_hidden() {
    let world = checked(
        World::new(),
        "[{ command: \"sh -c 'echo token $TOKEN; echo more $TOKEN; exit 2'\", environment: ['TOKEN=canary-bird'] }]",
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1).never_says("canary-bird");
    assert_eq!(first(&outcome)["output"], "token [secret]");
    world.apply_with(&["--render"]).exits(0).never_says("canary-bird");
}

#[test]
fn user_password_and_query_of_an_address_are_hidden() {
    // Nobody listens at port 1.
    let address = "http://canary-user:canary-word@127.0.0.1:1/path?canary-query";
    for checks in [
        format!("[{{ http: '{address}', tries: 1 }}]"),
        format!("[{{ goss_rules: {{ http: {{ '{address}': {{ status: 200 }} }} }}, tries: 1 }}]"),
        "[{ goss_rules: { http: { 'http://127.0.0.1:1/': { status: 200, password: canary-word } }, command: { 'echo canary-word; false': { exit-status: 0 } } }, tries: 1 }]".to_owned(),
    ] {
        let world = checked(World::new(), &checks);
        for flags in [&["--json"][..], &["-vv"], &["--monitor-only", "--format", "nagios"]] {
            let outcome = world.apply_with(flags);
            assert_ne!(outcome.code, 0, "{outcome}");
            outcome.never_says("canary-");
        }
        world.apply_with(&["--render"]).exits(0).never_says("canary-");
    }
    let file = World::new().dir("d").path("f").display().to_string();
    let world = World::new();
    let flags = ["ensure", "file", &file, "absent", "--check-tries", "1", "--check-http", address];
    world.ccm(flags).run().exits(1).never_says("canary-");
}

#[test]
fn of_a_sensitive_resource_only_the_status_is_told() {
    let world = World::new().file("f", "x").manifest(
        "- file:\n    - $W/f: { content: x, $OWN, mode: '0644', sensitive: true, health_checks: [{ command: \"sh -c 'echo canary; exit 2'\", tries: 2, try_sleep: 10ms }] }\n",
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1).never_says("canary");
    let check = first(&outcome);
    assert_eq!(
        (&check["name"], &check["output"], &check["status"]),
        (&json!("check 1"), &json!(""), &json!(2))
    );
}

#[test]
fn a_signal_ends_a_check_and_the_run_reports() {
    let world =
        checked(World::new(), "[{ command: \"sh -c 'echo $$ > $W/pid; exec sleep 100000'\", tries: 9 }]");
    let call = world.ccm(["apply", "site.yaml", "--json"]);
    let child = call.start();
    wait_until("the check begins", || world.path("pid").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    // It would take a day if it waited for the command, or tried it again.
    let outcome = finish(child, "ccm apply".to_owned());
    outcome.exits(1);
    let check = first(&outcome);
    assert_eq!((&check["state"], &check["output"]), (&json!("UNKNOWN"), &json!("interrupted by SIGTERM")));
}

#[test]
fn metrics_are_written_at_once_for_prometheus() {
    let world = checked(World::new(), "[{ name: \"a\\\"b\", command: \"echo 'OK|time=5ms load=50%'\" }]");
    world.apply_with(&["--metrics-file", "m.prom"]).exits(0);
    let text = fs::read_to_string(world.base().join("m.prom")).unwrap();
    let labels = world.fill("type=\"file\",name=\"$W/f\",check=\"a\\\"b\"");
    for line in [
        format!("choria_ccm_healthcheck_status{{{labels}}} 0\n"),
        format!("choria_ccm_healthcheck_tries{{{labels}}} 1\n"),
        format!("choria_ccm_healthcheck_status_count{{{labels},status=\"OK\"}} 1\n"),
        format!("choria_ccm_healthcheck_status_count{{{labels},status=\"CRITICAL\"}} 0\n"),
        format!("choria_ccm_healthcheck_perfdata{{{labels},label=\"time\",uom=\"seconds\"}} 0.005\n"),
        format!("choria_ccm_healthcheck_perfdata{{{labels},label=\"load\",uom=\"ratio\"}} 0.5\n"),
        format!("choria_ccm_healthcheck_duration_seconds_count{{{labels}}} 1\n"),
        format!("choria_ccm_healthcheck_last_run_timestamp_seconds{{{labels}}} 1"),
        "# TYPE choria_ccm_healthcheck_status gauge\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
}

#[test]
fn templates_in_keys_of_rules_are_checked_when_the_manifest_is_loaded() {
    for (key, message) in [("tcp:{{ Dat.port }}", "Dat"), ("tcp:{{ Data.port | }}", "site.yaml:5")] {
        let world = World::new().manifest(&format!(
            "data: {{ port: 80 }}\nccm:\n  resources:\n    - exec:\n        - 'true': {{ health_checks: [{{ goss_rules: {{ port: {{ \"{key}\": {{ listening: true }} }} }} }}] }}\n"
        ));
        let outcome = world.ccm(["validate", "--strict", "site.yaml"]).run();
        outcome.exits(2).complains(message);
    }
}
