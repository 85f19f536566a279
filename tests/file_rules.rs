//! The rules of the file type where a plain reading leaves a choice: one test for each.

use std::{fs, os::unix::net::UnixListener, path::Path};

use rustix::fs::{CWD, FileType, makedev, mknodat};

use crate::support::{NOBODY, Outcome, World, is_root, sh, skip};

fn one(world: World, properties: &str) -> World {
    world.manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"))
}

const CONTENT: &str = "content: new, $OWN, mode: '0644'";
const ATTRIBUTES: &str = "$OWN, mode: '0644'";
const DIRECTORY: &str = "ensure: directory, $OWN, mode: '0755'";
const ABSENT: &str = "ensure: absent";

/// A resource that fails for this reason, in a dry run and a real one, and leaves everything as it was.
#[track_caller]
fn fails(world: &World, messages: &[&str]) {
    let before = world.tree();
    for flags in [&["--noop"][..], &[]] {
        let outcome = world.apply_with(flags);
        outcome
            .exits(1)
            .counts([0, 0, 1, 0])
            .reports(&world.fill("file#$W/x"), "failed")
            .says("site.yaml:1:");
        for message in messages {
            outcome.says(&world.fill(message));
        }
        assert_eq!(world.tree(), before, "{outcome}");
    }
}

#[track_caller]
fn changes(world: &World) -> Outcome {
    world.apply_with(&["--noop"]).exits(0).counts([1, 0, 0, 0]);
    let outcome = world.apply();
    outcome.exits(0).counts([1, 0, 0, 0]);
    world.apply().exits(0).counts([0, 1, 0, 0]);
    outcome
}

#[test]
fn contents_means_the_same_as_content_and_both_at_once_is_an_error() {
    let world = one(World::new(), "contents: new, $OWN, mode: '0644'");
    changes(&world);
    assert_eq!(world.read("x"), "new");
    assert_eq!(world.apply_with(&["--json"]).event("/x")["properties"]["content"], "new");
    let both = one(World::new(), "content: a, contents: b, $OWN, mode: '0644'");
    both.apply().exits(2).complains("content");
    assert!(both.tree().names().is_empty());
}

#[test]
fn an_unquoted_mode_means_its_octal_digits() {
    for mode in ["0640", "640", "0o640"] {
        let world = one(World::new(), &format!("content: x, $OWN, mode: {mode}"));
        changes(&world);
        assert_eq!(world.tree().item("x").unwrap().mode, 0o640, "{mode}");
    }
    one(World::new(), "content: x, $OWN, mode: 0948").apply().exits(2).complains("\"0948\" is not a mode");
}

#[test]
fn special_bits_on_disk_are_drift() {
    for (mode, shown) in [(0o4755, "4755"), (0o2755, "2755"), (0o1755, "1755")] {
        let world = one(World::new().file("x", "kept").mode("x", mode), "$OWN, mode: '0755'");
        changes(&world).says(&format!("updated the file (mode {shown} -> 0755)"));
        assert_eq!(world.tree().item("x").unwrap().mode, 0o755);
        assert_eq!(world.read("x"), "kept");
        let world = one(World::new().dir("x").mode("x", mode), DIRECTORY);
        changes(&world).says(&format!("updated directory (mode {shown} -> 0755)"));
        assert_eq!(world.tree().item("x").unwrap().mode, 0o755);
    }
}

#[test]
fn with_neither_content_nor_source_only_existence_and_attributes_are_managed() {
    let world = one(World::new(), ATTRIBUTES);
    changes(&world).says("created the file");
    assert_eq!(world.read("x"), "");
    let world = one(World::new().file("x", "kept").mode("x", 0o600), ATTRIBUTES);
    changes(&world);
    assert_eq!((world.read("x").as_str(), world.tree().item("x").unwrap().mode), ("kept", 0o644));
    let world = one(World::new().file("x", "kept"), ATTRIBUTES);
    world.apply().exits(0).counts([0, 1, 0, 0]);
    let world = one(World::new().file("x", "something"), "content: '', $OWN, mode: '0644'");
    changes(&world);
    assert_eq!(world.read("x"), "", "empty content is content");
}

