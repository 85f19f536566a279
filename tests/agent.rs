//! The agent with sources of this machine: when it runs, what it repairs, how it ends.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    time::Duration,
};

use rustix::process::Signal;

use crate::support::{Agent, NOBODY, World, free_port, is_root, sh};

const TWO_FILES: &str = "
- $W/a: { content: \"one\\n\" }
- $W/b: { content: \"two\\n\" }
";

/// How the agent is configured. What a test waits for does not come with the interval: that is longer than anybody waits.
fn configured(config: &str) -> String {
    let interval = if config.contains("interval:") { "" } else { "interval: 1h\n" };
    format!("manifests: [site.yaml]\n{interval}{config}")
}

fn world(items: &str, config: &str) -> World {
    World::new().files(items).beside("agent.yaml", configured(config))
}

#[test]
fn a_configuration_is_checked_with_line_and_hint() {
    let world = world(TWO_FILES, "interval: 10m\nhealth_check_interval: 10s\n");
    let check = |world: &World| world.ccm(["agent", "--check", "--config", "agent.yaml"]).run();
    check(&world).exits(0).says("site.yaml").says("every 10m").says("repaired when it happens");
    for (config, expected) in [
        ("manifests: [a.yaml]\nintervall: 5m\n", "agent.yaml:2:1"),
        ("manifests: [a.yaml]\ninterval: 5s\n", "give at least 30s"),
        ("interval: 5m\n", "no manifests"),
        ("manifests: [a.yaml]\nevents: ccm.events x\n", "agent.yaml:2:9"),
        ("manifests: [a.yaml]\nregistration_stream: a b.>\n", "agent.yaml:2:22"),
        ("manifests: [a.yaml\n", "agent.yaml"),
    ] {
        let world = World::new().beside("agent.yaml", config);
        check(&world).exits(2).complains(expected);
        world.ccm(["agent", "--config", "agent.yaml"]).run().exits(2).complains(expected);
    }
    World::new().ccm(["agent", "--config", "nowhere.yaml"]).run().exits(2).complains("nowhere.yaml");
}

#[test]
fn a_mistake_in_the_configuration_shows_no_password() {
    for config in [
        "manifests:\n  - \"http://u:TOPSECRET@127.0.0.1:99999/x.tar.gz?token=TOKSECRET\"\n",
        "manifests:\n  - \"http://127.0.0.1:99999/x.tar.gz?token=TOKSECRET\"\n",
        "manifests: [\"http://u:TOPSECRET@h/x.tar.gz\", \"http://u:TOPSECRET@h/x.tar.gz\"]\n",
        "manifests: [\"http://h/x?token=TOKSECRET\", \"http://h/x?token=TOKSECRET\"]\n",
        "manifests: \"http://u:TOPSECRET@h/x.tar.gz\"\n",
        "manifests: [\"http://u:TOPSECRET@h/x.tar.gz\", {}]\n",
        "manifests: [a.yaml]\nexternal_data_url: \"http://u:TOPSECRET@h:99999/x\"\n",
        "manifests: [a.yaml]\nexternal_data_url: \"file://u:TOPSECRET@h/x\"\n",
        "manifests: [a.yaml]\nexternal_data: \"http://u:TOPSECRET@h/x\"\n",
        "manifests: [\"http://u:TOPSECRET@h/x.tar.gz\"\n",
        "manifests: [\"http://u:TOPSECRET@h/x.tar.gz\"]\nmanifests: [\"http://u:TOPSECRET@h/y\"]\n",
        "- \"http://u:TOPSECRET@h/x.tar.gz\"\n",
        "\"http://u:TOPSECRET@h/x.tar.gz\"\n",
    ] {
        let world = World::new().beside("agent.yaml", config);
        for task in ["--check", "--once", "--log-format=json"] {
            let outcome = world.ccm(["agent", task, "--config", "agent.yaml"]).run();
            outcome.exits(2).complains("agent.yaml").never_says("TOPSECRET").never_says("TOKSECRET");
        }
    }
    // Other lines are shown as before.
    let world = World::new().beside("agent.yaml", "manifests: [\"http://u:TOPSECRET@h/x\"]\nintervall: 5m\n");
    world.ccm(["agent", "--check", "--config", "agent.yaml"]).run().exits(2).complains("intervall: 5m");
}

#[test]
fn once_applies_everything_and_tells_what_failed() {
    let world = world(TWO_FILES, "");
    let once = |world: &World| world.ccm(["agent", "--once", "--config", "agent.yaml"]).run();
    once(&world).exits(0).complains("cause=start resources=2 changed=2");
    assert_eq!(world.read("a"), "one\n");
    once(&world).exits(0).complains("changed=0");
    let world = self::world("- $W/no/where: { content: x }\n", "");
    once(&world).exits(1).complains("failed=1").complains("level=error");
    let world = World::new().beside("agent.yaml", "manifests: [missing.yaml]\n");
    once(&world).exits(1).complains("missing.yaml");
}

#[test]
fn an_edit_is_repaired_when_it_happens_and_only_what_depends_on_it_is_looked_at() {
    let world = World::new()
        .manifest(
            "
- file:
    - defaults: { $OWN, mode: '0644' }
    - $W/a: { content: \"one\\n\" }
    - $W/b: { content: \"two\\n\" }
    - $W/d/c: { content: \"three\\n\" }
- exec:
    - tell: { command: \"sh -c 'echo told >>$W/told'\", refresh_only: true, subscribe: ['file#$W/a'] }
",
        )
        .dir("d")
        .beside("agent.yaml", configured(""));
    let agent = Agent::start(&world);
    agent.says("cause=start", 1);
    agent.says("msg=applied", 1);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "one\n");
    agent.makes("told", "told\ntold\n");
    agent.says("cause=drift resources=2 changed=2", 1);
    fs::remove_file(world.path("b")).unwrap();
    agent.makes("b", "two\n");
    agent.says("msg=applied", 3);
    // truncate(2) opens and closes nothing.
    sh(&format!("perl -e 'truncate($ARGV[0], 1) or die' {}", world.path("b").display()), world.base());
    agent.makes("b", "two\n");
    fs::set_permissions(world.path("b"), fs::Permissions::from_mode(0o600)).unwrap();
    agent.until("the mode", || world.path("b").metadata().unwrap().permissions().mode() & 0o777 == 0o644);
    // A directory that is moved away is missed, and one that comes is watched.
    fs::rename(world.path("d"), world.path("moved")).unwrap();
    fs::create_dir(world.path("d")).unwrap();
    agent.makes("d/c", "three\n");
    fs::write(world.path("d/c"), "drift").unwrap();
    agent.makes("d/c", "three\n");
    let (code, log) = agent.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn what_somebody_writes_right_after_the_agent_is_put_right_too() {
    // A check is made after the file is written and before the agent knows what it left there.
    let world = World::new()
        .manifest(
            "
- file:
    - defaults: { $OWN, mode: '0644' }
    - $W/a:
        content: \"one\\n\"
        health_checks:
          - command: \"sh -c '[ -e $W/once ] || { echo drift >$W/a; touch $W/once; }'\"
",
        )
        .beside("agent.yaml", "manifests: [site.yaml]\ninterval: 1h\n");
    let agent = Agent::start(&world);
    agent.until("the check", || world.path("once").exists());
    agent.makes("a", "one\n");
}

#[test]
fn own_writes_do_not_wake_it_and_nothing_else_does() {
    if !is_root() {
        return;
    }
    // The agent also watches the folders above its configuration, and other tests create folders beside theirs.
    let items: String = (0..300).map(|n| format!("    - $W/f{n}: {{ content: x }}\n")).collect();
    let world = World::quiet()
        .manifest(&format!("- file:\n    - defaults: {{ owner: root, group: root, mode: '0644' }}\n{items}"))
        .beside("agent.yaml", "manifests: [site.yaml]\n");
    let agent = Agent::start(&world);
    agent.says("resources=300 changed=300", 1);
    // Whoever has nothing to do is not woken: the kernel counts how often a thread was.
    agent.until("silence", || {
        let before = agent.switches();
        std::thread::sleep(Duration::from_secs(1));
        agent.switches() == before
    });
    let before = agent.switches();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(agent.switches(), before, "{}", agent.log());
    assert_eq!(agent.count("msg=applied"), 1, "{}", agent.log());
}

#[test]
fn what_fights_back_is_left_alone_by_name_until_somebody_asks() {
    let world = world(TWO_FILES, "");
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    for repair in 1..=3 {
        fs::write(world.path("a"), "drift").unwrap();
        agent.says("cause=drift resources=1 changed=1", repair);
    }
    agent.says("it is left alone for a while", 1);
    assert!(agent.log().contains(&world.fill("resource=file#$W/a pause=1m")), "{}", agent.log());
    // How long it is left alone, a table beside the code has. On a machine that was too slow for one pause, the repair at
    // its end begins the next, which is twice as long; one that is never left alone is repaired each time.
    let is_left_alone = (0..6).any(|_| {
        fs::write(world.path("a"), "drift").unwrap();
        // Others are repaired meanwhile.
        fs::write(world.path("b"), "drift").unwrap();
        agent.makes("b", "two\n");
        let pauses = agent.status()["pauses"].clone();
        // Nor does it wait for the end of the pause with open eyes.
        let before = busy(&agent);
        std::thread::sleep(Duration::from_secs(1));
        let work = busy(&agent) - before;
        assert!(work < 30, "{work} hundredths of a second of work");
        let is_alone = world.read("a") == "drift";
        let run = world.ccm(["agent", "run"]).run();
        run.exits(0).says("2 resources: ");
        assert_eq!(world.read("a"), "one\n");
        is_alone
            && pauses[0]["resource"] == world.fill("file#$W/a")
            && run.stdout.contains(": 1 changed, 0 failed")
    });
    assert!(is_left_alone, "{}", agent.log());
}

#[test]
fn a_source_that_is_edited_again_and_again_is_no_fight() {
    let world = World::new()
        .manifest("- file:\n    - $W/a: { source: files/a, $OWN, mode: '0644' }\n")
        .beside("files/a", "0")
        .beside("agent.yaml", configured(""));
    let agent = Agent::start(&world);
    agent.makes("a", "0");
    agent.says("msg=applied", 1);
    for edit in 1..=6 {
        fs::write(world.base().join("files/a"), edit.to_string()).unwrap();
        agent.makes("a", &edit.to_string());
        agent.says("msg=applied", edit + 1);
    }
    assert_eq!(agent.count("it is left alone"), 0, "{}", agent.log());
    assert_eq!(agent.count("cause=drift"), 0, "{}", agent.log());
    // What somebody else does to the file itself is one, which new content ends.
    for repair in 1..=3 {
        fs::write(world.path("a"), "drift").unwrap();
        agent.says("cause=drift resources=1 changed=1", repair);
    }
    agent.says("it is left alone for a while", 1);
    fs::write(world.base().join("files/a"), "new").unwrap();
    agent.makes("a", "new");
}

/// How many hundredths of a second of work an agent has done.
fn busy(agent: &Agent) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", agent.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn the_ninth_caller_is_told_that_the_agent_is_busy() {
    let world = World::new()
        .manifest("- exec:\n    - slow: { command: \"sh -c 'touch $W/begun; while [ ! -e $W/go ]; do sleep 0.05; done'\" }\n")
        .beside("agent.yaml", configured(""));
    let agent = Agent::start(&world);
    agent.until("the command", || world.path("begun").exists());
    // Callers are heard in the order in which they come.
    let callers: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut caller = UnixStream::connect(world.state().join("agent.sock")).unwrap();
            writeln!(caller, "{{\"command\":\"run\"}}").unwrap();
            caller
        })
        .collect();
    for command in ["status", "run"] {
        world
            .ccm(["agent", command])
            .run()
            .exits(2)
            .complains("the agent is busy: 8 others wait for its answer");
    }
    fs::write(world.path("go"), "").unwrap();
    for mut caller in callers {
        let mut answer = String::new();
        caller.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("\"not_applied\":0"), "{answer}");
    }
    agent.until("room", || world.ccm(["agent", "status"]).run().code == 0);
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn a_changed_manifest_is_applied_and_a_broken_one_is_kept_out() {
    let world = world(TWO_FILES, "");
    let agent = Agent::start(&world);
    agent.makes("b", "two\n");
    let manifest = fs::read_to_string(world.base().join("site.yaml")).unwrap();
    fs::write(world.base().join("site.yaml"), "- file: [").unwrap();
    agent.says("new content is refused", 1);
    // What was good stays in force, also after a restart.
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "one\n");
    agent.tells("/manifests/0/stale", true);
    agent.end();
    fs::remove_file(world.path("a")).unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "one\n");
    fs::write(world.base().join("site.yaml"), manifest.replace("one", "new")).unwrap();
    agent.makes("a", "new\n");
    // One that is gone stays in force, too.
    fs::remove_file(world.base().join("site.yaml")).unwrap();
    agent.says("the source has no answer", 1);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "new\n");
}

