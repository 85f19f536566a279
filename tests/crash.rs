//! Runs that are killed at every call that changes something, and the order in which changes reach the disk.

use crate::support::{
    Item, Syscall, Trace, Tree, World, fits_strace, http::Server, is_root, side_by_side, tampered,
};

/// A world before a run, and what is managed in it.
struct Case {
    start: fn() -> World,
    items: &'static str,
    /// The managed paths, each of which changes at once.
    paths: &'static [&'static str],
}

/// What stands at a path, whichever file it is.
fn looks(tree: &Tree, path: &str) -> Option<Item> {
    tree.item(path).cloned().map(|item| Item { inode: 0, ..item })
}

fn killed_anywhere(case: &Case) {
    killed_anywhere_in(&|| (case.start)().files(case.items), case.paths);
}

/// Kills a run before each of its changes. Every path is then as before or as wanted; the next run finishes the work and
/// leaves nothing lying about; the one after it finds nothing to do.
fn killed_anywhere_in(world: &(dyn Fn() -> World + Sync), paths: &[&str]) {
    if !fits_strace() {
        return;
    }
    let reference = world();
    let before = reference.tree();
    let trace = Trace::of(&reference, &[]);
    trace.outcome.exits(0);
    let after = reference.tree();
    let points = points(&trace);
    assert!(points.len() > 3, "{points:?}");
    side_by_side(points, |call| {
        let world = world();
        let at = format!("killed before {call:?}");
        let outcome = tampered(&world, call, "signal=KILL");
        // How many files are brought to disk, one by one or at once, depends on what else is on its way there.
        if outcome.code == 0 && call.syncs() {
            return;
        }
        assert_eq!(outcome.code, -9, "{at}\n{outcome}");
        let found = world.tree();
        for path in paths {
            let is = looks(&found, path);
            let fits = is == looks(&before, path) || is == looks(&after, path);
            assert!(fits, "{at}: {path} is {is:?}\n{found:?}");
        }
        let next = world.apply();
        assert_eq!(next.code, 0, "{at}, then\n{next}");
        let tree = world.tree();
        for path in paths {
            assert_eq!(looks(&tree, path), looks(&after, path), "{at}, then\n{next}");
        }
        assert_eq!(tree.names(), after.names(), "{at}, then\n{next}");
        assert_eq!(Tree::of(world.base()).leftovers(), [""; 0], "{at}, then\n{next}");
        let third = world.apply_with(&["--detailed-exitcode"]);
        assert_eq!(third.code, 0, "{at}, then twice\n{third}");
    });
}

/// The calls of a run before which to kill it.
fn points(trace: &Trace) -> Vec<&Syscall> {
    let matters = |call: &&Syscall| call.changes_files() || call.syncs() || call.name() == "flock";
    trace.calls.iter().filter(|call| call.succeeded()).filter(matters).collect()
}

#[test]
fn a_run_killed_while_it_creates_a_file_is_finished_by_the_next() {
    killed_anywhere(&Case {
        start: World::new,
        items: "- $W/x: { content: new, mode: '0640' }",
        paths: &["x"],
    });
}

#[test]
fn a_run_killed_while_it_replaces_a_file_is_finished_by_the_next() {
    let start = || World::new().file("x", "old").mode("x", 0o600);
    killed_anywhere(&Case { start, items: "- $W/x: { content: new }", paths: &["x"] });
}

#[test]
fn a_run_killed_while_it_edits_a_file_is_finished_by_the_next() {
    let start = || World::new().file("x", "old\n").mode("x", 0o600);
    let items = "- $W/x: { edit: [{ line: new }, { keyvalue: { key: a, value: b } }] }";
    killed_anywhere(&Case { start, items, paths: &["x"] });
}

#[test]
fn a_run_killed_while_it_makes_a_link_is_finished_by_the_next() {
    let start = || World::new().link("y", "/nowhere").dir("z").file("z/lost", "");
    let items = "\
- $W/x: { ensure: link, target: a }
- $W/y: { ensure: link, target: a }
- $W/z: { ensure: link, target: a, force: true }";
    killed_anywhere(&Case { start, items, paths: &["x", "y", "z"] });
}

#[test]
fn a_run_killed_while_it_purges_a_directory_is_finished_by_the_next() {
    let start = || World::new().dir("x").file("x/a", "").dir("x/b").file("x/b/c", "").file("x/d", "kept");
    let items = "- $W/x: { ensure: directory, purge: true }\n- $W/x/d: { content: kept }";
    killed_anywhere(&Case { start, items, paths: &["x/a", "x/d"] });
}

