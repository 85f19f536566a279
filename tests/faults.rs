//! A machine that fails: the error names the resource and the path, the old state stands, and the exit code says so.

use std::fs;

use crate::support::{Item, NOBODY, Syscall, Trace, World, fits_strace, is_root, tampered};

/// A run that fails for this reason and leaves everything as it was.
#[track_caller]
fn fails(world: &World, wrapper: &[&str], message: &str) {
    let before = world.tree();
    let outcome = world.ccm(["apply", "site.yaml"]).under(wrapper.iter().copied()).run();
    outcome.exits(1).says(message).says("! file#").says(&world.fill("$W/")).says("site.yaml:");
    assert_eq!(world.tree(), before, "{outcome}");
    assert!(world.tree().leftovers().is_empty(), "{outcome}");
}

#[test]
fn no_space_left() {
    let Some(world) = World::new().tmpfs("m", "size=64k,mode=755") else { return };
    fs::write(world.path("m/x"), "old").unwrap();
    let world = world.beside("large", vec![b'x'; 1 << 20]).files("- $W/m/x: { source: large }");
    fails(&world, &[], "no space left on the file system of");
    let world = world.files("- $W/m/new: { source: large }");
    fails(&world, &[], "no space left on the file system of");
}

#[test]
fn no_inodes_left() {
    let Some(world) = World::new().tmpfs("m", "nr_inodes=3,mode=755") else { return };
    fs::write(world.path("m/x"), "old").unwrap();
    fs::write(world.path("m/y"), "old").unwrap();
    let world = world.files("- $W/m/x: { content: new }");
    fails(&world, &[], "no space left on the file system of");
    let world = world.files("- $W/m/d: { ensure: directory }");
    fails(&world, &[], "no space left on the file system of");
}

#[test]
fn a_path_that_is_too_long() {
    let long = "n".repeat(300);
    for properties in ["content: x", "ensure: directory", "ensure: absent"] {
        let world = World::new().files(&format!("- $W/{long}: {{ {properties} }}"));
        fails(&world, &[], "is too long for its file system");
    }
}

#[test]
fn a_loop_of_links() {
    for properties in ["content: x", "ensure: directory", "ensure: absent"] {
        let world =
            World::new().link("a", "b").link("b", "a").files(&format!("- $W/a/x: {{ {properties} }}"));
        fails(&world, &[], "too many symbolic links");
    }
}

#[test]
fn a_file_where_a_directory_should_be() {
    for properties in ["content: x", "ensure: directory", "ensure: absent"] {
        let world = World::new().file("f", "kept").files(&format!("- $W/f/x: {{ {properties} }}"));
        fails(&world, &[], "is not a directory");
    }
}

#[test]
fn an_unprivileged_user_without_the_right() {
    if !is_root() {
        return;
    }
    for properties in ["content: new", "ensure: absent", "ensure: directory, force: true", "mode: '0600'"] {
        let item = format!("- $W/x: {{ {properties} }}").replace('}', ", owner: '65534', group: '65534' }");
        let world = World::new().file("x", "kept").files(&item);
        let before = world.tree();
        let outcome = world.ccm(["apply", "site.yaml"]).uid(NOBODY).run();
        outcome.exits(1).says("permission denied at").says(&world.fill("! file#$W/x"));
        assert_eq!(world.tree(), before, "{outcome}");
    }
}

#[test]
fn no_descriptors_left() {
    for limit in 4..16 {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let world = World::new().file("x", "old").files("- $W/x: { content: new }");
        let outcome = world.ccm(["apply", "site.yaml"]).under(["/bin/sh", "-c", &script, "sh"]).run();
        let content = world.read("x");
        match outcome.code {
            0 => assert_eq!(content, "new", "{outcome}"),
            1 => assert!(
                content == "old" && outcome.stdout.contains("ulimit -n"),
                "{limit}: {content}\n{outcome}"
            ),
            // Without descriptors for signals, the lock or the manifest nothing is attempted. A dynamic loader that cannot
            // open libraries is not the program's.
            2 | 127 => assert_eq!(content, "old", "{outcome}"),
            _ => panic!("{limit}\n{outcome}"),
        }
        assert!(world.tree().leftovers().is_empty(), "{outcome}");
    }
}

/// The calls of a run that change something in the managed part or bring it to disk.
fn calls(world: &World) -> Vec<Syscall> {
    let Trace { outcome, mut calls } = Trace::of(world, &[]);
    outcome.exits(0);
    calls.retain(|call| call.succeeded() && (call.changes_files() || call.syncs()));
    calls.retain(|call| call.is_below(&world.path("")));
    calls
}

#[test]
fn whichever_call_fails_the_resource_fails_with_the_old_or_the_new_state() {
    if !fits_strace() {
        return;
    }
    let cases: [(fn() -> World, &str); 4] = [
        (World::new, "- $W/x: { content: new }"),
        (|| World::new().file("x", "old").mode("x", 0o600), "- $W/x: { content: new }"),
        (World::new, "- $W/x: { ensure: directory, mode: '0711' }"),
        (|| World::new().file("x", "old"), "- $W/x: { ensure: absent }"),
    ];
    for (start, item) in cases {
        let reference = start().files(item);
        let old = Item::at(&reference.path("x"));
        let faults = calls(&reference);
        let new = Item::at(&reference.path("x"));
        assert!(!faults.is_empty());
        let looks = |item: Option<Item>| item.map(|item| Item { inode: 0, ..item });
        for (fault, error) in
            faults.iter().flat_map(|fault| ["EIO", "ENOSPC", "EDQUOT"].map(|error| (fault, error)))
        {
            let world = start().files(item);
            let outcome = tampered(&world, fault, &format!("error={error}"));
            let told = format!("{error} from {fault:?}\n{outcome}");
            assert_eq!(outcome.code, 1, "{told}");
            assert!(outcome.stdout.contains(&world.fill("! file#$W/x")), "{told}");
            let is = looks(Item::at(&world.path("x")));
            assert!(is == looks(old.clone()) || is == looks(new.clone()), "{is:?}\n{told}");
            assert!(world.tree().leftovers().is_empty(), "{told}");
            world.apply().exits(0);
            assert_eq!(looks(Item::at(&world.path("x"))), looks(new.clone()), "the next run, {told}");
        }
    }
}

