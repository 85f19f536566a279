//! `ccm registration` and `registrations()` against a real server.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::support::{World, nats::NatsServer, wait_until};

/// A world with a server and the stream of registrations.
fn fleet() -> Option<(World, NatsServer)> {
    let world = World::new();
    let server = NatsServer::start(&world)?;
    world.ccm(["registration", "init"]).run().exits(0).says("made stream REGISTRATION");
    Some((world, server))
}

fn create(world: &World, words: &str) {
    let words = format!("registration create --cluster prod {words}");
    world.ccm(words.split(' ')).run().exits(0);
}

#[test]
fn an_entry_is_published_as_the_original_does() {
    let Some((world, server)) = fleet() else { return };
    create(&world, "--service web --protocol http --address 10.0.0.1 --port 8080 -A rack=r1");
    create(&world, "--service web --protocol http --address 2001:db8::1 --port 443 --ttl 2m");
    create(&world, "--service db --protocol postgres --address 10.1.2.3 --ttl never --priority 7");
    let messages = server.client().messages("REGISTRATION");
    let found: Vec<_> = messages.iter().map(|message| message.subject.as_str()).collect();
    assert_eq!(
        found,
        [
            "choria.ccm.registration.v1.prod.http.web.10_0_0_1.8615c9f698160162",
            "choria.ccm.registration.v1.prod.http.web.2001:db8::1.e479410001c44633",
            "choria.ccm.registration.v1.prod.postgres.db.10_1_2_3.c370be8d5cd4774e",
        ]
    );
    let expected = json!({
        "cluster": "prod", "service": "web", "protocol": "http", "address": "10.0.0.1", "port": 8080,
        "priority": 100, "annotations": { "rack": "r1" }, "ttl": "30s",
    });
    assert_eq!(messages[0].json(), expected);
    assert_eq!(messages[2].json()["port"], Value::Null);
    for (message, ttl) in messages.iter().zip(["30s", "2m0s", "never"]) {
        assert!(message.headers.contains("Nats-Rollup: sub"), "{message:?}");
        assert!(message.headers.contains(&format!("Nats-TTL: {ttl}")), "{message:?}");
    }
    // Published again, it takes the place of the old one.
    create(&world, "--service web --protocol http --address 10.0.0.1 --port 8080 --priority 9");
    assert_eq!(server.client().messages("REGISTRATION").len(), 3);
}

#[test]
fn queries_are_filtered_sorted_and_printed_in_each_format() {
    let Some((world, _server)) = fleet() else { return };
    let empty = world.ccm(["reg", "q", "--json"]).run();
    assert_eq!(empty.exits(0).json(), json!([]));
    for entry in [
        "--service web --protocol http --address 10.0.0.10 --port 80",
        "--service web --protocol http --address 10.0.0.9 --port 81",
        "--service web --protocol http --address 10.0.0.9 --port 80",
        "--service node --protocol prometheus --address ::1 --port 9100",
        "--service node --protocol prometheus --address web1.example.net",
    ] {
        create(&world, entry);
    }
    let addresses = |words: &[&str]| -> Vec<String> {
        let outcome = world.ccm(["registration", "query", "--json"].iter().chain(words)).run();
        let entries = outcome.exits(0).json();
        let text = |entry: &Value| format!("{} {}", entry["address"].as_str().unwrap(), entry["port"]);
        entries.as_array().unwrap().iter().map(text).collect()
    };
    let all = ["10.0.0.9 80", "10.0.0.9 81", "10.0.0.10 80", "::1 9100", "web1.example.net null"];
    assert_eq!(addresses(&[]), all);
    assert_eq!(addresses(&["prod", "*", "web"]), all[..3]);
    assert_eq!(addresses(&["", "http", "", "10.0.0.9"]), all[..2]);
    assert_eq!(addresses(&["other"]), [""; 0]);
    world.ccm(["r", "q"]).run().exits(0).says("10.0.0.10         80");
    world.ccm(["r", "q", "--yaml"]).run().exits(0).says("address: \"10.0.0.9\"");
    let targets = world.ccm(["r", "q", "--prometheus"]).run();
    let labels = json!({ "cluster": "prod", "service": "node", "protocol": "prometheus" });
    assert_eq!(targets.exits(0).json(), json!([{ "targets": ["[::1]:9100"], "labels": labels }]));
    world.ccm(["r", "q", "a.b"]).run().exits(2).complains("\"a.b\" is not a name");
}

