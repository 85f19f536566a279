//! The decision table and the flow of the archive type, row by row.

use std::{fs, io::Write};

use serde_json::json;

use super::{EXTRACT, app, changed, failed, manifest, sha256, sha512, stable, tarball, world, zipped};
use crate::support::{
    NOBODY, Syscall, Trace, World, fits_strace,
    http::{Reply, Server},
    is_root, paused,
};

#[test]
fn an_absent_archive_that_is_not_there_is_stable() {
    let world = World::new().manifest("- archive: [{ $W/app.tar.gz: { ensure: absent } }]");
    stable(&world.apply());
}

#[test]
fn an_absent_archive_that_is_there_is_removed() {
    let world =
        World::new().manifest("- archive: [{ $W/app.tar.gz: { ensure: absent } }]").file("app.tar.gz", "x");
    let before = world.tree();
    let predicted = world.apply_with(&["--noop", "--json"]);
    assert_eq!(predicted.exits(0).event("app.tar.gz")["noop_message"], "Would have removed");
    assert_eq!(world.tree(), before);
    changed(&world.apply(), "removed");
    assert!(world.tree().names().is_empty());
    stable(&world.apply());
}

#[test]
fn an_archive_that_changes_after_it_was_looked_at_is_not_unpacked() {
    if !fits_strace() {
        return;
    }
    let server = Server::of(app("good"));
    let more = format!("{EXTRACT}, tries: 1, checksum: {}", sha256(&app("good")));
    let start = || world(&server, &more).file("app.tar.gz", app("good"));
    let trace = Trace::of(&start(), &[]);
    changed(&trace.outcome, "extracted");
    let opens = |call: &&Syscall| call.name().starts_with("open") && call.text.ends_with("app.tar.gz>");
    // It is opened to be looked at, to be unpacked, and at the end to see what is there.
    let calls: Vec<_> = trace.calls.iter().filter(opens).collect();
    let [_, unpacked, _] = calls[..] else { panic!("{calls:#?}") };
    let world = start();
    let outcome = paused(&world, unpacked, || fs::write(world.path("app.tar.gz"), app("evil")).unwrap());
    failed(&outcome, "app.tar.gz was changed");
    assert_eq!(world.tree().names(), ["app.tar.gz"], "{outcome}");
}

#[test]
fn a_missing_archive_is_downloaded_once() {
    let server = Server::of(app("1"));
    let world = world(&server, "");
    let predicted = world.apply_with(&["--noop", "--json"]);
    assert_eq!(predicted.exits(0).event("app.tar.gz")["noop_message"], "Would have downloaded");
    assert!(server.requests().is_empty(), "a dry run asks nobody");
    assert!(world.tree().names().is_empty());

    changed(&world.apply(), "downloaded");
    assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), app("1"));
    assert_eq!(server.requests().len(), 1);
    stable(&world.apply());
    assert_eq!(server.requests().len(), 1, "what is stable asks nobody");
}

#[test]
fn a_downloaded_archive_has_the_mode_that_is_asked_for_or_the_usual_one() {
    let server = Server::of(app("1"));
    for (property, mode) in [("", 0o644), ("mode: '0600'", 0o600), ("mode: '0666'", 0o666)] {
        let world = world(&server, property);
        world
            .ccm(["apply", "site.yaml"])
            .under(["/bin/sh", "-c", "umask 022; exec \"$0\" \"$@\""])
            .run()
            .exits(0);
        assert_eq!(world.tree().item("app.tar.gz").unwrap().mode, mode, "{property}");
    }
    let world = world(&server, "");
    world
        .ccm(["apply", "site.yaml"])
        .under(["/bin/sh", "-c", "umask 027; exec \"$0\" \"$@\""])
        .run()
        .exits(0);
    assert_eq!(world.tree().item("app.tar.gz").unwrap().mode, 0o640);
    // Nobody asks for a mode: the one that it has stays.
    stable(&world.apply());
}

