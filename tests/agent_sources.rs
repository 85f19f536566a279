//! The agent with sources far away: servers that stall, lie, break off and come back, and what stays in force meanwhile.

use std::{
    fs,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    Agent, World,
    http::{Manner, Reply, Request, Server},
    is_root, sh,
};

/// What a server has, by path: content and whether it tells versions of it.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Vec<(String, Vec<u8>)>>>);

impl Shelf {
    fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| known != path);
        all.push((path.to_owned(), content.into()));
    }

    fn remove(&self, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| known != path);
    }

    fn get(&self, path: &str) -> Option<Vec<u8>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(known, _)| known == path).map(|(_, content)| content.clone())
    }

    /// Answers with the content, and with an entity tag if `tags` is set.
    fn reply(&self, request: &Request, tags: bool) -> Reply {
        let Some(content) = self.get(&request.path) else { return Reply::status(404) };
        let tag =
            format!("\"{:x}-{}\"", content.iter().map(|byte| u64::from(*byte)).sum::<u64>(), content.len());
        match request.header("if-none-match") {
            Some(known) if tags && known == tag => Reply::status(304).header("ETag", &tag),
            _ if tags => Reply::body(content).header("ETag", &tag),
            _ => Reply::body(content),
        }
    }

    fn serve(&self, tags: bool) -> Server {
        let content = self.clone();
        Server::start(move |request| content.reply(request, tags))
    }
}

/// A manifest that makes one file with this content.
fn manifest(world: &World, content: &str) -> String {
    world.fill(&format!("- file:\n    - $W/a: {{ content: \"{content}\", $OWN, mode: '0644' }}\n"))
}

/// A bundle of that manifest.
fn bundle(world: &World, content: &str) -> Vec<u8> {
    let folder = world.base().join("packed");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), manifest(world, content)).unwrap();
    sh("tar -czf packed.tar.gz -C packed .", world.base());
    fs::read(world.base().join("packed.tar.gz")).unwrap()
}

fn configure(world: &World, manifests: &[String], more: &str) {
    let config =
        format!("manifests: [{}]\ninterval: 1h\npoll: 200ms\nsplay: 0s\n{more}", manifests.join(", "));
    fs::write(world.base().join("agent.yaml"), config).unwrap();
}

#[test]
fn a_new_bundle_is_applied_and_a_bad_one_is_kept_out_and_not_fetched_again() {
    let (world, shelf) = (World::new(), Shelf::default());
    shelf.put("/site.tar.gz", bundle(&world, "one"));
    let server = shelf.serve(true);
    configure(&world, &[server.url("/site.tar.gz")], "");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    shelf.put("/site.tar.gz", bundle(&world, "two"));
    agent.makes("a", "two");

    for (number, bad) in [b"this is no archive".to_vec(), bundle(&world, "a\\q"), {
        let mut cut = bundle(&world, "cut");
        cut.truncate(cut.len() / 2);
        cut
    }]
    .into_iter()
    .enumerate()
    {
        shelf.put("/site.tar.gz", bad);
        agent.says("new content is refused", number + 1);
        let known = server.requests().len();
        agent.until("the next polls", || server.requests().len() > known + 3);
        let asked = &server.requests()[known..];
        assert!(asked.iter().all(|request| request.header("if-none-match").is_some()), "{asked:?}");
        assert_eq!(agent.count("new content is refused"), number + 1, "{}", agent.log());
        fs::write(world.path("a"), "drift").unwrap();
        agent.makes("a", "two");
    }
    agent.tells("/manifests/0/stale", true);
    assert!(agent.status()["manifests"][0]["problem"].is_string());
    shelf.put("/site.tar.gz", bundle(&world, "three"));
    agent.makes("a", "three");
    agent.tells("/manifests/0/stale", false);
}

