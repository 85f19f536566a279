//! What goes wrong around an agent: it is killed at work, clocks jump, content is replaced while it is fetched.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    agent::get,
    support::{
        Agent, World, has,
        http::{Reply, Server},
        is_root,
        nats::{DirectGets, NatsServer},
        sh, skip,
    },
};

fn manifest(world: &World, content: &str) -> String {
    world.fill(&format!("- file:\n    - $W/a: {{ content: \"{content}\", $OWN, mode: '0644' }}\n"))
}

/// A process that is killed with the test.
struct Leftover(i32);

impl Drop for Leftover {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[test]
fn a_refresh_that_is_owed_is_made_up_for_after_a_kill() {
    let world = World::new()
        .manifest(
            "
- file:
    - $W/a: { content: one, $OWN, mode: '0644' }
- exec:
    - tell:
        command: \"sh -c 'if [ ! -e $W/second ]; then echo $$ >$W/new; mv $W/new $W/pid; exec sleep 1000; fi; echo told >>$W/told'\"
        refresh_only: true
        subscribe: ['file#$W/a']
",
        )
        .beside("agent.yaml", "manifests: [site.yaml]\n");
    let agent = Agent::start(&world);
    agent.until("the command", || world.path("pid").exists());
    let _leftover = Leftover(world.read("pid").trim().parse().unwrap());
    drop(agent);
    fs::write(world.path("second"), "").unwrap();
    let agent = Agent::start(&world);
    agent.makes("told", "told\n");
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn asked_to_end_in_the_midst_of_ten_thousand_resources_it_ends() {
    // The original was still writing three and a half minutes later.
    let files: String = (0..10_000).map(|n| format!("    - $W/f{n}: {{ content: x }}\n")).collect();
    let items = format!(
        "- exec:\n    - wait: {{ command: \"sh -c 'touch $W/begun; while [ ! -e $W/go ]; do sleep 0.05; done'\" }}\n\
         - file:\n    - defaults: {{ $OWN, mode: '0644' }}\n{files}"
    );
    let world = World::new().manifest(&items).beside("agent.yaml", "manifests: [site.yaml]\n");
    let agent = Agent::start(&world);
    agent.until("the first resource", || world.path("begun").exists());
    agent.signal(Signal::INT);
    fs::write(world.path("go"), "").unwrap();
    let (code, log) = agent.end();
    assert_eq!(code, Some(0), "{log}");
    let made = fs::read_dir(world.path("")).unwrap().count();
    assert!(made < 10_000, "{made} files");
}

#[test]
fn more_events_than_the_kernel_keeps_have_everything_looked_at() {
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let most: usize = most.trim().parse().unwrap();
    let world = World::new()
        .files("- $W/a: { content: one }\n- $W/b: { content: two }")
        .beside("agent.yaml", "manifests: [site.yaml]\ninterval: 1h\n");
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    agent.stop();
    // Two in turn: the kernel keeps the same event only once when it comes twice in a row. Many more than it keeps: a
    // neighbour that forks holds a file open for a moment, and puts its event behind the next one of the other file.
    for number in 0..3 * most {
        fs::write(world.path(["x", "y"][number % 2]), "").unwrap();
    }
    // Nobody is told of this any more.
    fs::write(world.path("a"), "drift").unwrap();
    agent.signal(Signal::CONT);
    agent.says("too much happened at once to be followed", 1);
    agent.makes("a", "one");
    fs::write(world.path("b"), "drift").unwrap();
    agent.makes("b", "two");
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn where_the_kernel_allows_no_more_watches_runs_go_on() {
    let limited = ["unshare", "--user", "--map-root-user", "sh", "-c"];
    let script = "echo 2 >/proc/sys/user/max_inotify_watches && exec \"$@\"";
    let wrapper = [limited.as_slice(), &[script, "sh"]].concat();
    let tried = std::process::Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        skip("needs user namespaces with limits of their own");
        return;
    }
    let world = World::new()
        .files("- $W/a: { content: one }")
        .beside("agent.yaml", "manifests: [site.yaml]\ninterval: 1h\n");
    let agent = Agent::start_under(&world, &wrapper);
    agent.says("the kernel allows no more watches", 1);
    agent.makes("a", "one");
    fs::write(world.path("a"), "drift").unwrap();
    world.ccm(["agent", "run"]).run().exits(0);
    assert_eq!(world.read("a"), "one");
    assert_eq!(agent.end().0, Some(0));
}

/// A folder that shows another one by way of a program, as a file system over the network does: nobody is told of what is
/// changed in the other one.
struct Elsewhere(PathBuf);

impl Elsewhere {
    fn mount(folder: &Path, at: &Path) -> Option<Self> {
        if !is_root() || !has("bindfs") {
            return None;
        }
        if !Path::new("/dev/fuse").exists() {
            skip("needs /dev/fuse");
            return None;
        }
        let mounted = std::process::Command::new("bindfs").arg(folder).arg(at).output().unwrap();
        assert!(mounted.status.success(), "{mounted:?}");
        Some(Self(at.to_owned()))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn what_is_on_a_file_system_that_tells_nothing_is_named_once_and_waits_for_the_interval() {
    let world = World::new()
        .dir("there")
        .dir("here")
        .files("- $W/here/a: { content: one }\n- $W/here/b: { content: two }\n- $W/c: { content: three }")
        .beside("agent.yaml", "manifests: [site.yaml]\ninterval: 30s\nsplay: 0s\n");
    let Some(_mount) = Elsewhere::mount(&world.path("there"), &world.path("here")) else { return };
    let agent = Agent::start(&world);
    agent.makes("here/b", "two");
    agent.says("not everything is told of this directory", 1);
    let told = world.fill("path=$W/here reason=\"it is on a file system that others change, too: fuse\"");
    assert_eq!(agent.count(&told), 1, "{}", agent.log());
    // What is told is repaired at once, whatever else is not.
    fs::write(world.path("c"), "drift").unwrap();
    agent.makes("c", "three");
    // On the other side of it.
    fs::write(world.path("there/a"), "drift").unwrap();
    agent.makes("here/a", "one");
    agent.says("cause=interval resources=3 changed=1", 1);
    assert_eq!(agent.count("not everything is told"), 1, "{}", agent.log());
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn a_clock_that_jumps_changes_nothing() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let world = World::new();
    let site = manifest(&world, "one");
    let world = world
        .beside("site.yaml", &site)
        .beside("agent.yaml", format!("manifests: [site.yaml]\nmetrics: 127.0.0.1:{port}\n"));
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    agent.end();
    // All that is kept is from a time to come, as after a clock that was wrong was set right.
    let record = sh("ls state/sources/*/record.json", world.base());
    let record = world.base().join(record.trim());
    let mut value: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    value["good"]["fetched"] = json!("2099-01-01T00:00:00Z");
    fs::write(&record, value.to_string()).unwrap();
    sh("touch -d 2099-01-01 site.yaml w/a state/sources/* state/sources/*/*", world.base());
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    let age = get(port, "/metrics");
    assert!(
        age.lines()
            .any(|line| line.starts_with("choria_ccm_agent_source_age_seconds{") && line.ends_with(" 0")),
        "{age}"
    );
    for content in ["drift", "more drift"] {
        fs::write(world.path("a"), content).unwrap();
        agent.makes("a", "one");
    }
    // What is newer counts, whatever its time says.
    fs::write(world.base().join("site.yaml"), site.replace("one", "two")).unwrap();
    sh("touch -d 1980-01-01 site.yaml", world.base());
    agent.makes("a", "two");
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn a_bundle_that_is_replaced_while_it_is_fetched_is_fetched_again() {
    let world = World::new();
    let bundle = |content: &str| {
        let folder = world.base().join("packed");
        fs::create_dir_all(&folder).unwrap();
        // Something that does not compress, so that half of it is not all of it.
        let noise = sh("head -c 20000 /dev/urandom | base64", world.base());
        fs::write(folder.join("noise"), noise).unwrap();
        fs::write(folder.join("manifest.yaml"), manifest(&world, content)).unwrap();
        sh("tar -czf packed.tar.gz -C packed .", world.base());
        fs::read(world.base().join("packed.tar.gz")).unwrap()
    };
    let (one, two) = (bundle("one"), bundle("two"));
    // The first half of the old one and the rest of the new one, under the name of the old version.
    let half = one.len().min(two.len()) / 2;
    let mixed = [&one[..half], &two[half..]].concat();
    let turn = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&turn);
    let server = Server::start(move |request| {
        let (content, tag) = match own.load(Ordering::SeqCst) {
            0 => (&one, "\"one\""),
            1 => {
                own.store(2, Ordering::SeqCst);
                (&mixed, "\"between\"")
            }
            _ => (&two, "\"two\""),
        };
        match request.header("if-none-match") {
            Some(known) if known == tag => Reply::status(304).header("ETag", tag),
            _ => Reply::body(content.clone()).header("ETag", tag),
        }
    });
    let config = format!("manifests: ['{}']\npoll: 100ms\nsplay: 0s\n", server.url("/site.tar.gz"));
    fs::write(world.base().join("agent.yaml"), config).unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    turn.store(1, Ordering::SeqCst);
    agent.says("new content is refused", 1);
    agent.makes("a", "two");
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn an_object_whose_parts_are_gone_is_told_and_the_next_one_is_taken() {
    let world = World::new();
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    client.put_object("SITE", "site.yaml", manifest(&world, "one").as_bytes(), 16);
    fs::write(
        world.base().join("agent.yaml"),
        "manifests: [obj://SITE/site.yaml]\ninterval: 1h\nsplay: 0s\npoll: 1h\n",
    )
    .unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    // Somebody replaces it between the moment that it is described and the moment that its parts are read.
    agent.stop();
    client.put_object("SITE", "site.yaml", manifest(&world, "lost").as_bytes(), 16);
    let nuid = client.object("SITE", "site.yaml").unwrap()["nuid"].as_str().unwrap().to_owned();
    client.purge_chunks("SITE", &nuid);
    agent.signal(Signal::CONT);
    agent.says("the last good content stays in force", 1);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "one");
    client.put_object("SITE", "site.yaml", manifest(&world, "two").as_bytes(), 16);
    agent.makes("a", "two");
    // One that is deleted keeps nobody busy: the original uses a whole core from then on.
    client.delete_object("SITE", "site.yaml");
    agent.says("it is not there, or was deleted", 1);
    let busy = || -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", agent.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    // Each of the short looks that it takes is cheaper than the wait.
    agent.until("quiet", || {
        let before = busy();
        std::thread::sleep(std::time::Duration::from_millis(500));
        busy() - before < 10
    });
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn content_that_crashes_the_agent_twice_is_set_aside_and_everything_else_is_applied() {
    // The agent can use this much address space: the second version of the bundle needs more when it is loaded.
    const SPACE: &str = "--as=1500000000";
    let world = World::new();
    let bundle = |content: &str, rest: &str| {
        let folder = world.base().join("site");
        fs::create_dir_all(&folder).unwrap();
        let text = format!("{}{rest}", manifest(&world, content).trim_start());
        fs::write(folder.join("manifest.yaml"), text).unwrap();
        world.ccm(["bundle", "build", "site", "-o", "site.tar.gz"]).run().exits(0);
        fs::read(world.base().join("site.tar.gz")).unwrap()
    };
    let published = Arc::new(Mutex::new(bundle("one", "")));
    let current = Arc::clone(&published);
    let server = Server::start(move |_| Reply::body(current.lock().unwrap().clone()));
    let local = world.fill("- file:\n    - $W/local: { content: kept, $OWN, mode: '0644' }\n");
    fs::write(world.base().join("local.yaml"), local).unwrap();
    let config = format!(
        "manifests: ['{}', local.yaml]\ninterval: 1h\npoll: 200ms\nsplay: 0s\n",
        server.url("/site.tar.gz")
    );
    fs::write(world.base().join("agent.yaml"), config).unwrap();
    let start = || Agent::start_under(&world, &["prlimit", SPACE]);
    let agent = start();
    agent.makes("a", "one");
    // A list of 20 million items: small as a bundle, and as a document below the limit.
    *published.lock().unwrap() = bundle("two", &format!("- x: [{}]\n", "1,".repeat(20_000_000)));
    agent.dies();
    start().dies();
    fs::write(world.path("a"), "drift").unwrap();
    fs::write(world.path("local"), "drift").unwrap();
    let agent = start();
    agent.makes("a", "one");
    agent.makes("local", "kept");
    agent.until("the reason", || {
        let manifest = &agent.status()["manifests"][0];
        let problem = manifest["problem"].as_str().unwrap_or_default();
        manifest["stale"] == true && problem == "the agent crashed 2 times while it loaded this content"
    });
    *published.lock().unwrap() = bundle("three", "");
    agent.makes("a", "three");
    agent.tells("/manifests/0/stale", false);
}
