//! Versions that replace each other.

use std::fs;

use super::{EXTRACT, changed, failed, manifest, memory::memory, sha256, stable, tarball};
use crate::support::{
    World,
    http::{Reply, Server},
};

/// An archive of this name, with the version as its content and a file that only that version has.
pub(super) fn release(version: &str) -> Vec<u8> {
    tarball(&[("bin/app".to_owned(), version), (format!("share/only-{version}"), "x")])
}

/// Serves `/app-VERSION.tar.gz`.
pub(super) fn releases() -> Server {
    Server::start(|request| {
        let version = request.path.trim_start_matches("/app-").trim_end_matches(".tar.gz");
        Reply::body(release(version))
    })
}

/// An archive with its version in its name.
pub(super) fn versioned(server: &Server, version: &str, properties: &str) -> String {
    let (url, sum) = (server.url(&format!("/app-{version}.tar.gz")), sha256(&release(version)));
    format!(
        "- archive: [{{ $W/app-{version}.tar.gz: {{ url: \"{url}\", $OWN, checksum: {sum}, {properties} }} }}]"
    )
}

#[test]
fn another_version_is_noticed_even_after_cleanup() {
    let server = Server::start(|request| {
        Reply::body(match request.path.as_str() {
            "/1/app.tar.gz" => tarball(&[
                ("bin/app", "1"),
                ("bin/old", "old"),
                ("etc/changed", "1"),
                ("gone/deep/file", "x"),
            ]),
            _ => tarball(&[("bin/app", "2"), ("bin/new", "new")]),
        })
    });
    let version = |number: u32, body: &[u8]| {
        let url = server.url(&format!("/{number}/app.tar.gz"));
        manifest(&url, &format!("{EXTRACT}, cleanup: true, checksum: {}", sha256(body)))
    };
    let one = tarball(&[("bin/app", "1"), ("bin/old", "old"), ("etc/changed", "1"), ("gone/deep/file", "x")]);
    let two = tarball(&[("bin/app", "2"), ("bin/new", "new")]);
    let world = World::new().manifest(&version(1, &one));
    changed(&world.apply(), "downloaded, extracted, cleaned up");
    let world = world.file("opt/etc/changed", "by hand").file("opt/mine", "mine").manifest(&version(2, &two));
    let predicted = world.apply_with(&["--noop"]);
    changed(&predicted, "Would have downloaded. Would have extracted. Would have cleaned up (checksum ");
    let outcome = world.apply();
    changed(&outcome, "downloaded, extracted, cleaned up (checksum ");
    outcome.says("etc/changed is no longer in the archive, but was changed since: it stays");
    let names = world.tree().names();
    assert_eq!(
        names,
        ["opt", "opt/bin", "opt/bin/app", "opt/bin/new", "opt/etc", "opt/etc/changed", "opt/mine"]
    );
    assert_eq!(world.read("opt/bin/app"), "2");
    stable(&world.apply());
    // And back.
    let world = world.manifest(&version(1, &one));
    changed(&world.apply(), "downloaded, extracted, cleaned up (checksum ");
    assert_eq!((world.read("opt/bin/app").as_str(), world.path("opt/bin/new").exists()), ("1", false));
    stable(&world.apply());
    assert_eq!(server.requests().len(), 3);
}

/// Two versions of an archive at `/1` and `/2`, and the manifests that ask for them.
fn two_versions(one: &[(&str, &str)], two: &[(&str, &str)]) -> (Server, [String; 2]) {
    let bodies = [tarball(one), tarball(two)];
    let offer = bodies.clone();
    let server = Server::start(move |request| {
        Reply::body(offer[usize::from(!request.path.starts_with("/1"))].clone())
    });
    let manifest = |(number, body): (usize, &Vec<u8>)| {
        let url = server.url(&format!("/{number}/app.tar.gz"));
        manifest(&url, &format!("{EXTRACT}, checksum: {}", sha256(body)))
    };
    let manifests = [manifest((1, &bodies[0])), manifest((2, &bodies[1]))];
    (server, manifests)
}

#[test]
fn what_was_unpacked_can_be_another_kind_of_thing_in_another_version() {
    let (_server, [one, two]) = two_versions(
        &[("bin/app", "1"), ("lib", "a file")],
        &[("bin/app", "2"), ("lib/part", "in a directory"), ("lib/deep/part", "x")],
    );
    let world = World::new().manifest(&one);
    world.apply().exits(0);
    let world = world.manifest(&two);
    world.apply().exits(0);
    assert_eq!(world.read("opt/lib/part"), "in a directory");
    let world = world.manifest(&one);
    changed(&world.apply(), "downloaded, extracted (checksum ");
    assert_eq!(world.read("opt/lib"), "a file");
    assert!(world.tree().leftovers().is_empty());
    stable(&world.apply());
}

