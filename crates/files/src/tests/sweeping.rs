//! What killed runs leave behind.

use std::{ffi::OsStr, fs, io::Read, process::Stdio};

use super::*;
use crate::{is_temporary_name, sweep};

#[test]
fn only_names_of_the_right_shape_are_temporary() {
    for (name, expected) in [
        (".ccm-abcdefghij27.tmp", true),
        (".ccm-abcdefghij2.tmp", false),
        (".ccm-abcdefghij277.tmp", false),
        (".ccm-abcdefghij18.tmp", false),
        (".ccm-ABCDEFGHIJ27.tmp", false),
        ("ccm-abcdefghij27.tmp", false),
        (".ccm-abcdefghij27.tmp~", false),
        (".ccm-abcdefghij27.tmp.conf", true),
        (".ccm-abcdefghij27.tmp.c", true),
        (".ccm-abcdefghij27.tmp.", false),
        (".ccm-abcdefghij27.tmpconf", false),
    ] {
        assert_eq!(is_temporary_name(OsStr::new(name)), expected, "{name}");
    }
}

#[test]
fn a_killed_writers_file_is_swept_and_a_living_ones_is_not() {
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    let mut writer = rerun("sweeping::write_and_wait")
        .env("CCM_TEST_PATH", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The test runner's own first lines come before the mark that the file is being written.
    let mut output = writer.stdout.take().unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"<writing>") {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    assert_eq!((sweep(&scratch.0, &mut never_stop).unwrap(), scratch.temporaries().len()), (0, 1));
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(scratch.temporaries().len(), 1);
    assert_eq!((sweep(&scratch.0, &mut never_stop).unwrap(), scratch.temporaries().len()), (1, 0));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[test]
#[ignore = "run by `a_killed_writers_file_is_swept_and_a_living_ones_is_not`, and killed by it"]
fn write_and_wait() {
    let path = path_to_work_on();
    replace(&path, mine(0o600), |file| {
        file.write_all("x".repeat(100_000).as_bytes())?;
        let mut stdout = std::io::stdout();
        std::io::Write::write_all(&mut stdout, b"<writing>")?;
        std::io::Write::flush(&mut stdout)?;
        std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
    })
    .unwrap();
}

#[test]
fn directories_are_swept_with_their_content_and_the_rest_stays() {
    let scratch = Scratch::new();
    scratch.directory(".ccm-aaaaaaaaaaaa.tmp", 0, 0o700);
    scratch.file(".ccm-aaaaaaaaaaaa.tmp/f", "");
    let target = scratch.file("target", "");
    let link = scratch.link(".ccm-bbbbbbbbbbbb.tmp", &target);
    let other = scratch.file(".ccm-cccc.tmp", "");
    assert_eq!(sweep(&scratch.0, &mut never_stop).unwrap(), 1);
    assert!(link.is_symlink() && target.exists() && other.exists());
    assert_eq!(sweep(&scratch.at("no/such"), &mut never_stop).unwrap(), 0);
}

#[test]
fn only_what_is_ours_is_swept_where_others_can_write() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    // Who owns the folder, its mode, who made the thing in it, and whether it is swept.
    let cases = [
        (0, 0o755, NOBODY, true),
        (0, 0o1777, NOBODY, false),
        (0, 0o1777, 0, true),
        (NOBODY, 0o755, NOBODY, false),
        (NOBODY, 0o755, 0, true),
    ];
    for (number, (owner, mode, maker, is_swept)) in cases.into_iter().enumerate() {
        let folder = scratch.directory(&format!("d{number}"), owner, mode);
        let file = scratch.file(&format!("d{number}/.ccm-aaaaaaaaaaaa.tmp"), "");
        own(&file, maker);
        scratch.directory(&format!("d{number}/.ccm-bbbbbbbbbbbb.tmp"), maker, 0o700);
        let expected = if is_swept { 2 } else { 0 };
        assert_eq!(sweep(&folder, &mut never_stop).unwrap(), expected, "case {number}");
    }
}

#[test]
fn a_sweep_and_a_removal_can_be_stopped() {
    let scratch = Scratch::new();
    scratch.directory(".ccm-aaaaaaaaaaaa.tmp", 0, 0o700);
    for number in 0..100 {
        scratch.file(&format!(".ccm-aaaaaaaaaaaa.tmp/{number}"), "");
    }
    let mut steps = 0;
    let mut stop = || {
        steps += 1;
        if steps > 10 { Err(CopyInterrupted) } else { Ok(()) }
    };
    let error = sweep(&scratch.0, &mut stop).unwrap_err();
    assert!(error.is_stopped(), "{error}");
    assert_eq!(fs::read_dir(scratch.at(".ccm-aaaaaaaaaaaa.tmp")).unwrap().count(), 90);
}

#[test]
fn what_is_to_belong_to_somebody_else_is_swept_although_it_belongs_to_him_already() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let folder = scratch.directory("theirs", NOBODY, 0o755);
    let path = folder.join("f");
    replace(&path, of(NOBODY, 0o640), |file| {
        file.write_all(b"new")?;
        let [shelter] = &fs::read_dir(&folder)?.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()[..]
        else {
            panic!("one name");
        };
        assert_eq!(owner_and_mode(shelter), (0, 0, 0o700));
        Ok(())
    })
    .unwrap();
    assert_eq!(owner_and_mode(&path), (NOBODY, NOBODY, 0o640));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}
