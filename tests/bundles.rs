//! Manifests that come packed with their files, and documents that come from a web server.

use std::{fs, path::Path};

use crate::support::{
    World,
    http::{Manner, Reply, Server},
    is_root, sh,
};

const MANIFEST: &str = "- file: { $W/x: { source: files/x, $OWN, mode: '0644' } }\n";

/// A world with a folder that can be packed.
fn world() -> World {
    let world = World::new();
    let manifest = world.fill(MANIFEST);
    world.beside("app/manifest.yaml", manifest).beside("app/files/x", "packed\n")
}

/// Packs the folder with a command, and gives the archive.
fn packed(world: &World, command: &str) -> Vec<u8> {
    sh(command, world.base());
    let mut archives = ["b.tar.gz", "b.tgz", "b.tar", "b.zip"].iter().map(|name| world.base().join(name));
    let archive = archives.find(|path| path.exists()).expect("an archive");
    let bytes = fs::read(&archive).unwrap();
    fs::remove_file(archive).unwrap();
    bytes
}

/// Nothing of a bundle is left.
fn assert_gone(state: &Path) {
    let left: Vec<_> = fs::read_dir(state.join("bundles")).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_bundle_is_applied_with_its_files_and_leaves_nothing() {
    for (name, command) in [
        ("b.tar.gz", "tar -czf b.tar.gz app"),
        ("b.tgz", "tar -czf b.tgz -C app ."),
        ("b.tar", "tar -cf b.tar -C app manifest.yaml files"),
        ("b.zip", "cd app && python3 -m zipfile -c ../b.zip manifest.yaml files"),
    ] {
        let world = world();
        let bundle = packed(&world, command);
        let world = world.beside(name, bundle);
        world.ccm(["apply", name]).run().exits(0).says("created the file");
        assert_eq!(world.read("x"), "packed\n", "{name}");
        world.ccm(["apply", name]).run().exits(0).counts([0, 1, 0, 0]);
        world.ccm(["validate", name]).run().exits(0);
        assert_gone(&world.state());
    }
}

#[test]
fn the_query_of_an_address_is_never_shown() {
    let server = Server::start(|_| Reply::body(b"- nonsense: x\n".to_vec()));
    let world = World::new();
    for url in [server.url("/site.yaml?token=c4n4ry"), "http://127.0.0.1:1/site.yaml?token=c4n4ry".to_owned()]
    {
        let outcome = world.ccm(["apply", &url]).run();
        outcome.exits(2).complains("/site.yaml?…").never_says("c4n4ry");
    }
    assert_eq!(server.requests()[0].path, "/site.yaml?token=c4n4ry");
}

#[test]
fn an_expression_reads_the_files_of_a_bundle() {
    let world = world();
    let bundle = packed(&world, "tar -czf b.tar.gz app");
    let world = world.beside("b.tar.gz", bundle);
    let eval = world.ccm(["eval", "file('files/x')", "--manifest", "b.tar.gz"]).run();
    assert_eq!(eval.exits(0).stdout, "\"packed\\n\"\n");
    assert_gone(&world.state());
}

#[test]
fn a_bundle_comes_from_a_server_with_credentials_that_are_never_shown() {
    let world = world();
    let bundle = packed(&world, "tar -czf b.tar.gz app");
    let server = Server::start(move |request| match request.header("authorization") {
        Some("Basic dXNlcjpzM2NyM3Q=") => Reply::body(bundle.clone()),
        _ => Reply::status(401),
    });
    let url = server.url_with("user:s3cr3t", "/b.tar.gz");
    world.ccm(["apply", &url]).run().exits(0).never_says("s3cr3t").says("created the file");
    assert_eq!(world.read("x"), "packed\n");
    assert_gone(&world.state());
    let refused = server.url_with("user:wrong-one", "/b.tar.gz");
    world.ccm(["apply", &refused]).run().exits(2).complains("401").never_says("wrong-one");
    assert_gone(&world.state());
}

#[test]
fn a_bundle_that_is_wrong_is_refused_before_anything_is_touched() {
    let world = world().beside("junk.tar.gz", "no archive");
    world.ccm(["apply", "junk.tar.gz"]).run().exits(2).complains("junk.tar.gz");
    let empty = packed(&world, "tar -czf b.tgz -C app/files x");
    let world = world.beside("empty.tgz", empty);
    world.ccm(["apply", "empty.tgz"]).run().exits(2).complains("holds no manifest.yaml");
    let outward = packed(&world, "cd app && tar -cPf ../b.tar manifest.yaml ../app/files/x");
    let world = world.beside("outward.tar", outward);
    world.ccm(["apply", "outward.tar"]).run().exits(2).complains("../app/files/x");
    let server = Server::start(|_| Reply::status(404));
    world.ccm(["apply", &server.url("/b.tar.gz")]).run().exits(2).complains("404");
    assert!(world.tree().names().is_empty());
    assert_gone(&world.state());
}

#[test]
fn what_a_killed_run_unpacked_is_gone_after_the_next() {
    if !is_root() || !crate::support::fits_strace() {
        return;
    }
    let world = world();
    let bundle = packed(&world, "tar -czf b.tar.gz app");
    let world = world.beside("b.tar.gz", bundle);
    // Directories get their names by another call: the first of these is that of the managed file.
    let killed = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=renameat:signal=KILL:when=1"];
    world.ccm(["apply", "b.tar.gz"]).under(killed).run();
    let left = fs::read_dir(world.state().join("bundles")).map_or(0, Iterator::count);
    assert_eq!(left, 1, "the kill came while the bundle was unpacked");
    world.ccm(["apply", "b.tar.gz"]).run().exits(0);
    assert_gone(&world.state());
    assert_eq!(world.read("x"), "packed\n");
}

#[test]
fn data_and_manifests_come_from_a_server() {
    let data = "data: { word: fetched }\n";
    let server = Server::of(data.as_bytes().to_vec());
    let world =
        World::new().manifest("- file: { $W/x: { content: '${ Data.word }', $OWN, mode: '0644' } }\n");
    world.apply_with(&["--hiera", &server.url("/data.yaml")]).exits(0);
    assert_eq!(world.read("x"), "fetched");
    world
        .ccm(["hiera", "parse", &server.url("/data.yaml"), "--query", "word"])
        .run()
        .exits(0)
        .says("fetched");
    let refused = Server::start(|_| Reply::status(403));
    world.apply_with(&["--hiera", &refused.url("/data.yaml")]).exits(2).complains("403");
}

#[test]
fn a_document_that_came_alone_has_no_folder_beside_it() {
    let document = "hierarchy: { folder: data }\nccm: { resources: [] }\n";
    let server = Server::of(document.as_bytes().to_vec());
    let world = World::new().beside("data/default.yaml", "a: local\n").manifest("[]");
    let url = server.url("/site.yaml");
    for arguments in
        [&["hiera", "parse", &url][..], &["apply", &url], &["apply", "site.yaml", "--hiera", &url]]
    {
        world.ccm(arguments).run().exits(2).complains("this came alone, from an address");
    }
    let local = world.beside("local.yaml", document);
    local.ccm(["hiera", "parse", "local.yaml"]).run().exits(0).says("local");
}

#[test]
fn a_bundle_that_is_larger_than_allowed_is_refused_before_it_is_downloaded() {
    let server = Server::start(|_| Reply::body(b"x".to_vec()).manner(Manner::Claiming((1 << 30) + 1)));
    let world = World::new();
    world
        .ccm(["apply", &server.url("/b.tar.gz")])
        .run()
        .exits(2)
        .complains("/b.tar.gz holds more than 1073741824 bytes");
    assert_gone(&world.state());
}

#[test]
fn an_address_is_one_in_whatever_case_and_its_password_is_never_shown() {
    let server = Server::start(|_| Reply::body(b"[]".to_vec()));
    let world = World::new();
    let capitals = server.url_with("me:c4n4ry", "/site.yaml").replace("http", "HTTP");
    world.ccm(["apply", &capitals]).run().exits(0).never_says("c4n4ry");
    let login = server.requests()[0].header("authorization").map(str::to_owned);
    assert_eq!(login.as_deref(), Some("Basic bWU6YzRuNHJ5"));
    for url in [
        "FTP://me:c4n4ry@host/site.yaml",
        "ftp://me:c4n4ry@host/b.tar.gz",
        "s3://me:c4n4ry@bucket/x",
        "http:/me:c4n4ry@host/site.yaml",
        "HTTPS:me:c4n4ry@host/site.yaml",
    ] {
        for arguments in [&["apply", url][..], &["validate", url], &["apply", "-", "--hiera", url]] {
            let outcome = world.ccm(arguments).input("[]").run();
            outcome.exits(2).never_says("c4n4ry").complains("http");
        }
    }
}

/// Returns the names of the files in a bundle that `build` made.
fn members(world: &World, flags: &[&str]) -> Vec<String> {
    let build = ["bundle", "build", "app", "-o", "b.tar.gz"];
    world.ccm(build.iter().chain(flags)).run().exits(0);
    let listing = sh("tar -tzf b.tar.gz", world.base());
    listing.lines().filter(|name| !name.ends_with('/')).map(str::to_owned).collect()
}

#[test]
fn bundle_leaves_out_what_ccmignore_names() {
    let world = world()
        .beside("app/.ccmignore", "# comment\n*.bak\n/private/\n!keep.bak\n")
        .beside("app/files/x.bak", "")
        .beside("app/files/keep.bak", "")
        .beside("app/private/x", "")
        .beside("app/files/private/x", "");
    let names = ["ccm-bundle.json", "files/keep.bak", "files/private/x", "files/x", "manifest.yaml"];
    assert_eq!(members(&world, &[]), names);
}

#[test]
fn bundle_with_a_secret_in_plain_text_is_refused() {
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
    for (name, content, what) in
        [(".env", "TOKEN=x\n", "a file of secret variables"), ("files/tls.yaml", key, "a private key")]
    {
        let world = world().beside(&format!("app/{name}"), content);
        let build = || world.ccm(["bundle", "build", "app", "-o", "b.tar.gz"]).run();
        build().exits(2).complains(&format!("{name} looks like {what}")).complains("--allow-secrets");
        assert!(!world.base().join("b.tar.gz").exists());
        assert!(members(&world, &["--allow-secrets", name]).contains(&name.to_owned()));
    }
}

#[test]
fn bundle_for_a_host_has_only_the_layers_that_it_reads() {
    const HIERARCHY: &str = "\
hierarchy:
  order: ['host:${ Facts.hostname }', 'role:${ Facts.role ?? \"none\" }', default]
  merge: deep
  directory: data
ccm: { resources: [] }
";
    let world = ["host/web1", "host/db1", "role/web", "role/db", "default", "unused"]
        .iter()
        .fold(world(), |world, name| world.beside(&format!("app/data/{name}.yaml"), "a: 1\n"))
        .beside("app/manifest.yaml", HIERARCHY);
    let data = |flags: &[&str]| -> Vec<String> {
        let names = members(&world, flags).into_iter();
        names.filter_map(|name| Some(name.strip_prefix("data/")?.strip_suffix(".yaml")?.to_owned())).collect()
    };
    assert_eq!(data(&[]), ["default", "host/db1", "host/web1", "role/db", "role/web", "unused"]);
    assert_eq!(data(&["--for", "web1", "--fact", "role=web"]), ["default", "host/web1", "role/web"]);
    assert_eq!(data(&["--for", "db1.example.net", "--fact", "role=db"]), ["default", "host/db1", "role/db"]);
    let build =
        |flags: &[&str]| world.ccm(["bundle", "build", "app", "-o", "c.tar.gz"].iter().chain(flags)).run();
    build(&["--for", "web1"]).exits(2).complains("needs the fact `role`").complains("--fact role=VALUE");
    build(&["--fact", "role=web"]).exits(2).complains("add `--for HOST`");
    assert!(!world.base().join("c.tar.gz").exists());
}
