//! What is read of the files on disk, what is not, and what cannot be.

use std::fs;

use crate::support::{NOBODY, World, is_root};

fn one(world: World, properties: &str) -> World {
    world.manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"))
}

/// A world whose managed part belongs to an ordinary user, and the properties that make a file his.
fn of_a_user() -> (World, String) {
    let theirs = format!("owner: '{NOBODY}', group: '{NOBODY}'");
    (World::new().owner("", NOBODY, NOBODY), theirs)
}

/// As an ordinary user: a dry run and a real run come to the same, and a second run finds nothing to do.
#[track_caller]
fn converges_for_a_user(world: &World, changed: usize) {
    let dry = world.ccm(["apply", "site.yaml", "--noop"]).uid(NOBODY).run();
    dry.exits(0).counts([changed, 1 - changed, 0, 0]);
    world.ccm(["apply", "site.yaml"]).uid(NOBODY).run().exits(0).counts([changed, 1 - changed, 0, 0]);
    world.ccm(["apply", "site.yaml"]).uid(NOBODY).run().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn what_a_user_may_not_read_he_may_still_manage() {
    if !is_root() {
        return;
    }
    let unreadable = |mode| {
        let (world, theirs) = of_a_user();
        (world.file("x", "old").mode("x", mode).owner("x", NOBODY, NOBODY), theirs)
    };
    let (world, _) = unreadable(0o000);
    converges_for_a_user(&one(world, "ensure: absent"), 1);
    let (world, theirs) = unreadable(0o200);
    converges_for_a_user(&one(world, &format!("{theirs}, mode: '0200'")), 0);
    let (world, theirs) = unreadable(0o200);
    let world = one(world, &format!("{theirs}, mode: '0300'"));
    converges_for_a_user(&world, 1);
    // Content that cannot be compared is written anew, if it can be compared from then on.
    let (world, theirs) = unreadable(0o000);
    let world = one(world, &format!("{theirs}, mode: '0600', content: new"));
    let diff = world.ccm(["apply", "site.yaml", "--noop"]).uid(NOBODY).run();
    diff.says("the files differ; the old one cannot be read");
    converges_for_a_user(&world, 1);
    assert_eq!(world.read("x"), "new");
    // Somebody else's file, of which only the attributes are asked for.
    let (world, _) = of_a_user();
    let world = one(world.file("x", "old").mode("x", 0o600), "owner: '0', group: '0', mode: '0600'");
    converges_for_a_user(&world, 0);
}

#[test]
fn content_that_its_owner_could_never_read_again_is_refused() {
    if !is_root() {
        return;
    }
    let (world, theirs) = of_a_user();
    let world = one(world, &format!("{theirs}, mode: '0200', content: x"));
    for flags in [&["--noop"][..], &[]] {
        let outcome = world.ccm(["apply", "site.yaml"].iter().chain(flags)).uid(NOBODY).run();
        outcome.exits(1).says("with mode 0200 its owner could not read it").says("site.yaml:");
        assert!(!world.path("x").exists(), "{outcome}");
    }
    // Root reads it all the same, with a memory of its own.
    fs::remove_dir_all(world.state()).unwrap();
    fs::create_dir(world.state()).unwrap();
    world.ccm(["apply", "site.yaml"]).uid(0).run().exits(0).counts([1, 0, 0, 0]);
    world.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn the_status_of_a_file_that_cannot_be_read_has_no_checksum() {
    if !is_root() {
        return;
    }
    let world = World::new().file("x", "secret").mode("x", 0o600);
    let status = |uid| world.ccm(["status", "file", "$W/x", "--json"]).uid(uid).run().exits(0).json();
    assert_eq!(status(NOBODY)["metadata"]["mode"], "0600");
    assert!(status(NOBODY)["metadata"].get("checksum").is_none());
    assert!(status(0)["metadata"].get("checksum").is_some());
}

#[test]
fn content_that_does_not_matter_is_not_read() {
    for properties in
        ["ensure: absent", "$OWN, mode: '0644'", "ensure: directory, force: true, $OWN, mode: '0755'"]
    {
        let world = one(World::new().file("x", ""), properties);
        // So much that reading it would take longer than a test may.
        fs::File::options().write(true).open(world.path("x")).unwrap().set_len(1 << 41).unwrap();
        world.apply_with(&["--noop"]).exits(0);
        world.apply().exits(0);
    }
}

#[test]
fn a_dry_run_copies_from_a_file_whose_mode_would_have_changed() {
    let world = World::new().file("from", "text").manifest(
        "\
- file:
  - $W/from: { $OWN, mode: '0600' }
  - $W/to: { source: $W/from, $OWN, mode: '0600' }
  - $W/from2: { source: $W/from, $OWN, mode: '0600' }
",
    );
    world.apply_with(&["--noop"]).exits(0).counts([3, 0, 0, 0]);
    world.apply().exits(0).counts([3, 0, 0, 0]);
    assert_eq!(world.read("to"), "text");
}

#[test]
fn a_failure_still_tells_what_is_there() {
    let world = World::new().file("x", "old").dir("d").manifest(
        "\
- exec: [{ 'true': {} }]
- file:
  - $W/x: { content: x, owner: no-such-user, group: '0', mode: '0644' }
  - $W/d: { source: nowhere, $OWN, mode: '0644' }
  - $W/new: { source: nowhere, $OWN, mode: '0644' }
",
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1);
    for (name, ensure) in [("/x", "present"), ("/d", "directory"), ("/new", "absent")] {
        let event = outcome.event(name);
        assert_eq!((&event["failed"], &event["final_ensure"]), (&true.into(), &ensure.into()), "{event:#}");
        assert_eq!(event["status"]["ensure"], ensure, "{event:#}");
    }
    assert!(outcome.event("/x")["error"][0].as_str().unwrap().contains("no-such-user"));
}
