//! Servers that fail, lie, stall or change their mind.

use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::{EXTRACT, app, changed, failed, manifest, noise, sha256, tarball, world};
use crate::support::{
    World,
    http::{Identity, Manner, Reply, Server},
    is_root, wait_until,
};

/// Nothing of the old archive and tree changes, and nothing is left behind.
#[track_caller]
fn fails_without_a_trace(url: &str, more: &str, why: &str) {
    for properties in [format!("tries: 3{more}"), format!("{EXTRACT}, checksum: {}{more}", sha256(b"new"))] {
        let world = World::new().manifest(&manifest(url, &properties)).file("opt/share/readme", "old");
        let world = if properties.contains("checksum") { world.file("app.tar.gz", "old") } else { world };
        let before = world.tree();
        failed(&world.apply(), why);
        assert_eq!(world.tree(), before);
    }
}

#[test]
fn refusals_of_the_server_are_told_and_only_passing_ones_are_tried_again() {
    for (status, why, requests) in [
        (401, "answered 401 (Unauthorized)", 1),
        (403, "answered 403 (Forbidden)", 1),
        (404, "answered 404 (Not Found)", 1),
        (500, "answered 500 (Internal Server Error)", 3),
        (503, "answered 503 (Service Unavailable)", 3),
    ] {
        let server = Server::start(move |_| Reply::status(status));
        let world = world(&server, "");
        failed(&world.apply(), why);
        assert!(world.tree().names().is_empty());
        assert_eq!(server.requests().len(), requests, "{status}");
        fails_without_a_trace(&server.url("/app.tar.gz"), "", why);
    }
    let page = Server::start(|_| Reply::body(b"<html>not found</html>".to_vec()).with_status(404));
    fails_without_a_trace(&page.url("/app.tar.gz"), "", "answered 404");
    fails_without_a_trace("http://127.0.0.1:1/app.tar.gz", "", "the connection was refused");
}

#[test]
fn a_body_arrives_however_it_is_framed() {
    for manner in [Manner::Chunked, Manner::Unmeasured] {
        let server = Server::start(move |_| Reply::body(app("1")).manner(manner));
        let world = world(&server, EXTRACT);
        changed(&world.apply(), "downloaded, extracted");
        assert_eq!(world.read("opt/bin/app"), "1");
    }
}

#[test]
fn tries_can_be_set() {
    let server = Server::start(|_| Reply::status(500));
    failed(&world(&server, "tries: 2").apply(), "answered 500");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_body_that_is_not_whole_is_not_accepted() {
    let body = tarball(&[("bin/app", noise(300_000))]);
    let cuts = (0..body.len()).step_by(64 * 1024).map(Manner::Cut).chain([
        Manner::Claiming(body.len() + 10),
        Manner::Severed(body.len()),
        Manner::Silent,
    ]);
    for manner in cuts {
        let body = body.clone();
        let server = Server::start(move |_| Reply::body(body.clone()).manner(manner));
        let world = world(&server, EXTRACT).file("opt/share/readme", "old");
        let before = world.tree();
        world.apply().exits(1).counts([0, 0, 1, 0]);
        assert_eq!(world.tree(), before, "{manner:?}");
        assert_eq!(server.requests().len(), 3);
    }
}

#[test]
fn an_archive_that_was_cut_short_before_it_was_sent_is_not_accepted() {
    let body = tarball(&[("bin/app", noise(300_000))]);
    for cut in (0..body.len()).step_by(64 * 1024).chain([body.len() - 1]) {
        let server = Server::of(body[..cut].to_vec());
        let world = world(&server, EXTRACT).file("opt/share/readme", "old");
        let before = world.tree();
        failed(&world.apply(), "cannot unpack");
        assert_eq!(world.tree(), before, "{cut}");
        assert_eq!(server.requests().len(), 1, "another download would be the same");
    }
}

#[test]
fn a_broken_download_is_taken_up_where_it_ended() {
    let body = tarball(&[("bin/app", noise(500_000))]);
    for properties in [format!("checksum: {}", sha256(&body)), EXTRACT.to_owned()] {
        let sent = body.clone();
        let count = AtomicUsize::new(0);
        let server = Server::start(move |request| {
            let reply = Reply::body(sent.clone()).resumable(request, "\"v1\"");
            match count.fetch_add(1, Ordering::Relaxed) {
                0 => reply.manner(Manner::Cut(200_000)),
                1 => reply.manner(Manner::Cut(100_000)),
                _ => reply,
            }
        });
        let world = world(&server, &properties);
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), body);
        let asked = server.requests();
        let ranges: Vec<_> =
            asked.iter().map(|request| (request.header("range"), request.header("if-range"))).collect();
        let version = Some("\"v1\"");
        assert_eq!(
            ranges,
            [(None, None), (Some("bytes=200000-"), version), (Some("bytes=300000-"), version)]
        );
        assert!(world.tree().leftovers().is_empty());
    }
}

