//! Files that come one after the other and reach the disk together.

use std::fmt::Write;

use crate::support::{Syscall, Trace, World, fits_strace, tampered};

/// A hundred files on a disk, of which every second one is to change.
fn every_second_of_a_hundred() -> World {
    let mut items = String::new();
    let mut world = World::on_disk();
    for number in 0..100 {
        let name = format!("f{number:02}");
        let content = if number % 2 == 0 { "new" } else { "old" };
        let _ = writeln!(items, "- $W/{name}: {{ content: {content} }}");
        world = world.file(&name, "old");
    }
    world.files(items.trim_end())
}

#[test]
fn every_second_file_changed_makes_no_more_temporary_files_than_changes_and_one_group_sync() {
    if !fits_strace() {
        return;
    }
    let world = every_second_of_a_hundred();
    let trace = Trace::of(&world, &[]);
    trace.outcome.exits(0).counts([50, 50, 0, 0]);
    let makes =
        |call: &&Syscall| call.succeeded() && call.text.contains(".ccm-") && call.text.contains("O_EXCL");
    let made = trace.calls.iter().filter(makes).filter(|call| call.is_below(&world.path(""))).count();
    assert_eq!(made, 50, "temporary files for 50 changes");
    let named = trace.calls.iter().position(|call| {
        call.name().starts_with("rename") && call.text.contains(".ccm-") && call.is_below(&world.path(""))
    });
    let ahead = trace.calls[..named.expect("a new name")].iter().filter(makes);
    let ahead = ahead.filter(|call| call.is_below(&world.path(""))).count();
    assert!(ahead > 1, "files that follow each other are not made together");
    let group_syncs = trace.calls.iter().filter(|call| call.name() == "syncfs").count();
    // Where others have much to bring to disk, it does not wait for all of that, but syncs its own files one by one.
    let alone = trace.calls.iter().filter(|call| call.syncs() && call.text.contains("/.ccm-")).count();
    assert!(
        group_syncs == 1 || group_syncs == 0 && alone == made,
        "{group_syncs} group syncs, {alone} of single files"
    );
    assert!(world.tree().leftovers().is_empty());
    world.apply().exits(0).counts([0, 100, 0, 0]);
}

#[test]
fn a_directory_that_does_not_reach_the_disk_is_the_failure_of_a_file_in_it() {
    if !fits_strace() {
        return;
    }
    let start = || {
        let world = World::new().dir("a").dir("b").file("b/same", "same");
        let files = ["a/1", "a/2", "a/3", "b/1", "a/4", "b/2"];
        let items: String = files.iter().map(|name| format!("- $W/{name}: {{ content: new }}\n")).collect();
        world.files(&format!("{items}- $W/b/same: {{ content: same }}"))
    };
    let reference = start();
    let trace = Trace::of(&reference, &[]);
    trace.outcome.exits(0).counts([6, 1, 0, 0]);
    for folder in ["a", "b"] {
        let at = reference.fill(&format!("<$W/{folder}>"));
        let syncs: Vec<&Syscall> =
            trace.calls.iter().filter(|call| call.name() == "fsync" && call.text.contains(&at)).collect();
        assert!(!syncs.is_empty());
        for sync in syncs {
            let world = start();
            let outcome = tampered(&world, sync, "error=EIO");
            outcome.exits(1).counts([5, 1, 1, 0]);
            let failed = outcome.stdout.lines().find(|line| line.starts_with("! file#")).unwrap_or_default();
            assert!(failed.contains(&world.fill(&format!("$W/{folder}/"))), "{sync:?}\n{outcome}");
        }
    }
}