#[test]
fn what_creates_names_makes_everything_stable() {
    let server = Server::of(app("1"));
    for more in ["", ", cleanup: true", ", checksum: \"$SUM\""] {
        let more = more.replace("$SUM", &sha256(&app("1")));
        let world = world(&server, &format!("{EXTRACT}{more}")).file("opt/bin/app", "by hand");
        stable(&world.apply());
        stable(&world.apply_with(&["--noop"]));
        assert_eq!(world.read("opt/bin/app"), "by hand");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn an_archive_is_downloaded_and_extracted() {
    let server = Server::of(app("1"));
    let world = world(&server, EXTRACT);
    let predicted = world.apply_with(&["--noop", "--json"]);
    let event = predicted.exits(0).event("app.tar.gz");
    assert_eq!(event["noop_message"], "Would have downloaded. Would have extracted");
    assert_eq!(event["changed"], true);
    assert!(world.tree().names().is_empty());
    changed(&world.apply(), "downloaded, extracted (creates missing -> present)");
    assert_eq!(
        (world.read("opt/bin/app").as_str(), world.read("opt/share/readme").as_str()),
        ("1", "read me")
    );
    assert!(world.path("app.tar.gz").exists());
    stable(&world.apply());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_archive_is_cleaned_up_and_not_downloaded_again() {
    let server = Server::of(app("1"));
    let world = world(&server, &format!("{EXTRACT}, cleanup: true"));
    let predicted = world.apply_with(&["--noop", "--json"]);
    let message = "Would have downloaded. Would have extracted. Would have cleaned up";
    assert_eq!(predicted.event("app.tar.gz")["noop_message"], message);
    changed(&world.apply(), "downloaded, extracted, cleaned up");
    assert!(!world.path("app.tar.gz").exists());
    assert_eq!(world.read("opt/bin/app"), "1");
    stable(&world.apply());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_archive_that_is_there_is_extracted_without_the_network() {
    let server = Server::of(app("other"));
    let world = world(&server, EXTRACT).file("app.tar.gz", app("1"));
    changed(&world.apply(), "extracted");
    assert_eq!(world.read("opt/bin/app"), "1");
    assert!(server.requests().is_empty());
}

#[test]
fn an_archive_left_behind_is_cleaned_up() {
    let server = Server::of(app("1"));
    let world =
        world(&server, &format!("{EXTRACT}, cleanup: true")).file("app.tar.gz", "x").file("opt/bin/app", "x");
    assert_eq!(
        world.apply_with(&["--noop", "--json"]).event("app.tar.gz")["noop_message"],
        "Would have cleaned up"
    );
    changed(&world.apply(), "cleaned up");
    assert!(!world.path("app.tar.gz").exists());
    assert!(server.requests().is_empty());
}

#[test]
fn an_archive_with_another_checksum_is_downloaded_again() {
    let server = Server::of(app("1"));
    let sum = sha256(&app("1"));
    let world = world(&server, &format!("checksum: {}", sum.to_uppercase())).file("app.tar.gz", "old");
    let predicted = world.apply_with(&["--noop", "--json"]);
    assert_eq!(predicted.event("app.tar.gz")["noop_message"], "Would have downloaded");
    changed(&world.apply(), "downloaded (checksum)");
    assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), app("1"));
    stable(&world.apply());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn sha_512_is_verified_too() {
    let server = Server::of(app("1"));
    let good = world(&server, &format!("checksum: 'sha512:{}'", sha512(&app("1"))));
    changed(&good.apply(), "downloaded");
    stable(&good.apply());
    let bad = world(&server, &format!("checksum: 'sha512:{}'", sha512(b"other")));
    failed(&bad.apply(), "the download has the checksum sha512:");
    assert!(bad.tree().names().is_empty());
}

#[test]
fn without_a_checksum_a_wrong_owner_means_another_download() {
    if !is_root() {
        return;
    }
    let server = Server::of(app("1"));
    let world = world(&server, "").file("app.tar.gz", "mine").owner("app.tar.gz", NOBODY, NOBODY);
    changed(&world.apply(), "downloaded (owner nobody -> 0, group");
    assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), app("1"));
    assert_eq!(world.tree().item("app.tar.gz").unwrap().uid, 0);
    stable(&world.apply());
}

#[test]
fn with_an_equal_checksum_owner_and_mode_are_set_in_place() {
    let server = Server::of(app("1"));
    let sum = sha256(&app("1"));
    let world = world(&server, &format!("checksum: {sum}, mode: '0600'")).file("app.tar.gz", app("1"));
    let inode = world.tree().item("app.tar.gz").unwrap().inode;
    changed(&world.apply(), "updated owner, group and mode");
    let item = world.tree().item("app.tar.gz").unwrap().clone();
    assert_eq!((item.mode, item.uid, item.inode), (0o600, rustix::process::geteuid().as_raw(), inode));
    stable(&world.apply());
    assert!(server.requests().is_empty());
}

#[test]
fn an_archive_that_another_user_could_have_open_is_replaced_by_a_copy_without_a_download() {
    let server = Server::of(app("1"));
    let make = || {
        let properties = format!("checksum: {}, mode: '0640'", sha256(&app("1")));
        world(&server, &properties).file("app.tar.gz", app("1"))
    };
    let mut worlds = vec![make().mode("app.tar.gz", 0o666), make().mode("app.tar.gz", 0o664)];
    if is_root() {
        worlds.push(make().owner("app.tar.gz", NOBODY, NOBODY));
    }
    for world in worlds {
        let mut descriptor = fs::File::options().write(true).open(world.path("app.tar.gz")).unwrap();
        let predicted = world.apply_with(&["--noop", "--json"]);
        let message = &predicted.exits(0).event("app.tar.gz")["noop_message"];
        assert_eq!(message, "Would have updated owner, group and mode");
        changed(&world.apply(), "updated owner, group and mode");
        descriptor.write_all(b"evil").unwrap();
        assert!(fs::read(world.path("app.tar.gz")).unwrap() == app("1"));
        let item = world.tree().item("app.tar.gz").unwrap().clone();
        assert_eq!((item.mode, item.uid), (0o640, rustix::process::geteuid().as_raw()));
        stable(&world.apply());
    }
    assert!(server.requests().is_empty());
}

#[test]
fn without_a_checksum_an_archive_that_others_could_write_is_downloaded_before_it_is_unpacked() {
    let server = Server::of(app("1"));
    for mode in [0o666, 0o664] {
        let world = world(&server, EXTRACT).file("app.tar.gz", app("evil")).mode("app.tar.gz", mode);
        changed(&world.apply(), "downloaded, extracted");
        assert_eq!(world.read("opt/bin/app"), "1");
    }
    let world = world(&server, EXTRACT).file("app.tar.gz", app("evil"));
    fs::hard_link(world.path("app.tar.gz"), world.path("other")).unwrap();
    changed(&world.apply(), "downloaded, extracted");
    assert_eq!(world.read("opt/bin/app"), "1");
}

#[test]
fn what_does_not_end_like_an_archive_is_never_removed_as_one() {
    for name in ["precious", "precious.gz", "app.tar.gz.sig", ".zip"] {
        let manifest = format!("- archive: [{{ $W/{name}: {{ ensure: absent }} }}]");
        let world = World::new().manifest(&manifest).file(name, "kept");
        for outcome in [world.validate(), world.apply()] {
            outcome.exits(2).complains("does not end like an archive");
        }
        let outcome = world.ccm(["ensure", "archive", &format!("$W/{name}"), "absent"]).run();
        outcome.exits(2).complains("does not end like an archive");
        assert_eq!(world.read(name), "kept");
    }
}

#[test]
fn a_directory_or_link_at_the_name_is_no_archive_that_is_present() {
    let world = World::new().dir("app.tar.gz").link("link.zip", "$W/app.tar.gz");
    for name in ["app.tar.gz", "link.zip"] {
        let state = world.ccm(["status", "archive", &format!("$W/{name}"), "--json"]).run().exits(0).json();
        assert_eq!(
            (&state["ensure"], &state["metadata"]["archive_exists"]),
            (&json!("absent"), &json!(false))
        );
    }
}

#[test]
fn without_creates_the_memory_tells_that_the_archive_was_extracted() {
    let server = Server::of(app("1"));
    let world = world(&server, "extract_parent: $W/opt");
    changed(&world.apply(), "downloaded, extracted");
    stable(&world.apply());
    // Lost memory costs one more extraction, and the state is right again.
    fs::remove_dir_all(world.state().join("archives")).unwrap();
    changed(&world.apply(), "extracted");
    stable(&world.apply());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_checksum_comes_from_a_list_when_it_is_needed() {
    let body = app("1");
    let list = format!("{}  other.zip\n{}  app.tar.gz\n", sha256(b"x"), sha256(&body));
    let server = Server::start(move |request| match request.path.as_str() {
        "/SHA256SUMS" | "/SHA256SUMS?token=2" => Reply::body(list.clone().into_bytes()),
        "/BAD" => Reply::body(format!("{}  app.tar.gz\n", sha256(b"x")).into_bytes()),
        "/NONE" => {
            Reply::body(format!("{}  other.zip\n{}  more.zip\n", sha256(b"x"), sha256(b"y")).into_bytes())
        }
        _ => Reply::body(body.clone()),
    });
    let with = |list: &str| world(&server, &format!("checksum_url: \"{}\"", server.url(list)));
    let good = with("/SHA256SUMS");
    assert_eq!(
        good.apply_with(&["--noop", "--json"]).event("app.tar.gz")["noop_message"],
        "Would have downloaded"
    );
    assert!(server.requests().is_empty());
    changed(&good.apply(), "downloaded");
    stable(&good.apply());
    assert_eq!(server.requests().len(), 2);
    let good = good.file("app.tar.gz", "tampered");
    changed(&good.apply(), "downloaded (checksum_url)");
    // It is remembered whether an address is the same, also of the part that is not shown.
    let url = server.url("/SHA256SUMS?token=2");
    let good = good.manifest(&manifest(&server.url("/app.tar.gz"), &format!("checksum_url: \"{url}\"")));
    changed(&good.apply(), "downloaded (checksum_url)");
    stable(&good.apply());
    failed(&with("/BAD").apply(), "the download has the checksum");
    failed(&with("/NONE").apply(), "/NONE holds no checksum of \"app.tar.gz\"");
    failed(
        &world(&server, "checksum_url: 'http://127.0.0.1:1/x', tries: 1").apply(),
        "cannot download: cannot reach",
    );
}

#[test]
fn a_zip_archive_is_extracted_too() {
    let body = zipped(&[("top/bin/app", "zip"), ("top/readme", "x")]);
    let server = Server::of(body.clone());
    let world = World::new().manifest(&format!(
        "- archive: [{{ $W/app.zip: {{ url: \"{}\", $OWN, extract_parent: $W/opt, strip_components: 1, creates: $W/opt/bin/app, checksum: {} }} }}]",
        server.url("/app.zip"),
        sha256(&body)
    ));
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("opt/bin/app"), "zip");
    stable(&world.apply());
}

#[test]
fn the_state_of_an_archive_is_shown() {
    let server = Server::of(app("1"));
    let world = world(&server, EXTRACT);
    let event = world.apply_with(&["--json"]).event("app.tar.gz");
    assert_eq!((&event["requested_ensure"], &event["final_ensure"]), (&json!("present"), &json!("present")));
    let status = &event["status"];
    assert_eq!(status["protocol"], "io.choria.ccm.v1.resource.archive.state");
    let metadata = &status["metadata"];
    assert_eq!((&metadata["archive_exists"], &metadata["creates_exists"]), (&json!(true), &json!(true)));
    assert_eq!((&metadata["provider"], &metadata["size"]), (&json!("http"), &json!(app("1").len())));
    assert_eq!(metadata["extracted_checksum"], sha256(&app("1")));
    let shown = world.ccm(["status", "archive", "$W/app.tar.gz", "--json"]).run().exits(0).json();
    assert_eq!(shown["metadata"]["checksum"], sha256(&app("1")));
    assert_eq!(shown["metadata"]["creates_exists"], false);
    let none = world.ccm(["status", "archive", "$W/none.zip", "--json"]).run().exits(0).json();
    assert_eq!((&none["ensure"], &none["metadata"]["archive_exists"]), (&json!("absent"), &json!(false)));
}

#[test]
fn one_archive_is_ensured_from_the_command_line() {
    let server = Server::of(app("1"));
    let world = World::new();
    let url = server.url("/app.tar.gz");
    let call = || {
        world.ccm([
            "ensure",
            "archive",
            "$W/app.tar.gz",
            "--url",
            &url,
            "--owner",
            "$UID",
            "--group",
            "$GID",
            "--extract-parent",
            "$W/opt",
            "--creates",
            "$W/opt/bin/app",
            "--cleanup",
            "--strip-components",
            "0",
            "--headers",
            "X-A=b",
            "--max-size",
            "1GiB",
        ])
    };
    call().run().exits(0).says("downloaded, extracted, cleaned up");
    call().run().exits(0).says("unchanged");
    assert_eq!(server.requests()[0].header("x-a"), Some("b"));
}

#[test]
fn combinations_that_make_no_sense_are_told_before_anything_happens() {
    for (name, properties, message) in [
        ("app.tar.gz", "owner: a, group: b", "`url` is missing"),
        ("app.tar.gz", "url: 'http://h/app.tar.gz'", "`owner` is missing"),
        ("app.tar.gz", "url: 'http://h/app.tar.gz', owner: a", "`group` is missing"),
        (
            "app.tar.gz",
            "url: 'http://h/app.zip', $OWN",
            "the URL is that of a zip archive, and the name that of a gzip",
        ),
        (
            "app.tar.gz",
            "url: 'http://h/app?x=.tar.gz', $OWN",
            "the path of the URL does not end like an archive: \"app\"",
        ),
        ("app.rar", "url: 'http://h/app.tar.gz', $OWN", "app.rar\" does not end like an archive"),
        ("app.tar.gz", "url: 'ftp://h/app.tar.gz', $OWN", "only http and https are known"),
        ("app.tar.gz", "url: 'app.tar.gz', $OWN", "it is not a URL"),
        ("app.tar.gz", "url: 'http:///app.tar.gz', $OWN", "no usable host"),
        ("app.tar.gz", "url: 'http://h/app.tar.gz', $OWN, checksum: abc", "\"abc\" is not a checksum"),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, cleanup: true, creates: /x",
            "`cleanup` needs `extract_parent`",
        ),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, cleanup: true, extract_parent: /x",
            "`cleanup` needs `creates`",
        ),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, headers: { Content-Length: '5' }",
            "headers: the header \"Content-Length\" cannot be given",
        ),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, headers: { 'X Y': x, Z: '${ Environ.HOME }' }",
            "headers: \"X Y\" is not the name of a header",
        ),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, headers: { 'X-${ 1 + 1 }': '${ Environ.HOME }' }",
            "headers: the name \"X-${ 1 + 1 }\" holds a template",
        ),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, headers: { X: \"a\\nb\" }",
            "the value of the header \"X\" holds a line break",
        ),
        ("app.tar.gz", "url: 'http://h/app.tar.gz', $OWN, verify: true", "`verify` needs `extract_parent`"),
        ("app.tar.gz", "url: 'http://h/app.tar.gz', $OWN, strip_components: 1", "`strip_components` needs"),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, max_entries: 0",
            "`max_entries` must be at least 1",
        ),
        ("app.tar.gz", "url: 'http://h/app.tar.gz', $OWN, max_size: lots", "\"lots\" is not a size"),
        ("app.tar.gz", "url: 'http://h/app.tar.gz', $OWN, creates: x", "must be absolute"),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, creates: /x",
            "`creates` needs `extract_parent`: nothing else could make what it names",
        ),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, subscribe: ['file#/x']",
            "unknown property `subscribe`",
        ),
        ("app.tar.gz", "url: 'http://h/app.tar.gz', $OWN, provider: ftp", "known providers: http"),
        (
            "app.tar.gz",
            "url: 'http://h/app.tar.gz', $OWN, checksum: '0000000000000000000000000000000000000000000000000000000000000000', checksum_url: 'http://h/x'",
            "cannot be given together",
        ),
    ] {
        let world = World::new().manifest(&format!("- archive: [{{ $W/{name}: {{ {properties} }} }}]"));
        world.validate().exits(2).complains(message);
        world.apply().exits(2).complains(message);
    }
}