#[test]
fn a_download_begins_anew_when_the_server_has_another_version_or_no_ranges() {
    let body = tarball(&[("bin/app", noise(300_000))]);
    for versions in [["\"v1\"", "\"v2\""], ["", ""]] {
        let sent = body.clone();
        let count = AtomicUsize::new(0);
        let server = Server::start(move |request| match count.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::body(noise(250_000)).header("ETag", versions[0]).manner(Manner::Cut(200_000)),
            _ if versions[1].is_empty() => Reply::body(sent.clone()),
            _ => Reply::body(sent.clone()).resumable(request, versions[1]),
        });
        let world = world(&server, "");
        changed(&world.apply(), "downloaded");
        assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), body);
    }
}

#[test]
fn a_server_that_resumes_at_the_wrong_place_does_not_spoil_the_download() {
    let body = tarball(&[("bin/app", noise(300_000))]);
    let sent = body.clone();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::body(sent.clone()).header("ETag", "\"v\"").manner(Manner::Cut(200_000)),
        1 => Reply::body(sent[100_000..].to_vec())
            .with_status(206)
            .header("Content-Range", "bytes 100000-300000/300001"),
        _ => Reply::body(sent.clone()),
    });
    let world = world(&server, "");
    changed(&world.apply(), "downloaded");
    assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), body);
    assert_eq!(server.requests()[2].header("range"), None);
}

#[test]
fn a_download_with_another_checksum_is_thrown_away() {
    let server = Server::of(app("evil"));
    let world = world(&server, &format!("{EXTRACT}, checksum: {}", sha256(&app("1"))));
    failed(
        &world.apply(),
        &format!("the download has the checksum {}, not {}", sha256(&app("evil")), sha256(&app("1"))),
    );
    assert!(world.tree().names().is_empty());
    assert_eq!(server.requests().len(), 1, "another download would be the same");
}

#[test]
fn the_time_limit_bounds_the_whole_download() {
    let server = Server::start(|_| Reply::body(noise(100_000)).manner(Manner::Stall(50_000)));
    let world = world(&server, "timeout: 500ms, tries: 1");
    failed(&world.apply(), "timed out after 500ms");
    assert!(world.tree().names().is_empty());
}

