//! Symbolic links, and the bits that go beyond a mode.

use std::fs;

use crate::support::{World, is_root};

fn linked(world: World, more: &str) -> World {
    world.manifest(&format!("- file: [{{ $W/x: {{ ensure: link, target: some/where{more} }} }}]"))
}

#[track_caller]
fn converges(world: &World, done: &str) {
    let before = world.tree();
    world.apply_with(&["--noop"]).exits(0).reports(&world.fill("file#$W/x"), &format!("Would have {done}"));
    assert_eq!(world.tree(), before, "a dry run changes nothing");
    world.apply().exits(0).reports(&world.fill("file#$W/x"), done).says("ensure=link ");
    assert_eq!(fs::read_link(world.path("x")).unwrap().to_str(), Some("some/where"), "as it was written");
    let before = world.tree();
    world.apply().exits(0).counts([0, 1, 0, 0]);
    assert_eq!(world.tree(), before);
    assert!(world.tree().leftovers().is_empty());
}

#[test]
fn a_link_is_made_and_kept_where_it_leads() {
    converges(&linked(World::new(), ""), "created the link");
    converges(
        &linked(World::new().link("x", "elsewhere"), ""),
        "updated the link (target elsewhere -> some/where)",
    );
}

#[test]
fn what_is_in_the_way_of_a_link_goes_only_with_force() {
    let file = || World::new().file("x", "old");
    let tree = || World::new().dir("x").dir("x/a").file("x/a/b", "old");
    for (world, what, lost) in [
        (file(), "a file is in the way", "lose the file"),
        (tree(), "a directory is in the way", "lose the directory with everything in it"),
    ] {
        let world = linked(world, "");
        let before = world.tree();
        world.apply().counts([0, 0, 1, 0]).says(what).says("set `force: true`").says(lost);
        assert_eq!(world.tree(), before);
    }
    converges(&linked(file(), ", force: true"), "created the link in place of a file");
    converges(&linked(tree(), ", force: true"), "created the link in place of a directory");
}

#[test]
fn a_link_needs_a_target_and_nothing_else_has_one() {
    for (properties, message) in [
        ("ensure: link", "`target` is missing"),
        ("ensure: link, target: ''", "`target` is not a path"),
        ("ensure: link, target: a, content: b", "a link has no `content`"),
        ("target: a, $OWN, mode: '0644'", "a file has no `target`"),
    ] {
        World::new()
            .manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"))
            .apply()
            .exits(2)
            .complains(message);
    }
}

#[test]
fn the_owner_of_other_files_is_no_bother_to_a_link() {
    let world = World::new().files("- $W/x: { ensure: link, target: y }\n- $W/y: { content: a }");
    world.apply().exits(0).counts([2, 0, 0, 0]);
    assert_eq!(world.read("x"), "a");
}

#[test]
fn a_dry_run_walks_through_links_that_are_not_there_yet() {
    let world = World::new().dir("releases").dir("releases/1").file("releases/1/have", "a").files(
        "\
- $W/current: { ensure: link, target: releases/1 }
- $W/current/new: { content: b }
- $W/current/have: { content: a }
- $W/copy: { source: $W/current/have }
",
    );
    world.apply_with(&["--noop"]).exits(0).counts([3, 1, 0, 0]);
    world.apply().exits(0).counts([3, 1, 0, 0]);
    assert_eq!(world.read("releases/1/new"), "b");
    let dangling = World::new().files("- $W/l: { ensure: link, target: nowhere }\n- $W/l/x: { content: b }");
    dangling.apply_with(&["--noop"]).counts([1, 0, 1, 0]).says("which does not exist");
    dangling.apply().counts([1, 0, 1, 0]).says("which does not exist");
}

#[test]
fn set_id_and_sticky_bits_are_set_where_asked_for_and_taken_where_not() {
    for (properties, mode) in [
        ("content: a, mode: '0755', setuid: true", 0o4755),
        ("content: a, mode: '0755', setgid: true, setuid: false", 0o2755),
        ("ensure: directory, mode: '0777', sticky: true", 0o1777),
        ("ensure: directory, mode: '0750', setgid: true, sticky: true", 0o3750),
    ] {
        let world = World::new().manifest(&format!("- file: [{{ $W/x: {{ {properties}, $OWN }} }}]"));
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.tree().item("x").unwrap().mode, mode, "{properties}");
        world.apply().exits(0).counts([0, 1, 0, 0]);
        let world = world.mode("x", mode & 0o777);
        let drift = format!("(mode {:04o} -> {mode:04o})", mode & 0o777);
        world.apply().exits(0).counts([1, 0, 0, 0]).says(&drift);
        assert_eq!(world.tree().item("x").unwrap().mode, mode, "drift is repaired");
        let world = world.mode("x", 0o7755);
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.tree().item("x").unwrap().mode, mode);
    }
}

#[test]
fn a_set_id_bit_survives_a_change_of_owner() {
    if !is_root() {
        return;
    }
    let world = World::new().file("x", "a").owner("x", 1, 1).mode("x", 0o4755);
    let world = world
        .manifest("- file: [{ $W/x: { content: a, owner: '2', group: '2', mode: '0755', setuid: true } }]");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    let item = world.tree().item("x").unwrap().clone();
    assert_eq!((item.uid, item.mode), (2, 0o4755));
    world.apply().exits(0).counts([0, 1, 0, 0]);
}
