//! Directories: made, adopted, put in the place of files.

use std::fs;

use super::*;
use crate::{FileKind, Intent, Parents, Problem, check, make_directory, replace_file_with_directory};

#[test]
fn a_directory_is_made_with_its_attributes() {
    let scratch = Scratch::new();
    for mode in [0o700, 0o755, 0o1777, 0o2775, 0o000] {
        let path = scratch.at(&format!("{mode:o}"));
        make_directory(&path, mine(mode), Parents::Expect).unwrap();
        assert_eq!(owner_and_mode(&path), (mine(0).uid, mine(0).gid, mode));
        make_directory(&path, mine(0o711), Parents::Expect).unwrap();
        assert_eq!(owner_and_mode(&path).2, 0o711);
    }
    assert_eq!(scratch.temporaries(), Vec::<PathBuf>::new());
}

#[test]
fn a_directory_in_a_set_group_id_directory_has_just_the_wanted_mode() {
    let scratch = Scratch::new();
    scratch.directory("shared", 0, 0o2775);
    make_directory(&scratch.at("shared/d"), mine(0o750), Parents::Expect).unwrap();
    assert_eq!(owner_and_mode(&scratch.at("shared/d")).2, 0o750);
}

#[test]
fn a_directory_that_something_is_mounted_on_is_changed_like_any_other() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let mount = Mount::tmpfs(scratch.directory("m", 0, 0o755), "size=64k,mode=755");
    check(&mount.0, &Intent::MakeDirectory(of(BOB, 0o711), Parents::Expect)).unwrap();
    make_directory(&mount.0, of(BOB, 0o711), Parents::Expect).unwrap();
    assert_eq!(owner_and_mode(&mount.0), (BOB, BOB, 0o711));
}

#[test]
fn missing_parents_are_made_when_asked_for() {
    let scratch = Scratch::new();
    let path = scratch.at("a/b/c");
    let error = make_directory(&path, mine(0o700), Parents::Expect).unwrap_err();
    assert!(
        matches!(&error.problem, Problem::ParentMissing { missing, .. } if *missing == scratch.at("a")),
        "{error}"
    );
    assert!(!scratch.at("a").exists());
    make_directory(&path, mine(0o700), Parents::Make).unwrap();
    assert_eq!(["a", "a/b", "a/b/c"].map(|path| owner_and_mode(&scratch.at(path)).2), [0o755, 0o755, 0o700]);
    scratch.link("dangling", "nowhere");
    let error = make_directory(&scratch.at("dangling/d"), mine(0o700), Parents::Make).unwrap_err();
    assert!(matches!(error.problem, Problem::DanglingLink { .. }), "{error}");
}

#[test]
fn parents_in_a_strangers_directory_belong_to_the_stranger() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("bobs", BOB, 0o755);
    make_directory(&scratch.at("bobs/a/b"), of(BOB, 0o700), Parents::Make).unwrap();
    assert_eq!(owner_and_mode(&scratch.at("bobs/a")), (BOB, BOB, 0o755));
    make_directory(&scratch.at("trusted/b"), of(BOB, 0o700), Parents::Make).unwrap();
    assert_eq!(owner_and_mode(&scratch.at("trusted")), (0, 0, 0o755));
    let error = make_directory(&scratch.at("bobs/c/d"), of(0, 0o700), Parents::Make).unwrap_err();
    assert!(
        matches!(error.problem, Problem::UnsafeComponent { owner: Party { uid: BOB, .. }, .. }),
        "{error}"
    );
    assert!(!scratch.at("bobs/c").exists());
}

#[test]
fn a_file_gives_way_to_a_directory_and_a_link_does_not() {
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    let error = make_directory(&path, mine(0o755), Parents::Expect).unwrap_err();
    assert!(matches!(error.problem, Problem::NotADirectory { .. }), "{error}");
    replace_file_with_directory(&path, mine(0o750)).unwrap();
    assert_eq!((entry(&path).kind, owner_and_mode(&path).2), (FileKind::Directory, 0o750));
    assert_eq!(scratch.temporaries(), Vec::<PathBuf>::new());
    let link = scratch.link("link", "f");
    for error in [
        replace_file_with_directory(&link, mine(0o750)).unwrap_err(),
        make_directory(&link, mine(0o750), Parents::Expect).unwrap_err(),
    ] {
        assert!(
            matches!(&error.problem, Problem::LinkInTheWay { link: named, .. } if *named == link),
            "{error}"
        );
    }
    fs::write(path.join("inside"), "").unwrap();
    let error = replace_file_with_directory(&path, mine(0o750)).unwrap_err();
    assert!(matches!(error.problem, Problem::IsADirectory { .. }), "{error}");
    assert!(path.join("inside").exists());
}