#[test]
fn a_run_killed_while_it_downloads_a_file_is_finished_by_the_next() {
    let server = Server::of(vec![b'x'; 100_000]);
    let url = server.url("/tool");
    for start in [World::new as fn() -> World, || World::new().file("x", "old")] {
        let manifest = format!("- file: [{{ $W/x: {{ source: '{url}', $OWN, mode: '0640' }} }}]\n");
        killed_anywhere_in(&|| start().manifest(&manifest), &["x"]);
    }
}

/// A tree, and what was made from an earlier one.
fn scaffolded() -> World {
    let world =
        World::new().beside("tree/a", "{{ 1 + 1 }}").beside("tree/sub/b", "new").beside("tree/sub/c", "c");
    let world = (0..4).fold(world, |world, number| world.beside(&format!("tree/more/{number}"), "new"));
    world.dir("t").file("t/a", "old").file("t/litter", "").file("t/more/1", "old")
}

#[test]
fn a_run_killed_while_it_makes_a_scaffold_is_finished_by_the_next() {
    let manifest = "- scaffold: [{ $W/t: { source: tree, $OWN, purge: true } }]\n";
    killed_anywhere_in(
        &|| scaffolded().manifest(manifest),
        &["t/a", "t/sub/b", "t/sub/c", "t/more/1", "t/litter"],
    );
}

#[test]
fn a_run_killed_while_it_removes_a_scaffold_is_finished_by_the_next() {
    let manifest = "- scaffold: [{ $W/t: { ensure: absent, source: tree } }]\n";
    let start = || scaffolded().file("t/sub/b", "new").manifest(manifest);
    killed_anywhere_in(&start, &["t/a", "t/sub/b", "t/litter"]);
}

#[test]
fn a_command_for_a_scaffold_that_was_killed_is_run_by_the_next() {
    let manifest = "- scaffold: [{ $W/t: { source: tree, $OWN, post: [{ a: /bin/sed -i s/2/two/ }] } }]\n";
    let world = || World::new().beside("tree/a", "{{ 1 + 1 }}").manifest(manifest);
    if !fits_strace() {
        return;
    }
    let reference = world();
    let trace = Trace::of(&reference, &[]);
    trace.outcome.exits(0);
    for call in points(&trace) {
        let world = world();
        tampered(&world, call, "signal=KILL");
        world.apply().exits(0);
        assert_eq!(world.read("t/a"), "two", "killed before {call:?}");
        world.apply_with(&["--detailed-exitcode"]).exits(0);
    }
}

const MANY: &str = "\
- $W/a: { content: new }
- $W/b: { content: new }
- $W/c: { content: new }
- $W/d/d: { content: new, mode: '0600' }
- $W/e: { content: new }
- $W/f: { content: new }";

#[test]
fn a_run_killed_while_it_stores_many_files_is_finished_by_the_next() {
    let start = || World::new().file("b", "old").link("c", "b").dir("d").file("f", "new");
    killed_anywhere(&Case { start, items: MANY, paths: &["a", "b", "c", "d/d", "e", "f"] });
}

#[test]
fn a_run_killed_while_it_replaces_a_link_is_finished_by_the_next() {
    let start = || World::new().file("y", "kept").link("x", "/nowhere");
    killed_anywhere(&Case { start, items: "- $W/x: { content: new }", paths: &["x", "y"] });
}

#[test]
fn a_run_killed_while_it_changes_owner_and_mode_is_finished_by_the_next() {
    if !is_root() {
        return;
    }
    let start = || World::new().file("x", "kept").mode("x", 0o666).owner("x", 1, 1);
    killed_anywhere(&Case { start, items: "- $W/x: { mode: '0600' }", paths: &["x"] });
}

#[test]
fn a_run_killed_while_it_changes_a_mode_is_finished_by_the_next() {
    let start = || World::new().file("x", "kept").mode("x", 0o666).dir("d").mode("d", 0o700);
    let items = "- $W/x: { mode: '0600' }\n- $W/d: { ensure: directory, mode: '0755' }";
    killed_anywhere(&Case { start, items, paths: &["x", "d"] });
}

#[test]
fn a_run_killed_while_it_makes_a_directory_with_parents_is_finished_by_the_next() {
    let items = "- $W/a/b/x: { ensure: directory, mode: '0711' }\n- $W/a/b/x/f: { content: new }";
    killed_anywhere(&Case { start: World::new, items, paths: &["a", "a/b", "a/b/x", "a/b/x/f"] });
}

