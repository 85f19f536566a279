//! The machine that runs the tests, compared with what its own programs say. Those that are not installed say nothing.

use std::{collections::BTreeSet, process::Command};

use ccm_expr::Value;

use super::{super::FACTS, Known};

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Amounts change while they are read.
#[track_caller]
fn assert_close(left: i64, right: i64, whole: i64) {
    assert!((left - right).abs() <= whole / 4, "{left} and {right}");
}

#[test]
fn uname_and_hostname_agree() {
    let known = Known::running();
    for (path, flag) in [("hostname", "-n"), ("kernel", "-r"), ("architecture", "-m")] {
        if let Some(expected) = said("uname", &[flag]) {
            assert_eq!(known.text(path), expected, "{path}");
        }
    }
    if let Some(expected) = said("hostname", &[]) {
        assert_eq!(known.text("host.info.hostname"), expected);
    }
}

#[test]
fn nproc_counts_as_many_processors() {
    if let Some(expected) = said("nproc", &["--all"]) {
        assert_eq!(Known::running().json("cpu.info.#"), expected);
    }
}

#[test]
fn free_sees_the_same_memory() {
    let Some(table) = said("free", &["-b"]) else { return };
    let row = |name: &str| -> Vec<i64> {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect()
    };
    let known = Known::running();
    let (memory, swap) = (row("Mem:"), row("Swap:"));
    assert_eq!(known.number("memory.virtual.total"), memory[0]);
    assert_close(known.number("memory.virtual.free"), memory[2], memory[0]);
    assert_close(known.number("memory.virtual.available"), memory[5], memory[0]);
    assert_eq!(known.number("memory.swap.info.total"), swap[0]);
    assert_close(known.number("memory.swap.info.used"), swap[1], swap[0]);
}

#[test]
fn ip_lists_the_same_interfaces_and_addresses() {
    let Some(answer) = said("ip", &["-j", "addr"]) else { return };
    let expected: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let known = Known::running();
    let interfaces = serde_json::Value::from(known.value("network.interfaces"));
    assert_eq!(interfaces.as_array().unwrap().len(), expected.as_array().unwrap().len());
    for link in expected.as_array().unwrap() {
        let found = interfaces.as_array().unwrap().iter().find(|found| found["name"] == link["ifname"]);
        let found = found.unwrap_or_else(|| panic!("{} is missing", link["ifname"]));
        assert_eq!(found["index"], link["ifindex"]);
        assert_eq!(found["mtu"], link["mtu"]);
        let addresses: Vec<String> = link["addr_info"]
            .as_array()
            .unwrap()
            .iter()
            .map(|address| format!("{}/{}", address["local"].as_str().unwrap(), address["prefixlen"]))
            .collect();
        let own: Vec<&str> = found["addrs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|address| address["addr"].as_str().unwrap())
            .collect();
        assert_eq!(own, addresses, "{}", link["ifname"]);
    }
}

#[test]
fn ip_takes_the_same_way_out() {
    let Some(answer) = said("ip", &["-j", "-4", "route", "show", "default"]) else { return };
    let routes: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let known = Known::running();
    assert_eq!(routes.as_array().unwrap().is_empty(), known.value("network.default_ipv4").is_null());
}

#[test]
fn df_sees_the_same_sizes() {
    let known = Known::running();
    let usage = serde_json::Value::from(known.value("partition.usage"));
    for partition in usage.as_array().unwrap() {
        let path = partition["path"].as_str().unwrap();
        let Some(answer) = said("df", &["-B1", "--output=size", path]) else { continue };
        let size: i64 = answer.lines().nth(1).unwrap().trim().parse().unwrap();
        assert_eq!(partition["total"], size, "{path}");
    }
}

#[test]
fn the_time_since_the_start_is_that_of_the_kernel() {
    let known = Known::running();
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let expected: i64 = uptime.split('.').next().unwrap().parse().unwrap();
    let found = known.number("host.info.uptime");
    assert!((found - expected).abs() <= 5, "{found} and {expected}");
    assert!(known.number("host.info.procs") > 0);
}

/// The path of everything in a value that is neither a map nor a list of them, `#` standing for each item.
fn paths(at: &str, value: &Value, found: &mut BTreeSet<String>) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match value {
        Value::Map(_) | Value::Object(_) => {
            for name in value.member_names() {
                paths(&below(&name), &value.member(&name).unwrap(), found);
            }
        }
        Value::List(items) if items.iter().all(|item| item.as_map().is_some()) => {
            items.iter().for_each(|item| paths(&below("#"), item, found));
        }
        _ => {
            found.insert(at.to_owned());
        }
    }
}

#[test]
fn every_fact_is_listed_and_every_one_that_is_listed_exists() {
    let mut found = BTreeSet::new();
    for name in ["debian", "ubuntu", "rocky", "alpine"] {
        paths("", &Known::recorded(name).facts, &mut found);
    }
    paths("", &Known::running().facts, &mut found);
    let listed: BTreeSet<String> = FACTS.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(listed.len(), FACTS.len(), "a fact is listed twice");
    assert_eq!(listed, found);
}
