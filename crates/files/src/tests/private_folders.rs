//! Folders for what the program keeps for itself.

use std::io::Read;

use super::*;
use crate::{PrivateFolder, Problem};

#[test]
fn a_directory_in_the_place_of_a_file_is_named() {
    let scratch = Scratch::new();
    let folder = PrivateFolder::make(&scratch.at("p")).unwrap();
    let directory = scratch.directory("p/d", mine(0).uid, 0o755);
    let error = folder.open_file("d").unwrap_err();
    assert!(matches!(&error.problem, Problem::IsADirectory { at } if *at == directory), "{error}");
    assert_eq!(error.path, directory);
}

#[test]
fn an_owner_gets_back_what_a_umask_took_from_files_of_his_own_and_from_nothing_else() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.directory("p", NOBODY, 0o700);
    for (name, uid) in [("own", NOBODY), ("bobs", BOB)] {
        let file = scratch.file(&format!("p/{name}"), "text");
        give(&file, uid);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    }
    scratch.directory("p/d", NOBODY, 0o000);
    as_user(NOBODY, &[NOBODY], || {
        let folder = PrivateFolder::open(&path).unwrap().unwrap();
        let mut content = String::new();
        folder.open_file("own").unwrap().unwrap().read_to_string(&mut content).unwrap();
        assert_eq!(content, "text");
        for name in ["bobs", "d"] {
            let error = folder.open_file(name).unwrap_err();
            assert!(matches!(&error.problem, Problem::Denied { at, .. } if *at == path), "{error}");
        }
    });
    assert_eq!(["own", "bobs", "d"].map(|name| owner_and_mode(&path.join(name)).2), [0o600, 0, 0]);
}
