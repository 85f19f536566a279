//! Removing files and trees.

use std::{ffi::OsStr, fs};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use super::*;
use crate::{
    Intent, Problem, check, remove,
    remove::{REREADS, enter_on_device, tree},
    remove_tree, walk,
};

#[test]
fn files_links_and_empty_directories_are_removed() {
    let scratch = Scratch::new();
    let target = scratch.file("target", "");
    for path in [scratch.file("f", ""), scratch.link("l", &target), scratch.directory("d", 0, 0o755)] {
        remove(&path).unwrap();
        assert_eq!(inspect(&path).unwrap(), None);
        remove(&path).unwrap();
    }
    remove(&scratch.at("no/such")).unwrap();
    assert!(target.exists());
}

#[test]
fn a_directory_with_something_in_it_stays_without_force() {
    let scratch = Scratch::new();
    let path = scratch.directory("d", 0, 0o755);
    scratch.file("d/f", "");
    let error = remove(&path).unwrap_err();
    assert!(matches!(error.problem, Problem::NotEmpty { .. }), "{error}");
    assert!(error.hint().unwrap().contains("remove its entries first"));
    remove_tree(&path, &mut never_stop).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_tree_goes_without_what_its_links_point_to() {
    let scratch = Scratch::new();
    scratch.directory("outside", 0, 0o755);
    scratch.file("outside/f", "");
    fs::create_dir_all(scratch.at("tree/a/b/c")).unwrap();
    fs::create_dir_all(scratch.at("tree/d")).unwrap();
    for name in ["tree/f", "tree/a/f", "tree/a/b/c/f", "tree/d/f"] {
        scratch.file(name, "");
    }
    scratch.link("tree/a/out", scratch.at("outside"));
    scratch.link("tree/d/file", scratch.at("outside/f"));
    let link = scratch.link("to_tree", "tree");
    remove_tree(&link, &mut never_stop).unwrap();
    assert!(!link.exists() && scratch.at("tree/a/b/c/f").exists());
    remove_tree(&scratch.at("tree"), &mut never_stop).unwrap();
    assert!(!scratch.at("tree").exists() && scratch.at("outside/f").exists());
}

#[test]
fn a_tree_may_be_deeper_than_there_are_descriptors() {
    let scratch = Scratch::in_memory();
    let mut here = openat(CWD, &scratch.0, OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..5_000 {
        mkdirat(&here, "deep", Mode::RWXU).unwrap();
        here = openat(&here, "deep", OFlags::PATH, Mode::empty()).unwrap();
    }
    remove_tree(&scratch.at("deep"), &mut never_stop).unwrap();
    assert!(!scratch.at("deep").exists());
}

#[test]
fn a_tree_is_not_followed_into_another_file_system() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("outside", 0, 0o755);
    scratch.file("outside/f", "");
    scratch.directory("tree", 0, 0o755);
    let mount = Mount::tmpfs(scratch.directory("tree/tmpfs", 0, 0o755), "size=64k,mode=755");
    fs::write(mount.0.join("f"), "").unwrap();
    assert!(check(&mount.0, &Intent::RemoveTree).is_err());
    for path in [&scratch.at("tree"), &mount.0] {
        let error = remove_tree(path, &mut never_stop).unwrap_err();
        assert!(matches!(&error.problem, Problem::OtherFileSystem { at } if *at == mount.0), "{error}");
    }
    assert!(mount.0.join("f").exists());
    drop(mount);
    // A bind mount is the same file system under another name, and as little meant to be emptied.
    let bind = Mount::bind(&scratch.at("outside"), scratch.at("tree/tmpfs"));
    for path in [&scratch.at("tree"), &bind.0] {
        let error = remove_tree(path, &mut never_stop).unwrap_err();
        assert!(matches!(&error.problem, Problem::OtherFileSystem { at } if *at == bind.0), "{error}");
    }
    assert!(scratch.at("outside/f").exists());
}

#[test]
fn removal_stops_when_told_to() {
    let scratch = Scratch::new();
    scratch.directory("d", 0, 0o755);
    (0..10).for_each(|number| drop(scratch.file(&format!("d/{number}"), "")));
    // All are looked at before the first goes.
    let mut left = 10 + 5;
    let error = remove_tree(&scratch.at("d"), &mut || {
        left -= 1;
        if left == 0 { Err(CopyInterrupted) } else { Ok(()) }
    })
    .unwrap_err();
    assert!(error.is_stopped(), "{error}");
    assert_eq!(fs::read_dir(scratch.at("d")).unwrap().count(), 6);
}

#[test]
fn a_directory_swapped_for_a_link_while_its_tree_is_removed_is_not_entered() {
    let scratch = Scratch::new();
    scratch.directory("outside", 0, 0o755);
    let treasure = scratch.file("outside/f", "");
    fs::create_dir_all(scratch.at("tree/inner/a")).unwrap();
    scratch.file("tree/inner/f", "");
    scratch.file("tree/inner/g", "");
    let swapped = scratch.at("tree/inner/a");
    let removed = remove_tree(&scratch.at("tree"), &mut || {
        // The names are being read: one file is gone already. The directory is among the names, before or after.
        let is_under_way = fs::read_dir(scratch.at("tree/inner")).unwrap().count() < 3;
        if is_under_way && !swapped.is_symlink() {
            fs::rename(&swapped, scratch.at("aside")).unwrap();
            symlink(scratch.at("outside"), &swapped).unwrap();
        }
        Ok(())
    });
    assert!(treasure.exists());
    assert!(removed.is_ok() && !scratch.at("tree").exists(), "the link itself goes: {removed:?}");
}

#[test]
fn a_directory_moved_while_its_tree_is_removed_does_not_lead_the_way_out() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.at("tree/a")).unwrap();
    fs::create_dir_all(scratch.at("tree/b")).unwrap();
    let treasures = ["a", "b"].map(|name| {
        scratch.file(&format!("tree/{name}/f"), "");
        scratch.file(&format!("tree/{name}/g"), "");
        fs::create_dir_all(scratch.at("outside").join(name)).unwrap();
        scratch.file(&format!("outside/{name}/treasure"), "")
    });
    let mut moved = false;
    let error = remove_tree(&scratch.at("tree"), &mut || {
        // Whichever of the two is emptied first is carried off with the removal inside it.
        for name in ["a", "b"] {
            let inside = scratch.at("tree").join(name);
            if !moved && inside.exists() && fs::read_dir(&inside).unwrap().count() == 1 {
                fs::rename(&inside, scratch.at("outside/carried")).unwrap();
                moved = true;
            }
        }
        Ok(())
    });
    assert!(moved && treasures.iter().all(|treasure| treasure.exists()), "{error:?}");
    assert!(matches!(error.unwrap_err().problem, Problem::Changed { .. }));
}

