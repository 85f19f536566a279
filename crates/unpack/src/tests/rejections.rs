//! Tar archives that are rejected because of one entry.

use super::*;

#[test]
fn tar_archive_with_an_invalid_entry_is_rejected() {
    let out = |target: &str| Offence::LinkOut { target: target.into() };
    let below = |above: &str| Offence::BelowOther { above: above.into() };
    let special = |what| Offence::Special { what };
    let cases: Vec<(&str, Offence, Vec<Entry>)> = vec![
        ("../evil", Offence::Upwards, vec![file("../evil", "x")]),
        ("a/../../evil", Offence::Upwards, vec![file("a/../../evil", "x")]),
        ("/etc/evil", Offence::Absolute, vec![file("/etc/evil", "x")]),
        ("..", Offence::Upwards, vec![directory("..")]),
        ("", Offence::Nameless, vec![file("", "x")]),
        ("link", out("/etc"), vec![symlink("link", "/etc")]),
        ("link", out("../.."), vec![symlink("link", "../..")]),
        ("a/link", out("../../x"), vec![directory("a"), symlink("a/link", "../../x")]),
        ("b", out("a/../.."), vec![directory("a"), symlink("b", "a/../..")]),
        // Two links that are harmless each on its own.
        ("x/up", out("../y/.."), vec![symlink("y", "."), directory("x"), symlink("x/up", "../y/..")]),
        ("loop", out("loop"), vec![symlink("loop", "loop")]),
        // What the archive does not hold may be a link by the time it is followed.
        ("b", out("unknown/../x"), vec![symlink("b", "unknown/../x")]),
        (
            "link/file",
            below("link"),
            vec![symlink("link", "real"), directory("real"), file("link/file", "x")],
        ),
        ("link", Offence::Duplicate, vec![symlink("link", "real"), directory("link")]),
        ("dir", Offence::Duplicate, vec![directory("dir"), symlink("dir", "x")]),
        ("file/below", below("file"), vec![file("file", "x"), file("file/below", "x")]),
        ("file", Offence::Duplicate, vec![file("file", "x"), file("file", "y")]),
        (
            "file",
            Offence::Duplicate,
            vec![file("file", "x"), file("./file", "y")].into_iter().rev().collect::<Vec<_>>(),
        ),
        ("hard", out("../../etc/passwd"), vec![hard_link("hard", "../../etc/passwd")]),
        ("hard", out("/etc/passwd"), vec![hard_link("hard", "/etc/passwd")]),
        (
            "hard",
            Offence::HardLink { target: "later".into() },
            vec![hard_link("hard", "later"), file("later", "x")],
        ),
        (
            "hard",
            Offence::HardLink { target: "link".into() },
            vec![file("f", ""), symlink("link", "f"), hard_link("hard", "link")],
        ),
        ("dev", special("character device"), vec![entry(EntryType::Char, "dev")]),
        ("dev", special("block device"), vec![entry(EntryType::Block, "dev")]),
        ("pipe", special("fifo"), vec![entry(EntryType::Fifo, "pipe")]),
        ("sparse", special("sparse file"), vec![pax(&[("GNU.sparse.major", "1")]), file("sparse", "x")]),
        ("file", Offence::SizeMismatch, vec![pax(&[("size", "1024")]), file("file", "x")]),
        ("file", Offence::SizeMismatch, vec![pax(&[("size", "0")]), file("file", "x")]),
        ("file", Offence::SizeMismatch, vec![pax(&[("size", "8589934591")]), file("file", "")]),
        ("file", Offence::SizeMismatch, vec![pax(&[("size", "8589934592")]), file("file", "x")]),
        (".", Offence::Nameless, vec![file(".", "x")]),
        ("./.", Offence::Nameless, vec![symlink("./.", "x")]),
        ("./", Offence::Nameless, vec![file("f", ""), hard_link("./", "f")]),
        (
            "a\0b",
            Offence::NullByte,
            vec![entry(EntryType::GNULongName, "l").content(*b"a\0b"), file("f", "x")],
        ),
        ("a\0b", Offence::NullByte, vec![pax(&[("path", "a\0b")]), file("f", "x")]),
        (".ccm-aaaaaaaaaaaa.tmp", Offence::Reserved, vec![file(".ccm-aaaaaaaaaaaa.tmp", "x")]),
    ];
    for (name, offence, entries) in cases {
        // What comes before and after makes no difference.
        let mut all = vec![file("good", "x")];
        let name = if offence == Offence::Duplicate && name == "file" && entries.len() == 2 {
            String::from_utf8_lossy(&entries[1].header.path_bytes()).into_owned()
        } else {
            name.to_owned()
        };
        all.extend(entries);
        all.push(file("also-good", "x"));
        refused(&gzip(&tar(all)), GZIP, &name, &offence);
    }
}

#[test]
fn tar_archive_with_a_malformed_header_is_rejected() {
    let huge = |kind| {
        let mut header = entry(kind, "huge");
        header.header.set_size(1 << 40);
        header
    };
    for entries in [
        vec![entry(EntryType::XHeader, "x").content("99 path=a\n"), file("f", "x")],
        vec![entry(EntryType::XHeader, "x").content("nonsense"), file("f", "x")],
        vec![entry(EntryType::XHeader, "x").content("5 a=b"), file("f", "x")],
        vec![entry(EntryType::XGlobalHeader, "x").content("12 path=abc\n"), file("f", "x")],
        vec![huge(EntryType::XHeader)],
        vec![huge(EntryType::GNULongName)],
        vec![entry(EntryType::Symlink, "link").target("x").content("content")],
        vec![entry(EntryType::Symlink, "link")],
        vec![directory("dir").content("content")],
        vec![entry(EntryType::new(b'Q'), "odd")],
    ] {
        let scratch = Scratch::new();
        let error = unpack(&scratch, &tar(entries), PLAIN, &rules()).unwrap_err();
        assert!(matches!(error, UnpackError::Entry { offence: Offence::Malformed { .. }, .. }), "{error:?}");
        assert_eq!(left(&scratch), ["archive"]);
    }
    damaged(&tar([file("f", "x"), entry(EntryType::GNULongName, "l").content("dangling\0")]), PLAIN);
    let mut wrong = tar([file("f", "x"), file("g", "y")]);
    wrong[1024] ^= 1;
    damaged(&wrong, PLAIN);
}