#[test]
fn status_shows_the_current_reason_of_a_stale_source() {
    let (world, shelf) = (World::new(), Shelf::default());
    shelf.put("/site.yaml", manifest(&world, "one"));
    let server = shelf.serve(true);
    configure(&world, &[server.url("/site.yaml")], "");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    let shows = |reason: &str| {
        let line = format!("  stale: {reason}");
        agent.until(&line, || {
            let outcome = world.ccm(["agent", "status"]).run();
            let shown: Vec<&str> = outcome.stdout.lines().filter(|text| text.contains("stale:")).collect();
            matches!(shown[..], [only] if only.contains(reason))
        });
    };
    shelf.put("/site.yaml", "first: 1\n");
    shows("unknown section `first`");
    shelf.put("/site.yaml", "second: 2\n");
    shows("unknown section `second`");
    shelf.remove("/site.yaml");
    shows("answered 404");
    shelf.put("/site.yaml", "third: 3\n");
    shows("unknown section `third`");
    shelf.put("/site.yaml", manifest(&world, "one"));
    agent.tells("/manifests/0/stale", false);
    world.ccm(["agent", "status"]).run().exits(0).never_says("stale");
}

#[test]
fn an_update_is_loaded_once_to_validate_and_apply_it() {
    let (world, shelf) = (World::new(), Shelf::default());
    // ccm warns about this name each time it loads the manifest.
    let warned = |content: &str| manifest(&world, content).replace("/a: {", "/*: {");
    shelf.put("/site.yaml", warned("one"));
    let server = shelf.serve(true);
    configure(&world, &[server.url("/site.yaml")], "watch: false\nlog_level: debug\n");
    let agent = Agent::start(&world);
    agent.makes("*", "one");
    agent.says("msg=applied", 1);
    assert_eq!(agent.count("msg=warning"), 1, "{}", agent.log());
    shelf.put("/site.yaml", warned("two"));
    agent.makes("*", "two");
    agent.says("msg=applied", 2);
    assert_eq!(agent.count("msg=warning"), 2, "{}", agent.log());
}

#[test]
fn without_validators_the_digest_of_the_content_decides() {
    let (world, shelf) = (World::new(), Shelf::default());
    shelf.put("/site.yaml", manifest(&world, "one"));
    let server = shelf.serve(false);
    configure(&world, &[server.url("/site.yaml")], "");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    let known = server.requests().len();
    agent.until("more polls", || server.requests().len() > known + 3);
    assert_eq!(agent.count("msg=applied"), 1, "{}", agent.log());
    shelf.put("/site.yaml", manifest(&world, "two"));
    agent.makes("a", "two");
}

#[test]
fn a_download_that_breaks_off_is_fetched_again() {
    let (world, shelf) = (World::new(), Shelf::default());
    shelf.put("/site.tar.gz", bundle(&world, "one"));
    let breaks = Arc::new(AtomicBool::new(false));
    let (own, broken) = (shelf.clone(), Arc::clone(&breaks));
    let server = Server::start(move |request| {
        let reply = own.reply(request, true);
        if broken.load(Ordering::Relaxed) { reply.manner(Manner::Cut(50)) } else { reply }
    });
    configure(&world, &[server.url("/site.tar.gz")], "");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    breaks.store(true, Ordering::Relaxed);
    shelf.put("/site.tar.gz", bundle(&world, "two"));
    agent.says("the source has no answer", 1);
    breaks.store(false, Ordering::Relaxed);
    agent.makes("a", "two");
}

#[test]
fn a_server_that_stalls_delays_nobody_else() {
    let world = World::new();
    let server = Server::start(|_| Reply::body(vec![b'x'; 100]).manner(Manner::Stall(10)));
    let local = world.fill("- file:\n    - $W/b: { content: local, $OWN, mode: '0644' }\n");
    fs::write(world.base().join("local.yaml"), local).unwrap();
    configure(&world, &[server.url("/site.yaml"), "local.yaml".to_owned()], "");
    let agent = Agent::start(&world);
    agent.makes("b", "local");
    fs::write(world.path("b"), "drift").unwrap();
    agent.makes("b", "local");
    // Nor does it hold the run lock.
    world.ccm(["apply", "local.yaml", "--no-wait"]).run().exits(0);
    assert!(!agent.log().contains("/site.yaml answered"), "{}", agent.log());
    let (code, log) = agent.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn what_is_cached_is_applied_when_the_source_is_away_or_has_nothing_any_more() {
    let (world, shelf) = (World::new(), Shelf::default());
    shelf.put("/site.tar.gz", bundle(&world, "one"));
    let server = shelf.serve(true);
    configure(&world, &[server.url("/site.tar.gz")], "");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    shelf.remove("/site.tar.gz");
    agent.says("answered 404", 1);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "one");
    agent.end();
    drop(server);
    fs::remove_file(world.path("a")).unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    agent.says("the last good content stays in force", 1);
    agent.tells("/manifests/0/stale", true);
}

