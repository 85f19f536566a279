//! A machine that refuses: the error says what and where, and the old state stands. Where reading tells beforehand,
//! the check says the same.

use std::fs;

use super::*;
use crate::{
    FileError, Intent, Parents, Problem, check, error::Flag, make_directory, open_regular, remove,
    remove_tree, replace_file_with_directory,
};

/// What is under a path before and after a refused operation.
fn refused(path: &Path, work: impl FnOnce() -> Result<(), FileError>) -> FileError {
    let before = (inspect(path).ok(), fs::read(path).ok());
    let error = work().unwrap_err();
    assert_eq!((inspect(path).ok(), fs::read(path).ok()), before, "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

/// Refused like [`refused`], and predicted in the same words.
fn predicted(path: &Path, intent: &Intent, work: impl FnOnce() -> Result<(), FileError>) -> FileError {
    let before = check(path, intent).unwrap_err();
    let error = refused(path, work);
    assert_eq!(before.to_string(), error.to_string());
    error
}

#[test]
fn a_full_file_system_leaves_the_old_file() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let mount = Mount::tmpfs(scratch.directory("m", 0, 0o755), "size=64k,mode=755");
    let path = mount.0.join("f");
    put(&path, mine(0o600), "old").unwrap();
    let error = refused(&path, || put(&path, mine(0o600), &"x".repeat(1 << 20)));
    assert!(matches!(&error.problem, Problem::NoSpace { at, .. } if *at == mount.0), "{error}");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), rustix::io::Errno::NOSPC.to_string());
    assert_eq!(fs::read_dir(&mount.0).unwrap().count(), 1);
    put(&path, mine(0o600), "and there is room again").unwrap();
}

#[test]
fn a_file_system_without_inodes_is_full_too() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let mount = Mount::tmpfs(scratch.directory("m", 0, 0o755), "nr_inodes=2,mode=755");
    let path = mount.0.join("f");
    put(&path, mine(0o600), "old").unwrap();
    let error = refused(&path, || put(&path, mine(0o600), "new"));
    assert!(matches!(error.problem, Problem::NoSpace { .. }), "{error}");
    let path = mount.0.join("d");
    let error = refused(&path, || make_directory(&path, mine(0o755), Parents::Expect));
    assert!(matches!(error.problem, Problem::NoSpace { .. }), "{error}");
}

#[test]
fn nothing_is_changed_on_a_read_only_file_system() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let mount = Mount::tmpfs(scratch.directory("m", 0, 0o755), "size=64k,mode=755");
    let path = mount.0.join("f");
    put(&path, mine(0o600), "old").unwrap();
    let directory = mount.0.join("d");
    make_directory(&directory, mine(0o700), Parents::Expect).unwrap();
    mount.make_read_only();
    let (all, new) = (mine(0o755), mount.0.join("new"));
    let is_read_only = |error: FileError| {
        assert!(matches!(&error.problem, Problem::ReadOnly { at, .. } if *at == mount.0), "{error}");
        assert!(error.hint().unwrap().contains("remount"));
    };
    is_read_only(predicted(&path, &Intent::Write(all), || put(&path, all, "new")));
    is_read_only(predicted(&new, &Intent::Write(all), || put(&new, all, "new")));
    is_read_only(predicted(&path, &Intent::SetAttributes(all), || set(&path, &entry(&path), all)));
    is_read_only(predicted(&path, &Intent::Remove, || remove(&path)));
    is_read_only(predicted(&directory, &Intent::RemoveTree, || remove_tree(&directory, &mut never_stop)));
    for (path, parents) in
        [(&new, Parents::Expect), (&directory, Parents::Expect), (&new.join("x"), Parents::Make)]
    {
        is_read_only(predicted(path, &Intent::MakeDirectory(all, parents), || {
            make_directory(path, all, parents)
        }));
    }
    is_read_only(predicted(&path, &Intent::MakeDirectory(all, Parents::Expect), || {
        replace_file_with_directory(&path, all)
    }));
}

