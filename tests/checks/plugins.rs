//! Plugins of Nagios.

use std::time::Instant;

use serde_json::json;

use super::{check, checked, first};
use crate::support::{World, with_time_enough};

#[test]
fn a_plugin_tells_how_it_is_and_what_it_measured() {
    let (outcome, check) = check("[{ command: \"echo 'OK - x|time=0.5s;1;2;0;10'\" }]");
    outcome.exits(0);
    assert_eq!(
        (&check["status"], &check["tries"], &check["output"]),
        (&json!(0), &json!(1), &json!("OK - x"))
    );
    assert_eq!(check["state"], "OK");
    assert_eq!(check["format"], "nagios");
    let time = json!([{ "label": "time", "value": 0.5, "uom": "s", "warn": "1", "crit": "2", "min": 0.0, "max": 10.0 }]);
    assert_eq!(check["perfdata"], time);
    let summary = outcome.summary();
    assert_eq!(summary["health_checked_count"], 1);
    assert_eq!(summary["health_check_ok_count"], 1);
    assert_eq!(summary["health_check_critical_count"], 0);
}

#[test]
fn every_exit_code_has_its_status() {
    for (code, status, state) in
        [(2, 2, "CRITICAL"), (3, 3, "UNKNOWN"), (4, 3, "UNKNOWN"), (99, 3, "UNKNOWN"), (127, 3, "UNKNOWN")]
    {
        let (outcome, check) = check(&format!("[{{ command: \"sh -c 'echo bad; exit {code}'\" }}]"));
        outcome.exits(1);
        assert_eq!((&check["status"], &check["state"]), (&json!(status), &json!(state)), "{code}");
        let event = outcome.event("f");
        assert_eq!((&event["failed"], &event["changed"]), (&json!(true), &json!(false)));
        let error = event["error"][0].as_str().unwrap();
        assert!(
            error.starts_with(&format!("health check sh -c 'echo bad; exit {code}': {state}: bad")),
            "{error}"
        );
    }
}

#[test]
fn a_warning_is_told_and_fails_only_who_asks_for_that() {
    let warns = "command: \"sh -c 'echo hm; exit 1'\", tries: 3, try_sleep: 10s";
    let (outcome, one) = check(&format!("[{{ {warns} }}]"));
    outcome.exits(0);
    assert_eq!((&one["status"], &one["tries"]), (&json!(1), &json!(1)));
    assert_eq!(outcome.summary()["health_check_warning_count"], 1);
    let (outcome, one) = check("[{ command: \"sh -c 'exit 1'\", fail_on: warning }]");
    outcome.exits(1);
    assert_eq!(one["status"], 1);
    checked(World::new(), &format!("[{{ {warns} }}]")).apply().exits(0).says("WARNING: hm");
}

#[test]
fn a_check_that_passes_in_the_third_attempt_is_well() {
    let world = checked(
        World::new(),
        "[{ command: \"sh -c 'echo x >> $W/count; test $(wc -l < $W/count) -ge 3 || exit 2'\", tries: 3, try_sleep: 1s }]",
    );
    let begun = Instant::now();
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(0).complains("trying again");
    assert_eq!(first(&outcome)["tries"], 3);
    assert!(begun.elapsed().as_secs() >= 2);
}

#[test]
fn a_program_that_does_not_exist_is_tried_once() {
    for program in ["/no/such/plugin", "no-such-plugin"] {
        // A second attempt would be a day away.
        let (outcome, check) = check(&format!("[{{ command: {program} -x, tries: 5, try_sleep: 1d }}]"));
        outcome.exits(1);
        assert_eq!((&check["status"], &check["tries"]), (&json!(3), &json!(1)));
        assert_eq!(check["state"], "UNKNOWN");
        assert!(check["output"].as_str().unwrap().contains(program), "{check}");
    }
}

#[test]
fn a_plugin_that_hangs_is_ended_with_all_that_it_started() {
    with_time_enough(|limit| {
        let world = checked(
            World::new(),
            &format!(
                "[{{ command: \"sh -c 'sleep 4242 & echo $! >> $W/pids; sleep 4242'\", timeout: {limit}, tries: 2, try_sleep: 10ms }}]"
            ),
        );
        let outcome = world.apply_with(&["--json"]);
        outcome.exits(1);
        let check = first(&outcome);
        assert_eq!((&check["state"], &check["tries"]), (&json!("UNKNOWN"), &json!(2)));
        assert_eq!(check["output"], format!("timed out after {limit}"));
        let pids = std::fs::read_to_string(world.path("pids")).unwrap_or_default();
        for pid in pids.lines() {
            let name = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(!name.contains("(sleep)") || name.contains(") Z "), "{name}");
        }
        // Both attempts have to have come to it.
        (pids.lines().count() == 2).then_some(())
    });
}