#[test]
fn a_run_killed_while_it_replaces_a_file_by_a_directory_is_finished_by_the_next() {
    let start = || World::new().file("x", "old");
    let items = "- $W/x: { ensure: directory, mode: '0711', force: true }";
    killed_anywhere(&Case { start, items, paths: &["x"] });
}

#[test]
fn a_run_killed_while_it_removes_is_finished_by_the_next() {
    let start = || World::new().file("x", "old").link("l", "/nowhere").dir("d");
    let items = "- $W/x: { ensure: absent }\n- $W/l: { ensure: absent }\n- $W/d: { ensure: absent }";
    killed_anywhere(&Case { start, items, paths: &["x", "l", "d"] });
}

#[test]
fn a_run_killed_while_it_removes_a_tree_is_finished_by_the_next() {
    let start =
        || World::new().file("x/a/b", "old").file("x/c", "old").link("x/l", "../out").file("out/f", "kept");
    let items = "- $W/x: { ensure: absent, force: true }";
    killed_anywhere(&Case { start, items, paths: &["x", "out", "out/f"] });
}

/// The place of the first call after another that has all of these parts.
#[track_caller]
fn after(trace: &Trace, start: usize, parts: &[&str]) -> usize {
    let fits = |call: &Syscall| call.succeeded() && parts.iter().all(|part| call.text.contains(part));
    let found = trace.calls.iter().skip(start).position(fits);
    start + found.unwrap_or_else(|| panic!("no {parts:?} after call {start} of {:#?}", trace.calls))
}

#[test]
fn content_reaches_the_disk_before_its_name_and_the_name_before_the_end() {
    if !fits_strace() {
        return;
    }
    for world in [World::new(), World::new().file("x", "old")] {
        let world = world.files("- $W/x: { content: new }");
        let folder = world.fill("$W>");
        let trace = Trace::of(&world, &[]);
        trace.outcome.exits(0);
        let made = after(&trace, 0, &["open", &folder, ".ccm-", "O_CREAT", "O_EXCL", "0600"]);
        let written = after(&trace, made, &["write(", ".ccm-"]);
        let synced = after(&trace, written, &["fsync(", ".ccm-"]);
        let renamed = after(&trace, synced, &["rename", ".ccm-", "\"x\""]);
        after(&trace, renamed, &["fsync(", &folder]);
        let late = |call: &&Syscall| call.text.contains(".ccm-") && call.changes_files();
        let between: Vec<_> = trace.calls[synced + 1..renamed].iter().filter(late).collect();
        assert!(between.is_empty(), "changed after it was synced: {between:?}");
    }
}

#[test]
fn a_refresh_that_is_owed_reaches_the_disk_before_the_change_and_what_is_over_at_the_end() {
    if !fits_strace() {
        return;
    }
    let world = World::new().manifest(
        "- file: [{ $W/x: { content: new, $OWN, mode: '0644' } }]\n\
         - exec: [{ 'cat $W/x': { refresh_only: true, subscribe: [file#$W/x] } }]\n",
    );
    let trace = Trace::of(&world, &[]);
    trace.outcome.exits(0).counts([2, 0, 0, 0]);
    let (state, journal) = (format!("{}>", world.state().display()), "refreshes.jsonl>");
    let written = after(&trace, 0, &["write(", journal]);
    let synced = after(&trace, written, &["fdatasync(", journal]);
    let named = after(&trace, synced, &["fsync(", &state]);
    let unlocked = after(&trace, synced, &["close(", journal]);
    assert!(named < unlocked, "the name of the journal was not brought to disk with it");
    let renamed = after(&trace, unlocked, &["rename", ".ccm-", "\"x\""]);
    let runs = after(&trace, renamed, &["execve(", "cat"]);
    let gone = after(&trace, runs, &["unlink", "refreshes.jsonl"]);
    after(&trace, gone, &["fsync(", &state]);
}