#[test]
fn a_directory_that_others_keep_filling_is_read_again_so_many_times() {
    for (fillings, is_emptied) in [(REREADS, true), (REREADS + 1, false)] {
        let scratch = Scratch::in_memory();
        let fill = |number: usize| {
            let inner = scratch.at("tree/a").join(number.to_string());
            fs::create_dir_all(&inner).unwrap();
            fs::write(inner.join("f"), "").unwrap();
        };
        fill(0);
        let (mut ticks, mut filled) = (0, 0);
        let (place, name) = walk::reach(&scratch.at("tree")).unwrap();
        let removed = tree(&place, &name, &mut || {
            ticks += 1;
            // The outer directory, the one in it, its file: the next is put beside what was read already.
            if ticks % 3 == 0 && filled < fillings {
                filled += 1;
                fill(filled);
            }
            Ok(())
        });
        assert_eq!((removed.is_ok(), filled), (is_emptied, fillings), "{removed:?}");
        assert_eq!(scratch.at("tree").exists(), !is_emptied);
        if let Err(problem) = removed {
            assert!(
                matches!(&problem, Problem::NotEmpty { at, .. } if *at == scratch.at("tree/a")),
                "{problem}"
            );
        }
    }
}

#[test]
fn another_device_is_told_by_its_number_where_the_kernel_does_not_refuse_it() {
    let scratch = Scratch::new();
    scratch.directory("d", 0, 0o755);
    let open = |path: &Path| openat(CWD, path, OFlags::PATH, Mode::empty()).unwrap();
    let enter = |from: &Path, name: &str| {
        enter_on_device(&open(from), OsStr::new(name), OFlags::RDONLY | OFlags::DIRECTORY)
    };
    assert!(enter(&scratch.0, "d").is_ok());
    assert_eq!(enter(Path::new("/"), "proc").unwrap_err(), rustix::io::Errno::XDEV);
}