#[test]
fn a_directory_in_the_way_of_a_file_is_an_error_and_never_a_deletion() {
    for properties in [CONTENT, ATTRIBUTES] {
        fails(&one(World::new().dir("x"), properties), &["a directory is in the way at $W/x"]);
        fails(
            &one(World::new().file("x/inside", "kept"), properties),
            &["a directory is in the way at $W/x"],
        );
    }
    fails(
        &one(World::new().dir("x"), "content: x, force: true, $OWN, mode: '0644'"),
        &["a directory is in the way"],
    );
}

#[test]
fn a_file_in_the_way_of_a_directory_is_replaced_only_with_force() {
    let world = one(World::new().file("x", "old"), DIRECTORY);
    fails(&world, &["a file is in the way", "`force: true`"]);
    assert_eq!(world.read("x"), "old");
    let world = one(world, &format!("{DIRECTORY}, force: true"));
    changes(&world).says("created directory in place of a file");
    assert!(world.tree().item("x").unwrap().is_directory());
}

#[test]
fn present_with_content_replaces_the_link_itself() {
    for (target, beside) in
        [("$W/target", "kept"), ("target", "kept"), ("$W/nowhere", "kept"), ("$W", "kept"), ("x", "kept")]
    {
        let world = one(World::new().file("target", beside).link("x", target), CONTENT);
        changes(&world).says("created the file in place of a symbolic link");
        assert_eq!((world.read("x").as_str(), world.read("target").as_str()), ("new", "kept"), "{target}");
        assert!(world.tree().item("x").unwrap().content().is_some());
    }
    let world = World::new().beside("source", "new").file("target", "kept").link("x", "target");
    let world = one(world, "source: source, $OWN, mode: '0644'");
    changes(&world);
    assert_eq!((world.read("x").as_str(), world.read("target").as_str()), ("new", "kept"));
}

#[test]
fn absent_removes_the_link_and_not_its_target() {
    for target in ["$W/target", "$W/folder", "$W/nowhere", "x"] {
        for properties in [ABSENT, "ensure: absent, force: true"] {
            let world = World::new().file("target", "kept").file("folder/inside", "kept").link("x", target);
            let world = one(world, properties);
            changes(&world).says("removed the file");
            assert_eq!(world.tree().names(), ["folder", "folder/inside", "target"]);
        }
    }
}

#[test]
fn a_directory_or_attributes_only_over_a_link_is_an_error_that_names_link_and_target() {
    for properties in [DIRECTORY, ATTRIBUTES] {
        for target in ["$W/folder", "$W/target", "$W/nowhere"] {
            let world = World::new().file("target", "kept").dir("folder").link("x", target);
            fails(&one(world, properties), &["a symbolic link to", target, "is in the way at $W/x"]);
        }
    }
}

#[test]
fn links_further_up_are_followed_where_only_their_owner_could_have_made_them() {
    for way in ["way", "relative", "twice"] {
        let world =
            World::new().dir("real/sub").link("way", "$W/real").link("relative", "real").link("twice", "way");
        let items = format!("- $W/{way}/sub/a: {{ content: new }}\n- $W/{way}/d: {{ ensure: directory }}");
        let world = world.files(&items);
        world.apply_with(&["--noop"]).exits(0).counts([2, 0, 0, 0]);
        world.apply().exits(0).counts([2, 0, 0, 0]);
        world.apply().exits(0).counts([0, 2, 0, 0]);
        assert_eq!(world.read("real/sub/a"), "new");
        assert!(world.tree().item("real/d").unwrap().is_directory());
    }
}

#[test]
fn a_link_that_the_path_itself_goes_through_is_not_replaced() {
    let world = World::new().link("x", ".").manifest(&format!("- file: [{{ $W/x/x: {{ {CONTENT} }} }}]"));
    let before = world.tree();
    for flags in [&["--noop"][..], &[]] {
        world.apply_with(flags).exits(1).says("is a symbolic link to \".\"");
        assert_eq!(world.tree(), before);
    }
}

