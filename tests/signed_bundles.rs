//! Bundles: the same bytes every time, signatures that ssh-keygen agrees with, and agents that take nothing else.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::support::{
    Agent, World, has,
    http::{Reply, Server},
    sh, with_time_enough,
};

fn packed(world: &World, content: &str) {
    let folder = world.base().join("site");
    fs::create_dir_all(folder.join("files")).unwrap();
    let manifest = world.fill("- file:\n    - $W/a: { source: files/a, $OWN, mode: '0644' }\n");
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    fs::write(folder.join("files/a"), content).unwrap();
}

fn keys(world: &World) {
    sh(
        "ssh-keygen -q -t ed25519 -N '' -f key; ssh-keygen -q -t ed25519 -N '' -f other
         echo \"ops@example.org $(cat key.pub)\" >signers",
        world.base(),
    );
}

fn build(world: &World, more: &[&str]) {
    world.ccm(["bundle", "build", "site", "-o", "site.tar.gz"].iter().chain(more)).run().exits(0);
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let world = World::new();
    packed(&world, "x");
    build(&world, &[]);
    let first = fs::read(world.base().join("site.tar.gz")).unwrap();
    sh(
        "touch -d 2001-01-01 site/manifest.yaml; chmod 0600 site/files/a; chmod 0700 site/files",
        world.base(),
    );
    build(&world, &[]);
    assert_eq!(fs::read(world.base().join("site.tar.gz")).unwrap(), first);
    let listed = sh("tar -tzf site.tar.gz; tar -xzOf site.tar.gz ccm-bundle.json", world.base());
    assert!(listed.starts_with("ccm-bundle.json\nfiles/\nfiles/a\nmanifest.yaml\n"), "{listed}");
    assert!(listed.contains("\"name\": \"site\"") && listed.contains("\"version\": \"0\""), "{listed}");
    world.ccm(["apply", "site.tar.gz"]).run().exits(0);
    assert_eq!(world.read("a"), "x");
    fs::remove_file(world.base().join("site/manifest.yaml")).unwrap();
    let none = world.ccm(["bundle", "build", "site", "-o", "other.tar.gz"]).run();
    none.exits(2).complains("holds no manifest.yaml");
}

#[test]
fn ssh_keygen_and_ccm_agree_on_signatures_of_every_kind_of_key() {
    if !has("ssh-keygen") {
        return;
    }
    for kind in ["ed25519", "ecdsa -b 256", "ecdsa -b 384", "rsa -b 2048"] {
        let world = World::new();
        packed(&world, "x");
        build(&world, &["--version", "1.2"]);
        sh(
            &format!("ssh-keygen -q -t {kind} -N '' -f key; echo \"ops $(cat key.pub)\" >signers"),
            world.base(),
        );
        let verify = || world.ccm(["bundle", "verify", "site.tar.gz", "--signers", "signers"]).run();
        verify().exits(1).complains("it is not signed");
        sh("ssh-keygen -q -Y sign -n ccm -f key site.tar.gz", world.base());
        verify().exits(0).says("site version 1.2, signed by ops");
        let theirs = "ssh-keygen -q -Y verify -n ccm -f signers -I ops -s site.tar.gz.sig <site.tar.gz";
        if kind.starts_with("rsa") {
            // RSA keys sign through the ssh agent.
            let sign = world.ccm(["bundle", "sign", "site.tar.gz", "--key", "key"]);
            sign.run().exits(2).complains("ssh-add");
        } else {
            fs::remove_file(world.base().join("site.tar.gz.sig")).unwrap();
            world.ccm(["bundle", "sign", "site.tar.gz", "--key", "key"]).run().exits(0);
            verify().exits(0);
        }
        sh(theirs, world.base());
        let named =
            world.ccm(["bundle", "verify", "site.tar.gz", "--signers", "signers", "--name", "web"]).run();
        named.exits(1).complains("it is the bundle `site` and not `web`");
        sh("printf x >>site.tar.gz", world.base());
        verify().exits(1).complains("the signature does not fit");
    }
}