#[test]
fn agent_refuses_the_later_of_two_manifests_that_declare_one_resource() {
    let manifest = |name: &str, alias: &str, content: &str| {
        format!(
            "- file:\n    - $W/{name}: {{ alias: {alias}, content: {content}, $OWN, mode: '0644' }}\n    - $W/{alias}: {{ content: {content}, $OWN, mode: '0644' }}\n"
        )
    };
    for (second, named) in [(("a", "two"), "file#$W/a"), (("b", "one"), "file#one")] {
        let world = World::new();
        let (name, alias) = second;
        let first = world.fill(&manifest("a", "one", "first"));
        let second = world.fill(&manifest(name, alias, "second"));
        let world = world.beside("first.yaml", first).beside("second.yaml", second);
        let world = world.beside("agent.yaml", "manifests: [first.yaml, second.yaml]\ninterval: 1h\n");
        let agent = Agent::start(&world);
        agent.makes("a", "first");
        let reason = world.fill(named);
        agent.until(&reason, || {
            let status = agent.status();
            let error = status["manifests"][1]["error"].as_str().unwrap_or_default();
            error.contains(&reason) && status["manifests"][0]["error"].is_null()
        });
        world.ccm(["agent", "run"]).run();
        agent.makes("a", "first");
        assert!(!world.path("two").exists() && !world.path("b").exists(), "{}", agent.log());
    }
}

