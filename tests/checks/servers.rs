//! What servers answer.

use super::{check, judged, judged_in};
use crate::support::{
    World,
    http::{Identity, Reply, Server},
};

#[test]
fn a_server_is_judged_by_status_headers_and_body() {
    let server = Server::start(|request| match request.path.as_str() {
        "/moved" => Reply::redirect("/ok"),
        "/ok" => Reply::body(br#"{"status":"up","nodes":[1,2]}"#.to_vec()).header("X-Kind", "Test"),
        _ => Reply::status(503),
    });
    let url = |path: &str| server.url(path);
    for (rule, state) in [
        (
            format!(
                "{}: {{ status: 302, no-follow-redirects: true, headers: ['Location: /ok'] }}",
                url("/moved")
            ),
            "OK",
        ),
        (format!("{}: {{ status: 200 }}", url("/moved")), "OK"),
        (format!("{}: {{ status: 200, headers: ['x-kind: Test'], body: ['\"up\"'] }}", url("/ok")), "OK"),
        (format!("{}: {{ status: 200, headers: ['X-KIND: Test'] }}", url("/ok")), "OK"),
        (format!("{}: {{ status: 200, body: {{ gjson: {{ nodes.#: 2 }} }} }}", url("/ok")), "OK"),
        (format!("{}: {{ status: 200, body: ['down'] }}", url("/ok")), "CRITICAL"),
        (format!("{}: {{ status: 503 }}", url("/bad")), "OK"),
        (format!("{}: {{ status: {{ or: [200, 204] }} }}", url("/bad")), "CRITICAL"),
    ] {
        let (found, counts) = judged(&format!("http: {{ {rule} }}"));
        assert_eq!(found, state, "{rule}: {counts}");
    }
    check(&format!("[{{ http: '{}' }}]", url("/ok"))).0.exits(0);
    check(&format!("[{{ http: '{}' }}]", url("/bad"))).0.exits(1);
    check(&format!("[{{ http: {{ url: '{}', status: 503 }} }}]", url("/bad"))).0.exits(0);
    check(&format!("[{{ http: {{ url: '{}', json: {{ status: up }} }} }}]", url("/ok"))).0.exits(0);
    let refused = url("/ok");
    drop(server);
    let (state, counts) = judged(&format!("http: {{ {refused}: {{ status: 200, body: [x] }} }}"));
    assert_eq!((state.as_str(), counts.as_str()), ("CRITICAL", "Count: 2, Failed: 1, Skipped: 1"));
}

#[test]
fn a_server_is_trusted_only_with_a_certificate_that_somebody_vouches_for() {
    let (identity, client) = (Identity::of("127.0.0.1"), Identity::of("client.example"));
    let open = Server::secure(&identity, |_| Reply::body(b"well".to_vec()));
    let closed = Server::for_client(&identity, &client, |_| Reply::body(b"well".to_vec()));
    let world = World::new()
        .beside("rules.yaml", "")
        .beside("ca.pem", identity.pem())
        .beside("client.pem", client.pem())
        .beside("client.key", client.key_pem());
    let with_key = "ca-file: ca.pem, cert-file: client.pem, key-file: client.key";
    for (server, options, state) in [
        (&open, "", "CRITICAL"),
        (&open, "allow-insecure: true", "OK"),
        (&open, "ca-file: ca.pem", "OK"),
        (&open, "ca-file: client.pem", "CRITICAL"),
        (&closed, "ca-file: ca.pem", "CRITICAL"),
        (&closed, with_key, "OK"),
    ] {
        let url = server.url("/x");
        let rules = format!("http: {{ '{url}': {{ status: 200, body: [well], timeout: 30s, {options} }} }}");
        let (found, counts) = judged_in(&world, &rules);
        assert_eq!(found, state, "{rules}: {counts}");
    }
    let rules = format!("http: {{ '{}': {{ status: 200, ca-file: none.pem }} }}", open.url("/x"));
    assert_eq!(judged_in(&world, &rules).0, "UNKNOWN", "what cannot be read says nothing about the server");
}

#[test]
fn a_server_is_asked_through_the_proxy_that_is_given() {
    let proxy = Server::start(|_| Reply::body(b"by proxy".to_vec()));
    let rule =
        format!("http://nowhere.invalid/x: {{ status: 200, body: [by proxy], proxy: '{}' }}", proxy.url(""));
    assert_eq!(judged(&format!("http: {{ {rule} }}")).0, "OK");
    assert_eq!(judged("http: { http://nowhere.invalid/x: { status: 200 } }").0, "CRITICAL");
}

#[test]
fn failed_probe_reports_expected_and_actual_status_once() {
    let server = Server::start(|_| Reply::status(503));
    let checks = format!("[{{ name: web, http: '{}', tries: 3, try_sleep: 1ms }}]", server.url("/"));
    let world = World::new().files(&format!("- $W/x: {{ content: x, health_checks: {checks} }}"));
    let outcome = world.apply();
    outcome.exits(1).says("health check web: CRITICAL after 3 attempts: http http://").never_says("{\"");
    assert_eq!(outcome.stdout.matches("expected status 2xx, got 503; trying again").count(), 1, "{outcome}");
    assert_eq!(outcome.stdout.matches("expected status 2xx, got 503\n").count(), 1, "{outcome}");
}
