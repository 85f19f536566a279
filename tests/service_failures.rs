//! Services in the lab: what cannot be had, and what the user is told then.

use crate::{
    lab::Site,
    support::{Outcome, World, with_time_enough},
};

const SLEEP: &str = "ExecStart=/bin/sleep infinity";

fn service(name: &str, properties: &str) -> String {
    format!("- service:\n    - {name}: {{ {properties} }}\n")
}

#[test]
fn a_unit_that_nobody_knows_is_not_found() {
    let Some(site) = Site::new("unknown") else { return };
    for properties in ["", "ensure: stopped", "enable: false"] {
        let run = site.apply(&service("no-such-unit", properties));
        run.exits(1).says("service not found").says("no-such-unit.service");
    }
    let noop = site.apply_with(&service("no-such-unit", ""), &["--noop"]);
    noop.exits(1).says("service not found");
    site.ccm(&["status", "service", "no-such-unit"]).exits(1).complains("service not found");
    // The failure of one is nobody else's.
    site.unit("known", SLEEP);
    let both = "- service:\n    - defaults: { settle: 0s }\n    - no-such-unit:\n    - known:\n";
    site.apply(both).exits(1).counts([1, 0, 1, 0]);
}

#[test]
fn a_unit_that_comes_while_it_is_waited_for_is_found() {
    let Some(site) = Site::new("late") else { return };
    site.before(
        "daemon-reload",
        "[ -f /srv/late/once ] || { touch /srv/late/once; (cp /srv/late/unit \
                                  /etc/systemd/system/late.service) >/dev/null 2>&1 & }\n",
    );
    site.write("/srv/late/unit", &format!("[Service]\n{SLEEP}\n"));
    let run = site.apply(&service("late", "settle: 0s, tries: 100, try_sleep: 100ms"));
    run.exits(0).counts([1, 0, 0, 0]);
}

#[test]
fn a_masked_unit_is_neither_started_nor_enabled() {
    let Some(site) = Site::new("masked") else { return };
    site.lab.sh("ln -s /dev/null /etc/systemd/system/masked.service; systemctl daemon-reload");
    for mode in [&[][..], &["--noop"]] {
        for properties in ["", "ensure: stopped, enable: true"] {
            let run = site.apply_with(&service("masked", properties), mode);
            run.exits(1).says("masked.service is masked").says("systemctl unmask masked.service");
        }
    }
    site.apply(&service("masked", "ensure: stopped, enable: false")).exits(0).counts([0, 1, 0, 0]);
    site.unit("masked-for-now", SLEEP);
    site.lab.sh("ln -s /dev/null /run/systemd/system/masked-for-now2.service; systemctl daemon-reload");
    site.apply(&service("masked-for-now2", "")).exits(1).says("is masked");
}

#[test]
fn a_failed_start_comes_with_the_words_of_systemctl_and_of_the_service() {
    let Some(site) = Site::new("oneshot") else { return };
    site.unit("oneshot", "Type=oneshot\nExecStart=/bin/sh -c 'echo the disk is on fire >&2; exit 3'");
    let run = site.apply(&service("oneshot", ""));
    run.exits(1)
        .says("systemctl start oneshot failed: Job for oneshot.service failed")
        .says("last lines of its journal:")
        .says("the disk is on fire");
    let event = site.apply_with(&service("oneshot", ""), &["--json"]).event("oneshot");
    assert_eq!(event["final_ensure"], "stopped");
    assert_eq!(event["status"]["metadata"]["active_state"], "failed");
}

#[test]
fn a_oneshot_that_stays_counts_as_running_and_one_that_does_not_is_explained() {
    let Some(site) = Site::new("stays") else { return };
    site.unit("stays", "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true");
    site.apply(&service("stays", "settle: 0s")).exits(0).counts([1, 0, 0, 0]);
    site.apply(&service("stays", "settle: 0s")).exits(0).counts([0, 1, 0, 0]);
    site.unit("goes", "Type=oneshot\nExecStart=/bin/true");
    site.apply(&service("goes", "")).exits(1).says("did not stay running").says("RemainAfterExit=yes");
}

#[test]
fn a_service_that_dies_after_its_start_is_a_failure() {
    let Some(site) = Site::new("dies") else { return };
    let dies = "until [ -e /srv/dies/go ]; do sleep 0.02; done; echo out of memory; exit 9";
    site.unit("dies", &format!("ExecStart=/bin/sh -c '{dies}'"));
    site.apply(&service("dies", "settle: 0s")).exits(0);
    site.lab.sh("systemctl stop dies");

    site.before_the_second_look(
        "dies",
        "touch /srv/dies/go; until /usr/bin/systemctl is-failed --quiet dies; do sleep 0.02; done",
    );
    let run = site.apply_with(&service("dies", "settle: 700ms"), &["--json"]);
    let event = run.exits(1).event("dies");
    let errors = event["error"].to_string();
    assert!(errors.contains("failed to reach desired state: dies.service did not stay running"), "{run}");
    assert!(errors.contains("it is failed"), "{run}");
    assert!(errors.contains("Result=exit-code, ExecMainStatus=9"), "{run}");
    assert!(errors.contains("out of memory"), "{run}");
    assert!(event["duration"].as_u64().unwrap() >= 700_000_000, "it was given its time: {run}");
}

