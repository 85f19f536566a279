//! Runs that are undone on hosts unless the controller confirms them through a new connection.

use std::fs;

use super::{MOTD, documents, lab::Lab, only, results};

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn change_that_cuts_off_ssh_is_undone_and_reported() {
    let Some(lab) = Lab::start(1) else { return };
    let site = "- file:\n    - /opt/motd: { content: x, owner: root, group: root, mode: \"0644\" }\n- exec:\n    - ip link set eth0 \
                down: { undo: ip link set eth0 up }\n";
    lab.write("site.yaml", site);
    let outcome = lab.run("apply site.yaml --on $ALL --json --confirm 5s");
    outcome.exits(1);
    let (result, reason) = only(&outcome);
    assert!(result == "failed" && reason.contains("was undone"), "{outcome}");
    assert!(!lab.file(1, "/opt/motd").exists());
    assert_eq!(documents(&outcome, ".transaction.event").len(), 2);
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn runs_within_the_limits_are_confirmed_and_others_undone() {
    let Some(lab) = Lab::start(3) else { return };
    lab.write("site.yaml", MOTD);
    let nothing = |host: usize| {
        let status = lab.on(host, &format!("{} confirm --status", env!("CARGO_BIN_EXE_ccm")));
        assert_eq!(status, "no run awaits confirmation\n");
    };
    lab.run("apply site.yaml --on $ALL --confirm 5m").exits(0).says("3 hosts: 3 ok");
    (1..=3).for_each(nothing);
    assert!(lab.file(3, "/opt/motd").exists());

    let failing = "- file:\n    - /opt/new: { content: x, owner: root, group: root, mode: \"0644\" }\n- exec:\n    - test ! -e \
                   /opt/bad: {}\n";
    lab.write("failing.yaml", failing);
    lab.on(2, "touch /opt/bad");
    let outcome = lab.run("apply failing.yaml --on $ALL --confirm 5m --batch 3 --json");
    outcome.exits(1);
    assert!(results(&outcome).iter().all(|(_, result)| result == "failed"), "{outcome}");
    outcome.says("was undone: 1 hosts are failed, unhealthy or refused");
    (1..=3).for_each(nothing);
    assert!((1..=3).all(|host| !lab.file(host, "/opt/new").exists()));

    let outcome = lab.run("apply failing.yaml --on $ALL --confirm 5m --json");
    let expected = [("10.9.0.1", "ok"), ("10.9.0.2", "failed"), ("10.9.0.3", "ok")];
    assert_eq!(results(&outcome), expected.map(|(host, result)| (host.to_owned(), result.to_owned())));
    (1..=3).for_each(nothing);
    assert!(lab.file(1, "/opt/new").exists() && !lab.file(2, "/opt/new").exists());
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn run_that_awaits_confirmation_is_confirmed_by_the_run_of_the_controller() {
    let Some(lab) = Lab::start(2) else { return };
    lab.write("site.yaml", MOTD);
    // The controller is killed between the run and its confirmation.
    lab.write("wait.yaml", &format!("{MOTD}- exec:\n    - touch /opt/begun: {{}}\n"));
    let pause = "apply wait.yaml --on $ALL --batch 2 --pause 1h --confirm 2h";
    let mut push = lab.spawn(pause);
    let status =
        |host: usize| lab.on(host, &format!("{} confirm --status --json", env!("CARGO_BIN_EXE_ccm")));
    let awaits = |host: usize| {
        let status: serde_json::Value = serde_json::from_str(&status(host)).unwrap();
        status["pending"] == true && status["left"].as_u64().is_some_and(|left| left > 3600)
    };
    crate::support::wait_until("both runs await confirmation", || {
        (1..=2).all(|host| lab.file(host, "/opt/begun").exists() && awaits(host))
    });
    crate::support::wait_until("the results are known", || {
        let history = lab.run("history --json").stdout;
        let run = serde_json::from_str::<serde_json::Value>(history.lines().next().unwrap()).unwrap()["run"]
            .clone();
        let shown = lab.run(&format!("history show {}", run.as_str().unwrap())).stdout;
        shown.matches("started").count() == 2
    });
    push.kill().unwrap();
    push.wait().unwrap();
    lab.run("apply site.yaml --on root@10.9.0.1").exits(1).says("awaits confirmation");
    lab.run("confirm --status --on $ALL").exits(0).says("pending: true");
    lab.run("confirm last --on root@10.9.0.1").exits(0).says("is confirmed");
    lab.run("confirm --undo --on root@10.9.0.2").exits(0).says("was undone");
    assert!(lab.file(1, "/opt/motd").exists() && !lab.file(2, "/opt/motd").exists());
    let nothing = lab.run("confirm --on $ALL --json");
    assert!(nothing.code == 2 || nothing.code == 1, "{nothing}");
}

#[test]
fn time_for_the_confirmation_is_longer_than_the_pause() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", MOTD);
    let refused = lab.run("apply site.yaml --on $ALL --batch 1 --pause 2m --confirm 2m");
    refused.exits(2).complains("must be longer than --pause (2m)");
    lab.write(
        "own.yaml",
        &format!(
            "ccm:\n  confirm: 1m\n  resources:\n{}",
            MOTD.replace("- file", "    - file").replace("    - /opt", "        - /opt")
        ),
    );
    lab.run("apply own.yaml --on $ALL --batch 1 --pause 2m").exits(2).complains("(1m) must be longer");
    assert!(!fs::read_to_string(lab.root(1).join("sshd.log")).unwrap().contains("Accepted"));
}
