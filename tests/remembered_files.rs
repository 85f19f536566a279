//! Files that cannot have changed are not read again.

use std::{fs, os::unix::fs::MetadataExt, time::SystemTime};

use crate::support::{Trace, World, fits_strace, skip};

/// Larger than what is read without a thought, and of a size that no other file has.
const SIZE: usize = (1 << 20) + 77;

/// A large file that is as it should be, old enough to be remembered, and not remembered yet.
fn large_file() -> World {
    let text = "x".repeat(SIZE);
    // Nothing is remembered of files in memory.
    let world = World::on_disk().beside("source", &text).file("f", &text).files("- $W/f: { source: source }");
    world.apply().exits(0);
    let changed = fs::metadata(world.path("f")).unwrap().ctime();
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    while now() <= u64::try_from(changed).unwrap() + 3 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // On a slow machine it was old enough before.
    let _ = fs::remove_file(world.state().join("digests"));
    world
}

/// How many bytes were read of large files.
fn bytes_read(world: &World, flags: &[&str]) -> usize {
    let trace = Trace::of(world, flags);
    trace.outcome.exits(0).counts([0, 1, 0, 0]);
    let result = |text: &str| text.rsplit(" = ").next()?.trim().parse::<usize>().ok();
    let is_large = |text: &str| text.contains("/w/f>") || text.contains("/source>");
    trace
        .calls
        .iter()
        .filter(|call| call.name() == "read" && is_large(&call.text))
        .filter_map(|call| result(&call.text))
        .sum()
}

#[test]
fn an_unchanged_file_and_its_source_are_read_once() {
    if !fits_strace() {
        return;
    }
    let world = large_file();
    assert_eq!(bytes_read(&world, &[]), 2 * SIZE);
    if !world.state().join("digests").exists() {
        skip("the file system is none whose times tell every change");
        return;
    }
    assert_eq!(bytes_read(&world, &[]), 0);
    assert_eq!(bytes_read(&world, &["--noop"]), 0);
    assert_eq!(bytes_read(&world, &["--verify"]), 2 * SIZE, "--verify reads everything");

    // Damage costs time.
    let memory = world.state().join("digests");
    let mut bytes = fs::read(&memory).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    fs::write(&memory, &bytes).unwrap();
    assert_eq!(bytes_read(&world, &[]), 2 * SIZE);
    assert_eq!(bytes_read(&world, &[]), 0, "it was written anew");
    fs::remove_file(&memory).unwrap();
    fs::create_dir(&memory).unwrap();
    assert_eq!(bytes_read(&world, &[]), 2 * SIZE);
}

#[test]
fn api_saves_digests_of_unchanged_files() {
    let world = large_file();
    let request = world.fill(
        r#"{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "file",
            "properties": {"name": "$W/f", "source": "$B/source",
                           "owner": "$UID", "group": "$GID", "mode": "0644"}}"#,
    );
    let request = request.replace("$B", &world.base().display().to_string());
    world.apply().exits(0).counts([0, 1, 0, 0]);
    let digests = world.state().join("digests");
    if !digests.exists() {
        skip("the file system has no change times that can be trusted");
        return;
    }
    fs::remove_file(&digests).unwrap();
    let answer = world.ccm(["ensure", "api", "pipe"]).input(request).run().exits(0).json();
    assert_eq!(answer["state"]["changed"], false, "{answer}");
    assert!(digests.exists());
}

#[test]
fn a_remembered_file_that_somebody_changes_is_put_right() {
    let world = large_file();
    world.apply().exits(0).counts([0, 1, 0, 0]);
    let before = fs::metadata(world.path("f")).unwrap().modified().unwrap();
    let mut text = fs::read(world.path("f")).unwrap();
    text[SIZE / 2] = b'y';
    fs::write(world.path("f"), text).unwrap();
    fs::File::options().write(true).open(world.path("f")).unwrap().set_modified(before).unwrap();
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("f"), "x".repeat(SIZE));
    // The source is remembered too.
    fs::write(world.base().join("source"), "y".repeat(SIZE)).unwrap();
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("f"), "y".repeat(SIZE));
}
