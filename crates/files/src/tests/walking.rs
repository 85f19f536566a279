//! Which ways are gone, and which are refused.

use std::fs;

use super::*;
use crate::{Problem, error::LinkRisk};

fn problem(path: &Path, attributes: Attributes) -> Problem {
    put(path, attributes, "x").unwrap_err().problem
}

#[test]
fn a_link_of_ours_in_a_directory_of_ours_is_followed() {
    let scratch = Scratch::new();
    scratch.directory("real", 0, 0o755);
    scratch.directory("real/inner", 0, 0o755);
    for (link, target) in [
        ("absolute", scratch.at("real").to_str().unwrap().to_owned()),
        ("relative", "real".to_owned()),
        ("roundabout", "./real/inner/../../relative/inner/..".to_owned()),
        ("beyond_root", format!("../../../../../../..{}", scratch.at("real").display())),
    ] {
        scratch.link(link, &target);
        put(&scratch.at(link).join("f"), mine(0o600), link).unwrap();
        assert_eq!(fs::read_to_string(scratch.at("real/f")).unwrap(), link);
        assert_eq!(entry(&scratch.at(link).join("f")), entry(&scratch.at("real/f")));
    }
}

#[test]
fn a_link_that_others_could_have_made_is_not_followed() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("real", 0, 0o755);
    scratch.file("real/f", "untouched");
    let theirs = scratch.link("theirs", "real");
    own(&theirs, NOBODY);
    for (directory, uid, mode) in [
        ("bobs", BOB, 0o755),
        ("open", 0, 0o777),
        ("group", 0, 0o775),
        ("sticky", 0, 0o1777),
        ("mine", 0, 0o755),
    ] {
        scratch.directory(directory, uid, mode);
        scratch.link(&format!("{directory}/link"), scratch.at("real"));
        own(&scratch.link(&format!("{directory}/theirs"), scratch.at("real")), NOBODY);
        let ours = inspect(&scratch.at(directory).join("link/f"));
        assert_eq!(ours.is_ok(), ["sticky", "mine"].contains(&directory), "{directory}: {ours:?}");
        let error = inspect(&scratch.at(directory).join("theirs/f")).unwrap_err();
        assert!(
            matches!(error.problem, Problem::UnsafeLink { owner: Party { uid: NOBODY, .. }, .. }),
            "{error}"
        );
    }
    let error = put(&theirs.join("f"), of(0, 0o644), "x").unwrap_err();
    let Problem::UnsafeLink { link, target, owner: Party { uid: NOBODY, .. }, risk: LinkRisk::Owner } =
        &error.problem
    else {
        panic!("{error}")
    };
    assert_eq!((link.as_path(), target.as_path()), (theirs.as_path(), Path::new("real")));
    assert_eq!(fs::read_to_string(scratch.at("real/f")).unwrap(), "untouched");
}

#[test]
fn a_link_of_ours_that_a_stranger_could_have_moved_is_not_followed() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("real", 0, 0o755);
    scratch.directory("bobs", BOB, 0o755);
    scratch.directory("bobs/roots", 0, 0o755);
    scratch.link("bobs/roots/link", scratch.at("real"));
    let refused = problem(&scratch.at("bobs/roots/link/f"), of(BOB, 0o644));
    assert!(
        matches!(
            &refused,
            Problem::UnsafeLink { risk: LinkRisk::Below { owner: Party { uid: BOB, .. }, .. }, .. }
        ),
        "{refused}"
    );
}

#[test]
fn a_hard_link_to_a_link_of_roots_in_a_sticky_directory_is_not_followed() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("real", 0, 0o755);
    scratch.directory("sticky", 0, 0o1777);
    let link = scratch.link("link", scratch.at("real"));
    fs::hard_link(&link, scratch.at("sticky/planted")).unwrap();
    let refused = problem(&scratch.at("sticky/planted/f"), of(0, 0o644));
    assert!(matches!(&refused, Problem::UnsafeLink { risk: LinkRisk::HardLinked, .. }), "{refused}");
}