#[test]
fn a_service_that_dies_and_is_started_again_without_end_is_a_failure() {
    let Some(site) = Site::new("loops") else { return };
    site.unit("loops-slowly", "ExecStart=/bin/false\nRestart=always\nRestartSec=1h");
    site.before_the_second_look(
        "loops-slowly",
        "until /usr/bin/systemctl show loops-slowly | grep -q SubState=auto-restart; do sleep 0.02; done",
    );
    // One that died is not waited for, or it would still be activating.
    site.apply(&service("loops-slowly", "settle: 10ms")).exits(1).says("auto-restart");
    site.unit(
        "loops-fast",
        "ExecStart=/bin/sleep 0.2\nRestart=always\nRestartSec=100ms\nStartLimitIntervalSec=0",
    );
    let restarts = "$(/usr/bin/systemctl show --value --property=NRestarts loops-fast)";
    site.before_the_second_look(
        "loops-fast",
        &format!("until [ {restarts} -gt $((first + 2)) ]; do sleep 0.02; done"),
    );
    site.apply(&service("loops-fast", "settle: 10ms")).exits(1).says("did not stay running");
    site.lab.sh("systemctl stop loops-slowly loops-fast");
}

#[test]
fn a_slow_service_is_waited_for_as_long_as_it_may_take() {
    let Some(site) = Site::new("slow") else { return };
    let slow = "Type=notify\nNotifyAccess=all\nExecStart=/bin/sh -c 'sleep 2; systemd-notify --ready; exec sleep infinity'";
    site.unit("slow", slow);
    site.apply(&service("slow", "settle: 0s")).exits(0).counts([1, 0, 0, 0]);
    assert_eq!(site.active("slow"), "active");
}

#[test]
fn an_attempt_that_ran_out_of_time_still_tells_what_it_left() {
    let Some(site) = Site::new("out-of-time") else { return };
    site.unit("out-of-time", "Type=notify\nExecStart=/bin/sleep infinity");
    with_time_enough(|limit| {
        let manifest = service("out-of-time", &format!("timeout: {limit}"));
        let run = site.apply_with(&manifest, &["--json"]);
        let event = run.exits(1).event("out-of-time");
        let came_to_the_start = event["status"]["metadata"]["active_state"] == "activating";
        if came_to_the_start {
            assert!(event["error"].to_string().contains(&format!("timed out after {limit}")), "{run}");
            assert_eq!(event["final_ensure"], "stopped", "{run}");
        }
        site.lab.sh("systemctl stop out-of-time");
        came_to_the_start.then_some(())
    });
}

#[test]
fn a_time_limit_no_longer_than_the_look_again_is_no_failure_of_the_service() {
    let Some(site) = Site::new("short") else { return };
    site.unit("short", SLEEP);
    with_time_enough(|limit| {
        let run = site.apply(&service("short", &format!("settle: {limit}, timeout: {limit}")));
        site.lab.sh("systemctl stop short");
        // On a busy machine the start alone may take that long.
        (run.code == 0).then(|| run.counts([1, 0, 0, 0]).code)
    });
    site.unit(
        "short-lived",
        "ExecStart=/bin/sh -c 'until [ -e /srv/short/go ]; do sleep 0.02; done; exit 1'",
    );
    site.before_the_second_look(
        "short-lived",
        "touch /srv/short/go; until /usr/bin/systemctl is-failed --quiet short-lived; do sleep 0.02; done",
    );
    with_time_enough(|limit| {
        site.lab.sh("rm -f /srv/short/go /srv/short/looks-short-lived; systemctl stop short-lived || true");
        let run = site.apply(&service("short-lived", &format!("settle: 1h, timeout: {limit}")));
        run.exits(1).stdout.contains("did not stay running").then_some(())
    });
}

#[test]
fn an_attempt_that_was_interrupted_still_tells_what_it_left() {
    let Some(site) = Site::new("interrupted") else { return };
    site.unit("interrupted", SLEEP);
    site.before(
        "start",
        "(while ! /usr/bin/systemctl is-active --quiet interrupted; do sleep 0.05; done; kill -TERM $PPID) \
                          >/dev/null 2>&1 &\n",
    );
    let run = site.apply_with(&service("interrupted", "settle: 1h"), &["--json"]);
    let event = run.exits(1).event("interrupted");
    assert_eq!((&event["final_ensure"], &event["failed"]), (&"running".into(), &true.into()), "{run}");
    site.lab.sh("systemctl stop interrupted");
}

