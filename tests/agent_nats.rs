//! The agent against a real NATS server: what is put into a bucket is applied, whatever happens to server and bucket.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Agent, World,
    nats::{Cable, DirectGets, NatsClient, NatsServer},
    wait_until,
};

/// A manifest that writes a text, or what is in the data, to `motd`.
fn manifest(world: &World, content: &str) -> Vec<u8> {
    let text = format!(
        "- file:\n    - $W/motd: {{ ensure: present, content: \"{content}\", $OWN, mode: \"0644\" }}\n"
    );
    world.fill(&text).into_bytes()
}

/// Writes the configuration: no splay, so that nothing is spread, and polls that no test waits for.
fn configure(world: &World, more: &str) {
    let poll = if more.contains("poll:") { "" } else { "poll: 1h\n" };
    let text = format!("interval: 1h\nsplay: 0s\n{poll}{more}");
    fs::write(world.base().join("agent.yaml"), text).unwrap();
}

const FROM_BUCKET: &str = "manifests: [obj://SITE/web/site.yaml]\n";

fn put(client: &mut NatsClient, world: &World, content: &str) {
    client.put_object("SITE", "web/site.yaml", &manifest(world, content), 1024);
}

#[test]
fn an_object_that_changes_is_applied_at_once_with_and_without_direct_gets() {
    for direct in [DirectGets::Allowed, DirectGets::Refused] {
        let world = World::new();
        let Some(server) = NatsServer::start(&world) else { return };
        let mut client = server.client();
        client.make_objects("SITE", direct);
        put(&mut client, &world, "one");
        configure(&world, FROM_BUCKET);
        let agent = Agent::start(&world);
        agent.makes("motd", "one");
        for content in ["two", "three"] {
            put(&mut client, &world, content);
            agent.makes("motd", content);
        }
        // What is deleted stays in force, and comes back.
        client.delete_object("SITE", "web/site.yaml");
        agent.says("it is not there, or was deleted", 1);
        fs::remove_file(world.path("motd")).unwrap();
        agent.makes("motd", "three");
        put(&mut client, &world, "four");
        agent.makes("motd", "four");
        assert_eq!(agent.end().0, Some(0));
    }
}

#[test]
fn a_server_that_was_away_is_found_again_and_what_changed_is_noticed() {
    let world = World::new();
    let Some(mut server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    put(&mut client, &world, "one");
    configure(&world, FROM_BUCKET);
    let agent = Agent::start(&world);
    agent.makes("motd", "one");
    for (times, content) in [(1, "two"), (2, "three")] {
        server.kill();
        agent.says("the connection to NATS is lost", times);
        server.go_on();
        put(&mut server.client(), &world, content);
        agent.makes("motd", content);
    }
    // All that the server kept is gone, and the bucket is made anew with other content.
    server.kill();
    server.forget();
    server.go_on();
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Refused);
    put(&mut client, &world, "four");
    agent.makes("motd", "four");
    // So while the server is there.
    client.delete_stream("OBJ_SITE");
    client.make_objects("SITE", DirectGets::Allowed);
    put(&mut client, &world, "five");
    agent.makes("motd", "five");
}

#[test]
fn data_in_a_key_is_followed_also_in_a_bucket_that_was_made_again() {
    let world = World::new();
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    put(&mut client, &world, "${ Data.motd }");
    client.make_keys("DATA", DirectGets::Allowed);
    client.put_key("DATA", "common", "data: { motd: one }");
    configure(&world, &format!("{FROM_BUCKET}external_data_url: kv://DATA/common\n"));
    let agent = Agent::start(&world);
    agent.makes("motd", "one");
    client.put_key("DATA", "common", "data: { motd: two }");
    agent.makes("motd", "two");
    // The revision is the same, the value is not.
    client.delete_stream("KV_DATA");
    client.make_keys("DATA", DirectGets::Refused);
    client.put_key("DATA", "common", "data: { motd: three }");
    agent.makes("motd", "three");
    client.delete_key("DATA", "common");
    agent.says("kv://DATA/common: it is not there, or was deleted", 1);
    client.put_key("DATA", "common", "data: { motd: four }");
    agent.makes("motd", "four");
}

