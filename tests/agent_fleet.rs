//! Figures: many agents at one server, one with many resources, and how long changes take. `make fleet` runs them.

#![allow(clippy::print_stdout, reason = "figures are for people")]

use std::{
    fs,
    net::TcpListener,
    process::Child,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    agent::get,
    support::{
        Agent, World,
        nats::{DirectGets, NatsServer},
        sh, wait_until,
    },
};

/// Ends all of them with the test.
struct Fleet(Vec<Child>);

impl Drop for Fleet {
    fn drop(&mut self) {
        for agent in &mut self.0 {
            let _ = agent.kill();
        }
        for agent in &mut self.0 {
            let _ = agent.wait();
        }
    }
}

/// What a server has counted: messages and bytes that it was sent, and that it sent.
fn counted(port: u16) -> [u64; 4] {
    let answer = get(port, "/varz");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    // The answer may come in chunks: the counters stand on lines of their own.
    let value = |name: &str| -> u64 {
        let line = body.lines().find(|line| line.trim_start().starts_with(&format!("\"{name}\":"))).unwrap();
        line.split(':').nth(1).unwrap().trim().trim_end_matches(',').parse().unwrap()
    };
    ["in_msgs", "in_bytes", "out_msgs", "out_bytes"].map(value)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
#[ignore = "starts two hundred agents: `make fleet`"]
fn two_hundred_agents_take_a_new_bundle_within_half_a_minute() {
    const AGENTS: usize = 200;
    let world = World::new();
    let monitor = free_port();
    let Some(server) = NatsServer::with(&world, &["-m", &monitor.to_string()]) else { return };
    let bundle = |content: &str| {
        let folder = world.base().join("packed");
        fs::create_dir_all(&folder).unwrap();
        let noise = sh("head -c 150000 /dev/urandom | base64", world.base());
        fs::write(folder.join("noise"), noise).unwrap();
        let text = format!(
            "- file:\n    - \"$W/${{ Environ.AGENT }}\": {{ content: \"{content}\", $OWN, mode: '0644' }}\n"
        );
        fs::write(folder.join("manifest.yaml"), world.fill(&text)).unwrap();
        sh("tar -czf packed.tar.gz -C packed .", world.base());
        fs::read(world.base().join("packed.tar.gz")).unwrap()
    };
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    client.put_object("SITE", "site.tar.gz", &bundle("one"), 128 * 1024);
    fs::write(world.base().join("agent.yaml"), "manifests: [obj://SITE/site.tar.gz]\ninterval: 1h\n")
        .unwrap();
    let mut fleet = Fleet(Vec::new());
    for number in 0..AGENTS {
        let state = world.base().join("states").join(number.to_string());
        fs::create_dir_all(&state).unwrap();
        let call = world.ccm(["agent", "--config", "agent.yaml"]);
        let mut agent =
            call.env("CCM_STATE_DIR", state.to_string_lossy()).env("AGENT", number.to_string()).start();
        // Nobody reads what they log.
        drop(agent.stderr.take());
        fleet.0.push(agent);
    }
    let all_have = |content: &str| {
        (0..AGENTS).all(|number| {
            fs::read_to_string(world.path(&number.to_string())).is_ok_and(|found| found == content)
        })
    };
    wait_until("all agents have started", || all_have("one"));
    let new = bundle("two");
    let before = counted(monitor);
    let begun = Instant::now();
    client.put_object("SITE", "site.tar.gz", &new, 128 * 1024);
    wait_until("all agents have the new bundle", || all_have("two"));
    let took = begun.elapsed();
    let after = counted(monitor);
    let [in_messages, in_bytes, out_messages, out_bytes] =
        [0, 1, 2, 3].map(|at: usize| after[at] - before[at]);
    println!(
        "{AGENTS} agents, a bundle of {} bytes: {took:.1?}; the server was sent {in_messages} messages ({in_bytes} bytes) \
         and sent {out_messages} ({out_bytes} bytes)",
        new.len()
    );
    // Then they wait: what the polls of half a minute cost.
    let before = counted(monitor);
    std::thread::sleep(Duration::from_mins(1));
    let after = counted(monitor);
    let [in_messages, in_bytes, out_messages, out_bytes] =
        [0, 1, 2, 3].map(|at: usize| after[at] - before[at]);
    println!(
        "idle for a minute: {in_messages} messages in ({in_bytes} bytes), {out_messages} out ({out_bytes} bytes)"
    );
    assert!(took < Duration::from_secs(30), "{took:?}");
}

/// What a process has in memory, in KiB: all of it, and what is not in files.
fn resident(pid: u32) -> [u64; 2] {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    ["VmRSS:", "RssAnon:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    })
}

#[test]
#[ignore = "waits for minutes: `make fleet`"]
fn with_ten_thousand_resources_it_sleeps_and_needs_little_memory() {
    let world = World::new().dir("f");
    let files: String = (0..10_000).map(|n| format!("    - $W/f/f{n}: {{ content: x }}\n")).collect();
    let world = world
        .manifest(&format!("- file:\n    - defaults: {{ $OWN, mode: '0644' }}\n{files}"))
        .beside("agent.yaml", "manifests: [site.yaml]\ninterval: 1h\n");
    let agent = Agent::start(&world);
    agent.says("resources=10000 changed=10000", 1);
    let run = || {
        world.ccm(["agent", "run"]).run().exits(0);
    };
    run();
    let stable = agent.log().lines().rfind(|line| line.contains("cause=asked")).unwrap().to_owned();
    agent.until("silence", || {
        let before = agent.switches();
        std::thread::sleep(Duration::from_secs(1));
        agent.switches() == before
    });
    let (woken, first) = (agent.switches(), resident(agent.pid()));
    std::thread::sleep(Duration::from_mins(2));
    let woken = agent.switches() - woken;
    // As long as it may, after runs and repairs.
    for number in 0..20 {
        fs::write(world.path(&format!("f/f{number}")), "drift").unwrap();
        agent.makes(&format!("f/f{number}"), "x");
    }
    (0..5).for_each(|_| run());
    agent.until("silence", || {
        let before = agent.switches();
        std::thread::sleep(Duration::from_secs(1));
        agent.switches() == before
    });
    let last = resident(agent.pid());
    println!(
        "10,000 files: {stable}\nwoken {woken} times in two minutes; {} KiB resident ({} of it not in files), after more runs {} ({})",
        first[0], first[1], last[0], last[1]
    );
    assert_eq!(woken, 0, "{}", agent.log());
    assert!(last[1] < first[1] + 4096, "it grows: {first:?}, {last:?}");
}

#[test]
#[ignore = "measures: `make fleet`"]
fn changes_are_applied_in_milliseconds() {
    let world = World::new();
    let Some(mut server) = NatsServer::start(&world) else { return };
    let text = "- file:\n    - $W/motd: { content: \"${ Data.motd }\", $OWN, mode: '0644' }\n    \
                - $W/own: { content: \"NUMBER\", $OWN, mode: '0644' }\n";
    let manifest = |number: u32| world.fill(&text.replace("NUMBER", &number.to_string()));
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    client.put_object("SITE", "site.yaml", manifest(0).as_bytes(), 1024);
    client.make_keys("DATA", DirectGets::Allowed);
    client.put_key("DATA", "common", "data: { motd: m0 }");
    fs::write(
        world.base().join("agent.yaml"),
        "manifests: [obj://SITE/site.yaml]\nexternal_data_url: kv://DATA/common\ninterval: 1h\nsplay: 0s\n",
    )
    .unwrap();
    let agent = Agent::start(&world);
    agent.makes("motd", "m0");
    let tell = |what: &str, mut took: Vec<Duration>| {
        took.sort_unstable();
        println!("{what}: {:.1?} (median), {:.1?} (worst)", took[took.len() / 2], took[took.len() - 1]);
    };
    let timed = |change: &mut dyn FnMut(u32), name: &str, letter: &str| -> Vec<Duration> {
        let one = |number: u32| {
            let begun = Instant::now();
            change(number);
            agent.makes(name, &format!("{letter}{number}"));
            begun.elapsed()
        };
        (1..=50).map(one).collect()
    };
    let keys = timed(
        &mut |number| client.put_key("DATA", "common", &format!("data: {{ motd: m{number} }}")),
        "motd",
        "m",
    );
    tell("key changed", keys);
    let objects = timed(
        &mut |number| client.put_object("SITE", "site.yaml", manifest(number).as_bytes(), 1024),
        "own",
        "",
    );
    tell("object changed", objects);
    server.kill();
    agent.says("the connection to NATS is lost", 1);
    server.go_on();
    let begun = Instant::now();
    server.client().put_key("DATA", "common", "data: { motd: again }");
    agent.makes("motd", "again");
    tell("changed after the server came back", vec![begun.elapsed()]);
    let status: Value = agent.status();
    assert_eq!(status["nats"]["connected"], true);
}
