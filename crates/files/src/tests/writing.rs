//! Whole files: what they look like while, and after, they are put in place.

use std::{
    fs, io,
    io::Read,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use super::*;
use crate::{FileError, FileKind, Problem, Refusal, TempFile};

#[test]
fn a_file_gets_its_content_owner_and_mode() {
    let scratch = Scratch::new();
    let path = scratch.at("f");
    put(&path, mine(0o640), "one").unwrap();
    put(&path, mine(0o4755), "two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(owner_and_mode(&path), (mine(0).uid, mine(0).gid, 0o4755));
    assert_eq!(scratch.temporaries(), Vec::<PathBuf>::new());
}

#[test]
fn a_link_is_replaced_and_not_written_through() {
    let scratch = Scratch::new();
    let target = scratch.file("target", "untouched");
    let link = scratch.link("link", &target);
    put(&link, mine(0o600), "new").unwrap();
    assert_eq!(
        (entry(&link).kind, fs::read_to_string(&target).unwrap()),
        (FileKind::File, "untouched".to_owned())
    );
}

#[test]
fn a_directory_in_the_way_stays() {
    let scratch = Scratch::new();
    let path = scratch.directory("d", 0, 0o755);
    let error = put(&path, mine(0o600), "").unwrap_err();
    assert!(matches!(error.problem, Problem::IsADirectory { .. }), "{error}");
    let late = scratch.at("late");
    let error = replace(&late, mine(0o600), |_| fs::create_dir(&late)).unwrap_err();
    assert!(matches!(error.problem, Problem::IsADirectory { .. }), "{error}");
    assert_eq!((entry(&late).kind, scratch.temporaries()), (FileKind::Directory, vec![]));
}

#[test]
fn content_that_cannot_be_produced_changes_nothing() {
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    let before = entry(&path);
    let error = replace(&path, mine(0o600), |file| {
        file.write_all(b"half")?;
        Err(io::Error::other("the source is gone"))
    })
    .unwrap_err();
    assert!(error.to_string().ends_with("the source is gone"), "{error}");
    let error = replace(&path, mine(0o600), |_| Err(io::Error::other(CopyInterrupted))).unwrap_err();
    assert!(error.is_stopped(), "{error}");
    assert_eq!((entry(&path), scratch.temporaries()), (before, vec![]));
}

#[test]
fn a_link_to_the_file_that_was_validated_does_not_pass_for_it() {
    let scratch = Scratch::new();
    let (path, aside) = (scratch.at("f"), scratch.at("aside"));
    let draft = TempFile::new(&path, mine(0).uid).unwrap();
    let published = draft.publish_validated::<()>(mine(0o600), |candidate| {
        fs::rename(&candidate.path, &aside).unwrap();
        symlink(&aside, &candidate.path).unwrap();
        Ok(())
    });
    assert!(matches!(published, Err(Refusal::File(FileError { problem: Problem::Altered, .. }))));
    assert_eq!((inspect(&path).unwrap(), scratch.temporaries()), (None, vec![]));
}

#[test]
fn an_unfinished_file_is_its_owners_alone_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let inner = rerun("writing::unfinished_files_are_private");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(std::env::current_exe().unwrap()).args(inner.get_args());
        run(&mut command);
    }
}

#[test]
#[ignore = "run by `an_unfinished_file_is_its_owners_alone_whatever_the_umask` in a process of its own"]
fn unfinished_files_are_private() {
    let scratch = Scratch::new();
    let path = scratch.at("f");
    replace(&path, mine(0o666), |file| {
        file.write_all(b"secret")?;
        let [temporary] = scratch.temporaries().try_into().unwrap();
        assert_eq!(owner_and_mode(&temporary).2 & 0o177, 0);
        Ok(())
    })
    .unwrap();
    assert_eq!(owner_and_mode(&path).2, 0o666);
    super::super::make_directory(&scratch.at("a/b"), mine(0o2777), super::super::Parents::Make).unwrap();
    assert_eq!([owner_and_mode(&scratch.at("a")).2, owner_and_mode(&scratch.at("a/b")).2], [0o755, 0o2777]);
}

#[test]
fn a_reader_never_sees_anything_but_a_whole_file() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::in_memory();
    let path = scratch.at("f");
    // Each version: a letter, how often, and for whom.
    let versions = [('a', 10, 0, 0o600), ('b', 100_000, BOB, 0o644), ('c', 5_000, NOBODY, 0o640)];
    let write = |number: usize| {
        let (letter, count, uid, mode) = versions[number % versions.len()];
        put(&path, of(uid, mode), &letter.to_string().repeat(count)).unwrap();
    };
    write(0);
    let done = AtomicBool::new(false);
    let reads = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            let mut content = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let mut file = fs::File::open(&path).unwrap();
                content.clear();
                file.read_to_end(&mut content).unwrap();
                let found = file.metadata().unwrap();
                let version = versions.iter().find(|(letter, ..)| content.first() == Some(&(*letter as u8)));
                let (letter, count, uid, mode) = version.unwrap();
                assert_eq!((content.len(), found.uid(), found.mode() & 0o7777), (*count, *uid, *mode));
                assert!(content.iter().all(|byte| *byte == *letter as u8));
                reads += 1;
            }
            reads
        });
        (1..10_000).for_each(write);
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(reads > 100, "the reader hardly ran: {reads}");
}

fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1024];
    let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

fn set_xattr(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).is_ok()
}

#[test]
fn extended_attributes_stay_and_capabilities_do_not() {
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    if !set_xattr(&path, "user.note", b"kept") {
        return skip("no extended attributes here");
    }
    // CAP_NET_RAW, permitted and effective.
    let capability = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let has_capability = set_xattr(&path, "security.capability", &capability);
    let is_labelled = set_xattr(&path, "security.selinux", b"system_u:object_r:etc_t:s0\0");
    put(&path, mine(0o600), "new").unwrap();
    assert_eq!(xattr(&path, "user.note").as_deref(), Some(b"kept".as_slice()));
    if is_root() {
        assert!(has_capability);
        assert_eq!(xattr(&path, "security.capability"), None);
    }
    if is_labelled {
        assert!(xattr(&path, "security.selinux").unwrap().starts_with(b"system_u:object_r:etc_t"));
    }
    if is_root() {
        put(&path, of(NOBODY, 0o600), "given away").unwrap();
        assert_eq!(xattr(&path, "user.note").as_deref(), Some(b"kept".as_slice()), "it was ours");
        put(&path, mine(0o600), "ours again").unwrap();
        assert_eq!(xattr(&path, "user.note"), None, "it was a stranger's");
    }
}

const ACL: &str = "system.posix_acl_access";

/// `user::rw-, user:BOB:rw-, group::r--, mask::rw-, other::r--`
fn access_list_for_bob() -> Vec<u8> {
    let entry = |tag: u16, rights: u16, id: u32| {
        [tag.to_le_bytes().as_slice(), &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    [
        2_u32.to_le_bytes().to_vec(),
        entry(1, 6, none),
        entry(2, 6, BOB),
        entry(4, 4, none),
        entry(0x10, 6, none),
        entry(0x20, 4, none),
    ]
    .concat()
}

#[test]
fn an_access_list_stays_within_the_wanted_mode() {
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    if !set_xattr(&path, ACL, &access_list_for_bob()) {
        return skip("no access lists here");
    }
    put(&path, mine(0o640), "new").unwrap();
    let list = xattr(&path, ACL).unwrap();
    let rights = |index: usize| list[4 + index * 8 + 2];
    // Owner, bob, group, mask, others: bob's own entry stays, and the mask says what it is worth.
    assert_eq!([0, 1, 2, 3, 4].map(rights), [6, 6, 4, 4, 0]);
    assert_eq!(owner_and_mode(&path).2, 0o640);
}

#[test]
fn an_access_list_of_a_former_owner_goes_with_him() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    for name in ["replaced", "in_place"] {
        let path = scratch.file(name, "old");
        if !set_xattr(&path, ACL, &access_list_for_bob()) {
            return skip("no access lists here");
        }
        give(&path, BOB);
    }
    put(&scratch.at("replaced"), of(0, 0o660), "secret").unwrap();
    let path = scratch.at("in_place");
    set(&path, &entry(&path), of(0, 0o660)).unwrap();
    for name in ["replaced", "in_place"] {
        assert_eq!(xattr(&scratch.at(name), ACL), None, "{name}");
        assert_eq!(owner_and_mode(&scratch.at(name)), (0, 0, 0o660));
    }
}

#[test]
fn access_lists_of_a_directory_go_with_a_former_owner_who_is_not_ours_and_stay_otherwise() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let of_other_group = Attributes { uid: BOB, gid: 0, mode: 0o770 };
    let rows = [
        (BOB, of(0, 0o770), false),
        (BOB, of(NOBODY, 0o750), false),
        (BOB, of_other_group, true),
        (0, of(BOB, 0o770), true),
    ];
    for (number, (uid, wanted, stay)) in rows.into_iter().enumerate() {
        let path = scratch.directory(&number.to_string(), uid, 0o770);
        let lists = [ACL, "system.posix_acl_default"];
        if !lists.iter().all(|list| set_xattr(&path, list, &access_list_for_bob())) {
            return skip("no access lists here");
        }
        set(&path, &entry(&path), wanted).unwrap();
        for list in lists {
            assert_eq!(xattr(&path, list).is_some(), stay, "{list} of {uid}, for {wanted:?}");
        }
        assert_eq!(owner_and_mode(&path), (wanted.uid, wanted.gid, wanted.mode));
    }
}

#[test]
fn a_directory_does_not_hand_its_access_list_to_a_file_that_had_none() {
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    if !set_xattr(&scratch.0, "system.posix_acl_default", &access_list_for_bob()) {
        return skip("no access lists here");
    }
    put(&path, mine(0o660), "new").unwrap();
    assert_eq!(xattr(&path, ACL), None);
}