#[test]
fn the_ssh_agent_signs_with_keys_that_it_holds() {
    if !has("ssh-keygen") || !has("ssh-agent") {
        return;
    }
    for kind in ["ed25519", "rsa -b 2048"] {
        let world = World::new();
        packed(&world, "x");
        build(&world, &["--version", "1"]);
        let script = format!(
            "ssh-keygen -q -t {kind} -N '' -f key; echo \"ops $(cat key.pub)\" >signers
             ssh-agent sh -ec 'ssh-add -q key; mv key away; exec \"$CCM\" bundle sign site.tar.gz --key key.pub'
             ssh-keygen -q -Y verify -n ccm -f signers -I ops -s site.tar.gz.sig <site.tar.gz"
        );
        sh(&format!("export CCM={}; {script}", env!("CARGO_BIN_EXE_ccm")), world.base());
        world.ccm(["bundle", "verify", "site.tar.gz", "--signers", "signers"]).run().exits(0);
    }
}

#[test]
fn signatures_count_only_for_their_purpose_in_their_time_and_by_those_who_may_sign() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    packed(&world, "x");
    build(&world, &["--version", "1"]);
    keys(&world);
    let verify = |signers: &str| {
        fs::write(world.base().join("signers"), sh(&format!("echo \"{signers}\""), world.base())).unwrap();
        world.ccm(["bundle", "verify", "site.tar.gz", "--signers", "signers"]).run()
    };
    let sign = |key: &str| world.ccm(["bundle", "sign", "site.tar.gz", "--key", key]).run().exits(0).code;
    sign("key");
    verify("# ours\n\nops $(cat key.pub)").exits(0);
    verify("ops namespaces=\\\"git,c?m\\\" $(cat key.pub)").exits(0);
    verify("ops namespaces=\\\"git\\\" $(cat key.pub)").exits(1).complains("not among the allowed signers");
    verify("ops valid-after=\\\"20200101Z\\\",valid-before=\\\"20200102Z\\\" $(cat key.pub)")
        .exits(1)
        .complains("not valid at this time");
    verify("ops valid-after=\\\"20200101Z\\\" $(cat key.pub)").exits(0);
    verify("ops nonsense $(cat key.pub)").exits(2).complains("signers:1: unknown option `nonsense`");
    sign("other");
    verify("ops $(cat key.pub)").exits(1).complains("SHA256:");
    sh("rm site.tar.gz.sig; ssh-keygen -q -Y sign -n git -f key site.tar.gz", world.base());
    verify("ops $(cat key.pub)").exits(1).complains("signed for `git`");
    fs::write(world.base().join("site.tar.gz.sig"), "nonsense").unwrap();
    verify("ops $(cat key.pub)").exits(1).complains("not one of ssh-keygen");
    build(&world, &["--version", "1", "--expires", "2020-01-01T00:00:00Z"]);
    sign("key");
    verify("ops $(cat key.pub)").exits(1).complains("it expired at");
}

#[test]
fn an_agent_that_requires_signatures_takes_nothing_else() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    keys(&world);
    packed(&world, "one");
    build(&world, &["--version", "2"]);
    let sign = |key: &str| world.ccm(["bundle", "sign", "site.tar.gz", "--key", key]).run().exits(0).code;
    sign("key");
    let folder = world.base().to_owned();
    let server = Server::start(move |request| {
        fs::read(folder.join(&request.path[1..])).map_or(Reply::status(404), Reply::body)
    });
    let config = format!(
        "manifests: ['{}']\npoll: 200ms\nsplay: 0s\nrequire_signature: true\nallowed_signers: {}\n",
        server.url("/site.tar.gz"),
        world.base().join("signers").display()
    );
    fs::write(world.base().join("agent.yaml"), config).unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    let refuses = |reason: &str| {
        agent.until(reason, || {
            agent.log().lines().any(|line| line.contains("new content is refused") && line.contains(reason))
        });
        assert_eq!(world.read("a"), "one", "{}", agent.log());
    };
    packed(&world, "two");
    build(&world, &["--version", "3"]);
    refuses("the signature does not fit");
    fs::remove_file(world.base().join("site.tar.gz.sig")).unwrap();
    build(&world, &["--version", "3.1"]);
    refuses("it is not signed");
    sign("other");
    build(&world, &["--version", "3.2"]);
    sign("other");
    refuses("not among the allowed signers");
    build(&world, &["--version", "1.9"]);
    sign("key");
    refuses("its version 1.9 is older than 2");
    build(&world, &[]);
    fs::remove_file(world.base().join("site.tar.gz.sig")).unwrap();
    sh("ssh-keygen -q -Y sign -n ccm -f key site.tar.gz", world.base());
    refuses("it has no version, so agents could not refuse older content");
    build(&world, &["--version", "4", "--name", "web"]);
    sign("key");
    refuses("it is the bundle `web` and not `site`");
    build(&world, &["--version", "5", "--expires", "2020-01-01T00:00:00Z"]);
    sign("key");
    refuses("it expired at");
    build(&world, &["--version", "6"]);
    sign("key");
    agent.makes("a", "two");
}