#[test]
fn query_reports_entries_that_it_cannot_read_and_prints_the_others() {
    let Some((world, server)) = fleet() else { return };
    create(&world, "--service web --protocol http --address 10.0.0.1 --port 80");
    let subject = |address: &str| format!("choria.ccm.registration.v1.prod.http.web.{address}.1");
    let entry = |address: &str, more: &str| {
        format!(
            r#"{{"cluster": "prod", "service": "web", "protocol": "http", "address": "{address}"{more}}}"#
        )
    };
    let mut client = server.client();
    client.put(&subject("10_0_0_2"), None, b"not an entry");
    client.put(&subject("10_0_0_3"), None, entry("10.0.0.3", r#", "ttl": "soon""#).as_bytes());
    let forged = r#", "annotations": {"note": "x\n10.9.9.9   99   prod"}"#;
    client.put(&subject("10_0_0_4"), None, entry("10.0.0.4", forged).as_bytes());
    client.put(&subject("10_0_0_5"), None, entry("10.0.0.5", "").as_bytes());
    client.put(&subject("10_0_0_5"), Some("Nats-Marker-Reason: Purge"), b"");
    let table = world.ccm(["registration", "query"]).run();
    table.exits(0).complains("web.10_0_0_2.1: it is not an entry");
    table.complains("web.10_0_0_3.1: its `ttl` is not a duration, and is ignored");
    let forged = |line: &str| line.trim_start().starts_with("10.9.9.9");
    assert!(!table.stdout.lines().any(forged), "{table}");
    let entries = world.ccm(["registration", "query", "--json"]).run();
    let entries = entries.exits(0).json();
    let addresses: Vec<_> =
        entries.as_array().unwrap().iter().map(|entry| entry["address"].clone()).collect();
    assert_eq!(addresses, ["10.0.0.1", "10.0.0.3", "10.0.0.4"]);
}

#[test]
fn an_entry_is_removed_once_and_only_when_that_is_meant() {
    let Some((world, server)) = fleet() else { return };
    create(&world, "--service web --protocol http --address 10.0.0.1 --port 80");
    let rm = "registration rm --cluster prod --service web --protocol http --address 10.0.0.1 --port 80";
    world.ccm(rm.split(' ')).input("n\n").run().exits(2).complains("nothing was removed");
    world.ccm(rm.split(' ')).input("y\n").run().exits(0).says("removed choria.ccm");
    assert_eq!(world.ccm(["r", "q", "--json"]).run().json(), json!([]));
    let again = format!("{rm} --force");
    world.ccm(again.split(' ')).run().exits(0).says("there was no choria.ccm");
    drop(server);
}

#[test]
fn the_stream_is_made_and_repaired() {
    let Some((world, server)) = fleet() else { return };
    let settings =
        |server: &NatsServer| server.client().api("STREAM.INFO.REGISTRATION", &json!({}))["config"].clone();
    let made = settings(&server);
    for (key, value) in [
        ("subjects", json!(["choria.ccm.registration.v1.>"])),
        ("max_age", json!(60_000_000_000_u64)),
        ("max_msgs_per_subject", json!(1)),
        ("allow_rollup_hdrs", json!(true)),
        ("allow_msg_ttl", json!(true)),
        ("subject_delete_marker_ttl", json!(60_000_000_000_u64)),
        ("deny_delete", json!(true)),
        ("allow_direct", json!(true)),
        ("storage", json!("file")),
        ("retention", json!("limits")),
        ("num_replicas", json!(1)),
    ] {
        assert_eq!(made[key], value, "{key}");
    }
    world.ccm(["registration", "init"]).run().exits(0).says("is as it should be");
    // As the original makes it.
    let mut other = made.clone();
    (other["allow_direct"], other["max_age"]) = (json!(false), json!(120_000_000_000_u64));
    server.client().api("STREAM.UPDATE.REGISTRATION", &other);
    world.ccm(["registration", "init"]).run().exits(0).says("changed allow_direct, max_age of stream");
    assert_eq!(settings(&server)["allow_direct"], json!(true));
}

#[test]
fn what_comes_and_goes_is_watched() {
    let Some((world, mut server)) = fleet() else { return };
    let mut watch = world.ccm(["registration", "watch", "--json"]).start();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let consumers = |server: &NatsServer| {
        server.client().api("STREAM.INFO.REGISTRATION", &json!({}))["state"]["consumer_count"].as_u64()
    };
    wait_until("it watches", || consumers(&server) == Some(1));
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    create(&world, "--service web --protocol http --address 10.0.0.1 --port 80");
    let update = next();
    assert_eq!((&update["action"], &update["entry"]["address"]), (&json!("update"), &json!("10.0.0.1")));
    let rm =
        "registration rm --force --cluster prod --service web --protocol http --address 10.0.0.1 --port 80";
    world.ccm(rm.split(' ')).run().exits(0);
    let removal = next();
    assert_eq!(removal["action"], json!("remove"), "{removal}");
    assert_eq!(removal["entry"]["address"], json!("10.0.0.1"));
    // One that expires.
    create(&world, "--service web --protocol http --address 10.0.0.2 --port 80 --ttl 1s");
    assert_eq!(next()["entry"]["address"], json!("10.0.0.2"));
    let expired = next();
    assert_eq!((&expired["action"], &expired["reason"]), (&json!("remove"), &json!("MaxAge")));
    // The server comes back, and so does the watch.
    server.kill();
    server.go_on();
    create(&world, "--service web --protocol http --address 10.0.0.3 --port 80");
    assert_eq!(next()["entry"]["address"], json!("10.0.0.3"));
    let id = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn templates_see_registrations() {
    let Some((world, _server)) = fleet() else { return };
    create(&world, "--service web --protocol http --address 10.0.0.2 --port 80 -A rack=r2");
    create(&world, "--service web --protocol http --address 10.0.0.1 --port 80");
    create(&world, "--service node --protocol prometheus --address 10.0.0.1 --port 9100");
    let world = world
        .files(
            "- $W/a: { content: \"${ join(map(registrations('prod', 'http', 'web'), .Address + ':' + string(#.port)), ' ') }\" }\n\
             - $W/b: { content: \"${ registrations('*', 'prometheus').PrometheusFileSD() }\" }\n\
             - $W/c: { content: \"${ jinja('c.j2') }\" }\n\
             - $W/d: { content: \"${ prometheusFileSD(registrations('none')) }\" }\n",
        )
        .beside(
            "c.j2",
            "{% for r in registrations('prod', 'http') %}{{ r.Address }}:{{ r.port }}\n{% endfor %}\
             {{ registrations('', 'prometheus').PrometheusFileSD() }}",
        );
    world.apply().exits(0);
    assert_eq!(world.read("a"), "10.0.0.1:80 10.0.0.2:80");
    let targets: Value = serde_json::from_str(&world.read("b")).unwrap();
    assert_eq!(targets[0]["targets"], json!(["10.0.0.1:9100"]));
    assert_eq!(world.read("c"), format!("10.0.0.1:80\n10.0.0.2:80\n{}", world.read("b")));
    assert_eq!(world.read("d"), "[]");
    // Another stream is named with -R.
    world.ccm(["apply", "site.yaml", "-R", "OTHER"]).run().exits(1).says("there is no stream \"OTHER\"");
    for command in [&["apply", "site.yaml"][..], &["registration", "query"]] {
        let outcome = world.ccm(command.iter().chain(&["-R", "a.b"])).run();
        outcome.exits(2).complains("\"a.b\" is not the name of a stream");
    }
}

#[test]
fn what_is_wrong_with_an_entry_is_found_when_the_manifest_is_read() {
    let entry = |more: &str| {
        let world = World::new().files(&format!(
            "- $W/a: {{ content: x, register_when_stable: [{{ cluster: prod, service: web, protocol: http, {more} }}] }}"
        ));
        world.validate()
    };
    entry("address: 10.0.0.1, port: 80, ttl: 1d, annotations: { a: 1 }").exits(0);
    entry("address: \"{{ '10.0.0.1' }}\", port: \"{{ 80 }}\"").exits(0);
    for (more, problem) in [
        ("port: 80", "address"),
        ("address: 10.0.0.1, port: 0", "\"0\" is not a port"),
        ("address: 10.0.0.1, port: \"{{ 70000 }}\"", "\"70000\" is not a port"),
        ("address: 10.0.0.1, priority: 256", "\"256\" is not a priority"),
        ("address: 10.0.0.1, ttl: 30", "give it a unit"),
        ("address: 10.0.0.300", "neither an IP address nor a host name"),
        ("address: 10.0.0.1, prot: x", "prot"),
    ] {
        entry(more).exits(2).complains(problem);
    }
}

#[test]
fn registrations_without_a_publisher_do_nothing() {
    let world = World::new().files(
        "- $W/a: { content: x, register_when_stable: [{ cluster: prod, service: web, protocol: http, address: 10.0.0.1 }] }",
    );
    world.apply().exits(0);
    world.ccm(["apply", "site.yaml", "--render"]).run().exits(0).says("register_when_stable");
}
