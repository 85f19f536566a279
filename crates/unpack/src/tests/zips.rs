//! What the directory of a zip archive may say and may not.

use ::zip::{ZipWriter, write::FullFileOptions};

use super::*;

#[test]
fn the_name_and_the_type_of_an_entry_agree() {
    let offence = Offence::malformed("its name and its type contradict each other");
    let directory = zip(|writer| writer.add_directory("entry/", options()).unwrap());
    let file = zip(|writer| zip_file(writer, "entry", b""));
    for (bytes, name, mode, is_refused) in [
        (&directory, "entry/", 0o100_644, true),
        (&directory, "entry/", 0o120_777, true),
        (&directory, "entry/", 0o040_755, false),
        (&directory, "entry/", 0, false),
        (&file, "entry", 0o040_755, true),
        (&file, "entry", 0o100_644, false),
        (&file, "entry", 0, false),
    ] {
        let bytes = with_mode(bytes.clone(), name, mode);
        if is_refused {
            refused(&bytes, ArchiveFormat::Zip, name, &offence);
        } else {
            unpack(&Scratch::new(), &bytes, ArchiveFormat::Zip, &rules()).unwrap();
        }
    }
}

#[test]
fn too_many_entries_are_refused_before_one_of_them_is_unpacked() {
    let scratch = Scratch::new();
    let path = scratch.0.join("archive");
    fs::write(&path, zip(|writer| (0..5).for_each(|number| zip_file(writer, &number.to_string(), b""))))
        .unwrap();
    let archive = fs::File::open(&path).unwrap();
    for (entries, is_refused) in [(4, true), (5, false)] {
        let mut staging = Staging::new(&scratch.target(), root()).unwrap();
        let rules = Rules { limits: Limits { entries, ..Limits::default() }, ..rules() };
        let mut steps = 0;
        let mut tick = || {
            steps += 1;
            Ok(())
        };
        let unpacked = unpack_file(&archive, ArchiveFormat::Zip, &mut staging, &rules, &mut tick);
        assert_eq!((unpacked.is_err(), steps == 0), (is_refused, is_refused), "{entries}");
    }
}

#[test]
fn what_a_writer_learns_only_afterwards_may_follow_the_content() {
    // As programs write it that cannot go back: sizes and checksum come after each entry.
    let mut writer = ZipWriter::new_stream(Vec::new());
    for name in ["first", "second"] {
        writer.start_file(name, options()).unwrap();
        writer.write_all(name.as_bytes()).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    assert!(bytes.windows(4).any(|bytes| bytes == b"PK\x07\x08"));
    let scratch = Scratch::new();
    unpack(&scratch, &bytes, ArchiveFormat::Zip, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("second")).unwrap(), b"second");
}

#[test]
fn the_name_that_is_there_twice_is_found_behind_all_that_a_directory_holds() {
    let long = "folder/".repeat(50);
    let mut described = FullFileOptions::default().with_file_comment("why");
    described.add_extra_field(0xabcd, b"extra", true).unwrap();
    let bytes = zip(|writer| {
        writer.start_file("described", described).unwrap();
        zip_file(writer, &format!("{long}same1"), b"x");
        zip_file(writer, "between", b"x");
        zip_file(writer, &format!("{long}same2"), b"y");
    });
    let twice = patch(bytes, "same2", "same1");
    refused(&twice, ArchiveFormat::Zip, &format!("{long}same1"), &Offence::Duplicate);
}

/// An archive of one file whose directory is described in 64 bits, and says to have so many entries.
fn claiming(entries: u64) -> Vec<u8> {
    let mut bytes = zip(|writer| zip_file(writer, "file", b"x"));
    let mut end = bytes.split_off(bytes.len() - 22);
    let record = bytes.len() as u64;
    let (size, start): ([u8; 4], [u8; 4]) =
        (end[12..16].try_into().unwrap(), end[16..20].try_into().unwrap());
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [entries, entries, u32::from_le_bytes(size).into(), u32::from_le_bytes(start).into()] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend(record.to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    end[8..12].fill(0xff);
    bytes.extend(end);
    bytes
}

#[test]
fn an_archive_that_claims_more_entries_than_are_allowed_is_refused_by_its_claim() {
    let scratch = Scratch::new();
    unpack(&scratch, &claiming(1), ArchiveFormat::Zip, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("file")).unwrap(), b"x");
    let error = unpack(&Scratch::new(), &claiming(1_000_001), ArchiveFormat::Zip, &rules()).unwrap_err();
    assert_eq!(error.to_string(), "it has more than 1000000 entries");
    // At the limit it is the reader that finds them missing.
    damaged(&claiming(1_000_000), ArchiveFormat::Zip);
}

#[test]
fn an_archive_in_an_archive_claims_nothing_of_the_outer_one() {
    let inner = claiming(1);
    for name in ["a", "inner.zip", "folder/with/a/longer/name.zip"] {
        let outer = zip(|writer| {
            let stored = options().compression_method(::zip::CompressionMethod::Stored);
            writer.start_file(name, stored).unwrap();
            writer.write_all(&inner).unwrap();
        });
        let scratch = Scratch::new();
        unpack(&scratch, &outer, ArchiveFormat::Zip, &rules())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(fs::read(scratch.target().join(name)).unwrap(), inner);
    }
}