/// An attribute taken away again at the end, so that the scratch directory can be removed.
struct Chattr(PathBuf, char);

impl Chattr {
    fn set(path: &Path, letter: char) -> Option<Chattr> {
        let set = Command::new("chattr").arg(format!("+{letter}")).arg(path).output();
        set.is_ok_and(|output| output.status.success()).then(|| Chattr(path.to_owned(), letter))
    }
}

impl Drop for Chattr {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg(format!("-{}", self.1)).arg(&self.0).status();
    }
}

#[test]
fn a_protected_file_is_named_as_such() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    let all = mine(0o600);
    for (letter, wanted) in [('i', Flag::Immutable), ('a', Flag::AppendOnly)] {
        let Some(_attribute) = Chattr::set(&path, letter) else {
            return skip("no file attributes here");
        };
        let is_protected = |error: FileError| {
            assert!(
                matches!(&error.problem, Problem::Protected { at, flag, .. } if *at == path && *flag == wanted),
                "{error}"
            );
            assert!(error.hint().unwrap().contains(&format!("chattr -{letter}")));
        };
        is_protected(predicted(&path, &Intent::Write(all), || put(&path, all, "new")));
        is_protected(predicted(&path, &Intent::Remove, || remove(&path)));
        is_protected(predicted(&path, &Intent::SetAttributes(all), || set(&path, &entry(&path), all)));
        is_protected(predicted(&path, &Intent::MakeDirectory(all, Parents::Expect), || {
            replace_file_with_directory(&path, all)
        }));
    }
    assert_eq!(scratch.temporaries(), Vec::<PathBuf>::new());
}

#[test]
fn a_protected_directory_is_named_as_such() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.directory("d", 0, 0o755);
    let Some(_attribute) = Chattr::set(&directory, 'i') else {
        return skip("no file attributes here");
    };
    let path = directory.join("f");
    let error = predicted(&path, &Intent::Write(mine(0o600)), || put(&path, mine(0o600), "new"));
    assert!(matches!(&error.problem, Problem::Protected { at, .. } if *at == directory), "{error}");
}

#[test]
fn a_name_that_is_too_long_is_an_error() {
    let scratch = Scratch::new();
    for path in [scratch.at(&"n".repeat(256)), scratch.at(&"n".repeat(256)).join("f")] {
        let error = inspect(&path).unwrap_err();
        assert!(matches!(error.problem, Problem::NameTooLong { .. }), "{error}");
        let error = put(&path, mine(0o600), "").unwrap_err();
        assert!(matches!(error.problem, Problem::NameTooLong { .. }), "{error}");
    }
    put(&scratch.at(&"n".repeat(255)), mine(0o600), "fits").unwrap();
}

#[test]
fn a_mounted_file_cannot_be_replaced_or_removed() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("source", "old");
    let path = scratch.file("f", "");
    let _mount = Mount::bind(&source, path.clone());
    for error in [
        predicted(&path, &Intent::Write(mine(0o600)), || put(&path, mine(0o600), "new")),
        predicted(&path, &Intent::Remove, || remove(&path)),
        predicted(&path, &Intent::RemoveTree, || remove_tree(&path, &mut never_stop)),
        predicted(&path, &Intent::MakeDirectory(mine(0o700), Parents::Expect), || {
            replace_file_with_directory(&path, mine(0o700))
        }),
    ] {
        assert!(matches!(error.problem, Problem::Busy { .. }), "{error}");
        assert!(error.hint().unwrap().contains("mount"));
    }
}

#[test]
fn files_are_given_to_groups_of_which_one_is_a_member() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("own", NOBODY, 0o755);
    let path = scratch.at("own/f");
    as_user(NOBODY, &[NOBODY, BOB, 23_456], || {
        for gid in [NOBODY, BOB, 23_456] {
            let given = Attributes { gid, ..mine(0o644) };
            check(&path, &Intent::Write(given)).unwrap();
            put(&path, given, "text").unwrap();
            assert_eq!(owner_and_mode(&path), (NOBODY, gid, 0o644));
        }
        let given = Attributes { gid: 34_567, ..mine(0o644) };
        let error = predicted(&path, &Intent::Write(given), || put(&path, given, "text"));
        assert!(matches!(error.problem, Problem::Denied { .. }), "{error}");
    });
}

