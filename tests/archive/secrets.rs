//! Passwords, headers and addresses with passwords in them are used, and shown nowhere.

use std::{fs, path::Path};

use super::app;
use crate::support::{
    Outcome, World,
    http::{Reply, Server},
};

/// Occur nowhere but in what must not be shown.
const CANARIES: [&str; 6] =
    ["c4n4ry-pass", "c4n4ry-head", "c4n4ry-user", "c4n4ry-sign", NUMBER, "c4n4ry-name"];
/// One that YAML does not take for text.
const NUMBER: &str = "867530986753";

/// A path with a query as servers sign it.
const SIGNED: &str = "/app.tar.gz?signature=c4n4ry-sign&x=y";

#[track_caller]
fn kept(world: &World, outcome: &Outcome) {
    for canary in CANARIES {
        outcome.never_says(canary);
    }
    for folder in ["state", "home", "w"] {
        search(&world.base().join(folder));
    }
}

#[track_caller]
fn search(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            search(&path);
        } else {
            let content = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
            assert!(!CANARIES.iter().any(|canary| content.contains(canary)), "{} holds one", path.display());
        }
    }
}

fn manifest(url: &str, more: &str) -> String {
    format!(
        "\
- archive:
    - $W/app.tar.gz:
        url: \"{url}\"
        owner: \"$UID\"
        group: \"$GID\"
        username: {}
        password: {}
        headers: {{ X-Token: {} }}
        try_sleep: 10ms
{more}",
        CANARIES[5], CANARIES[0], CANARIES[1]
    )
}

const MODES: &[&[&str]] = &[
    &["--noop"],
    &["--noop", "--diff", "--json"],
    &["--render"],
    &["--render", "--json"],
    &["--diff"],
    &["--json"],
    &[],
];

#[test]
fn secrets_reach_the_server_and_nothing_else() {
    for flags in MODES {
        let server = Server::start(|_| Reply::body(app("1")));
        let url = server.url_with(CANARIES[2], SIGNED);
        let world = World::new().manifest(&manifest(&url, "        extract_parent: $W/opt\n"));
        kept(&world, world.apply_with(flags).exits(0));
        for request in server.requests() {
            assert_eq!(request.header("authorization"), Some("Basic YzRuNHJ5LW5hbWU6YzRuNHJ5LXBhc3M="));
            assert_eq!(request.header("x-token"), Some(CANARIES[1]));
            assert_eq!(request.path, SIGNED);
        }
    }
}

#[test]
fn a_server_that_a_redirect_leads_to_is_not_told() {
    let server = Server::start(|request| match request.header("host") {
        Some(host) if host.starts_with("localhost") => Reply::body(app("1")),
        Some(host) => {
            Reply::redirect(&format!("http://{}/app.tar.gz", host.replace("127.0.0.1", "localhost")))
        }
        None => Reply::status(400),
    });
    let world = World::new().manifest(&manifest(&server.url_with(CANARIES[2], SIGNED), ""));
    kept(&world, world.apply().exits(0));
    let asked = server.requests();
    assert_eq!(asked.len(), 2);
    assert_eq!((asked[1].header("authorization"), asked[1].header("x-token")), (None, None));
    assert!(server.url_by_name("/").contains(asked[1].header("host").unwrap()));
}