#[test]
fn attributes_are_set_in_place_or_on_a_copy() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let rows =
        [(0, 0o4755, 0, 0o755), (BOB, 0o777, 0, 0o600), (0, 0o600, BOB, 0o2664), (0, 0o000, NOBODY, 0o444)];
    for (number, (uid, mode, wanted_uid, wanted_mode)) in rows.into_iter().enumerate() {
        let file = scratch.file(&format!("f{number}"), "text");
        let directory = scratch.directory(&format!("d{number}"), uid, mode);
        give(&file, uid);
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        for path in [file, directory] {
            let before = entry(&path);
            set(&path, &before, of(wanted_uid, wanted_mode)).unwrap();
            assert_eq!(owner_and_mode(&path), (wanted_uid, wanted_uid, wanted_mode));
            let stays = before.kind == FileKind::Directory || uid == wanted_uid;
            assert_eq!(entry(&path).ino == before.ino, stays, "{before:?}");
        }
    }
}

#[test]
fn a_file_that_its_owner_may_not_read_is_changed_in_place_unless_a_writer_could_outlast_it() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let wanted = Attributes { uid: NOBODY, gid: BOB, mode: 0o640 };
    for (name, mode, is_changed) in [("private", 0o200, true), ("of_the_group", 0o220, false)] {
        let path = scratch.file(name, "text");
        give(&path, NOBODY);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = entry(&path);
        let done = as_user(NOBODY, &[BOB], || set(&path, &before, wanted));
        if is_changed {
            done.unwrap();
            assert_eq!(owner_and_mode(&path), (NOBODY, BOB, 0o640));
            assert_eq!(entry(&path).ino, before.ino);
        } else {
            let error = done.unwrap_err();
            assert!(matches!(&error.problem, Problem::Denied { at, .. } if *at == path), "{error}");
            assert_eq!(entry(&path), before);
        }
    }
}

#[test]
fn a_change_of_owner_that_fails_leaves_no_more_than_old_and_new_mode_both_allow() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.directory("d", NOBODY, 0o750);
    let before = entry(&path);
    let error = as_user(NOBODY, &[NOBODY], || set(&path, &before, of(BOB, 0o705))).unwrap_err();
    assert!(matches!(&error.problem, Problem::Denied { at, .. } if *at == path), "{error}");
    assert_eq!(owner_and_mode(&path), (NOBODY, NOBODY, 0o700));
}

#[test]
fn a_file_that_took_the_place_of_the_inspected_one_is_neither_copied_nor_given_away() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("theirs", BOB, 0o755);
    let (secret, path) = (scratch.file("theirs/secret", "root's"), scratch.at("theirs/x"));
    put(&path, of(BOB, 0o666), "bob's").unwrap();
    let before = entry(&path);
    // It is moved in whole, or a name of it is put there.
    fs::rename(&secret, &path).unwrap();
    let error = set(&path, &before, of(BOB, 0o640)).unwrap_err();
    assert!(matches!(error.problem, Problem::Changed { .. }), "{error}");
    fs::hard_link(&path, &secret).unwrap();
    let error = set(&path, &entry(&path), of(BOB, 0o640)).unwrap_err();
    assert!(matches!(error.problem, Problem::HardLinked { .. }), "{error}");
    assert_eq!((owner_and_mode(&path).0, fs::read_to_string(&path).unwrap()), (0, "root's".to_owned()));
    assert!(fs::read_dir(scratch.at("theirs")).unwrap().count() == 2, "nothing is left behind");
}

#[test]
fn attributes_are_set_on_what_was_inspected_only() {
    let scratch = Scratch::new();
    let path = scratch.file("f", "one");
    let before = entry(&path);
    put(&path, mine(0o644), "two").unwrap();
    let error = set(&path, &before, mine(0o600)).unwrap_err();
    assert!(matches!(error.problem, Problem::Changed { .. }), "{error}");
    fs::remove_file(&path).unwrap();
    let target = scratch.file("target", "");
    scratch.link("f", &target);
    let error = set(&path, &entry(&path), mine(0o600)).unwrap_err();
    assert!(
        matches!(&error.problem, Problem::LinkInTheWay { target: named, .. } if *named == target),
        "{error}"
    );
    assert_eq!(owner_and_mode(&target).2, 0o644);
}

#[test]
fn a_planted_hard_link_is_not_given_away() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let treasure = scratch.file("treasure", "");
    for (directory, uid, mode) in [("bobs", BOB, 0o755), ("sticky", 0, 0o1777), ("group", 0, 0o775)] {
        let path = scratch.directory(directory, uid, mode).join("f");
        fs::hard_link(&treasure, &path).unwrap();
        let error = set(&path, &entry(&path), of(BOB, 0o666)).unwrap_err();
        assert!(matches!(&error.problem, Problem::HardLinked { at, .. } if *at == path), "{error}");
    }
    let trusted = scratch.directory("trusted", 0, 0o755).join("f");
    fs::hard_link(&treasure, &trusted).unwrap();
    assert_eq!(owner_and_mode(&treasure), (0, 0, 0o644));
    set(&trusted, &entry(&trusted), of(0, 0o600)).unwrap();
    assert_eq!(owner_and_mode(&treasure), (0, 0, 0o600));
}