/// The first call of a run with these parts fails, and everything is as it was.
#[track_caller]
fn refuses(start: fn() -> World, name: &str, part: &str, error: &str, message: &str) {
    let item = "- $W/x: { content: new }";
    let faults = calls(&start().files(item));
    let fault = faults.iter().find(|fault| fault.name() == name && fault.text.contains(part)).expect(name);
    let world = start().files(item);
    let before = world.tree();
    let outcome = tampered(&world, fault, &format!("error={error}"));
    outcome.exits(1).says(message).says(&world.fill("\"$W/x\"")).says("site.yaml:3:");
    assert_eq!(world.tree(), before, "{outcome}");
}

#[test]
fn a_disk_that_fails_to_sync() {
    if !fits_strace() {
        return;
    }
    for start in [World::new, || World::new().file("x", "old")] {
        refuses(start, "fsync", ".ccm-", "EIO", "could not be brought to disk");
    }
}

#[test]
fn a_group_of_files_whose_sync_fails_is_not_published_by_it() {
    if !fits_strace() {
        return;
    }
    let items: Vec<String> = (0..8).map(|number| format!("- $W/x{number}: {{ content: new }}\n")).collect();
    let world = World::on_disk().file("x3", "old").files(&items.concat());
    let log = world.base().join("log");
    let failing =
        ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,syncfs", "-e", "inject=syncfs:error=EIO", "-o"];
    let outcome =
        world.ccm(["apply", "site.yaml"]).under(failing.into_iter().chain([log.to_str().unwrap()])).run();
    outcome.exits(0).counts([8, 0, 0, 0]);
    // Each was brought to disk by itself then, as it is where a machine too busy for it syncs no group at all.
    let log = fs::read_to_string(log).unwrap();
    let synced = log.lines().filter(|line| line.contains("fsync(") && line.contains("/.ccm-")).count();
    assert!(synced >= 8, "{synced}\n{log}");
}

#[test]
fn a_quota_that_is_used_up() {
    if !fits_strace() {
        return;
    }
    for start in [World::new, || World::new().file("x", "old")] {
        refuses(start, "write", ".ccm-", "EDQUOT", "the disk quota on the file system of");
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end() {
    let content = "x".repeat(100_000);
    let world = World::new().file("x", "old").manifest(&format!(
        "\
- file: [{{ $W/x: {{ content: '{content}', $OWN, mode: '0644' }} }}]
- exec: [{{ ignored: {{ command: \"sh -c 'grep SigIgn: /proc/self/status > $W/signals'\" }} }}]
"
    ));
    let limited = ["/bin/sh", "-c", "ulimit -f 20; exec \"$0\" \"$@\""];
    let outcome = world.ccm(["apply", "site.yaml"]).under(limited).run();
    outcome.exits(1).says("too large").says("ulimit -f").counts([1, 0, 1, 0]);
    assert_eq!(world.read("x"), "old");
    assert_eq!(world.tree().names(), ["signals", "x"], "no temporary file is left");
    // A command is ended by the signal like any other program.
    let ignored = u64::from_str_radix(world.read("signals").split_whitespace().last().unwrap(), 16).unwrap();
    assert_eq!(ignored & (1 << (rustix::process::Signal::XFSZ.as_raw() - 1)), 0, "{ignored:x}");
}

/// Whatever the limit, a lack of memory is one line and an exit status.
#[test]
fn lack_of_memory_is_reported_in_one_line() {
    let limited = |limit: &str| {
        let world = World::new().files("- $W/a: { content: x, mode: '0644' }\n");
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let outcome = world.ccm(["apply", "site.yaml"]).under(["/bin/sh", "-c", &script]).run();
        (outcome, world.path("a").exists())
    };
    // A small stack is no obstacle.
    let (outcome, is_applied) = limited("-s 64");
    outcome.exits(0);
    assert!(is_applied);
    let mut reported = 0;
    for megabytes in (20..600).step_by(20) {
        let (outcome, _) = limited(&format!("-v {}", megabytes * 1024));
        // Below a certain limit, the system does not even load the program.
        match outcome.code {
            0 => break,
            1 | 2 if !outcome.stderr.is_empty() => {
                assert_eq!(outcome.stderr.lines().count(), 1, "{megabytes} MB: {outcome}");
                let is_reason = |reason: &&str| outcome.stderr.contains(reason);
                let reasons = ["not enough memory", "cannot start a thread"];
                assert!(reasons.iter().any(is_reason), "{megabytes} MB: {outcome}");
                reported += 1;
            }
            _ => assert!(
                reported == 0 && !outcome.stderr.contains("memory allocation"),
                "{megabytes} MB: {outcome}"
            ),
        }
    }
    assert!(reported > 0);
}
