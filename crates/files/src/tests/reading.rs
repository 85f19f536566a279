//! Looking at files and hashing them.

use std::{fs, io::Write, os::unix::net::UnixListener, time::Instant};

use super::*;
use crate::NoDigests;
use crate::{FileKind, Problem, digest, open_regular};

#[test]
fn every_kind_of_entry_is_told_apart_and_only_files_are_opened() {
    let scratch = Scratch::new();
    scratch.file("file", "text");
    scratch.directory("directory", 0, 0o755);
    scratch.link("link", "file");
    let _socket = UnixListener::bind(scratch.at("socket")).unwrap();
    let fifo = scratch.at("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    for (name, kind) in [
        ("file", FileKind::File),
        ("directory", FileKind::Directory),
        ("link", FileKind::Symlink { target: "file".into() }),
        ("socket", FileKind::Socket),
        ("fifo", FileKind::Fifo),
    ] {
        let path = scratch.at(name);
        assert_eq!(entry(&path).kind, kind);
        let (file, found) = open_regular(&path).unwrap().unwrap();
        assert_eq!((file.is_some(), found), (kind == FileKind::File, entry(&path)));
    }
    assert_eq!(entry(Path::new("/dev/null")).kind, FileKind::CharacterDevice);
    assert!(open_regular(&scratch.at("nothing")).unwrap().is_none());
}

#[test]
fn a_digest_is_that_of_the_content() {
    let scratch = Scratch::new();
    for (content, sha256) in [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (&"a".repeat(1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ] {
        let path = scratch.file("f", content);
        let found = digest(&path, None, &NoDigests, &mut never_stop).unwrap().unwrap();
        assert_eq!((found.sha256.as_deref(), found.entry), (Some(sha256), entry(&path)));
    }
    assert_eq!(digest(&scratch.0, None, &NoDigests, &mut never_stop).unwrap().unwrap().sha256, None);
}

#[test]
fn hashing_stops_when_told_to() {
    let scratch = Scratch::new();
    let path = scratch.file("f", &"x".repeat(1_000_000));
    let mut left = 3;
    let error = digest(&path, None, &NoDigests, &mut || {
        left -= 1;
        if left == 0 { Err(CopyInterrupted) } else { Ok(()) }
    })
    .unwrap_err();
    assert!(error.is_stopped() && left == 0, "{error}");
}

#[test]
fn what_may_not_be_seen_is_an_error_and_not_absence() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("closed", 0, 0o700);
    scratch.file("closed/f", "secret");
    run(&mut rerun_as(NOBODY, "reading::look_into_a_closed_directory", &scratch.at("closed/f")));
}

#[test]
#[ignore = "run by `what_may_not_be_seen_is_an_error_and_not_absence` as another user"]
fn look_into_a_closed_directory() {
    let path = path_to_work_on();
    for path in [path.clone(), path.with_file_name("missing")] {
        let error = inspect(&path).unwrap_err();
        assert!(
            matches!(&error.problem, Problem::Denied { at, .. } if at == path.parent().unwrap()),
            "{error}"
        );
    }
}

/// Not a test of correctness: prints what looking at a file four directories deep costs.
#[test]
#[ignore = "a measurement, for release builds"]
fn the_cost_of_looking() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.at("a")).unwrap();
    let paths: Vec<_> =
        (0..1000).map(|number| scratch.file(&format!("a/{number}"), &"x".repeat(400))).collect();
    let time = |what: &str, work: &dyn Fn(&Path)| {
        let start = Instant::now();
        for path in paths.iter().cycle().take(20_000) {
            work(path);
        }
        let _ = writeln!(std::io::stderr(), "{what}: {:?} per file", start.elapsed() / 20_000);
    };
    time("inspect", &|path| drop(inspect(path).unwrap()));
    time("digest", &|path| drop(digest(path, None, &NoDigests, &mut never_stop).unwrap()));
    time("walk", &|path| drop(super::super::walk::reach(path).unwrap()));
    time("check", &|path| super::super::check(path, &super::super::Intent::Write(mine(0o644))).unwrap());
}