#[test]
fn nothing_runs_without_its_data_and_everything_does_when_it_comes() {
    let (world, shelf) = (World::new(), Shelf::default());
    let site = world.fill("ccm:\n  resources:\n    - file:\n        - $W/a: { content: '{{ Data.word }}', $OWN, mode: '0644' }\n");
    shelf.put("/site.yaml", site);
    let server = shelf.serve(true);
    configure(
        &world,
        &[server.url("/site.yaml")],
        &format!("external_data_url: {}\n", server.url("/data.yaml")),
    );
    let agent = Agent::start(&world);
    agent.says("nothing is applied before the data is there", 1);
    assert!(!world.path("a").exists());
    shelf.put("/data.yaml", "data: { word: first }\n");
    agent.makes("a", "first");
    shelf.put("/data.yaml", "data: { word: second }\n");
    agent.makes("a", "second");
    // An empty answer is no data, and data without which the manifest does not load is kept out.
    for (number, bad) in ["", "data: { other: x }\n", "data: ["].into_iter().enumerate() {
        shelf.put("/data.yaml", bad);
        agent.says("new content is refused", number + 1);
        fs::write(world.path("a"), "drift").unwrap();
        agent.makes("a", "second");
    }
}

#[test]
fn data_and_a_manifest_that_fit_only_each_other_are_taken_together() {
    let (world, shelf) = (World::new(), Shelf::default());
    let site = |key: &str| {
        world.fill(&format!(
            "ccm:\n  resources:\n    - file:\n        - $W/a: {{ content: '{{{{ Data.{key} }}}}', $OWN, mode: '0644' }}\n"
        ))
    };
    shelf.put("/site.yaml", site("one"));
    shelf.put("/data.yaml", "data: { one: first }\n");
    let server = shelf.serve(true);
    configure(
        &world,
        &[server.url("/site.yaml")],
        &format!("external_data_url: {}\n", server.url("/data.yaml")),
    );
    let agent = Agent::start(&world);
    agent.makes("a", "first");
    shelf.put("/site.yaml", site("two"));
    agent.says("new content is refused", 1);
    shelf.put("/data.yaml", "data: { two: second }\n");
    agent.makes("a", "second");
}

