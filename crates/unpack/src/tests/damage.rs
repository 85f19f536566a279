//! Archives that are truncated, damaged or of another format, and errors.

use super::*;

#[test]
fn truncated_archive_is_rejected_at_every_cut() {
    // Incompressible, so that the cuts fall into content.
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    let content: Vec<u8> = (0..400_000).map(|_| noise()).collect();
    let plain = tar([
        entry(EntryType::Regular, "a").content(content.clone()),
        entry(EntryType::Regular, "b").content(content),
    ]);
    let mut kinds = vec![
        (PLAIN, plain.clone()),
        (GZIP, gzip(&plain)),
        (ArchiveFormat::Tar(Compression::Bzip2), bzip2(&plain)),
        (ArchiveFormat::Tar(Compression::Zstd), zstd(&plain)),
    ];
    kinds.extend(piped("xz", &plain).map(|bytes| (ArchiveFormat::Tar(Compression::Xz), bytes)));
    for (kind, bytes) in kinds {
        // Also in the last bytes, which hold checksums or the end mark.
        let end = if kind == PLAIN { bytes.len() - 1024 } else { bytes.len() - 1 };
        for cut in (0..end).step_by(64 * 1024).chain([1, 100, end - 3, end]) {
            damaged(&bytes[..cut], kind);
        }
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 0x10;
        if kind != PLAIN {
            damaged(&flipped, kind);
        }
    }
}

#[test]
fn archive_of_another_format_than_its_name_is_rejected() {
    let plain = sample();
    for (kind, bytes) in [
        (GZIP, plain.clone()),
        (PLAIN, gzip(&plain)),
        (ArchiveFormat::Zip, plain.clone()),
        (ArchiveFormat::Tar(Compression::Xz), gzip(&plain)),
        (ArchiveFormat::Tar(Compression::Zstd), gzip(&plain)),
        (ArchiveFormat::Tar(Compression::Bzip2), gzip(&plain)),
        (GZIP, b"<html><body>404 not found</body></html>".to_vec()),
        (ArchiveFormat::Zip, b"<html>".to_vec()),
        (PLAIN, b"<p>not found</p>".repeat(100)),
    ] {
        let scratch = Scratch::new();
        let error = unpack(&scratch, &bytes, kind, &rules()).unwrap_err();
        assert!(matches!(error, UnpackError::OtherKind { .. }), "{kind}: {error:?}");
    }
}

#[test]
fn read_errors_are_described() {
    for (error, said) in [
        (io::ErrorKind::UnexpectedEof.into(), "it is damaged: it ends too early"),
        (io::ErrorKind::OutOfMemory.into(), "it is damaged: unpacking it would take too much memory"),
        (io::Error::other("odd"), "it is damaged: odd"),
        (io::Error::other(Breach::Entries(5)), "it has more than 5 entries"),
    ] {
        assert_eq!(UnpackError::from_read(error).to_string(), said);
    }
}

#[test]
fn file_error_keeps_its_help() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("file"), "").unwrap();
    let error = Staging::new(&scratch.0.join("file/target"), root()).err().unwrap();
    let hint = error.hint();
    assert!(hint.is_some(), "{error}");
    assert_eq!(UnpackError::from(error).hint(), hint);
}
