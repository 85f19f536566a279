//! What killed runs leave behind.

use std::{ffi::OsStr, fs, io::Read, process::Stdio};

use super::*;
use crate::host::files::{is_temporary_name, sweep};

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
    assert_eq!((sweep(&scratch.0).unwrap(), scratch.temporaries().len()), (0, 1));
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(scratch.temporaries().len(), 1);
    assert_eq!((sweep(&scratch.0).unwrap(), scratch.temporaries().len()), (1, 0));
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
    assert_eq!(sweep(&scratch.0).unwrap(), 1);
    assert!(link.is_symlink() && target.exists() && other.exists());
    assert_eq!(sweep(&scratch.at("no/such")).unwrap(), 0);
}
