//! What the directory of a zip archive may say and may not.

use ::zip::write::FullFileOptions;

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
