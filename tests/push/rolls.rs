//! Order and size of batches, and the first screen of a dry run.

use std::collections::HashMap;

use serde_json::Value;

use super::{MOTD, documents, lab::Lab, results};

/// Returns the hosts of each batch.
fn batches(hosts: &[Value]) -> HashMap<u64, Vec<String>> {
    let mut batches: HashMap<u64, Vec<String>> = HashMap::new();
    for host in hosts {
        batches
            .entry(host["batch"].as_u64().unwrap())
            .or_default()
            .push(host["host"].as_str().unwrap().to_owned());
    }
    batches
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn hosts_of_one_rack_are_never_all_in_one_batch() {
    let Some(lab) = Lab::start(4) else { return };
    lab.write("site.yaml", MOTD);
    let host = |number: usize, rack: &str| {
        format!("web{number} ansible_host=10.9.0.{number} ansible_user=root rack={rack}\n")
    };
    let inventory: String =
        [(1, "a"), (2, "a"), (3, "b"), (4, "b")].map(|(number, rack)| host(number, rack)).concat();
    lab.write("hosts.ini", &inventory);
    let outcome = lab.run("apply site.yaml -i hosts.ini --on all --batch 2 --spread rack --json");
    outcome.exits(0);
    let batches = batches(&documents(&outcome, ".push.host"));
    assert!(batches.values().all(|hosts| hosts.len() <= 2), "{batches:?}");
    for rack in [["web1", "web2"], ["web3", "web4"]] {
        assert!(
            !batches.values().any(|hosts| rack.iter().all(|host| hosts.iter().any(|h| h == host))),
            "{batches:?}"
        );
    }
    let mut orders: Vec<Vec<u64>> = (0..12)
        .map(|_| {
            let outcome = lab.run("apply site.yaml -i hosts.ini --on all --batch 1 --shuffle --json");
            let mut hosts = documents(&outcome, ".push.host");
            hosts.sort_by_key(|host| host["host"].as_str().unwrap().to_owned());
            hosts.iter().map(|host| host["batch"].as_u64().unwrap()).collect()
        })
        .collect();
    orders.dedup();
    assert!(orders.len() > 1, "twelve shuffles have one order");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn health_checks_after_the_pause_count() {
    let Some(lab) = Lab::start(2) else { return };
    let site = "- file:\n    - /opt/app: { content: x, owner: root, group: root, mode: \"0644\", health_checks: [{ command: /opt/check }] \
                }\n";
    lab.write("site.yaml", site);
    for host in 1..=2 {
        // The check passes once.
        lab.on(host, "printf \"#!/bin/sh\\nif test -e /opt/seen; then exit 2; fi; touch /opt/seen\\n\" > /opt/check; chmod 755 /opt/check");
    }
    let outcome = lab.run("apply site.yaml --on $ALL --batch 1 --pause 1s --json");
    outcome.exits(1);
    let expected = [("10.9.0.1", "unhealthy"), ("10.9.0.2", "untouched")];
    assert_eq!(results(&outcome), expected.map(|(host, result)| (host.to_owned(), result.to_owned())));
    outcome.says("after the pause");

    lab.on(1, "rm /opt/seen");
    lab.on(2, "rm -f /opt/seen");
    let confirmed = lab.run("apply site.yaml --on root@10.9.0.2 --batch 1 --pause 1s --confirm 1h --json");
    confirmed.exits(1);
    assert!(!lab.file(2, "/opt/app").exists(), "a run whose health checks fail after the pause is undone");
}

#[test]
fn dry_run_of_twenty_hosts_fits_on_a_screen() {
    let Some(lab) = Lab::start(5) else { return };
    // Twenty names for five hosts.
    let line = |number: usize| {
        format!("web{number:02} ansible_host=10.9.0.{} ansible_user=root\n", (number - 1) % 4 + 1)
    };
    let hosts: String = (1..=20).map(line).collect();
    lab.write("hosts.ini", &format!("{hosts}db1 ansible_host=10.9.0.77\ndb2 ansible_host=10.9.0.78\n"));
    lab.write("site.yaml", MOTD);
    lab.on(2, "echo old > /opt/motd");
    lab.on(3, "echo managed > /opt/motd");
    let outcome = lab.run("apply site.yaml -i hosts.ini --on all --noop --ssh-option ConnectTimeout=3");
    outcome.exits(4);
    outcome
        .says("web[01,04,05,08,09,12,13,16,17,20] (10 hosts)\n~ file#/opt/motd Would have created the file")
        .says("web[02,06,10,14,18] (5 hosts)\n~ file#/opt/motd Would have updated the file (content)")
        .says("web[03,07,11,15,19]: unchanged")
        .says("db[1,2] (2 hosts): unreachable\n      ssh: connect to host")
        .says("22 hosts: 20 ok, 2 unreachable");
    assert_eq!(outcome.stdout.matches("+managed").count(), 2, "{outcome}");
    assert!(outcome.stdout.lines().count() <= 24 && outcome.stderr.is_empty(), "{outcome}");
}
