//! Trees that are made in private and appear at their place.

use std::{fs, io::Write, os::unix::fs::MetadataExt, path::Path};

use super::{Mount, NOBODY, Scratch, is_root, mine, of, owner_and_mode, rerun_as, run};
use crate::{FileError, Problem, Staging};

/// A tree of `bin/app` and `readme`, made but not published.
fn tree(target: &Path) -> Result<Staging, FileError> {
    let mut staging = Staging::new(target, mine(0o755))?;
    staging.make_directory(Path::new("bin"))?;
    staging.make_file(Path::new("bin/app"))?.write_all(b"new").unwrap();
    staging.make_file(Path::new("readme"))?.write_all(b"new").unwrap();
    staging.make_symlink(Path::new("link"), Path::new("bin/app"), mine(0o755))?;
    staging.make_hard_link(Path::new("again"), Path::new("readme"))?;
    staging.dress_directory(Path::new("bin"), mine(0o750))?;
    Ok(staging)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_tree_is_private_until_it_appears_whole() {
    let scratch = Scratch::new();
    let target = scratch.at("a/target");
    let staging = tree(&target).unwrap();
    assert!(!target.exists());
    assert_eq!(owner_and_mode(&staging.path()).2, 0o700);
    staging.survey(mine(0).uid, &|_| false).unwrap();
    staging.publish(mine(0o711), None, &|_| false).unwrap();
    assert_eq!(names(&target), ["again", "bin", "link", "readme"]);
    assert_eq!((owner_and_mode(&target).2, owner_and_mode(&target.join("bin")).2), (0o711, 0o750));
    assert_eq!(names(&scratch.at("a")), ["target"]);
}

#[test]
fn a_tree_that_is_not_published_leaves_nothing() {
    let scratch = Scratch::new();
    let target = scratch.directory("target", mine(0).uid, 0o755);
    drop(tree(&target).unwrap());
    assert!(names(&target).is_empty());
    drop(tree(&scratch.at("other")).unwrap());
    assert_eq!(names(&scratch.0), ["target"]);
}

#[test]
fn a_file_system_that_is_full_is_named_by_where_the_tree_is_to_appear() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let mount = Mount::tmpfs(scratch.directory("m", 0, 0o755), "nr_inodes=4,mode=755");
    let mut staging = Staging::new(&mount.0, mine(0o755)).unwrap();
    let mut made = (0..4).map(|number| staging.make_directory(Path::new(&number.to_string())));
    let error = made.find_map(Result::err).unwrap();
    assert!(matches!(&error.problem, Problem::NoSpace { at, .. } if *at == mount.0), "{error}");
    let error = staging.make_file(Path::new("missing/f")).unwrap_err();
    assert!(error.to_string().contains(mount.0.join("missing/f").to_str().unwrap()), "{error}");
}

#[test]
fn a_tree_is_merged_into_what_is_there() {
    let scratch = Scratch::new();
    let target = scratch.directory("target", mine(0).uid, 0o755);
    fs::create_dir(target.join("bin")).unwrap();
    fs::write(target.join("bin/app"), "old").unwrap();
    fs::write(target.join("bin/mine"), "mine").unwrap();
    let inode = fs::metadata(target.join("bin")).unwrap().ino();
    let staging = tree(&target).unwrap();
    assert_eq!(fs::read(target.join("bin/app")).unwrap(), b"old");
    staging.publish(mine(0o755), Some(Path::new("bin/app")), &|_| false).unwrap();
    assert_eq!(names(&target), ["again", "bin", "link", "readme"]);
    assert_eq!(
        (fs::read(target.join("bin/app")).unwrap(), names(&target.join("bin"))),
        (b"new".to_vec(), vec!["app".to_owned(), "mine".to_owned()])
    );
    assert_eq!(fs::metadata(target.join("bin")).unwrap().ino(), inode, "a directory that is there stays");
}

#[test]
fn what_is_in_the_way_is_found_before_anything_is_moved() {
    let scratch = Scratch::new();
    let target = scratch.directory("target", mine(0).uid, 0o755);
    let elsewhere = scratch.directory("elsewhere", mine(0).uid, 0o755);
    for (prepare, is_it) in [
        (
            (|target: &Path, _: &Path| fs::create_dir(target.join("readme")).unwrap()) as fn(&Path, &Path),
            (|problem: &Problem| matches!(problem, Problem::IsADirectory { .. })) as fn(&Problem) -> bool,
        ),
        (
            |target, _| fs::write(target.join("bin"), "file").unwrap(),
            |problem| matches!(problem, Problem::NotADirectory { .. }),
        ),
        (
            |target, elsewhere| std::os::unix::fs::symlink(elsewhere, target.join("bin")).unwrap(),
            |problem| matches!(problem, Problem::LinkInTheWay { .. }),
        ),
    ] {
        prepare(&target, &elsewhere);
        let before = names(&target);
        let staging = tree(&target).unwrap();
        let error = staging.survey(mine(0).uid, &|_| false).unwrap_err();
        assert!(is_it(&error.problem), "{error}");
        drop(staging);
        assert_eq!(names(&target), before);
        assert!(names(&elsewhere).is_empty());
        let _ = fs::remove_dir(target.join("readme"));
        let _ = fs::remove_file(target.join("bin"));
    }
}

#[test]
fn what_yields_makes_room_for_a_directory() {
    let scratch = Scratch::new();
    let target = scratch.directory("target", mine(0).uid, 0o755);
    fs::write(target.join("bin"), "a file").unwrap();
    let staging = tree(&target).unwrap();
    let yields = |path: &Path| path == Path::new("bin");
    staging.survey(mine(0).uid, &yields).unwrap();
    staging.publish(mine(0o755), None, &yields).unwrap();
    assert_eq!(fs::read(target.join("bin/app")).unwrap(), b"new");
    assert_eq!(names(&target), ["again", "bin", "link", "readme"]);
}

#[test]
fn nothing_is_made_for_root_in_the_hands_of_others() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let target = scratch.directory("target", NOBODY, 0o755);
    assert!(matches!(
        Staging::new(&target, mine(0o755)).err().unwrap().problem,
        Problem::UnsafeComponent { .. }
    ));
    let inner = scratch.directory("outer", mine(0).uid, 0o755).join("bin");
    fs::create_dir(&inner).unwrap();
    super::own(&inner, NOBODY);
    let staging = tree(&scratch.at("outer")).unwrap();
    let error = staging.survey(mine(0).uid, &|_| false).unwrap_err();
    assert!(matches!(error.problem, Problem::UnsafeComponent { .. }), "{error}");
    assert!(Staging::new(&target, of(NOBODY, 0o755)).is_ok());
}

#[test]
fn nobody_else_can_look_into_a_tree_in_the_making() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let target = scratch.directory("target", NOBODY, 0o755);
    let mut staging = Staging::new(&target, of(NOBODY, 0o755)).unwrap();
    staging.make_directory(Path::new("bin")).unwrap();
    staging.dress_directory(Path::new("bin"), of(NOBODY, 0o755)).unwrap();
    run(&mut rerun_as(NOBODY, "staging::a_stranger_is_shut_out", &staging.path()));
}

#[test]
#[ignore = "run by `nobody_else_can_look_into_a_tree_in_the_making` as another user"]
fn a_stranger_is_shut_out() {
    let path = super::path_to_work_on();
    for path in [path.clone(), path.join("bin")] {
        assert_eq!(fs::read_dir(path).unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    }
}