#[test]
fn a_bundle_is_judged_again_when_others_may_sign() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    keys(&world);
    let folder = world.base().to_owned();
    let server = Server::start(move |request| {
        fs::read(folder.join(&request.path[1..])).map_or(Reply::status(404), Reply::body)
    });
    let config = |poll: &str| {
        // A relative path starts at the configuration.
        let config = format!(
            "manifests: ['{}']\ninterval: 1h\npoll: {poll}\nsplay: 0s\nrequire_signature: true\nallowed_signers: signers\n",
            server.url("/site.tar.gz")
        );
        fs::write(world.base().join("agent.yaml"), config).unwrap();
    };
    let sign = |version: &str, content: &str, key: &str| {
        packed(&world, content);
        build(&world, &["--version", version]);
        world.ccm(["bundle", "sign", "site.tar.gz", "--key", key]).run().exits(0);
    };
    let refused = |agent: &Agent| agent.says("not among the allowed signers", 1);
    let allow = |key: &str| {
        sh(
            &format!("echo \"ops@example.org $(cat {key}.pub)\" >signers.new; mv signers.new signers"),
            world.base(),
        );
    };
    // The next poll sees that the file is another.
    config("200ms");
    sign("1", "one", "other");
    let agent = Agent::start(&world);
    refused(&agent);
    allow("other");
    agent.makes("a", "one");
    agent.end();
    // So does whoever is asked to run, long before the next poll.
    config("1h");
    sign("2", "two", "key");
    let agent = Agent::start(&world);
    refused(&agent);
    allow("key");
    world.ccm(["agent", "run"]).run();
    agent.makes("a", "two");
}

#[test]
fn a_check_tells_that_the_file_of_signers_is_missing() {
    let world = World::new()
        .beside("etc/agent.yaml", "manifests: [a.yaml]\nrequire_signature: true\nallowed_signers: signers\n")
        .beside("default.yaml", "manifests: [a.yaml]\nrequire_signature: true\nallowed_signers: broken\n")
        .beside("broken", "ops@example.org no key\n");
    let check = |config: &str| world.ccm(["agent", "--check", "--config", config]).run();
    let missing = check("etc/agent.yaml");
    missing.exits(2).complains("etc/agent.yaml:3:18").complains("etc/signers: no such file");
    check("default.yaml").exits(2).complains("default.yaml:3:18").complains("broken:1: ");
    fs::write(world.base().join("etc/signers"), "").unwrap();
    check("etc/agent.yaml").exits(0).says("etc/signers");
}

#[test]
fn an_old_bundle_that_is_replayed_is_refused_also_by_an_agent_that_was_started_again() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    keys(&world);
    let publish = |version: &str, content: &str| {
        packed(&world, content);
        build(&world, &["--version", version]);
        world.ccm(["bundle", "sign", "site.tar.gz", "--key", "key"]).run().exits(0);
    };
    publish("1", "old");
    sh("mkdir replay; cp site.tar.gz site.tar.gz.sig replay", world.base());
    publish("2", "new");
    let folder = world.base().to_owned();
    let server = Server::start(move |request| {
        fs::read(folder.join(&request.path[1..])).map_or(Reply::status(404), Reply::body)
    });
    let config = format!(
        "manifests: ['{}']\ninterval: 1h\npoll: 200ms\nsplay: 0s\nrequire_signature: true\nallowed_signers: {}\n",
        server.url("/site.tar.gz"),
        world.base().join("signers").display()
    );
    fs::write(world.base().join("agent.yaml"), config).unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "new");
    agent.end();
    // Somebody who cannot sign puts back what was signed once. The agent may be ended well, or killed.
    sh("cp replay/* .", world.base());
    for _ in 0..2 {
        fs::write(world.path("a"), "drift").unwrap();
        let agent = Agent::start(&world);
        agent.makes("a", "new");
        agent.until("the refusal", || {
            let manifest = &agent.status()["manifests"][0];
            let problem = manifest["problem"].as_str().unwrap_or_default();
            manifest["stale"] == true && problem.contains("its version 1 is older than 2")
        });
        world.ccm(["agent", "run"]).run().exits(0);
        assert_eq!(world.read("a"), "new");
        drop(agent);
    }
    world.ccm(["agent", "--once", "--config", "agent.yaml"]).run().exits(1);
    assert_eq!(world.read("a"), "new");
    // What is newer is taken as before.
    publish("3", "newest");
    let agent = Agent::start(&world);
    agent.makes("a", "newest");
}