#[test]
fn what_is_measured_may_be_on_several_lines() {
    let (_, check) = check(
        "[{ command: \"printf 'DISK OK|/=1MB\\\\nmore text\\\\nand more|/boot=2MB\\\\n/home=3MB\\\\n'\" }]",
    );
    assert_eq!((&check["output"], &check["long_output"]), (&json!("DISK OK"), &json!("more text\nand more")));
    let labels: Vec<&str> =
        check["perfdata"].as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["/", "/boot", "/home"]);
}

#[test]
fn a_bad_item_is_dropped_and_changes_nothing_else() {
    let (outcome, check) = check("[{ command: \"echo \\\"OK|a=U b=1,5s c=inf 'x y'=3 junk\\\"\" }]");
    outcome.exits(0);
    let items: Vec<_> = check["perfdata"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["label"].clone(), item["value"].clone()))
        .collect();
    assert_eq!(items, [(json!("a"), json!(null)), (json!("b"), json!(1.5)), (json!("x y"), json!(3.0))]);
}

#[test]
fn a_flood_of_output_is_cut_and_marked() {
    let world = checked(
        World::new(),
        "[{ command: \"sh -c 'echo OK - first; head -c 67108864 /dev/zero | tr \\\\\\\\0 x; cat /proc/$PPID/status > $W/memory'\", timeout: 1h }]",
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(0);
    let memory = world.read("memory");
    let kibibytes = |key: &str| -> u64 {
        let line = memory.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // The program's own code, of which a build for tests has a lot, is not counted.
    assert!(kibibytes("VmHWM:") - kibibytes("RssFile:") <= 20 * 1024, "{memory}");
    let check = first(&outcome);
    assert_eq!(check["output"], "OK - first");
    assert!(check["long_output"].as_str().unwrap().contains("[cut]"), "{check}");
    assert!(check["long_output"].as_str().unwrap().len() <= 8192);
}

#[test]
fn a_check_can_need_several_successes_and_give_up_in_time() {
    let (outcome, one) = check("[{ command: 'true', successes: 3, try_sleep: 10ms }]");
    outcome.exits(0);
    assert_eq!(one["tries"], 3);
    // What would come too late is not waited for.
    let (outcome, one) =
        check("[{ command: 'false', fail_on: warning, tries: 100, try_sleep: 1h, within: 1m }]");
    outcome.exits(1);
    assert_eq!(one["tries"], 1);
    // There is time for a second attempt and not for a third: on a busy machine only with more of it.
    let gives_up_in_time = [("1s", "1500ms"), ("10s", "15s"), ("1m", "90s")].iter().any(|(pause, within)| {
        let (outcome, one) = check(&format!(
            "[{{ command: 'false', fail_on: warning, tries: 100, try_sleep: {pause}, within: {within} }}]"
        ));
        outcome.exits(1);
        assert!(one["tries"].as_u64() <= Some(2), "{one}");
        one["tries"] == 2
    });
    assert!(gives_up_in_time);
}

#[test]
fn what_is_wrong_with_checks_is_told_with_its_line_and_nothing_is_touched() {
    for (checks, message) in [
        ("[{ command: a, tcp: 80 }]", "`command` and `tcp` cannot be given together"),
        ("[{ tries: 3 }]", "it checks nothing"),
        ("[{ command: a, format: goss }]", "`format` does not fit `command`"),
        (
            "[{ goss_rules: { file: { /x: { exists: true } } }, format: nagios }]",
            "`format` does not fit `goss_rules`",
        ),
        ("[{ command: 'a | b' }]", "shell: true"),
        ("[{ command: 'a && b' }]", "shell: true"),
        ("[{ command: x, timeuot: 5s }]", "did you mean `timeout`?"),
        ("[{ tcp: 80 }, { tcp: 80 }]", "two health checks are called \"tcp localhost:80\""),
        ("[{ goss_rules: { ports: { 80: { listening: true } } } }]", "did you mean `port`?"),
        ("[{ goss_rules: { port: { 80: { listenning: true } } } }]", "did you mean `listening`?"),
        ("[{ goss_rules: {} }]", "there are no rules"),
        ("[{ goss_rules: { addr: { nowhere: { reachable: true } } } }]", "is not an address"),
        ("[{ goss_rules: { addr: { 'udp://h:53': { reachable: true } } } }]", "cannot be tried"),
    ] {
        let world = World::new().manifest(&format!(
            "- file:\n    - $W/f: {{ content: x, $OWN, mode: '0644', health_checks: {checks} }}\n"
        ));
        world.apply().exits(2).complains(message).complains("site.yaml:2:");
        assert!(!world.path("f").exists(), "{checks}");
    }
}