#[test]
fn a_link_of_somebody_else_further_up_is_not_followed() {
    if !is_root() {
        return;
    }
    let link = |world: World| world.dir("real").link("way", "$W/real").owner("way", NOBODY, NOBODY);
    for properties in [CONTENT, DIRECTORY, ABSENT] {
        let world = link(World::new()).file("real/x", "kept");
        let world = world.manifest(&format!("- file: [{{ $W/way/x: {{ {properties} }} }}]"));
        let before = world.tree();
        for flags in [&["--noop"][..], &[]] {
            let outcome = world.apply_with(flags);
            outcome.exits(1).says("is not safe to follow").says(&world.fill("$W/way")).says("65534");
            assert_eq!(world.tree(), before);
        }
    }
}

#[test]
fn a_link_in_a_directory_that_others_can_write_to_is_not_followed() {
    if !is_root() {
        return;
    }
    let world = World::new().dir("real").dir("open").link("open/way", "$W/real").mode("open", 0o777);
    let world = world.manifest(&format!("- file: [{{ $W/open/way/x: {{ {CONTENT} }} }}]"));
    let outcome = world.apply();
    outcome.exits(1).says("is not safe to follow").says(&world.fill("$W/open"));
    assert!(!world.path("real/x").exists());
}

#[test]
fn absent_on_a_directory_that_is_not_empty_is_an_error_that_mentions_force() {
    fails(
        &one(World::new().file("x/inside", "kept"), ABSENT),
        &["$W/x is a directory that is not empty", "`force: true`"],
    );
    fails(&one(World::new().dir("x/empty"), ABSENT), &["is a directory that is not empty"]);
}

#[test]
fn with_force_a_directory_is_removed_without_following_links() {
    let world = World::new()
        .file("x/a/b/c", "gone")
        .file("outside/file", "kept")
        .link("x/link", "$W/outside")
        .link("x/a/file", "$W/outside/file")
        .link("x/up", "..")
        .mode("x/a/b", 0o000);
    rustix::fs::mknodat(CWD, world.path("x/fifo"), FileType::Fifo, 0o600.into(), 0).unwrap();
    // Root removes what is in directories without rights; others cannot.
    let world = if rustix::process::geteuid().is_root() { world } else { world.mode("x/a/b", 0o755) };
    let world = one(world, "ensure: absent, force: true");
    if rustix::process::geteuid().is_root() {
        world
            .apply_with(&["--noop"])
            .exits(0)
            .says("Would have recursively removed the directory with 5 files and 2 directories in it");
    }
    changes(&world).says("recursively removed the directory");
    assert_eq!(world.tree().names(), ["outside", "outside/file"]);
    assert_eq!(world.read("outside/file"), "kept");
}

#[test]
fn a_dry_run_tells_how_much_it_would_remove() {
    for (world, said) in [
        (World::new().file("x/a", ""), "recursively removed the directory with 1 file in it"),
        (World::new().dir("x/a"), "recursively removed the directory with 1 directory in it"),
        (World::new().dir("x"), "Would have removed the directory"),
    ] {
        let world = one(world, "ensure: absent, force: true");
        world.apply_with(&["--noop"]).exits(0).says(said);
        assert!(world.path("x").exists());
    }
}

#[test]
fn the_root_directory_is_never_removed() {
    for properties in [ABSENT, "ensure: absent, force: true"] {
        let world = World::new().manifest(&format!("- file: [{{ /: {{ {properties} }} }}]"));
        world.apply_with(&["--noop"]).exits(2).complains("the root directory cannot be removed");
        world.validate().exits(2).complains("the root directory cannot be removed");
    }
}

#[test]
fn force_does_not_cross_into_another_file_system() {
    let Some(world) = World::new().file("x/a", "").tmpfs("x/mounted", "size=64k") else { return };
    fs::write(world.path("x/mounted/inside"), "kept").unwrap();
    let world = one(world, "ensure: absent, force: true");
    world.apply().exits(1).says(&world.fill("$W/x/mounted"));
    assert_eq!(world.read("x/mounted/inside"), "kept");
}