#[test]
fn files_that_come_together_reach_the_disk_before_their_names_and_their_names_before_what_follows() {
    if !fits_strace() {
        return;
    }
    let world = World::new().dir("d").files(MANY);
    let site = std::fs::read_to_string(world.base().join("site.yaml")).unwrap();
    let world = world.manifest(&format!("{site}- exec: {{ 'cat $W/e': {{}} }}\n"));
    let trace = Trace::of(&world, &[]);
    trace.outcome.exits(0).counts([7, 0, 0, 0]);
    let mut last = 0;
    for name in ["a", "b", "c", "d", "e", "f"] {
        let renamed = after(&trace, last, &["rename", ".ccm-", &format!("\"{name}\"")]);
        let temporary = trace.calls[renamed].text.split('"').nth(1).unwrap();
        let write = |call: &Syscall| call.name() == "write" && call.text.contains(temporary);
        let written = trace.calls.iter().rposition(write).unwrap();
        let syncs = |call: &Syscall| {
            call.succeeded() && (call.name() == "syncfs" || call.syncs() && call.text.contains(temporary))
        };
        assert!(trace.calls[written..renamed].iter().any(syncs), "{name} was not brought to disk");
        last = renamed;
    }
    let runs = after(&trace, last, &["execve(", "cat"]);
    for (name, folder) in [("d", "$W/d>"), ("f", "$W>")] {
        let renamed = after(&trace, 0, &["rename", ".ccm-", &format!("\"{name}\"")]);
        let synced = after(&trace, renamed, &["fsync(", &world.fill(folder)]);
        assert!(synced < runs, "{folder} was brought to disk only after it was read");
    }
}

#[test]
fn what_was_made_for_later_turns_is_gone_when_the_run_stops_before_them() {
    let items = format!("{MANY}\n- $W/g: {{ content: new }}")
        .replace("b: { content: new }", "b: { content: new, owner: nobody-knows }");
    let world = World::new().dir("d").files(&items);
    let site = std::fs::read_to_string(world.base().join("site.yaml")).unwrap();
    let site = site.replace('\n', "\n    ");
    let world = world.manifest(&format!("ccm:\n  fail_on_error: true\n  resources:\n    {site}"));
    world.apply().exits(1).says("nobody-knows").says("5 resources were not attempted");
    assert_eq!(world.tree().names(), ["a", "d"]);
}

#[test]
fn a_directory_reaches_the_disk_with_its_attributes_before_its_name() {
    if !fits_strace() {
        return;
    }
    let world = World::new().files("- $W/a/x: { ensure: directory, mode: '0711' }");
    let trace = Trace::of(&world, &[]);
    trace.outcome.exits(0);
    let folder = world.fill("$W>");
    let made = after(&trace, 0, &["mkdir", &folder, ".ccm-", "0700"]);
    let synced = after(&trace, made, &["fsync(", ".ccm-"]);
    let renamed = after(&trace, synced, &["rename", ".ccm-", "\"a\""]);
    after(&trace, renamed, &["fsync(", &folder]);
}

/// A manifest with something of everything.
fn everything() -> World {
    World::new()
        .beside("data", "source")
        .file("changed", "old")
        .file("mode", "kept")
        .mode("mode", 0o600)
        .file("file-to-directory", "old")
        .file("tree/a/b", "old")
        .link("link", "$W/mode")
        .files(
            "\
- $W/new: { content: x }
- $W/changed: { content: new }
- $W/mode:
- $W/copied: { source: data }
- $W/a/b: { ensure: directory, mode: '0755' }
- $W/a/b/c: { content: x }
- $W/file-to-directory: { ensure: directory, force: true, mode: '0755' }
- $W/tree: { ensure: absent, force: true }
- $W/link: { content: x }
- $W/gone: { ensure: absent }
- $W/secret: { content: x, sensitive: true, mode: '0600' }",
        )
}

#[test]
fn a_dry_run_makes_no_call_that_changes_anything() {
    if !fits_strace() {
        return;
    }
    let world = everything();
    let before = world.tree();
    for flags in [&["--noop"][..], &["--noop", "--json", "--diff"]] {
        let trace = Trace::of(&world, flags);
        assert_eq!(trace.outcome.exits(0).stdout.matches("Would have").count(), 10, "{}", trace.outcome);
        let changes = trace.changes(&world);
        assert!(changes.is_empty(), "{changes:#?}");
    }
    assert_eq!(world.tree(), before);
}

#[test]
fn the_second_run_makes_no_call_that_changes_anything() {
    if !fits_strace() {
        return;
    }
    let world = everything();
    let first = Trace::of(&world, &[]);
    first.outcome.exits(0).counts([10, 1, 0, 0]);
    assert!(first.changes(&world).len() > 10, "the trace sees changes");
    let before = world.tree();
    let second = Trace::of(&world, &[]);
    second.outcome.exits(0).counts([0, 11, 0, 0]);
    let changes = second.changes(&world);
    assert!(changes.is_empty(), "{changes:#?}");
    assert_eq!(world.tree(), before);
}
