//! Limits on size, entries, ratio and memory.

use super::*;

#[test]
fn extraction_stops_at_each_limit() {
    let with = |limits: Limits| Rules { limits, ..rules() };
    let limits = Limits::default();
    let zeros = gzip(&tar([entry(EntryType::Regular, "zeros").content(vec![0; 70 << 20])]));
    let many = tar((0..100).map(|number| file(&format!("{number}/{number}"), "")));
    for (archive, kind, rules, wanted, at) in [
        (&zeros, GZIP, rules(), Breach::Ratio(250), "zeros"),
        (&zeros, GZIP, with(Limits { size: 1 << 20, ..limits }), Breach::Size(1 << 20), "zeros"),
        (&many, PLAIN, with(Limits { entries: 199, ..limits }), Breach::Entries(199), "99/99"),
    ] {
        let scratch = Scratch::new();
        match unpack(&scratch, archive, kind, &rules) {
            Err(UnpackError::Breach { breach, entry }) => {
                assert_eq!((breach, entry.unwrap().to_str()), (wanted, Some(at)));
            }
            other => panic!("{wanted:?}: {other:?}"),
        }
        assert_eq!(left(&scratch), ["archive"]);
    }
    let scratch = Scratch::new();
    unpack(&scratch, &zeros, GZIP, &with(Limits { ratio: 2000, ..limits })).unwrap();
    unpack(&Scratch::new(), &many, PLAIN, &with(Limits { entries: 200, ..limits })).unwrap();
    assert_eq!(Limits::default().size, 16 << 30);
}

#[test]
fn zip_bomb_is_stopped() {
    let zeros = zip(|writer| zip_file(writer, "zeros", &vec![0; 70 << 20]));
    let scratch = Scratch::new();
    let error = unpack(&scratch, &zeros, ArchiveFormat::Zip, &rules()).unwrap_err();
    let text = error.to_string();
    assert_eq!(text, "it unpacks to more than 250 times its size, as entry \"zeros\" shows");
    let many = zip(|writer| (0..50).for_each(|number| zip_file(writer, &number.to_string(), b"")));
    let few = Rules { limits: Limits { entries: 49, ..Limits::default() }, ..rules() };
    let error = unpack(&Scratch::new(), &many, ArchiveFormat::Zip, &few).unwrap_err();
    assert_eq!(error.to_string(), "it has more than 49 entries, as entry \"49\" shows");
}

#[test]
fn extraction_can_be_stopped() {
    let scratch = Scratch::new();
    let mut staging = Staging::new(&scratch.target(), root()).unwrap();
    let mut left_to_do = 3;
    let mut tick = || {
        left_to_do -= 1;
        if left_to_do == 0 { Err(CopyInterrupted) } else { Ok(()) }
    };
    let error =
        unpack_tar(sample().as_slice(), Compression::None, &mut staging, &rules(), &mut tick).unwrap_err();
    assert!(matches!(error, UnpackError::CopyInterrupted), "{error:?}");
    drop(staging);
    assert!(left(&scratch).is_empty());
}

#[test]
fn empty_members_are_limited() {
    let empty = gzip(b"");
    let many = empty.repeat((5 << 20) / empty.len());
    let sample = gzip(&sample());
    for archive in [[&many[..], &sample].concat(), [&sample[..], &many].concat()] {
        let scratch = Scratch::new();
        match unpack(&scratch, &archive, GZIP, &rules()) {
            Err(error @ UnpackError::Breach { breach: Breach::NoOutput(_), .. }) => {
                assert!(error.hint().is_none());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(left(&scratch), ["archive"]);
    }
    let some = [&empty.repeat(1000)[..], &sample, &empty.repeat(1000)].concat();
    let scratch = Scratch::new();
    is_sample(&scratch, &unpack(&scratch, &some, GZIP, &rules()).unwrap());
    // Skippable frames of zstd likewise.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0][..], &[0; 8]].concat().repeat((5 << 20) / 16);
    let archive = [&skipped[..], &zstd(&self::sample())].concat();
    let refused = unpack(&Scratch::new(), &archive, ArchiveFormat::Tar(Compression::Zstd), &rules());
    assert!(matches!(refused, Err(UnpackError::Breach { .. })), "{refused:?}");
}

#[test]
fn xz_window_over_the_memory_limit_is_rejected() {
    let Some(mut bytes) = piped("xz", &sample()) else { return };
    // The header of the first block: its size in words less one, flags, the filter and its window, and a checksum.
    let (start, end) = (12, 12 + 4 * usize::from(bytes[12]));
    assert_eq!(bytes[start + 1..start + 4], [0, 0x21, 1], "one filter, LZMA2, and nothing else");
    bytes[start + 4] = 38;
    let mut sum = flate2::Crc::new();
    sum.update(&bytes[start..end]);
    bytes[end..end + 4].copy_from_slice(&sum.sum().to_le_bytes());
    let kind = ArchiveFormat::Tar(Compression::Xz);
    let error = unpack(&Scratch::new(), &bytes, kind, &rules()).unwrap_err();
    assert_eq!(error.to_string(), "it is damaged: unpacking it would take too much memory");
}