#[test]
fn a_signal_ends_a_download_and_leaves_nothing() {
    let server = Server::start(|_| Reply::body(noise(100_000)).manner(Manner::Stall(50_000)));
    let world = world(&server, EXTRACT);
    let call = world.ccm(["apply", "site.yaml"]);
    let child = call.start();
    wait_until("it is asked for", || !server.requests().is_empty());
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("interrupted before it was finished"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert!(world.tree().names().is_empty());
}

#[test]
fn certificates_are_checked_against_the_system_and_the_ca_file() {
    let identity = Identity::of("127.0.0.1");
    let server = Server::secure(&identity, |_| Reply::body(app("1")));
    let world = World::new().beside("ca.pem", identity.pem());
    let trusting = format!("ca_file: {}", world.base().join("ca.pem").display());
    let world = world.manifest(&manifest(&server.url("/app.tar.gz"), &trusting));
    changed(&world.apply(), "downloaded");
    fails_without_a_trace(&server.url("/app.tar.gz"), "", "its certificate is self-signed");
    let expired = Identity::expired("127.0.0.1");
    let old = Server::secure(&expired, |_| Reply::body(app("1")));
    let world = world.beside("old.pem", expired.pem());
    let trusting_old = format!(", ca_file: {}", world.base().join("old.pem").display());
    fails_without_a_trace(&old.url("/app.tar.gz"), &trusting_old, "its certificate has expired");
    let other = Server::secure(&Identity::of("example.com"), |_| Reply::body(app("1")));
    fails_without_a_trace(&other.url("/app.tar.gz"), "", "cannot be trusted");
    assert!(other.requests().is_empty());
    let target = server.url("/app.tar.gz").replace("https", "http");
    let downgrade = Server::secure(&identity, move |_| Reply::redirect(&target));
    let world = world.manifest(&manifest(&downgrade.url("/app.tar.gz"), &trusting));
    fs::remove_file(world.path("app.tar.gz")).unwrap();
    failed(&world.apply(), "is not fetched over http");
    let missing = world.manifest(&manifest(&server.url("/app.tar.gz"), "ca_file: /no/such/file"));
    failed(&missing.apply(), "cannot read certificates from /no/such/file").says("(ca_file)");
}

#[test]
fn proxies_of_the_environment_are_used() {
    let proxy = Server::of(app("1"));
    let world = World::new().manifest(&manifest("http://server.invalid/app.tar.gz", "tries: 1"));
    let under = |proxy: &str, except: &str| {
        world.ccm(["apply", "site.yaml"]).env("http_proxy", proxy).env("no_proxy", except).run()
    };
    failed(&under(&proxy.url(""), "server.invalid"), "cannot reach http://server.invalid/app.tar.gz: ");
    assert!(proxy.requests().is_empty());
    let gone = under("http://me:c4n4ry@127.0.0.1:1", "");
    failed(&gone, "through the proxy http://127.0.0.1:1: the connection was refused").never_says("c4n4ry");
    changed(&under(&proxy.url(""), ""), "downloaded");
    assert_eq!(proxy.requests()[0].line, "GET http://server.invalid/app.tar.gz HTTP/1.1");
}

#[test]
fn a_server_with_the_very_certificate_in_the_ca_file_is_trusted() {
    let identity = Identity::of_authority("127.0.0.1");
    let server = Server::secure(&identity, |_| Reply::body(app("1")));
    let world = World::new().beside("server.pem", identity.pem());
    let trusting = format!("ca_file: {}", world.base().join("server.pem").display());
    let world = world.manifest(&manifest(&server.url("/app.tar.gz"), &trusting));
    changed(&world.apply(), "downloaded");
    let expired = Identity::of_expired_authority("127.0.0.1");
    let old = Server::secure(&expired, |_| Reply::body(app("1")));
    let late = World::new().beside("server.pem", expired.pem());
    let trusting = format!("ca_file: {}", late.base().join("server.pem").display());
    let late = late.manifest(&manifest(&old.url("/app.tar.gz"), &trusting));
    failed(&late.apply(), "its certificate has expired").never_says("`ca_file`");
    let wary = World::new().manifest(&manifest(&server.url("/app.tar.gz"), ""));
    failed(&wary.apply(), "its certificate is self-signed").says("`ca_file`");
}

#[test]
fn a_header_that_becomes_one_that_cannot_be_sent_fails_before_anything_is_asked() {
    let server = Server::of(app("1"));
    let world = world(&server, "headers: { X: \"${ 'a' + Environ.BREAK }\" }");
    let outcome = world.ccm(["apply", "site.yaml"]).env("BREAK", "c4n4ry\n").run();
    outcome.exits(2).complains("the value of the header \"X\" holds a line break").never_says("c4n4ry");
    assert!(server.requests().is_empty());
}

#[test]
fn what_came_of_a_download_outlives_a_server_that_is_busy_for_a_while() {
    let body = tarball(&[("bin/app", noise(500_000))]);
    let sent = body.clone();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        let reply = Reply::body(sent.clone()).resumable(request, "\"v1\"");
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => reply.manner(Manner::Cut(200_000)),
            1 => Reply::status(503),
            2 => Reply::body(Vec::new()).manner(Manner::Silent),
            _ => reply,
        }
    });
    let world = world(&server, &format!("{EXTRACT}, tries: 4"));
    changed(&world.apply(), "downloaded, extracted");
    assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), body);
    let asked = server.requests();
    let ranges: Vec<_> = asked.iter().map(|request| request.header("range")).collect();
    assert_eq!(ranges, [None, Some("bytes=200000-"), Some("bytes=200000-"), Some("bytes=200000-")]);
}

