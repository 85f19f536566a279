//! A check changes nothing and says what the deed would.

use std::fs;

use super::*;
use crate::{
    FileKind, InTheWay, Intent, Parents, check, make_directory, make_link, remove, remove_tree,
    replace_among_others, replace_file_with_directory,
};

/// Every intent on every kind of entry in every kind of directory: the check and the deed agree, in words.
#[test]
fn a_check_and_the_deed_agree() {
    if !is_root() {
        return;
    }
    let places =
        [(0, 0o755), (0, 0o775), (0, 0o1777), (0, 0o777), (BOB, 0o755), (BOB, 0o777), (NOBODY, 0o700)];
    let names = [
        "missing",
        "file",
        "directory",
        "full",
        "link",
        "fifo",
        "hard",
        "missing/deep",
        "file/below",
        "link/below",
    ];
    for (uid, mode) in places {
        for name in names {
            for wanted in [of(0, 0o640), of(BOB, 0o755)] {
                for intent in [
                    Intent::Write(wanted),
                    Intent::SetAttributes(wanted),
                    Intent::MakeDirectory(wanted, Parents::Make),
                    Intent::MakeDirectory(wanted, Parents::Expect),
                    Intent::MakeLink("elsewhere".into()),
                    Intent::Remove,
                    Intent::RemoveTree,
                ] {
                    let scratch = Scratch::in_memory();
                    furnish(&scratch, uid, mode);
                    let path = scratch.at("place").join(name);
                    let predicted = check(&path, &intent).map_err(|error| error.to_string());
                    let done = perform(&path, &intent);
                    assert_eq!(predicted, done, "{uid} {mode:o} {name} {intent:?}");
                }
            }
        }
    }
}

fn furnish(scratch: &Scratch, uid: u32, mode: u32) {
    let place = scratch.directory("place", uid, mode);
    scratch.file("place/file", "");
    scratch.directory("place/directory", 0, 0o700);
    scratch.directory("place/full", 0, 0o700);
    scratch.file("place/full/f", "");
    scratch.directory("target", 0, 0o755);
    scratch.link("place/link", "../target");
    fs::hard_link(scratch.file("other", ""), place.join("hard")).unwrap();
    let fifo = place.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
}

fn perform(path: &Path, intent: &Intent) -> Result<(), String> {
    let found = inspect(path).ok().flatten();
    let done = match intent.clone() {
        Intent::Write(wanted) => replace_among_others(path, wanted, |file| file.write_all(b"new")),
        Intent::SetAttributes(wanted) => match &found {
            Some(found) => set(path, found, wanted),
            // There is nothing to do it to: what a check says then is all there is.
            None => check(path, intent),
        },
        Intent::MakeDirectory(wanted, parents) => match found.map(|found| found.kind) {
            Some(FileKind::File | FileKind::Fifo) => replace_file_with_directory(path, wanted),
            _ => make_directory(path, wanted, parents),
        },
        Intent::MakeLink(target) => make_link(path, &target, InTheWay::Goes, &mut never_stop),
        Intent::Remove => remove(path),
        Intent::RemoveTree => remove_tree(path, &mut never_stop),
    };
    done.map_err(|error| error.to_string())
}
