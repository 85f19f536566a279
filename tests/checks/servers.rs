//! What servers answer.

use super::{check, judged};
use crate::support::http::{Reply, Server};

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