#[test]
fn permission_denied_is_an_error_and_never_absent() {
    if !is_root() {
        return;
    }
    for properties in [ABSENT, "content: new, owner: '65534', group: '65534', mode: '0644'"] {
        let world = World::new().file("closed/x", "kept").mode("closed", 0o700);
        let world = world.manifest(&format!("- file: [{{ $W/closed/x: {{ {properties} }} }}]"));
        let before = world.tree();
        for flags in [&["apply", "site.yaml", "--noop"][..], &["apply", "site.yaml"]] {
            let outcome = world.ccm(flags).uid(NOBODY).run();
            outcome.exits(1).says("permission denied").says(&world.fill("$W/closed")).counts([0, 0, 1, 0]);
        }
        world
            .ccm(["status", "file", "$W/closed/x"])
            .uid(NOBODY)
            .run()
            .exits(1)
            .complains("permission denied");
        assert_eq!(world.tree(), before);
    }
}

#[test]
fn a_component_that_is_no_directory_is_an_error_and_never_absent() {
    for properties in [CONTENT, DIRECTORY, ABSENT] {
        let world = World::new()
            .file("file", "kept")
            .manifest(&format!("- file: [{{ $W/file/x: {{ {properties} }} }}]"));
        let before = world.tree();
        for flags in [&["--noop"][..], &[]] {
            world
                .apply_with(flags)
                .exits(1)
                .says(&world.fill("\"$W/file\" is not a directory"))
                .counts([0, 0, 1, 0]);
        }
        assert_eq!(world.tree(), before);
        world.ccm(["status", "file", "$W/file/x"]).run().exits(1).complains("is not a directory");
    }
}

#[test]
fn a_loop_of_links_is_an_error_and_never_absent() {
    for properties in [CONTENT, DIRECTORY, ABSENT] {
        let world = World::new()
            .link("a", "b")
            .link("b", "a")
            .manifest(&format!("- file: [{{ $W/a/x: {{ {properties} }} }}]"));
        let before = world.tree();
        for flags in [&["--noop"][..], &[]] {
            world
                .apply_with(flags)
                .exits(1)
                .says("too many symbolic links")
                .says(&world.fill("$W/"))
                .counts([0, 0, 1, 0]);
        }
        assert_eq!(world.tree(), before);
    }
}