/// A site whose bundle a server serves from the test's directory, until the server is switched off.
fn served(world: &World) -> (Server, Arc<AtomicBool>) {
    keys(world);
    let (folder, is_off) = (world.base().to_owned(), Arc::new(AtomicBool::new(false)));
    let off = Arc::clone(&is_off);
    let server = Server::start(move |request| {
        if off.load(Ordering::Relaxed) {
            return Reply::status(503);
        }
        fs::read(folder.join(&request.path[1..])).map_or(Reply::status(404), Reply::body)
    });
    (server, is_off)
}

fn configure(world: &World, server: &Server, more: &str) {
    let config = format!("manifests: ['{}']\ninterval: 1h\nsplay: 0s\n{more}", server.url("/site.tar.gz"));
    fs::write(world.base().join("agent.yaml.new"), config).unwrap();
    fs::rename(world.base().join("agent.yaml.new"), world.base().join("agent.yaml")).unwrap();
}

fn publish(world: &World, version: &str, content: &str, key: &str) {
    packed(world, content);
    build(world, &["--version", version]);
    world.ccm(["bundle", "sign", "site.tar.gz", "--key", key]).run().exits(0);
}

fn allow(world: &World, keys: &[&str]) {
    let lines: Vec<String> = keys.iter().map(|key| format!("echo \"ops $(cat {key}.pub)\"")).collect();
    sh(&format!("({}) >signers.new; mv signers.new signers", lines.join("; ")), world.base());
}

/// Waits until the agent refuses its cached content for this reason, and sees that nothing of the content is applied.
fn refuses_the_cache(world: &World, agent: &Agent, reason: &str) {
    agent.says("msg=started", 1);
    agent.until(reason, || {
        let manifest = &agent.status()["manifests"][0];
        let problem = manifest["problem"].as_str().unwrap_or_default();
        manifest["stale"] == true && problem.contains(reason)
    });
    fs::write(world.path("a"), "drift").unwrap();
    world.ccm(["agent", "run"]).run().exits(1);
    assert_eq!(world.read("a"), "drift", "{}", agent.log());
}

#[test]
fn agent_refuses_cached_content_without_a_signature_when_signatures_become_required() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    let (server, is_off) = served(&world);
    packed(&world, "unsigned");
    build(&world, &["--version", "1"]);
    configure(&world, &server, "poll: 200ms\n");
    let agent = Agent::start(&world);
    agent.makes("a", "unsigned");
    // The setting needs neither a signal nor an answer of the server.
    is_off.store(true, Ordering::Relaxed);
    let signed = "poll: 200ms\nrequire_signature: true\nallowed_signers: signers\n";
    configure(&world, &server, signed);
    refuses_the_cache(&world, &agent, "it is not signed");
    agent.end();
    // Neither does a start.
    let agent = Agent::start(&world);
    refuses_the_cache(&world, &agent, "it is not signed");
    is_off.store(false, Ordering::Relaxed);
    refuses_the_cache(&world, &agent, "it is not signed");
    world.ccm(["bundle", "sign", "site.tar.gz", "--key", "key"]).run().exits(0);
    agent.makes("a", "unsigned");
    agent.end();
    is_off.store(true, Ordering::Relaxed);
    fs::write(world.path("a"), "drift").unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "unsigned");
}

