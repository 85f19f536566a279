//! Files that somebody may have moved to a name to have them given away.

use super::*;
use crate::{Problem, refuse_planted};

/// Who has the directory and the file, what the file is to be, and whether that is refused.
#[test]
fn a_file_that_may_be_planted_is_opened_to_nobody_who_could_not_read_it() {
    if !is_root() {
        return;
    }
    let same = |mode| of(0, mode);
    let bobs = |mode| of(BOB, mode);
    let of_bobs_group = Attributes { gid: BOB, ..same(0o600) };
    let rows = [
        // Others may write to the directory.
        ((0, 0o775), same(0o600), same(0o644), true),
        ((0, 0o775), same(0o600), same(0o604), true),
        ((0, 0o775), same(0o600), same(0o733), false),
        ((0, 0o775), same(0o644), same(0o644), false),
        ((0, 0o775), same(0o644), same(0o600), false),
        ((0, 0o775), same(0o600), bobs(0o600), true),
        ((0, 0o775), same(0o600), of_bobs_group, true),
        // What its owner has in it is his.
        ((BOB, 0o755), bobs(0o600), bobs(0o644), false),
        ((BOB, 0o755), bobs(0o600), same(0o600), false),
        ((BOB, 0o755), same(0o600), same(0o644), true),
        ((BOB, 0o755), same(0o600), same(0o600), false),
        // Nobody moves what is ours in a sticky directory.
        ((0, 0o1777), same(0o600), same(0o644), false),
        ((0, 0o1777), bobs(0o600), same(0o600), true),
        // Nobody else writes there.
        ((0, 0o755), same(0o600), bobs(0o644), false),
    ];
    for ((uid, mode), found, wanted, is_refused) in rows {
        let scratch = Scratch::in_memory();
        let path = scratch.directory("place", uid, mode).join("f");
        judge(&scratch, &path, found, wanted, is_refused);
    }
    // A stranger could have moved the directory itself.
    let scratch = Scratch::in_memory();
    scratch.directory("bobs", BOB, 0o755);
    let path = scratch.directory("bobs/roots", 0, 0o755).join("f");
    judge(&scratch, &path, same(0o600), same(0o644), true);
}

fn judge(scratch: &Scratch, path: &Path, found: Attributes, wanted: Attributes, is_refused: bool) {
    scratch.file(path.strip_prefix(&scratch.0).unwrap().to_str().unwrap(), "secret");
    chown(path, Some(found.uid), Some(found.gid)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(found.mode)).unwrap();
    let judged = refuse_planted(path, &entry(path), wanted);
    let directory = owner_and_mode(path.parent().unwrap());
    assert_eq!(judged.is_err(), is_refused, "{found:?} to {wanted:?} in {directory:?}: {judged:?}");
    if let Err(error) = judged {
        assert!(matches!(&error.problem, Problem::Planted { at, .. } if at == path), "{error}");
    }
}
