//! Files that are prepared together.

use std::fs;

use super::*;
use crate::{Batch, Problem};

#[test]
fn a_file_system_that_is_not_known_is_synced_file_by_file() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let mount = Mount::of_kind("ramfs", scratch.directory("m", 0, 0o755), "mode=755");
    let mut batch = Batch::default();
    for round in ["one", "two"] {
        let paths = ["a", "b"].map(|name| mount.0.join(name));
        for path in &paths {
            batch.prepare(path, mine(0o640), round.as_bytes(), round.to_owned()).unwrap();
        }
        batch.sync();
        for path in &paths {
            batch.turn(path).unwrap();
            batch.publish(path, mine(0o640), round).expect("it is prepared").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), round);
        }
        assert!(batch.is_empty());
    }
}

#[test]
fn a_directory_that_goes_while_its_files_are_prepared_is_said_to_have_changed() {
    let scratch = Scratch::new();
    let directory = scratch.directory("d", 0, 0o755);
    let mut batch = Batch::default();
    let mut prepare = |name| batch.prepare(&directory.join(name), mine(0o640), b"text", String::new());
    prepare("a").unwrap();
    fs::remove_dir_all(&directory).unwrap();
    let error = prepare("b").unwrap_err();
    assert!(matches!(&error.problem, Problem::Changed { at } if *at == directory), "{error}");
}