#[test]
fn agent_refuses_cached_content_when_its_key_is_removed_until_an_allowed_key_signs_it() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    let (server, is_off) = served(&world);
    publish(&world, "1", "one", "key");
    let config = |poll: &str| {
        let more = format!("poll: {poll}\nrequire_signature: true\nallowed_signers: signers\n");
        configure(&world, &server, &more);
    };
    config("1h");
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    // The file is watched: neither the next poll nor the next run is near.
    is_off.store(true, Ordering::Relaxed);
    allow(&world, &["other"]);
    refuses_the_cache(&world, &agent, "not among the allowed signers");
    allow(&world, &["other", "key"]);
    agent.makes("a", "one");
    allow(&world, &["other"]);
    refuses_the_cache(&world, &agent, "not among the allowed signers");
    agent.end();
    // An agent verifies its cache when it starts.
    let agent = Agent::start(&world);
    refuses_the_cache(&world, &agent, "not among the allowed signers");
    agent.end();
    is_off.store(false, Ordering::Relaxed);
    config("200ms");
    let agent = Agent::start(&world);
    refuses_the_cache(&world, &agent, "not among the allowed signers");
    world.ccm(["bundle", "sign", "site.tar.gz", "--key", "other"]).run().exits(0);
    agent.makes("a", "one");
    agent.tells("/manifests/0/stale", false);
}

#[test]
fn agent_takes_a_new_signature_over_the_current_content_before_the_old_key_is_removed() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    let (server, is_off) = served(&world);
    publish(&world, "1", "one", "key");
    configure(&world, &server, "poll: 200ms\nrequire_signature: true\nallowed_signers: signers\n");
    allow(&world, &["key", "other"]);
    let agent = Agent::start(&world);
    agent.makes("a", "one");
    let record = || {
        let sources = fs::read_dir(world.base().join("state/sources")).unwrap().flatten();
        sources
            .map(|source| fs::read_to_string(source.path().join("record.json")).unwrap())
            .collect::<String>()
    };
    let old = record();
    world.ccm(["bundle", "sign", "site.tar.gz", "--key", "other"]).run().exits(0);
    agent.until("the new signature", || record() != old);
    is_off.store(true, Ordering::Relaxed);
    allow(&world, &["other"]);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "one");
    agent.end();
    fs::write(world.path("a"), "drift").unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", "one");
}

#[test]
fn agent_refuses_cached_content_at_the_next_run_when_its_key_expires() {
    if !has("ssh-keygen") {
        return;
    }
    with_time_enough(|limit| {
        let world = World::new();
        let (server, _) = served(&world);
        publish(&world, "1", "one", "key");
        let limit = limit.replace('s', " seconds").replace('m', " minutes");
        sh(
            &format!(
                "until=$(date -u -d '{limit}' +%Y%m%d%H%M%SZ)
                 echo \"ops valid-before=\\\"$until\\\" $(cat key.pub)\" >signers"
            ),
            world.base(),
        );
        configure(&world, &server, "poll: 1h\nrequire_signature: true\nallowed_signers: signers\n");
        let agent = Agent::start(&world);
        agent.says("msg=started", 1);
        // Nothing but the clock changes.
        agent.until("the key to expire", || {
            world.ccm(["agent", "run"]).run();
            agent.status()["manifests"][0]["stale"] == true
        });
        refuses_the_cache(&world, &agent, "not valid at this time");
        // The attempt counts if the content was accepted before.
        (agent.count("cached content is refused") == 1).then_some(())
    });
}

#[test]
fn bundle_without_a_version_is_not_signed() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new().beside("data.yaml", "data: { greeting: hello }\n");
    keys(&world);
    packed(&world, "x");
    build(&world, &[]);
    sh("cp site.tar.gz renamed; tar -czf foreign.tar.gz site", world.base());
    let sign = |name: &str| world.ccm(["bundle", "sign", name, "--key", "key"]).run();
    for name in ["site.tar.gz", "renamed"] {
        let advice = "it has no version, so agents could not refuse older content: build it with `--version`";
        sign(name).exits(2).complains(&format!("{name}: {advice}\n"));
    }
    sign("foreign.tar.gz").exits(2).complains("it has no ccm-bundle.json: make it with `ccm bundle build`");
    assert_eq!(sh("ls *.sig 2>/dev/null || true", world.base()), "");
    build(&world, &["--version", "1"]);
    sign("site.tar.gz").exits(0);
    sign("data.yaml").exits(0);
}