#[test]
fn the_last_lines_of_the_journal_are_those_of_this_start() {
    let Some(site) = Site::new("talkative") else { return };
    let talk = "Type=oneshot\nExecStart=/bin/sh -c 'for i in $(seq 20); do echo line $$i; done; cat /run/talkative; exit 1'";
    site.unit("talkative", talk);
    for (cause, other) in [("the disk is full", "the disk is gone"), ("the disk is gone", "the disk is full")]
    {
        site.write("/run/talkative", &format!("{cause}\n"));
        let run = site.apply(&service("talkative", ""));
        run.exits(1).says("last lines of its journal:").says(cause).never_says(other).never_says("line 3\n");
        // In the order in which the journal has them: what the service says and what systemd says of it come in two ways.
        let (_, shown) = run.stdout.split_once("last lines of its journal:\n").expect("lines");
        let shown: Vec<&str> = shown.lines().map(str::trim).take(5).collect();
        let journal = site.lab.sh("journalctl --unit=talkative --no-pager --quiet --output=cat");
        assert!(journal.contains(&shown.join("\n")), "{journal}\n{run}");
    }
    site.unit("brief", "Type=oneshot\nExecStart=/bin/sh -c 'cat /run/brief; exit 1'");
    for (cause, other) in [("first cause", "second cause"), ("second cause", "first cause")] {
        site.write("/run/brief", &format!("{cause}\n"));
        site.apply(&service("brief", "")).exits(1).says(cause).never_says(other);
    }
}

#[test]
fn a_unit_held_back_by_a_condition_is_said_to_be() {
    let Some(site) = Site::new("condition") else { return };
    site.write(
        "/etc/systemd/system/held-back.service",
        &format!("[Unit]\nConditionPathExists=/nowhere\n[Service]\n{SLEEP}\n"),
    );
    let run = site.apply(&service("held-back", ""));
    run.exits(1)
        .says("failed to reach desired state: held-back.service was not started: a condition of its unit is not met")
        .says("systemctl cat held-back.service")
        .never_says("RemainAfterExit");
}

#[test]
fn an_ordinary_user_is_told_that_there_is_no_such_unit() {
    let Some(site) = Site::new("ordinary") else { return };
    site.write("/srv/ordinary/site.yaml", &service("no-such-unit", ""));
    let script = "setpriv --reuid=65534 --regid=65534 --clear-groups ccm apply /srv/ordinary/site.yaml --state-dir /tmp/ordinary";
    let output = site.lab.command(&["/bin/sh", "-ec", script]).output();
    let run = Outcome::new(script.to_owned(), output.expect("a shell"));
    run.exits(1).says("service not found").never_says("Access denied");
}

#[test]
fn a_word_that_nobody_knows_is_quoted() {
    let Some(site) = Site::new("words") else { return };
    site.unit("words", SLEEP);
    site.before("show", "/usr/bin/systemctl \"$@\" | sed s/ActiveState=.*/ActiveState=pondering/; exit");
    site.apply(&service("words", "")).exits(1).says("invalid systemctl is-active output: \"pondering\"");
    site.before_no_more("show");
    site.before("is-enabled", "echo perhaps; exit");
    site.apply(&service("words", "")).exits(1).says("invalid systemctl is-enabled output: \"perhaps\"");
}

#[test]
fn other_states_of_systemd_have_their_meaning() {
    let Some(site) = Site::new("states") else { return };
    site.unit("states", SLEEP);
    for (word, ensure) in [
        ("reloading", "running"),
        ("refreshing", "running"),
        ("deactivating", "stopped"),
        ("maintenance", "stopped"),
    ] {
        site.before(
            "show",
            &format!("/usr/bin/systemctl \"$@\" | sed s/ActiveState=.*/ActiveState={word}/; exit"),
        );
        let run = site.apply(&service("states", &format!("ensure: {ensure}")));
        run.exits(0).counts([0, 1, 0, 0]);
    }
}

#[test]
fn names_that_could_be_anything_else_are_refused_before_anything_is_done() {
    let world = World::new().manifest("- service:\n    - -x:\n    - app@instance:\n    - \"a; rm -rf /\":\n");
    world
        .validate()
        .exits(2)
        .complains("begins with '-'")
        .complains("contains '@'")
        .complains("contains ';'")
        .complains("service name contains dangerous characters: \"app@instance\"")
        .complains("service name contains dangerous characters: \"a; rm -rf /\"");
    world
        .ccm(["status", "service", "app@instance"])
        .run()
        .exits(2)
        .complains("ccm status service app@instance");
}

#[test]
fn without_systemd_it_is_said_what_is_missing() {
    let Some(site) = Site::new("without") else { return };
    site.write("/srv/without/site.yaml", &service("app", ""));
    let script = "mount -t tmpfs none /run/systemd; mount -t tmpfs none /run/dbus
                  exec /usr/local/bin/ccm apply /srv/without/site.yaml --state-dir /srv/without/state";
    let output = site.lab.command(&["unshare", "--mount", "/bin/sh", "-ec", script]).output();
    let run = Outcome::new(script.to_owned(), output.expect("a shell"));
    run.exits(1).says("systemctl is-active app failed: ").says("System has not been booted with systemd");
}