#[test]
fn what_is_no_file_is_not_taken_for_an_archive() {
    let server = Server::of(app("1"));
    let world = world(&server, "").dir("app.tar.gz");
    failed(&world.apply(), "is a directory, not an archive");
    let linked = super::world(&server, "").file("elsewhere", "precious").link("app.tar.gz", "$W/elsewhere");
    changed(&linked.apply(), "downloaded");
    assert_eq!(linked.read("elsewhere"), "precious");
    assert_eq!(fs::read(linked.path("app.tar.gz")).unwrap(), app("1"));
    assert!(!linked.path("app.tar.gz").is_symlink());
}

#[test]
fn the_example_installs_a_release_once() {
    let body = tarball(&[("app-1.2.0/bin/app", "1")]);
    let server = Server::of(body.clone());
    let world = World::new().dir("ccm-example");
    let (uid, gid) = (world.fill("$UID"), world.fill("$GID"));
    let example = include_str!("../../examples/archive.yaml")
        .replace("/tmp/ccm-example", &world.path("ccm-example").to_string_lossy())
        .replace("owner: root", &format!("owner: \"{uid}\""))
        .replace("group: root", &format!("group: \"{gid}\""));
    let world = world.manifest(&example);
    let data = [format!("base={}", server.url("")), format!("sha256={}", sha256(&body))];
    let flags = ["--data", &data[0], "--data", &data[1]];
    changed(&world.apply_with(&flags), "downloaded, extracted, cleaned up");
    assert_eq!(world.read("ccm-example/app/bin/app"), "1");
    assert_eq!(server.requests()[0].path, "/app-1.2.0.tar.gz");
    stable(&world.apply_with(&flags));
}