#[test]
fn what_strangers_have_in_a_sticky_directory_is_removed_by_root_alone() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let tree = scratch.directory("own", NOBODY, 0o755).join("tree");
    scratch.directory("own/tree", NOBODY, 0o755);
    scratch.directory("own/tree/sticky", BOB, 0o1777);
    let theirs = scratch.file("own/tree/sticky/f", "text");
    give(&theirs, BOB);
    let remove = || remove_tree(&tree, &mut never_stop);
    let error = as_user(NOBODY, &[NOBODY], || predicted(&tree, &Intent::RemoveTree, remove));
    assert!(matches!(&error.problem, Problem::Denied { at, .. } if *at == theirs), "{error}");
    check(&tree, &Intent::RemoveTree).unwrap();
    remove().unwrap();
    assert!(!tree.exists());
}

#[test]
fn users_without_privileges_are_told_what_they_may_not() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.file("roots", "old");
    fs::set_permissions(scratch.file("secret", ""), fs::Permissions::from_mode(0o600)).unwrap();
    scratch.directory("sticky", 0, 0o1777);
    scratch.file("sticky/roots", "old");
    scratch.directory("own", NOBODY, 0o755);
    give(&scratch.file("own/f", "old"), NOBODY);
    run(&mut rerun_as(NOBODY, "faults::act_without_privileges", &scratch.0));
}

#[test]
#[ignore = "run by `users_without_privileges_are_told_what_they_may_not` as another user"]
fn act_without_privileges() {
    let base = path_to_work_on();
    let own = base.join("own/f");
    let is_denied = |error: FileError, at: &Path| {
        assert!(matches!(&error.problem, Problem::Denied { at: named, .. } if named == at), "{error}");
        assert_eq!(error.hint().as_deref(), Some("run it as root"));
    };
    let roots = base.join("roots");
    is_denied(predicted(&roots, &Intent::Write(mine(0o644)), || put(&roots, mine(0o644), "")), &base);
    is_denied(predicted(&roots, &Intent::Remove, || remove(&roots)), &base);
    is_denied(
        predicted(&roots, &Intent::SetAttributes(mine(0o644)), || set(&roots, &entry(&roots), mine(0o644))),
        &roots,
    );
    let secret = base.join("secret");
    is_denied(open_regular(&secret).unwrap_err(), &secret);
    let sticky = base.join("sticky/roots");
    is_denied(predicted(&sticky, &Intent::Write(mine(0o644)), || put(&sticky, mine(0o644), "")), &sticky);
    is_denied(predicted(&sticky, &Intent::Remove, || remove(&sticky)), &sticky);
    for given in [Attributes { uid: BOB, ..mine(0o644) }, Attributes { gid: BOB, ..mine(0o644) }] {
        is_denied(predicted(&own, &Intent::Write(given), || put(&own, given, "")), &own);
        is_denied(predicted(&own, &Intent::SetAttributes(given), || set(&own, &entry(&own), given)), &own);
    }
    let deep = base.join("own/a/b");
    let given = Attributes { uid: BOB, ..mine(0o755) };
    is_denied(
        predicted(&deep, &Intent::MakeDirectory(given, Parents::Make), || {
            make_directory(&deep, given, Parents::Make)
        }),
        &deep,
    );
    put(&own, mine(0o400), "new").unwrap();
    put(&base.join("sticky/own"), mine(0o000), "new").unwrap();
    set(&base.join("sticky/own"), &entry(&base.join("sticky/own")), mine(0o200)).unwrap();
    make_directory(&base.join("own/a/b"), mine(0o700), Parents::Make).unwrap();
    remove_tree(&base.join("own/a"), &mut never_stop).unwrap();
}