#[test]
fn a_list_of_checksums_on_another_server_is_asked_for_without_them() {
    let list = format!("{}  app.tar.gz\n", super::sha256(&app("1")));
    let server = Server::start(move |request| match request.path.as_str() {
        "/SUMS" => Reply::body(list.clone().into_bytes()),
        "/MOVED" => {
            let host = request.header("host").unwrap_or_default().replace("127.0.0.1", "localhost");
            Reply::redirect(&format!("http://{host}/SUMS"))
        }
        _ => Reply::body(app("1")),
    });
    let (name, password) = (CANARIES[5], CANARIES[0]);
    for (list, is_told) in [
        (server.url("/SUMS"), vec![true]),
        (server.url_by_name("/SUMS"), vec![false]),
        (server.url("/MOVED"), vec![true, false]),
    ] {
        let by_properties =
            manifest(&server.url("/app.tar.gz"), &format!("        checksum_url: \"{list}\"\n"));
        let by_url = format!(
            "- archive:\n    - $W/app.tar.gz: {{ url: \"{}\", $OWN, checksum_url: \"{list}\" }}\n",
            server.url_with(&format!("{name}:{password}"), "/app.tar.gz"),
        );
        for (text, has_headers) in [(by_properties, true), (by_url, false)] {
            let asked_before = server.requests().len();
            let world = World::new().manifest(&text);
            kept(&world, world.apply().exits(0));
            let asked = &server.requests()[asked_before..];
            let (archive, lists) = asked.split_last().unwrap();
            assert!(archive.header("authorization").is_some(), "the archive's own server is told");
            // What is part of an address is for that address alone.
            let told: Vec<_> = lists.iter().map(|list| list.header("authorization").is_some()).collect();
            let wanted: Vec<_> = is_told.iter().map(|is_told| *is_told && has_headers).collect();
            assert_eq!(told, wanted, "{list}");
            let told: Vec<_> = lists.iter().map(|list| list.header("x-token").is_some()).collect();
            assert_eq!(told, wanted, "{list}");
        }
    }
}

#[test]
fn failures_do_not_show_them_either() {
    let answers: [fn(&str) -> Reply; 5] = [
        |_| Reply::status(401),
        |_| Reply::status(500),
        |_| Reply::body(b"not an archive".to_vec()),
        |url| Reply::redirect(&url.replace("app.tar.gz", "again")),
        |_| Reply::redirect("ftp://elsewhere/x"),
    ];
    for answer in answers {
        for flags in [&[][..], &["--json"]] {
            let server = Server::start(move |request| answer(&request.path));
            let url = server.url_with(CANARIES[2], SIGNED);
            let world = World::new().manifest(&manifest(&url, "        extract_parent: $W/opt\n"));
            kept(&world, world.apply_with(flags).exits(1));
        }
    }
    let world = World::new().manifest(&manifest(&format!("http://{}@127.0.0.1:1{SIGNED}", CANARIES[2]), ""));
    kept(&world, world.apply().exits(1));
}

#[test]
fn problems_of_a_manifest_do_not_quote_them() {
    let url = format!("http://me:{}@h/app.tar.gz", CANARIES[2]);
    for (manifest, place) in [
        // Everything on one line, so that the excerpt of any problem would show it.
        (format!("- archive: [{{ /app.tar.gz: {{ url: '{url}', cleanup: true }} }}]"), "cleanup"),
        (
            format!("- archive: [{{ /app.tar.gz: {{ url: 'http://me:{}@h /app.tar.gz' }} }}]", CANARIES[2]),
            "url",
        ),
        (
            format!("- archive: [{{ /app.tar.gz: {{ url: 'ftp://me:{}@h/app.tar.gz' }} }}]", CANARIES[2]),
            "ftp",
        ),
        (format!("- archive: [{{ /app.tar.gz: {{ password: {}, ulr: x }} }}]", CANARIES[0]), "ulr"),
        (format!("- archive: [{{ /app.tar.gz: {{ url: 'https://h{SIGNED}', ulr: x }} }}]"), "ulr"),
        (format!("- archive: [{{ /app.tar.gz: {{ url: 'https://h{SIGNED}', checksum: [ }} }}]"), ""),
        (format!("- archive: [{{ /app.tar.gz: {{ password: [{}] }} }}]", CANARIES[0]), "password"),
        (format!("- archive: [{{ /app.tar.gz: {{ headers: {{ X: [{}] }} }} }}]", CANARIES[1]), "headers"),
        (format!("- archive: [{{ /app.tar.gz: {{ headers: {} }} }}]", CANARIES[1]), "headers"),
        (format!("- archive: [{{ /app.tar.gz: {{ password: {}, headers: [ }} }}]", CANARIES[0]), ""),
        (format!("- archive: [{{ /app.tar.gz: {{ password: {NUMBER} }} }}]"), "expected a string"),
        (
            format!("- archive: [{{ /app.tar.gz: {{ headers: {{ X-Num: {NUMBER} }} }} }}]"),
            "expected a string",
        ),
        (
            format!("- archive: [{{ /app.tar.gz: {{ headers: {}{} }} }}]", CANARIES[1], "x".repeat(80)),
            "expected a map",
        ),
        (format!("- file: [{{ /x: {{ sensitive: true, content: {NUMBER} }} }}]"), "expected a string"),
        (
            format!("- archive: [{{ /app.tar.gz: {{ passwrd: {} }} }}]", CANARIES[0]),
            "did you mean `password`?",
        ),
        (
            format!("- archive: [{{ /app.tar.gz: {{ header: {{ X: {} }} }} }}]", CANARIES[1]),
            "did you mean `headers`?",
        ),
    ] {
        let world = World::new().manifest(&manifest);
        kept(&world, world.validate().exits(2).complains(place));
        kept(&world, world.apply().exits(2));
    }
}