#[test]
fn read_member_reads_a_file_at_the_top() {
    let plain = tar([file("deep/down/label", "no"), file("app/label", "yes")]);
    let zipped = zip(|writer| {
        zip_file(writer, "deep/down/label", b"no");
        zip_file(writer, "app/label", b"yes");
    });
    for (kind, bytes) in [(PLAIN, plain.clone()), (GZIP, gzip(&plain)), (ArchiveFormat::Zip, zipped)] {
        let scratch = Scratch::new();
        let path = scratch.0.join("archive");
        fs::write(&path, bytes).unwrap();
        let archive = fs::File::open(&path).unwrap();
        let read = |name, limit| read_member(&archive, kind, name, limit).unwrap();
        assert_eq!(read("label", 100).as_deref(), Some(b"yes".as_slice()), "{kind}");
        assert_eq!(read("label", 2).as_deref(), Some(b"ye".as_slice()), "{kind}");
        assert_eq!(read("other", 100), None, "{kind}");
    }
}

#[test]
fn zip_extraction_keeps_modes_and_links() {
    let bytes = zip(|writer| {
        writer.add_directory("bin/", options().unix_permissions(0o700)).unwrap();
        writer.add_directory("tmp/", options()).unwrap();
        zip_file(writer, "bin/app", b"x");
        zip_file(writer, "share/doc/readme", b"hello");
        writer.add_symlink("bin/link", "../share/doc/readme", options()).unwrap();
    });
    let bytes = with_mode(with_mode(bytes, "tmp/", 0o47777), "bin/app", 0o104_755);
    let scratch = Scratch::new();
    unpack(&scratch, &bytes, ArchiveFormat::Zip, &rules()).unwrap();
    let target = scratch.target();
    let mode = |name: &str| fs::symlink_metadata(target.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("bin"), mode("bin/app"), mode("share/doc/readme")), (0o700, 0o755, 0o644));
    assert_eq!(mode("tmp"), 0o1777);
    assert_eq!(fs::read(target.join("bin/link")).unwrap(), b"hello");
}

#[test]
fn zip_archive_with_an_invalid_entry_is_rejected() {
    let one = |name: &str| zip(|writer| zip_file(writer, name, b"content"));
    refused(&patch(one("aa/evil"), "aa/evil", "../evil"), ArchiveFormat::Zip, "../evil", &Offence::Upwards);
    refused(
        &patch(one("aetc/evil"), "aetc/evil", "/etc/evil"),
        ArchiveFormat::Zip,
        "/etc/evil",
        &Offence::Absolute,
    );
    refused(
        &patch(one("aa/evil"), "aa/evil", "..\\evil"),
        ArchiveFormat::Zip,
        "..\\evil",
        &Offence::Backslash,
    );
    refused(&patch(one("a/b"), "a/b", "a\\b"), ArchiveFormat::Zip, "a\\b", &Offence::Backslash);
    let twice = zip(|writer| {
        zip_file(writer, "same1", b"x");
        zip_file(writer, "same2", b"y");
    });
    refused(&patch(twice, "same2", "same1"), ArchiveFormat::Zip, "same1", &Offence::Duplicate);
    let link = zip(|writer| writer.add_symlink("link", "/etc", options()).unwrap());
    refused(&link, ArchiveFormat::Zip, "link", &Offence::LinkOut { target: "/etc".into() });
    let through = zip(|writer| {
        writer.add_symlink("link", "real", options()).unwrap();
        zip_file(writer, "link/file", b"x");
    });
    refused(&through, ArchiveFormat::Zip, "link/file", &Offence::BelowOther { above: "link".into() });
}

#[test]
fn zip_archive_with_contradictions_is_rejected() {
    let plain = zip(|writer| {
        zip_file(writer, "first", &[b'x'; 1000]);
        zip_file(writer, "other", &[b'y'; 1000]);
    });
    // The directory says one name, the header another.
    let at = plain.windows(5).position(|bytes| bytes == b"first").unwrap();
    let mut renamed = plain.clone();
    renamed[at..at + 5].copy_from_slice(b"fixed");
    refused(&renamed, ArchiveFormat::Zip, "first", &Offence::OtherName { other: "fixed".into() });
    // Both entries of the directory point to the same bytes.
    let directory = plain.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let second =
        directory + 4 + plain[directory + 4..].windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let mut overlapping = plain.clone();
    overlapping[second + 42..second + 46].copy_from_slice(&[0; 4]);
    let scratch = Scratch::new();
    match unpack(&scratch, &overlapping, ArchiveFormat::Zip, &rules()) {
        Err(UnpackError::Entry { offence: Offence::Overlap, .. }) => {}
        other => panic!("{other:?}"),
    }
    for cut in [4, plain.len() / 2, plain.len() - 1] {
        damaged(&plain[..cut], ArchiveFormat::Zip);
    }
    // The content is not what the checksum says.
    let stored = zip(|writer| {
        writer.start_file("f", options().compression_method(::zip::CompressionMethod::Stored)).unwrap();
        writer.write_all(b"hello").unwrap();
    });
    damaged_at(&patch(stored, "hello", "jello"), ArchiveFormat::Zip, "f");
}
