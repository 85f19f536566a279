//! Ctrl-C once, twice and three times, and a controller that is killed.

use std::{
    io::{BufRead, BufReader},
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{WAITING, documents, lab::Lab, results};
use crate::support::{Outcome, wait_until};

/// Presses Ctrl-C, and waits for the notice about it.
fn press(push: &mut Child, notice: &str) {
    // Two signals within 50 ms are one request.
    std::thread::sleep(std::time::Duration::from_millis(100));
    kill_process(Pid::from_child(push), Signal::INT).unwrap();
    let messages = push.stderr.as_mut().unwrap();
    let mut line = String::new();
    while !line.contains(notice) {
        line.clear();
        assert_ne!(
            BufReader::with_capacity(1, &mut *messages).read_line(&mut line).unwrap(),
            0,
            "no {notice:?}"
        );
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn first_interrupt_starts_no_further_host_and_waits() {
    let Some(lab) = Lab::start(2) else { return };
    lab.write("site.yaml", WAITING);
    let mut push = lab.spawn("apply site.yaml --on $ALL --parallel 1 --json");
    wait_until("the first run has begun", || lab.file(1, "/opt/begun").exists());
    press(&mut push, "no further host is started");
    lab.on(1, "touch /opt/go");
    let outcome = Outcome::new("push".to_owned(), push.wait_with_output().unwrap());
    outcome.exits(1);
    let expected = [("10.9.0.1", "ok"), ("10.9.0.2", "untouched")];
    assert_eq!(results(&outcome), expected.map(|(host, result)| (host.to_owned(), result.to_owned())));
    let summary = &documents(&outcome, ".push.summary")[0];
    assert!(summary["resume"].as_str().unwrap().contains("--resume"), "{summary}");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn second_interrupt_stops_runs_and_the_third_leaves_them() {
    for presses in [2, 3] {
        let Some(lab) = Lab::start(1) else { return };
        // A command that ignores the request to end keeps the run from its safe point.
        let site = "- exec:\n    - touch /opt/begun: {}\n    - sh -c \"trap true TERM; until test -e /opt/go; do sleep 0.1; done\": { \
                    timeout: 10m }\n    - touch /opt/end: {}\n";
        lab.write("site.yaml", site);
        let mut push = lab.spawn("apply site.yaml --on $ALL --json");
        wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
        press(&mut push, "no further host is started");
        press(&mut push, "stopping the runs");
        if presses == 3 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            kill_process(Pid::from_child(&push), Signal::INT).unwrap();
        }
        let outcome = Outcome::new(format!("{presses} presses"), push.wait_with_output().unwrap());
        outcome.exits(1);
        assert_eq!(results(&outcome), [("10.9.0.1".to_owned(), "failed".to_owned())]);
        lab.on(1, "touch /opt/go");
        wait_until("the run is recorded", || {
            lab.on(1, &format!("{} history --json", env!("CARGO_BIN_EXE_ccm"))).contains("\"exit_status\":1")
        });
        assert!(!lab.file(1, "/opt/end").exists(), "the run stops at its next safe point");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn history_has_the_hosts_of_a_push_whose_controller_was_killed() {
    let Some(lab) = Lab::start(3) else { return };
    lab.write("site.yaml", WAITING);
    lab.on(1, "touch /opt/go");
    let mut push = lab.spawn("apply site.yaml --on $ALL --parallel 1 --json --batch 1");
    wait_until("the second run has begun", || lab.file(2, "/opt/begun").exists());
    push.kill().unwrap();
    push.wait().unwrap();
    let history = lab.run("history --json");
    let listed = history.stdout.lines().next().unwrap();
    let listed: serde_json::Value = serde_json::from_str(listed).unwrap();
    assert!(listed["kind"] == "push" && listed["exit_status"].is_null(), "{listed}");
    let run = listed["run"].as_str().unwrap();
    let shown = lab.run(&format!("history show {run}"));
    shown.exits(0).says("10.9.0.1  ok  run ").says("10.9.0.2  started").says("10.9.0.3  untouched");
    let followed = lab.run(&format!("history show {run} --on root@10.9.0.1 --json"));
    followed.exits(0);
    assert_eq!(documents(&followed, ".push.host")[0]["output"]["changes"].as_array().unwrap().len(), 3);

    lab.on(2, "touch /opt/go");
    lab.on(3, "touch /opt/go");
    wait_until("the second run has ended", || lab.file(2, "/opt/end").exists());
    let resumed = lab.run(&format!("apply site.yaml --on $ALL --json --resume {run}"));
    resumed.exits(0);
    assert_eq!(results(&resumed).len(), 2, "the first host is done: {resumed}");
}