/// Publishes `greeting` as a signed bundle with data.
fn publish_data(world: &World, version: &str, greeting: &str, more: &[&str]) {
    fs::write(world.base().join("common.yaml"), format!("data: {{ greeting: {greeting} }}\n")).unwrap();
    let build = ["bundle", "build", "--data", "common.yaml", "-o", "common.tar.gz", "--version", version];
    world.ccm(build.iter().chain(more)).run().exits(0);
    world.ccm(["bundle", "sign", "common.tar.gz", "--key", "key"]).run().exits(0);
}

/// Starts an agent whose data a server serves.
fn configure_data(world: &World, server: &Server, data: &str, more: &str) {
    let manifest = "- file:\n    - $W/a: { content: '{{ Data.greeting }}', $OWN, mode: '0644' }\n";
    fs::write(world.base().join("site.yaml"), world.fill(manifest)).unwrap();
    let config = format!(
        "manifests: [site.yaml]\nexternal_data_url: '{}'\ninterval: 1h\npoll: 200ms\nsplay: 0s\n{more}",
        server.url(data)
    );
    fs::write(world.base().join("agent.yaml.new"), config).unwrap();
    fs::rename(world.base().join("agent.yaml.new"), world.base().join("agent.yaml")).unwrap();
}

const SIGNED: &str = "require_signature: true\nallowed_signers: signers\n";

#[test]
fn replayed_data_and_data_for_another_address_are_refused() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new();
    let (server, _) = served(&world);
    publish_data(&world, "1", "old", &[]);
    sh("mkdir replay; cp common.tar.gz common.tar.gz.sig replay", world.base());
    publish_data(&world, "2", "new", &[]);
    configure_data(&world, &server, "/common.tar.gz", SIGNED);
    let verified = world.ccm(["bundle", "verify", "common.tar.gz", "--signers", "signers"]).run();
    verified.exits(0).says("common version 2, signed by ops@example.org");
    let refuses = |agent: &Agent, reason: &str| {
        agent.says("msg=started", 1);
        agent.until(reason, || {
            let data = agent.status()["data"].clone();
            data["stale"] == true && data["problem"].as_str().unwrap_or_default().contains(reason)
        });
        world.ccm(["agent", "run"]).run();
        assert_eq!(world.read("a"), "new");
    };
    let agent = Agent::start(&world);
    agent.makes("a", "new");
    sh("cp replay/* .", world.base());
    refuses(&agent, "its version 1 is older than 2");
    agent.end();
    let agent = Agent::start(&world);
    refuses(&agent, "its version 1 is older than 2");
    publish_data(&world, "3", "for the web", &["--name", "web"]);
    refuses(&agent, "it is the bundle `web` and not `common`");
    publish(&world, "9", "x", "key");
    sh("mv site.tar.gz common.tar.gz; mv site.tar.gz.sig common.tar.gz.sig", world.base());
    refuses(&agent, "it is the bundle `site` and not `common`");
    publish_data(&world, "4", "newest", &[]);
    agent.makes("a", "newest");
}

#[test]
fn signed_data_without_a_version_is_refused_unless_the_configuration_allows_it() {
    if !has("ssh-keygen") {
        return;
    }
    let world = World::new().beside("common.yaml", "data: { greeting: plain }\n");
    let (server, _) = served(&world);
    world.ccm(["bundle", "sign", "common.yaml", "--key", "key"]).run().exits(0);
    let advice = "build data with `ccm bundle build --data`, or set `unversioned_data: allow`";
    let refuses = |agent: &Agent| {
        agent.says("msg=started", 1);
        agent.until(advice, || {
            let data = agent.status()["data"].clone();
            data["stale"] == true && data["problem"].as_str().unwrap_or_default().contains(advice)
        });
    };
    configure_data(&world, &server, "/common.yaml", SIGNED);
    let agent = Agent::start(&world);
    refuses(&agent);
    assert!(!world.path("a").exists(), "{}", agent.log());
    // The setting needs no signal.
    configure_data(&world, &server, "/common.yaml", &format!("{SIGNED}unversioned_data: allow\n"));
    agent.makes("a", "plain");
    agent.end();
    let agent = Agent::start(&world);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "plain");
    // Cached data is data like any other.
    configure_data(&world, &server, "/common.yaml", SIGNED);
    refuses(&agent);
    fs::write(world.path("a"), "drift").unwrap();
    world.ccm(["agent", "run"]).run();
    assert_eq!(world.read("a"), "drift", "{}", agent.log());
}
