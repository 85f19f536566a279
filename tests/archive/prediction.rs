//! What a dry run of an archive can tell without asking anybody.

use super::{EXTRACT, app, changed, failed, manifest};
use crate::support::{
    NOBODY, World,
    http::{Identity, Reply, Server},
    is_root,
};

/// A dry run fails as the real one does, and changes nothing.
#[track_caller]
fn fails_alike(world: &World, why: &str) {
    let before = world.tree();
    failed(&world.apply_with(&["--noop"]), why);
    assert_eq!(world.tree(), before);
    failed(&world.apply(), why);
}

#[test]
fn a_target_that_cannot_be_unpacked_into_is_foreseen() {
    let server = Server::of(app("1"));
    let world = || World::new().manifest(&manifest(&server.url("/app.tar.gz"), EXTRACT));
    fails_alike(&world().file("opt", "a file"), "opt\" is not a directory");
    fails_alike(&world().link("opt", "$W/none"), "which does not exist");
    if is_root() {
        fails_alike(&world().dir("opt").owner("opt", NOBODY, NOBODY), "could redirect everything below it");
        fails_alike(&world().dir("opt").mode("opt", 0o777), "world-writable without the sticky bit");
    }
}

#[test]
fn a_file_that_it_may_unpack_can_be_edited() {
    let server = Server::of(app("1"));
    let after = |properties: &str, path: &str| {
        let archive = manifest(&server.url("/app.tar.gz"), properties);
        World::new().manifest(&format!("{archive}- file: [{{ {path}: {{ edit: [{{ line: b }}] }} }}]"))
    };
    for properties in ["extract_parent: $W/opt", EXTRACT] {
        for world in [after(properties, "$W/opt/bin/app"), after(properties, "$W/opt/bin/app").dir("opt")] {
            world
                .apply_with(&["--noop"])
                .exits(0)
                .counts([2, 0, 0, 0])
                .says("an earlier resource creates it");
            world.apply().exits(0).counts([2, 0, 0, 0]);
            assert!(world.read("opt/bin/app").ends_with("\nb\n"));
        }
    }
    let elsewhere = after(EXTRACT, "$W/else/app");
    for flags in [&["--noop"][..], &[]] {
        elsewhere.apply_with(flags).counts([1, 0, 1, 0]).says("does not exist, and so cannot be edited");
    }
}

#[test]
fn certificates_that_cannot_be_read_are_foreseen() {
    let identity = Identity::of("127.0.0.1");
    let server = Server::secure(&identity, |_| Reply::body(app("1")));
    let url = server.url("/app.tar.gz");
    let with = |url: &str| World::new().manifest(&manifest(url, "ca_file: $W/ca.pem"));
    fails_alike(&with(&url), "cannot read certificates from ");
    fails_alike(&with(&url).file("ca.pem", "none"), "it holds no certificate in PEM form");
    assert!(server.requests().is_empty());
    changed(&with(&url).file("ca.pem", identity.pem()).apply_with(&["--noop"]), "Would have downloaded");
    // Nobody reads them for a server that needs none.
    let plain = Server::of(app("1"));
    let world = with(&plain.url("/app.tar.gz"));
    changed(&world.apply_with(&["--noop"]), "Would have downloaded");
    changed(&world.apply(), "downloaded");
}

#[test]
fn certificates_that_an_earlier_resource_brings_or_takes_away_are_foreseen_too() {
    let identity = Identity::of("127.0.0.1");
    let server = Server::secure(&identity, |_| Reply::body(app("1")));
    let archive = manifest(&server.url("/app.tar.gz"), "ca_file: $W/ca.pem");
    let after = |resource: &str| World::new().manifest(&format!("{resource}\n{archive}"));
    let brought =
        after("- file: [{ $W/ca.pem: { source: pem, $OWN, mode: '0644' } }]").beside("pem", identity.pem());
    brought.apply_with(&["--noop"]).exits(0).counts([2, 0, 0, 0]);
    brought.apply().exits(0).counts([2, 0, 0, 0]);
    let removed = after("- file: [{ $W/ca.pem: { ensure: absent } }]").file("ca.pem", identity.pem());
    for flags in [&["--noop"][..], &[]] {
        removed.apply_with(flags).exits(1).counts([1, 0, 1, 0]).says("cannot read certificates from ");
    }
    let made = after("- exec: [{ make: { command: 'cp $W/pem $W/ca.pem' } }]").file("pem", identity.pem());
    made.apply_with(&["--noop"]).exits(0).counts([2, 0, 0, 0]).says("assuming ");
    made.apply().exits(0).counts([2, 0, 0, 0]);
}