#[test]
fn a_hangup_reads_the_configuration_again_and_a_bad_one_changes_nothing() {
    let world = world(TWO_FILES, "");
    let agent = Agent::start(&world);
    agent.says("cause=start", 1);
    fs::write(world.base().join("agent.yaml"), "manifests: 5\n").unwrap();
    agent.signal(Signal::HUP);
    agent.says("the new configuration is not used", 1);
    agent.says("msg=applied", 2);
    let other = world.fill("- file:\n    - $W/c: { content: x, $OWN, mode: '0644' }\n");
    fs::write(world.base().join("other.yaml"), other).unwrap();
    fs::write(world.base().join("agent.yaml"), "manifests: [site.yaml, other.yaml]\n").unwrap();
    agent.signal(Signal::HUP);
    agent.makes("c", "x");
    agent.tells("/manifests/1/stale", false);
}

#[test]
fn asked_to_end_it_gives_a_command_its_time_and_starts_nothing_any_more() {
    let world = World::new()
        .manifest(
            "
- exec:
    - slow: { command: \"sh -c 'touch $W/begun; while [ ! -e $W/go ]; do sleep 0.05; done; touch $W/done'\" }
    - never: { command: touch $W/never }
",
        )
        .beside("agent.yaml", configured(""));
    let agent = Agent::start(&world);
    agent.until("the command", || world.path("begun").exists());
    agent.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    fs::write(world.path("go"), "").unwrap();
    let (code, log) = agent.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(world.path("done").exists() && !world.path("never").exists(), "{log}");
}

#[test]
fn one_agent_at_a_time_uses_a_state_directory_and_only_its_user_talks_to_it() {
    let world = world(TWO_FILES, "");
    world.ccm(["agent", "status"]).run().exits(2).complains("no agent is running");
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    let second = world.ccm(["agent", "--config", "agent.yaml"]).run();
    second.exits(2).complains("another agent uses the same state directory");
    let status = agent.status();
    assert_eq!(status["protocol"], "io.choria.ccm.v1.agent.status");
    assert_eq!(status["pid"], agent.pid());
    assert_eq!(status["manifests"][0]["failed"], 0);
    let socket = world.state().join("agent.sock");
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    if is_root() {
        let script = format!(
            "socat - UNIX-CONNECT:{} </dev/null 2>&1; ls {}",
            socket.display(),
            world.state().display()
        );
        let output = std::process::Command::new("setpriv")
            .args([&format!("--reuid={NOBODY}"), "--clear-groups", "sh", "-c", &script])
            .output()
            .unwrap();
        assert!(!output.status.success(), "{output:?}");
    }
    // Killed, it leaves a socket behind that is in nobody's way.
    drop(agent);
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    agent.status();
}

#[test]
fn a_dry_agent_changes_nothing_and_says_what_it_would_do() {
    let world = world(TWO_FILES, "noop: true\n");
    let agent = Agent::start(&world);
    agent.says("msg=\"would change\"", 2);
    assert!(!world.path("a").exists());
}

pub(crate) fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_have_the_names_of_the_original_and_idle_connections_do_not_stall_them() {
    let port = free_port();
    let items = "- $W/a: { content: x }\n- $W/s: { content: y, sensitive: true }\n";
    let world = world(items, &format!("metrics: 127.0.0.1:{port}\n"));
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    let idle: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    agent.until("metrics", || {
        std::panic::catch_unwind(|| get(port, "/metrics")).is_ok_and(|text| text.contains("last_run"))
    });
    drop(idle);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "x");
    // The latency is counted when the run is over, which is after it was logged.
    agent.until("the latency", || get(port, "/metrics").contains("repair_latency_seconds_count 1"));
    let text = get(port, "/metrics");
    for expected in [
        "choria_ccm_manifest_apply_duration_seconds_count{source=",
        "choria_ccm_agent_apply_duration_seconds_sum{manifest=",
        &world.fill("choria_ccm_resource_state_changed_count{type=\"file\",name=\"$W/a\"} 2"),
        &world.fill("choria_ccm_resource_apply_duration_seconds_count{type=\"file\",provider=\"posix\",name=\"$W/a\"} 2"),
        "choria_ccm_resource_state_total_count{type=\"file\",name=\"hidden\"} 1",
        "choria_ccm_agent_repair_latency_seconds_count 1",
        "choria_ccm_agent_source_stale{source=",
        "choria_ccm_agent_source_age_seconds{source=",
        "choria_ccm_build_info{version=",
        "process_resident_memory_bytes ",
        "process_start_time_seconds ",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("/w/s\""), "{text}");
    assert!(get(port, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(port, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(get(port, "/").starts_with("HTTP/1.1 404"));
}

#[test]
#[expect(clippy::print_stdout, reason = "figures are for people: `make fleet` shows them")]
fn a_hundred_edits_are_repaired_when_they_happen() {
    let items: String = (0..100).map(|n| format!("- $W/f{n}: {{ content: \"x\\n\" }}\n")).collect();
    let world = world(&items, "");
    let agent = Agent::start(&world);
    agent.says("resources=100", 1);
    let mut took: Vec<Duration> = (0..100)
        .map(|n| {
            let begun = std::time::Instant::now();
            fs::write(world.path(&format!("f{n}")), "drift").unwrap();
            agent.makes(&format!("f{n}"), "x\n");
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    println!("a hundred edits: {:.1?} (median), {:.1?} (worst)", took[50], took[99]);
}

#[test]
fn slow_readers_do_not_keep_others_from_the_metrics() {
    let port = free_port();
    let world = world(TWO_FILES, &format!("metrics: 127.0.0.1:{port}\n"));
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    let connect = |request: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    // Some send a request and read nothing, the others send half of one.
    let slow: Vec<TcpStream> = (0..200)
        .map(|number| connect(["GET /metrics HTTP/1.1\r\n\r\n", "GET /metrics HTTP/1.1\r\n"][number % 2]))
        .collect();
    for (path, expected) in [("/metrics", "choria_ccm_"), ("/healthz", "ok\n"), ("/readyz", "ok\n")] {
        let mut answer = String::new();
        connect(&format!("GET {path} HTTP/1.1\r\n\r\n")).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(expected), "{path}: {answer}");
    }
    drop(slow);
}