#[test]
fn absent_below_what_does_not_exist_is_fine() {
    let world = World::new().manifest("- file: [{ $W/no/where/x: { ensure: absent } }]");
    world.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn owners_in_digits_are_ids_and_equal_to_the_name_with_that_id() {
    if !is_root() {
        return;
    }
    let world = one(World::new(), "content: x, owner: 4000001, group: '4000002', mode: '0644'");
    changes(&world);
    let item = world.tree().item("x").unwrap().clone();
    assert_eq!((item.uid, item.gid), (4_000_001, 4_000_002));
    for owner in ["root", "0", "'0'"] {
        let world = one(
            World::new().file("x", "x"),
            &format!("content: x, owner: {owner}, group: {owner}, mode: '0644'"),
        );
        world.apply().exits(0).counts([0, 1, 0, 0]);
    }
}

#[test]
fn impossible_ids_are_refused() {
    for owner in ["4294967295", "99999999999", "'-1'", "''", "'a b'"] {
        let world = one(World::new(), &format!("content: x, owner: {owner}, group: '0', mode: '0644'"));
        world.apply().exits(2).complains("owner: ").complains("site.yaml:1:");
    }
}

/// What no one expects at a path, and never blocks whoever looks.
fn special(world: &World, kind: &str) {
    let path = world.path("x");
    match kind {
        "fifo" => mknodat(CWD, path, FileType::Fifo, 0o644.into(), 0).unwrap(),
        "socket" => drop(UnixListener::bind(path).unwrap()),
        _ => mknodat(CWD, path, FileType::CharacterDevice, 0o644.into(), makedev(5, 1)).unwrap(),
    }
}

#[test]
fn a_fifo_socket_or_device_in_the_way_never_blocks() {
    for (kind, word) in [("fifo", "fifo"), ("socket", "socket"), ("device", "character device")] {
        if kind == "device" && !is_root() {
            return;
        }
        let world = World::new();
        special(&world, kind);
        let mut world = world;
        for properties in [CONTENT, ATTRIBUTES, DIRECTORY] {
            world = one(world, properties);
            fails(&world, &[&format!("a {word} is in the way at $W/x")]);
            world.apply().says("remove it with `ccm ensure file").never_says("--force");
        }
        world.ccm(["status", "file", "$W/x"]).run().exits(0).says(&format!("ensure: {word}\n"));
        world = one(world, ABSENT);
        changes(&world);
        assert!(world.tree().names().is_empty());
    }
}

#[test]
fn content_that_could_not_be_read_again_is_refused_and_not_written_in_every_run() {
    if !is_root() {
        return;
    }
    let theirs = "owner: '65534', group: '65534'";
    let world = World::new().file("d/x", "old").mode("d/x", 0o600).owner("d", NOBODY, NOBODY);
    let world = world.owner("d/x", NOBODY, NOBODY);
    let world =
        world.manifest(&format!("- file: [{{ $W/d/x: {{ content: new, {theirs}, mode: '0200' }} }}]"));
    let before = world.tree();
    for _ in 0..2 {
        let run = world.ccm(["apply", "site.yaml"]).uid(NOBODY).run();
        run.exits(1).counts([0, 0, 1, 0]).says("with mode 0200 its owner could not read it").says("(mode)");
        assert_eq!(world.tree(), before, "{run}");
    }
    // Root can, and so it is written once.
    let other = world.base().join("home").display().to_string();
    for counts in [[1, 0, 0, 0], [0, 1, 0, 0]] {
        world.ccm(["apply", "site.yaml", "--state-dir", &other]).run().exits(0).counts(counts);
    }
}

#[test]
fn extended_attributes_of_a_replaced_file_are_kept() {
    let world = one(World::on_disk().file("x", "old"), CONTENT);
    let empty = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(world.path("x"), "user.note", b"keep me", empty).is_err() {
        skip("needs a file system with extended attributes");
        return;
    }
    changes(&world);
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(world.path("x"), "user.note", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"keep me");
}

#[test]
fn a_file_keeps_its_other_names_when_only_its_mode_changes() {
    let world = one(World::new().file("x", "kept").mode("x", 0o600), ATTRIBUTES);
    fs::hard_link(world.path("x"), world.path("y")).unwrap();
    changes(&world);
    let tree = world.tree();
    assert_eq!(tree.item("x").unwrap().inode, tree.item("y").unwrap().inode);
}

#[test]
fn a_second_name_of_a_file_keeps_the_old_content() {
    let world = one(World::new().file("x", "old"), CONTENT);
    fs::hard_link(world.path("x"), world.path("y")).unwrap();
    changes(&world);
    assert_eq!((world.read("x").as_str(), world.read("y").as_str()), ("new", "old"));
}

#[test]
fn a_deep_tree_is_removed() {
    let world = World::new();
    sh(
        "i=0; mkdir x; cd -P x; while [ $i -lt 1200 ]; do mkdir d; cd -P d; i=$((i+1)); done",
        &world.path(""),
    );
    let world = one(world, "ensure: absent, force: true");
    let outcome =
        world.ccm(["apply", "site.yaml"]).under(["/bin/sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"]).run();
    outcome.exits(0).counts([1, 0, 0, 0]);
    assert!(!Path::new(&world.path("x")).exists());
}

#[test]
fn members_of_a_group_that_may_write_to_a_directory_of_root_s_cannot_lead_a_write_out_of_it() {
    if !is_root() {
        return;
    }
    let shared = || World::new().dir("g").owner("g", 0, NOBODY).mode("g", 0o2775).dir("out");
    let file = |world: World, path: &str, properties: &str| {
        let world = world.manifest(&format!("- file: [{{ $W/{path}: {{ {properties} }} }}]"));
        let before = world.tree();
        let outcome = world.apply();
        assert_eq!(outcome.code == 0, world.tree() != before, "{outcome}");
        outcome
    };
    file(shared(), "g/x", CONTENT).exits(0);
    let link = shared().link("g/l", "$W/out");
    file(link, "g/l/x", CONTENT).exits(1).says("is not safe to follow");
    let theirs = || shared().dir("g/d").owner("g/d", NOBODY, NOBODY);
    file(theirs(), "g/d/x", CONTENT).exits(0);
    file(theirs(), "g/d/x", DIRECTORY).exits(1).says("who could redirect everything below it");
    let linked = shared().file("out/x", "");
    fs::hard_link(linked.path("out/x"), linked.path("g/x")).unwrap();
    let theirs = "owner: '65534', group: '65534', mode: '0644'";
    file(linked, "g/x", theirs).exits(1).says("names (hard links)");
}
