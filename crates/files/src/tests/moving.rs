//! Directories that are moved.

use std::fs;

use super::*;
use crate::{Moved, Problem, move_directory};

#[test]
fn only_a_directory_of_its_owner_is_moved() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    give(&scratch.file("file", ""), BOB);
    for (name, uid) in [("bobs", BOB), ("nobodys", NOBODY)] {
        scratch.directory(name, uid, 0o755);
        scratch.file(&format!("{name}/f"), "");
    }
    let moved = |name: &str| move_directory(&scratch.at(name), &scratch.at("new/place"), BOB);
    let refused = |name: &str| {
        let problem = moved(name).unwrap_err().problem;
        assert!(!scratch.at("new").exists(), "{problem}");
        problem
    };
    let problem = refused("file");
    assert!(matches!(&problem, Problem::NotADirectory { component } if *component == scratch.at("file")));
    let problem = refused("nobodys");
    assert!(matches!(&problem, Problem::Foreign { owner: NOBODY, at } if *at == scratch.at("nobodys")));
    let problem = refused("missing");
    assert!(matches!(&problem, Problem::Changed { at } if *at == scratch.at("missing")));
    assert_eq!(moved("bobs").unwrap(), Moved::Yes);
    assert!(fs::exists(scratch.at("new/place/f")).unwrap() && !scratch.at("bobs").exists());
}