#[test]
fn a_download_is_begun_anew_when_it_cannot_be_gone_on_with() {
    let old = noise(400_000);
    let new = tarball(&[("bin/app", noise(500_000))]);
    let from_another_version: fn(&[u8]) -> Reply = |new| {
        let range = format!("bytes 200000-{}/{}", new.len() - 1, new.len());
        let reply = Reply::body(new[200_000..].to_vec()).with_status(206);
        reply.header("ETag", "\"v2\"").header("Content-Range", &range)
    };
    let out_of_range: fn(&[u8]) -> Reply = |_| Reply::status(416);
    for answer in [from_another_version, out_of_range] {
        let (old, sent, count) = (old.clone(), new.clone(), AtomicUsize::new(0));
        let server =
            Server::start(move |request| match (count.fetch_add(1, Ordering::Relaxed), request.range()) {
                (0, _) => Reply::body(old.clone()).header("ETag", "\"v1\"").manner(Manner::Cut(200_000)),
                (_, Some(_)) => answer(&sent),
                (_, None) => Reply::body(sent.clone()),
            });
        let world = world(&server, "tries: 2");
        changed(&world.apply(), "downloaded");
        assert!(fs::read(world.path("app.tar.gz")).unwrap() == new);
    }
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let server = Server::of(app("1"));
    let url = server.url("/app.tar.gz");
    let world = World::new().manifest(&format!(
        "- archive: [{{ $W/none/app.tar.gz: {{ url: \"{url}\", $OWN, try_sleep: 1h }} }}]"
    ));
    failed(&world.apply(), "none\" does not exist");
    assert!(server.requests().is_empty(), "nothing is fetched that cannot be stored");
}

#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    if !is_root() {
        return;
    }
    let body = tarball(&[("bin/app", noise(3 << 20))]);
    let server = Server::of(body);
    let world = world(&server, &format!("{EXTRACT}, tries: 1"));
    let mount = world.path("");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&mount).status().unwrap();
    if !mounted.success() {
        return;
    }
    let outcome = world.apply();
    let tree = world.tree();
    Command::new("umount").arg(&mount).status().unwrap();
    failed(&outcome, "no space left");
    assert!(tree.names().is_empty(), "{tree:?}");
}

#[test]
fn a_download_that_is_larger_than_allowed_is_refused_whether_or_not_that_is_announced() {
    let body = tarball(&[("bin/app", noise(300_000))]);
    for manner in [Manner::Whole, Manner::Chunked, Manner::Unmeasured, Manner::Claiming(20 << 30)] {
        let sent = body.clone();
        let server = Server::start(move |_| Reply::body(sent.clone()).manner(manner));
        // What is only announced needs no limit of one's own.
        let limit = if matches!(manner, Manner::Claiming(_)) { "" } else { ", max_download: 200KiB" };
        fails_without_a_trace(&server.url("/app.tar.gz"), limit, "bytes");
        let world = world(&server, &format!("{EXTRACT}{limit}"));
        failed(&world.apply(), "holds more than").says("raise `max_download`");
        assert_eq!(world.tree().names(), Vec::<String>::new());
    }
    let server = Server::of(body.clone());
    changed(&world(&server, &format!("max_download: {}", body.len())).apply(), "downloaded");
    failed(&world(&server, &format!("max_download: {}", body.len() - 1)).apply(), "holds more than");
    world(&server, "max_download: 0").apply().exits(2).complains("`max_download` must be at least 1");
}

#[test]
fn a_download_that_begins_anew_and_is_shorter_holds_nothing_of_the_first() {
    for properties in ["", EXTRACT] {
        let count = AtomicUsize::new(0);
        let server = Server::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::body(noise(250_000)).header("ETag", "\"v1\"").manner(Manner::Cut(200_000)),
            _ => Reply::body(app("1")),
        });
        let world = world(&server, properties);
        world.apply().exits(0);
        assert_eq!(
            server.requests()[1].header("range"),
            Some("bytes=200000-"),
            "it could have been gone on with"
        );
        assert!(fs::read(world.path("app.tar.gz")).unwrap() == app("1"));
    }
}

#[test]
fn page_instead_of_an_archive_is_shown_with_its_first_line() {
    let server = Server::of(b"\n<html><head><title>Log in</title></head>\n<body></body></html>\n".to_vec());
    let world = world(&server, EXTRACT);
    let outcome = world.apply();
    outcome
        .exits(1)
        .says("although its name says so; it begins with `<html><head><title>Log in</title></head>`");
    outcome.says("(url)").says("help: check `url`: the server can send a page to log in, or an error");
    assert!(world.tree().names().is_empty());
}
