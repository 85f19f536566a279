//! Files whose content is downloaded.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use sha2::{Digest, Sha256, Sha512};

use crate::support::{
    World,
    http::{Manner, Reply, Server},
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn world(url: &str, more: &str) -> World {
    World::new().manifest(&format!("- file: [{{ $W/x: {{ source: '{url}', $OWN, mode: '0640'{more} }} }}]"))
}

#[test]
fn a_file_with_a_checksum_is_downloaded_once_and_again_when_it_differs() {
    let server = Server::of(b"tool".to_vec());
    for checksum in [hex(&Sha256::digest(b"tool")), format!("sha512:{}", hex(&Sha512::digest(b"tool")))] {
        let before = server.requests().len();
        let world = world(&server.url("/tool"), &format!(", checksum: '{checksum}'"));
        let noop = world.apply_with(&["--noop"]);
        noop.exits(0).says("Would have created the file").never_says("whatever the server sends");
        assert_eq!(server.requests().len(), before, "a dry run downloads nothing");
        world.apply().exits(0).counts([1, 0, 0, 0]);
        let item = world.tree().item("x").unwrap().clone();
        assert_eq!((world.read("x").as_str(), item.mode), ("tool", 0o640));
        world.apply().exits(0).counts([0, 1, 0, 0]);
        assert_eq!(server.requests().len(), before + 1);
        fs::write(world.path("x"), "tampered").unwrap();
        world.apply().exits(0).says("updated the file (source)");
        assert_eq!(world.read("x"), "tool");
        let world = world.mode("x", 0o600);
        world.apply().exits(0).says("(mode 0600 -> 0640)");
        assert_eq!(server.requests().len(), before + 2, "a mode needs no download");
    }
}

#[test]
fn what_is_not_what_it_should_be_is_never_seen() {
    let server = Server::of(b"evil".to_vec());
    let world = world(&server.url("/tool"), &format!(", checksum: {}", hex(&Sha256::digest(b"tool"))))
        .file("x", "old");
    let before = world.tree();
    world.apply().counts([0, 0, 1, 0]).says("the download has the checksum");
    assert_eq!(world.tree(), before);
    for (status, why) in [(404, "answered 404"), (500, "answered 500")] {
        let server = Server::start(move |_| Reply::status(status));
        let world = self::world(&server.url("/tool"), "");
        world.apply().counts([0, 0, 1, 0]).says(why);
        assert!(world.tree().names().is_empty());
    }
}

#[test]
fn a_download_that_breaks_off_is_taken_up_again() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let body: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let sent = body.clone();
    let server = Server::start(move |request| {
        let reply = Reply::body(sent.clone()).resumable(request, "\"1\"");
        if COUNT.fetch_add(1, Ordering::Relaxed) == 0 { reply.manner(Manner::Cut(500_000)) } else { reply }
    });
    let world =
        world(&server.url("/tool"), &format!(", tries: 2, checksum: {}", hex(&Sha256::digest(&body))));
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(fs::read(world.path("x")).unwrap(), body);
    let requests = server.requests();
    assert!(requests.len() == 2 && requests[1].range().is_some_and(|from| from > 0), "{requests:?}");
}

#[test]
fn without_a_checksum_the_version_that_the_server_names_decides() {
    static VERSION: AtomicUsize = AtomicUsize::new(1);
    let server = Server::start(|_| {
        let version = VERSION.load(Ordering::Relaxed);
        Reply::body(format!("tool {version}").into_bytes()).header("ETag", &format!("\"{version}\""))
    });
    let world = world(&server.url("/tool"), "");
    world.apply().exits(0).counts([1, 0, 0, 0]).says("the download is not verified: give its SHA-256 as `checksum`, or `checksum: none` to accept any content");
    world.apply().exits(0).counts([0, 1, 0, 0]);
    VERSION.store(2, Ordering::Relaxed);
    world.apply_with(&["--noop"]).exits(0).says("Would have updated the file");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("x"), "tool 2");
    fs::write(world.path("x"), "tampered").unwrap();
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("x"), "tool 2", "drift is repaired");
    let silent = Server::of(b"tool".to_vec());
    let world = self::world(&silent.url("/tool"), "");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    world.apply().exits(0).counts([0, 1, 0, 0]).says("tells neither an ETag nor when the file was modified");
}

#[test]
fn headers_and_passwords_reach_the_server_and_nobody_else() {
    let server = Server::of(b"tool".to_vec());
    let url = server.url_with("me:hunter2", "/tool?token=canary");
    let world = world(&url, ", headers: { X-Token: swordfish }");
    for flags in [&["--noop", "--json"][..], &["--json"], &[]] {
        let run = world.apply_with(flags);
        run.exits(0).never_says("hunter2").never_says("canary").never_says("swordfish");
    }
    let request = server.requests().remove(0);
    assert_eq!(request.header("x-token"), Some("swordfish"));
    assert!(request.header("authorization").is_some());
}

#[test]
fn what_is_for_downloads_needs_an_address() {
    let sum = hex(&Sha256::digest(b""));
    for (properties, message) in [
        (format!("source: /etc/hosts, checksum: {sum}"), "`checksum` needs a `source` that is an address"),
        ("content: a, headers: { A: b }".to_owned(), "`headers` needs a `source` that is an address"),
        ("source: 'ftp://x/y'".to_owned(), "ftp"),
        ("source: 'http://x/y', headers: { 'a b': c }".to_owned(), "headers"),
    ] {
        let world =
            World::new().manifest(&format!("- file: [{{ $W/x: {{ {properties}, $OWN, mode: '0644' }} }}]"));
        world.apply().exits(2).complains(message);
    }
}