#[test]
fn a_misspelt_address_with_a_password_is_not_quoted() {
    for address in [
        "http://u:C/x@h/a.tar.gz",
        "http://u:C#x@h/a.tar.gz",
        "http://u:C?x@h/a.tar.gz",
        "http://C!/x@h/a.tar.gz",
        "http:/u:C@h/a.tar.gz",
        "http//u:C@h/a.tar.gz",
        "http:/u:C x@h/a.tar.gz",
        "u:C@h/a.tar.gz",
        "C@h/a.tar.gz",
        "u:C@h/a://b.tar.gz",
    ] {
        let address = address.replace('C', CANARIES[2]);
        let properties = format!("url: '{address}', owner: root, group: root");
        let world = World::new().manifest(&format!("- archive: [{{ /a.tar.gz: {{ {properties} }} }}]"));
        kept(&world, world.validate().exits(2).complains("url: "));
        let flags = ["ensure", "archive", "/a.tar.gz", "--url", &address, "--owner", "0", "--group", "0"];
        kept(&world, world.ccm(flags).run().exits(2).complains("url: "));
    }
}

#[test]
fn answers_to_programs_do_not_show_them_either() {
    let world = World::new();
    let url = format!("u:{}@h/a.tar.gz", CANARIES[2]);
    for properties in [
        serde_json::json!({ "name": "/a.tar.gz", "password": 867_530_986_753_u64 }),
        serde_json::json!({ "name": "/a.tar.gz", "headers": { "X": 867_530_986_753_u64 } }),
        serde_json::json!({ "name": "/a.tar.gz", "passwrd": CANARIES[0] }),
        serde_json::json!({ "name": "/a.tar.gz", "url": url }),
    ] {
        let request = serde_json::json!({
            "protocol": "io.choria.ccm.v1.resource.ensure.request",
            "type": "archive",
            "properties": properties,
        });
        let call = world.ccm(["ensure", "api", "pipe"]).input(request.to_string());
        kept(&world, call.run().exits(0).says("\"error\""));
    }
}

#[test]
fn flags_do_not_show_them_either() {
    let world = World::new().beside("secret", CANARIES[0]);
    let url = format!("http://me:{}@127.0.0.1:1{SIGNED}", CANARIES[2]);
    let header = format!("X={}", CANARIES[1]);
    let base = ["ensure", "archive", "$W/app.tar.gz", "--url", &url, "--headers", &header, "--tries", "1"];
    // Owner and group are missing: a problem is shown with the command line.
    kept(&world, world.ccm(base.iter().chain(&["--password", CANARIES[0]])).run().exits(2));
    let whole = ["--owner", "$UID", "--group", "$GID", "--username", "me", "--password-file", "secret"];
    kept(&world, world.ccm(base.iter().chain(&whole)).run().exits(1));
    kept(&world, world.ccm(["ensure", "archive", "$W/app.tar.gz", "--headers", CANARIES[1]]).run().exits(2));
}
