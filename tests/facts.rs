//! `ccm facts`: what is shown, what is gathered for it, and facts that people add.

use std::fs;

use crate::support::{Outcome, World, fits_strace, sh};

fn facts(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(["facts"].iter().chain(arguments)).run()
}

#[test]
fn everything_is_shown_as_json() {
    let world = World::new();
    let all = facts(&world, &[]).exits(0).json();
    let sections = ["host", "cpu", "memory", "partition", "network"];
    let short =
        ["hostname", "fqdn", "domain", "os", "platform", "family", "version", "kernel", "architecture"];
    let names: Vec<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, [&sections[..], &short[..]].concat());
    let info: Vec<&str> = all["host"]["info"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "hostname",
        "uptime",
        "bootTime",
        "procs",
        "os",
        "platform",
        "platformFamily",
        "platformVersion",
        "kernelVersion",
        "kernelArch",
        "virtualizationSystem",
        "virtualizationRole",
        "hostId",
    ];
    assert_eq!(info, expected);
    for name in short {
        assert!(all[name].is_string(), "{name} is {}", all[name]);
    }
    assert_eq!(all["kernel"].as_str(), Some(sh("uname -r", world.base()).trim()));
}

#[test]
fn a_query_shows_a_part() {
    let world = World::new();
    let expected = sh("uname -n", world.base());
    assert_eq!(facts(&world, &["hostname"]).exits(0).stdout, format!("\"{}\"\n", expected.trim()));
    assert_eq!(facts(&world, &["host.info.hostname", "--yaml"]).exits(0).stdout, expected);
    facts(&world, &["network.interfaces.#(name==\"lo\").mtu"]).exits(0);
    let info = facts(&world, &["memory.swap.info", "--yaml"]);
    info.exits(0).says("total:").never_says("{");
}

#[test]
fn an_unknown_query_names_the_nearest_key() {
    let world = World::new();
    facts(&world, &["host.info.platfromFamily"]).exits(2).complains("platformFamily");
    facts(&world, &["hots"]).exits(2).complains("host");
    let outcome = facts(&world, &["nothing.like.it"]);
    outcome.exits(2).complains("nothing").complains("network");
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_query_that_is_no_path_is_refused() {
    facts(&World::new(), &["host.#(name=="]).exits(2);
}

#[test]
fn flags_go_over_files_and_files_over_the_machine() {
    let world = World::new()
        .beside("home/.config/choria/ccm/facts.yaml", "role: own\nsite: { x: 1 }\nos: mine\n")
        .beside("home/.config/choria/ccm/facts.d/a.json", r#"{"site": {"y": 1}}"#)
        .beside("given.yaml", "role: file\nsite: { z: 1 }\n");
    let query = "[role,site,os]";
    assert_eq!(facts(&world, &[query]).exits(0).json().to_string(), r#"["own",{"x":1,"y":1},"mine"]"#);
    let file = facts(&world, &[query, "--facts", "given.yaml"]);
    assert_eq!(file.exits(0).json().to_string(), r#"["file",{"x":1,"y":1,"z":1},"mine"]"#);
    let flags = ["--fact", "role=flag", "--facts", "given.yaml", "--fact", "site.x=2"];
    let all = facts(&world, &[&[query], &flags[..]].concat());
    assert_eq!(all.exits(0).json().to_string(), r#"["flag",{"x":2,"y":1,"z":1},"mine"]"#);
}

#[test]
fn a_broken_file_in_a_folder_is_a_warning_and_a_broken_flag_an_error() {
    let world = World::new()
        .beside("home/.config/choria/ccm/facts.yaml", "role: [\n")
        .beside("broken.yaml", "a: 1\na: 2\n");
    facts(&world, &["os"]).exits(0).complains("facts.yaml:1:7").complains("this bracket is never closed");
    facts(&world, &["os", "--facts", "broken.yaml"]).exits(2).complains("broken.yaml:2:1");
    facts(&world, &["os", "--facts", "missing.yaml"]).exits(2).complains("missing.yaml");
    facts(&world, &["os", "--fact", "role"]).exits(2).complains("KEY=VALUE");
    facts(&world, &["os", "--fact", "a..b=1"]).exits(2).complains("a..b");
    for flags in [&["x"][..], &[], &["x", "--yaml"]] {
        let outcome = facts(&world, &[flags, &["--fact", "x=[.inf]"]].concat());
        assert_eq!(outcome.exits(2).complains("+Inf is not a finite number").stdout, "");
    }
}

/// The files that were opened and the programs that were run for a query.
fn trace(world: &World, query: &[&str]) -> String {
    let file = world.base().join("trace");
    let strace = ["strace", "-f", "-qq", "-e", "trace=openat,openat2,execve,socket,connect,sendto", "-o"];
    let wrapper = strace.into_iter().map(str::to_owned).chain([file.display().to_string()]);
    world.ccm(["facts"].iter().chain(query)).under(wrapper).run().exits(0);
    fs::read_to_string(file).expect("a trace")
}

#[test]
fn only_what_is_asked_for_is_gathered() {
    if !fits_strace() {
        return;
    }
    let world = World::new().beside("home/.config/choria/ccm/facts.yaml", "memory: { note: x }\n");
    let hostname = trace(&world, &["hostname"]);
    for path in ["/proc/meminfo", "/proc/cpuinfo", "mountinfo", "os-release", "/proc/stat", "AF_NETLINK"] {
        assert!(!hostname.contains(path), "{path} is not needed:\n{hostname}");
    }
    let family = trace(&world, &["host.info.platformFamily"]);
    assert!(family.contains("os-release"));
    for path in ["/proc/meminfo", "/proc/cpuinfo", "mountinfo", "/proc/stat", "/proc/net"] {
        assert!(!family.contains(path), "{path} is not needed:\n{family}");
    }
    let note = trace(&world, &["memory.note"]);
    assert!(!note.contains("/proc/meminfo"), "a fact of one's own forces nothing beside it:\n{note}");
}

#[test]
fn no_program_is_run_and_nothing_is_sent() {
    if !fits_strace() {
        return;
    }
    let all = trace(&World::new(), &[]);
    assert_eq!(all.matches("execve(").count(), 1, "{all}");
    assert!(!all.contains("connect(") && !all.contains("AF_INET"), "{all}");
    let sockets = all.lines().filter(|line| line.contains("socket("));
    assert!(sockets.clone().count() > 0 && sockets.clone().all(|line| line.contains("AF_NETLINK")), "{all}");
    for path in ["/proc/stat", "/proc/meminfo", "/proc/self/mountinfo", "/etc/os-release"] {
        assert_eq!(all.matches(path).count(), 1, "{path} is read once:\n{all}");
    }
}