/// Each row: owner and mode of two nested directories, the wanted owner, and which of the two is at fault.
#[test]
fn only_the_owner_of_an_untrusted_directory_gets_files_below_it() {
    if !is_root() {
        return;
    }
    let rows = [
        ((0, 0o755), (0, 0o755), 0, None),
        ((0, 0o755), (0, 0o755), BOB, None),
        ((0, 0o2775), (0, 0o755), 0, None),
        ((0, 0o1777), (0, 0o755), 0, None),
        ((0, 0o1777), (BOB, 0o755), 0, Some("a/b")),
        ((0, 0o1777), (BOB, 0o700), BOB, None),
        ((BOB, 0o755), (BOB, 0o755), BOB, None),
        ((BOB, 0o755), (0, 0o755), 0, Some("a")),
        ((BOB, 0o755), (0, 0o755), BOB, None),
        ((BOB, 0o755), (BOB, 0o755), NOBODY, Some("a")),
        ((BOB, 0o755), (NOBODY, 0o755), BOB, Some("a/b")),
        ((BOB, 0o755), (NOBODY, 0o755), NOBODY, Some("a")),
        ((0, 0o777), (0, 0o755), 0, Some("a")),
        ((0, 0o755), (0, 0o777), 0, Some("a/b")),
        ((BOB, 0o755), (BOB, 0o777), BOB, Some("a/b")),
    ];
    for row in rows {
        let scratch = Scratch::new();
        let ((outer, outer_mode), (inner, inner_mode), wanted, fault) = row;
        scratch.directory("a", outer, outer_mode);
        scratch.directory("a/b", inner, inner_mode);
        let path = scratch.at("a/b/f");
        let result = put(&path, of(wanted, 0o640), "x");
        let found = match &result {
            Ok(()) => None,
            Err(error) => match &error.problem {
                Problem::UnsafeComponent { component, .. } | Problem::OpenToAll { component } => {
                    Some(component.clone())
                }
                _ => panic!("{row:?}: {error}"),
            },
        };
        assert_eq!(found, fault.map(|fault| scratch.at(fault)), "{row:?}");
        assert_eq!(path.exists(), fault.is_none(), "{row:?}");
        if fault.is_none() {
            assert_eq!(owner_and_mode(&path), (wanted, wanted, 0o640), "{row:?}");
        }
        assert!(inspect(&path).is_ok(), "{row:?}: looking is always allowed");
        super::super::remove(&path).unwrap();
    }
}

#[test]
fn a_loop_of_links_is_an_error_that_names_one() {
    let scratch = Scratch::new();
    scratch.link("a", "b");
    scratch.link("b", "a");
    let error = inspect(&scratch.at("a/f")).unwrap_err();
    assert!(matches!(error.problem, Problem::LinkLoop { .. }), "{error}");
}

#[test]
fn a_file_as_a_parent_is_an_error_and_not_absence() {
    let scratch = Scratch::new();
    let file = scratch.file("file", "");
    for path in [file.join("x"), file.join("x/y")] {
        let error = inspect(&path).unwrap_err();
        assert!(
            matches!(&error.problem, Problem::NotADirectory { component } if *component == file),
            "{error}"
        );
    }
}

#[test]
fn a_missing_parent_is_absence_to_the_eye_and_an_error_to_the_hand() {
    let scratch = Scratch::new();
    let path = scratch.at("no/such/file");
    assert_eq!(inspect(&path).unwrap(), None);
    let error = put(&path, mine(0o600), "").unwrap_err();
    assert!(
        matches!(&error.problem, Problem::ParentMissing { missing, nearest }
            if *missing == scratch.at("no") && *nearest == scratch.0),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("directory"), "{error}");
}

#[test]
fn a_link_to_nowhere_is_named() {
    let scratch = Scratch::new();
    scratch.link("link", "gone/too");
    assert_eq!(inspect(&scratch.at("link/f")).unwrap(), None);
    let error = put(&scratch.at("link/f"), mine(0o600), "").unwrap_err();
    assert!(
        matches!(&error.problem, Problem::DanglingLink { link, .. } if *link == scratch.at("link")),
        "{error}"
    );
}

#[test]
fn the_root_directory_is_never_managed() {
    let error = put(Path::new("/"), mine(0o600), "").unwrap_err();
    assert!(matches!(error.problem, Problem::Root), "{error}");
    let error = super::super::remove_tree(Path::new("/"), &mut never_stop).unwrap_err();
    assert!(matches!(error.problem, Problem::Root), "{error}");
}