#[test]
fn a_thousand_updates_in_a_burst_come_to_the_last_one() {
    let world = World::new();
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    put(&mut client, &world, "${ Data.motd }");
    client.make_keys("DATA", DirectGets::Allowed);
    client.put_key("DATA", "common", "data: { motd: first }");
    configure(&world, &format!("{FROM_BUCKET}external_data_url: kv://DATA/common\n"));
    let agent = Agent::start(&world);
    agent.makes("motd", "first");
    // However slow the machine is, they are all there when the agent looks.
    agent.stop();
    for number in 0..1000 {
        client.put_key("DATA", "common", &format!("data: {{ motd: m{number} }}"));
    }
    agent.signal(Signal::CONT);
    agent.makes("motd", "m999");
    let runs = agent.count("msg=applied");
    assert!(runs < 100, "{runs} runs for 1,000 updates");
}

#[test]
fn a_network_that_was_cut_is_noticed_and_another_way_is_found() {
    let world = World::new();
    let Some(server) = NatsServer::start(&world) else { return };
    put_first(&server, &world);
    let cable = Cable::to(server.port());
    server.context(&world, "CCM", &json!({ "url": format!("nats://127.0.0.1:{}", cable.port()) }));
    configure(&world, &FROM_BUCKET.replace("manifests", "poll: 1s\nmanifests"));
    let agent = Agent::start(&world);
    agent.makes("motd", "one");
    cable.cut();
    put(&mut server.client(), &world, "two");
    agent.makes("motd", "two");
}

#[test]
fn entries_go_to_whoever_listens_where_that_is_configured() {
    let world = World::new().files(
        "- $W/motd: { content: x, register_when_stable: [{ cluster: prod, service: web, protocol: http, \
         address: 10.0.0.1, port: 8080, ttl: 1h }] }",
    );
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.subscribe("choria.ccm.registration.v1.>");
    configure(&world, "manifests: [site.yaml]\nregistration: nats\n");
    let _agent = Agent::start(&world);
    let message = client.next();
    assert_eq!(message.subject, "choria.ccm.registration.v1.prod.http.web.10_0_0_1.8615c9f698160162");
    assert_eq!((&*message.headers, &message.json()["ttl"]), ("", &json!("1h0m0s")));
}

#[test]
fn without_a_server_what_was_fetched_before_is_applied_from_the_first_second() {
    let world = World::new();
    let Some(mut server) = NatsServer::start(&world) else { return };
    put_first(&server, &world);
    configure(&world, FROM_BUCKET);
    let agent = Agent::start(&world);
    agent.makes("motd", "one");
    agent.end();
    server.kill();
    fs::remove_file(world.path("motd")).unwrap();
    let agent = Agent::start(&world);
    agent.makes("motd", "one");
    server.go_on();
    put(&mut server.client(), &world, "two");
    agent.makes("motd", "two");
}

fn put_first(server: &NatsServer, world: &World) {
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    put(&mut client, world, "one");
}

#[test]
fn a_refused_login_is_logged_in_words_and_tried_again() {
    let world = World::new();
    let Some(server) = NatsServer::with(&world, &["--user", "ccm", "--pass", "right"]) else { return };
    server.context(&world, "CCM", &json!({ "user": "ccm", "password": "hunter2" }));
    configure(&world, FROM_BUCKET);
    let agent = Agent::start(&world);
    agent.says("authorization violation", 1);
    assert!(!agent.log().contains("hunter2"), "{}", agent.log());
}