#[test]
fn credentials_are_used_and_never_shown() {
    let (world, shelf) = (World::new(), Shelf::default());
    shelf.put("/site.tar.gz", bundle(&world, "one"));
    let own = shelf.clone();
    // user:p@ss word, as a browser would send it.
    let server = Server::start(move |request| match request.header("authorization") {
        Some("Basic dXNlcjpwQHNzIHdvcmQ=") => own.reply(request, true),
        _ => Reply::status(401),
    });
    configure(&world, &[server.url_with("user:p%40ss%20word", "/site.tar.gz")], "log_level: debug\n");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    let shown = agent.status().to_string() + &agent.log();
    let kept = sh("grep -rlE 'p@ss|p%40ss' state || true", world.base());
    assert!(kept.is_empty(), "{kept}");
    for secret in ["p@ss", "p%40ss", "dXNlcjpw"] {
        assert!(!shown.contains(secret), "{secret}\n{shown}");
    }
    let (_, log) = agent.end();
    configure(&world, &[server.url_with("user:wrong", "/site.tar.gz")], "");
    let agent = Agent::start(&world);
    agent.says("answered 401", 1);
    assert!(!agent.log().contains("wrong") && !log.contains("p@ss"));
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_content_or_the_new_one() {
    let (world, shelf) = (World::new(), Shelf::default());
    let bundles = [bundle(&world, "one"), bundle(&world, "two")];
    let (turn, own) = (Arc::new(Mutex::new(0_usize)), bundles.clone());
    let server = Server::start(move |request| {
        let mut turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        *turn += 1;
        shelf.put("/site.tar.gz", own[*turn % 2].clone());
        shelf.reply(request, false)
    });
    configure(&world, &[server.url("/site.tar.gz")], "");
    fs::write(
        world.base().join("agent.yaml"),
        fs::read_to_string(world.base().join("agent.yaml")).unwrap().replace("200ms", "1ms"),
    )
    .unwrap();
    // Kills spread over starting, fetching, storing and applying, however long that takes here: the first is not killed before
    // it has come through all of it.
    let begun = Instant::now();
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    let whole = begun.elapsed();
    drop(agent);
    for round in 0..25 {
        let agent = Agent::start(&world);
        std::thread::sleep(whole * round / 20);
        drop(agent);
        for record in sh("ls state/sources/*/record.json 2>/dev/null || true", world.base()).lines() {
            let record = world.base().join(record);
            let value: Value = serde_json::from_slice(&fs::read(&record).unwrap()).expect("a whole record");
            if let Some(content) = value["good"]["content"].as_str() {
                let content = fs::read(record.with_file_name(content)).expect("the content of the record");
                assert!(bundles.contains(&content), "torn content");
            }
        }
    }
    drop(server);
    let outcome = world.ccm(["agent", "--once", "--config", "agent.yaml"]).run();
    // Content whose loading was killed twice is set aside, and the run reports it.
    let records = sh("cat state/sources/*/record.json", world.base());
    let is_set_aside = records.contains("crashed") || outcome.stderr.contains("set aside");
    outcome.exits(i32::from(is_set_aside));
    assert!(["one", "two"].contains(&world.read("a").as_str()));
    let left = sh("ls -A state/sources/* state/bundles", world.base());
    assert_eq!(left.matches("content-").count(), 1, "{left}");
    assert!(!left.contains(".tmp"), "{left}");
}

#[test]
fn a_full_disk_is_told_and_the_old_content_stays() {
    if !is_root() {
        return;
    }
    let Some(world) = World::new().tmpfs("cache", "size=256k") else { return };
    let shelf = Shelf::default();
    shelf.put("/site.yaml", manifest(&world, "one"));
    let server = shelf.serve(true);
    configure(
        &world,
        &[server.url("/site.yaml")],
        &format!("cache_dir: {}/kept\n", world.path("cache").display()),
    );
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    shelf.put("/site.yaml", manifest(&world, "two") + &format!("# {}\n", "x".repeat(400_000)));
    agent.says("cannot keep what was fetched", 1);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "one");
    // It is fetched when there is room again.
    shelf.put("/site.yaml", manifest(&world, "three"));
    agent.makes("a", "three");
}

#[test]
fn a_source_that_trickles_is_reported_and_fetched_when_content_flows_again() {
    for (config, reason) in [("fetch_timeout: 1s\n", "(fetch_timeout)"), ("", "the source is stalled: ")] {
        let (world, shelf) = (World::new(), Shelf::default());
        let trickles = Arc::new(AtomicBool::new(false));
        shelf.put("/site.tar.gz", bundle(&world, "one"));
        let (kept, slow) = (shelf.clone(), Arc::clone(&trickles));
        let server = Server::start(move |request| {
            if slow.load(Ordering::Relaxed) {
                // A few bytes each second.
                return Reply::body(vec![b'x'; 6000]).manner(Manner::Slow(Duration::from_mins(10)));
            }
            kept.reply(request, true)
        });
        configure(&world, &[server.url("/site.tar.gz")], config);
        let agent = Agent::start(&world);
        agent.makes("a", "one");
        trickles.store(true, Ordering::Relaxed);
        shelf.put("/site.tar.gz", bundle(&world, "two"));
        agent.until(reason, || {
            let manifest = &agent.status()["manifests"][0];
            let problem = manifest["problem"].as_str().unwrap_or_default();
            manifest["stale"] == true && problem.contains(reason)
        });
        trickles.store(false, Ordering::Relaxed);
        agent.makes("a", "two");
        agent.tells("/manifests/0/stale", false);
    }
}

#[test]
fn content_that_is_replaced_within_the_second_of_its_date_is_fetched() {
    let (world, shelf) = (World::new(), Shelf::default());
    shelf.put("/site.tar.gz", bundle(&world, "one"));
    let date = sh("date -u '+%a, %d %b %Y %H:%M:%S GMT'", world.base()).trim().to_owned();
    let (content, changed) = (shelf.clone(), date);
    let server = Server::start(move |request| {
        if request.header("if-modified-since") == Some(&changed) {
            return Reply::status(304);
        }
        // The server's clock still shows the second of the change.
        content.reply(request, false).header("Last-Modified", &changed).header("Date", &changed)
    });
    configure(&world, &[server.url("/site.tar.gz")], "");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    shelf.put("/site.tar.gz", bundle(&world, "two"));
    agent.makes("a", "two");
}