#[test]
fn a_directory_with_something_of_others_in_it_stays_and_so_does_the_archive() {
    let (_server, [one, two]) =
        two_versions(&[("bin/app", "1"), ("lib/part", "1")], &[("bin/app", "2"), ("lib", "a file")]);
    let changes: [fn(World) -> World; 3] = [
        |world| world.file("opt/lib/mine", "mine"),
        |world| world.file("opt/lib/part", "by hand"),
        |world| world.dir("opt/lib/empty"),
    ];
    for change in changes {
        let world = World::new().manifest(&one);
        world.apply().exits(0);
        let world = change(world).manifest(&two);
        let before = world.tree();
        failed(&world.apply(), "opt/lib\" is a directory");
        assert_eq!(world.tree(), before, "nothing was touched");
    }
}

#[test]
fn what_an_old_version_had_is_not_looked_for_behind_links_of_the_new_one() {
    let (_server, [one, two]) = two_versions(
        &[("bin/app", "1"), ("lib/part", "same")],
        &[("bin/app", "2"), ("lib64/part", "same"), ("lib -> lib64", "")],
    );
    let world = World::new().manifest(&one);
    world.apply().exits(0);
    let world = world.manifest(&two);
    changed(&world.apply(), "downloaded, extracted (checksum ");
    let found = (world.read("opt/lib/part"), world.read("opt/lib64/part"));
    assert_eq!(found, ("same".to_owned(), "same".to_owned()));
    stable(&world.apply());
}

#[test]
fn another_version_is_noticed_when_it_is_part_of_the_name() {
    for more in ["", ", cleanup: true"] {
        let server = releases();
        let properties = format!("{EXTRACT}{more}");
        let mut world = World::new();
        for version in ["1", "2", "1"] {
            world = world.manifest(&versioned(&server, version, &properties));
            let message = world.apply_with(&["--noop", "--json"]).event(".tar.gz")["noop_message"].clone();
            assert!(message.as_str().unwrap().contains("Would have extracted"), "{message}");
            let outcome = world.apply();
            outcome.exits(0).counts([1, 0, 0, 0]).says("extracted");
            assert_eq!(world.read("opt/bin/app"), version);
            let only = fs::read_dir(world.path("opt/share")).unwrap();
            let only: Vec<_> = only.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(only, [format!("only-{version}").as_str()]);
            stable(&world.apply());
        }
        assert_eq!(memory(&world, ".list").len(), 1, "lists of earlier versions are gone");
    }
}

#[test]
fn a_name_that_is_unpacked_elsewhere_and_back_keeps_the_memory_of_both() {
    let server = releases();
    let to = |target: &str, version: &str| {
        let (url, sum) = (server.url(&format!("/app-{version}.tar.gz")), sha256(&release(version)));
        manifest(
            &url,
            &format!(
                "checksum: {sum}, cleanup: true, extract_parent: $W/{target}, creates: $W/{target}/bin/app"
            ),
        )
    };
    let world = World::new().manifest(&to("a", "1"));
    world.apply().exits(0);
    let world = world.manifest(&to("b", "1"));
    world.apply().exits(0).counts([1, 0, 0, 0]);
    let world = world.manifest(&to("a", "1"));
    stable(&world.apply());
    let world = world.manifest(&to("a", "2"));
    changed(&world.apply(), "downloaded, extracted, cleaned up (checksum ");
    assert_eq!((world.read("a/bin/app").as_str(), world.read("b/bin/app").as_str()), ("2", "1"));
    assert!(!world.path("a/share/only-1").exists() && world.path("b/share/only-1").exists());
}

#[test]
fn archives_that_share_a_target_are_not_versions_of_each_other() {
    let server = Server::start(|request| {
        Reply::body(if request.path == "/one.tar.gz" {
            tarball(&[("one", "1")])
        } else {
            tarball(&[("two", "2")])
        })
    });
    for creates in [true, false] {
        let item = |name: &str| {
            let creates = if creates { format!(", creates: $W/opt/{name}") } else { String::new() };
            let url = server.url(&format!("/{name}.tar.gz"));
            format!("    - $W/{name}.tar.gz: {{ url: \"{url}\", $OWN, extract_parent: $W/opt{creates} }}\n")
        };
        let world = World::new().manifest(&format!("- archive:\n{}{}", item("one"), item("two")));
        world.apply().exits(0).counts([2, 0, 0, 0]);
        world.apply().exits(0).counts([0, 2, 0, 0]);
        assert_eq!((world.read("opt/one").as_str(), world.read("opt/two").as_str()), ("1", "2"));
    }
}

#[test]
fn an_address_that_changed_while_the_checksum_did_not_is_a_warning() {
    const WARNING: &str = "warning: `url` is another than the archive with this `checksum` came from";
    let server = releases();
    for properties in [EXTRACT, "cleanup: false"] {
        let from = |version: &str| {
            let url = server.url(&format!("/app-{version}.tar.gz"));
            manifest(&url, &format!("{properties}, checksum: {}", sha256(&release("1"))))
        };
        let world = World::new().manifest(&from("1"));
        world.apply().exits(0).never_says(WARNING);
        world.apply().exits(0).never_says(WARNING);
        let world = world.manifest(&from("2"));
        for outcome in [world.apply_with(&["--noop"]), world.apply()] {
            stable(&outcome);
            outcome.says(WARNING).says("give the checksum of what is there now");
        }
    }
    assert!(server.requests().iter().all(|request| request.path == "/app-1.tar.gz"));
}