#[test]
fn stable_resources_are_registered_and_renewed_and_others_are_not() {
    let world = World::new();
    let Some(mut server) = NatsServer::start(&world) else { return };
    world.ccm(["registration", "init", "--max-age", "3s"]).run().exits(0);
    let entry = |service: &str| {
        format!(
            "[{{ cluster: prod, service: {service}, protocol: http, address: 10.0.0.1, port: \"{{{{ 80 }}}}\" }}]"
        )
    };
    let text = format!(
        "- file:\n    - $W/motd: {{ content: x, $OWN, mode: \"0644\", register_when_stable: {} }}\n\
         - exec:\n    - \"false\": {{ register_when_stable: {} }}\n\
         - exec:\n    - \"true\": {{ require: \"exec#false\", register_when_stable: {} }}\n",
        entry("good"),
        entry("failed"),
        entry("unmet"),
    );
    let world = world.manifest(&text);
    configure(&world, "manifests: [site.yaml]\nregistration: jetstream\n");
    let agent = Agent::start(&world);
    agent.makes("motd", "x");
    let services = |world: &World| -> Vec<String> {
        let entries = world.ccm(["registration", "query", "--json"]).run().json();
        let name = |entry: &Value| entry["service"].as_str().unwrap().to_owned();
        entries.as_array().unwrap().iter().map(name).collect()
    };
    wait_until("it is registered", || services(&world) == ["good"]);
    let sequence = |server: &NatsServer| {
        server.client().api("STREAM.INFO.REGISTRATION", &json!({}))["state"]["last_seq"].as_u64().unwrap()
    };
    let first = sequence(&server);
    wait_until("it is renewed", || sequence(&server) > first + 3);
    assert_eq!(services(&world), ["good"]);
    // NATS is away: runs go on, and the entry is there again when it is back.
    server.kill();
    fs::remove_file(world.path("motd")).unwrap();
    agent.makes("motd", "x");
    server.go_on();
    wait_until("it is registered again", || services(&world) == ["good"]);
}

#[test]
fn events_wait_on_disk_while_nats_is_away_and_go_out_in_order_and_once() {
    let world = World::new();
    let Some(mut server) = NatsServer::start(&world) else { return };
    let stream =
        json!({ "name": "EVENTS", "subjects": ["ccm.events"], "storage": "file", "num_replicas": 1 });
    server.client().api("STREAM.CREATE.EVENTS", &stream);
    let world =
        world.files("- $W/motd: { content: one }\n- $W/secret: { content: hunter2, sensitive: true }");
    configure(&world, "manifests: [site.yaml]\nevents: ccm.events\n");
    let agent = Agent::start(&world);
    agent.makes("motd", "one");
    let told = |server: &NatsServer| server.client().messages("EVENTS");
    wait_until("the first run is told", || told(&server).len() == 3);
    let first = told(&server);
    assert_eq!(first[0].json()["name"], json!(world.path("motd").to_string_lossy()));
    assert_eq!(first[2].json()["protocol"], json!("io.choria.ccm.v1.session.summary"));
    assert!(first.iter().all(|message| message.json()["host"].is_string()));
    server.kill();
    for number in 0..3 {
        fs::remove_file(world.path("motd")).unwrap();
        agent.says("msg=changed", 3 + number);
    }
    // The agent is ended in between: what waits is on disk.
    agent.end();
    server.go_on();
    let agent = Agent::start(&world);
    wait_until("all is told", || told(&server).len() > 3 + 3 * 2);
    let all = told(&server);
    let ids: Vec<&str> = all
        .iter()
        .map(|message| message.headers.split("Nats-Msg-Id:").nth(1).unwrap().lines().next().unwrap().trim())
        .collect();
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len(), "{ids:?}");
    let moments: Vec<String> =
        all.iter().filter_map(|message| message.json()["timestamp"].as_str().map(str::to_owned)).collect();
    assert!(moments.is_sorted(), "{moments:?}");
    assert!(!all.iter().any(|message| String::from_utf8_lossy(&message.payload).contains("hunter2")));
    drop(agent);
}
