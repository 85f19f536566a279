//! Tar archives: names, sizes, modes and links.

use super::*;

#[test]
fn extraction_keeps_modes_times_and_links_but_no_setuid_bits() {
    let plain = sample();
    let mut made = vec![
        (PLAIN, plain.clone()),
        (GZIP, gzip(&plain)),
        (ArchiveFormat::Tar(Compression::Bzip2), bzip2(&plain)),
        (ArchiveFormat::Tar(Compression::Zstd), zstd(&plain)),
    ];
    made.extend(piped("xz", &plain).map(|bytes| (ArchiveFormat::Tar(Compression::Xz), bytes)));
    made.extend(piped("zstd", &plain).map(|bytes| (ArchiveFormat::Tar(Compression::Zstd), bytes)));
    made.extend(piped("gzip", &plain).map(|bytes| (GZIP, bytes)));
    for (kind, bytes) in made {
        let scratch = Scratch::new();
        let extracted =
            unpack(&scratch, &bytes, kind, &rules()).unwrap_or_else(|error| panic!("{kind}: {error}"));
        is_sample(&scratch, &extracted);
    }
}

#[test]
fn long_names_are_read_from_gnu_and_pax_headers() {
    let long = format!("{}/file", "directory/".repeat(15));
    let clean = long.replace("//", "/");
    let nul = format!("{long}\0");
    let archive = tar([
        entry(EntryType::GNULongName, "././@LongLink").content(nul.as_bytes()),
        file("short", "a"),
        pax(&[("path", "other"), ("mtime", "5.5"), ("comment", "x=y")]),
        file("ignored", "b"),
        entry(EntryType::GNULongLink, "././@LongLink").content(nul.as_bytes()),
        symlink("to-long", "short"),
        pax(&[("linkpath", "other")]),
        symlink("to-other", "ignored"),
    ]);
    let scratch = Scratch::new();
    unpack(&scratch, &archive, PLAIN, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join(clean)).unwrap(), b"a");
    assert_eq!(fs::read(scratch.target().join("other")).unwrap(), b"b");
    assert_eq!(fs::metadata(scratch.target().join("other")).unwrap().mtime(), 5);
    assert_eq!(fs::read(scratch.target().join("to-long")).unwrap(), b"a");
    assert_eq!(fs::read(scratch.target().join("to-other")).unwrap(), b"b");
}

#[test]
fn archive_can_be_empty() {
    for archive in [tar([]), tar([directory("./")])] {
        let scratch = Scratch::new();
        assert_eq!(unpack(&scratch, &archive, PLAIN, &rules()).unwrap(), []);
        assert_eq!(fs::read_dir(scratch.target()).unwrap().count(), 0);
    }
}

#[test]
fn size_can_be_repeated_if_both_are_equal() {
    let scratch = Scratch::new();
    unpack(&scratch, &tar([pax(&[("size", "1")]), file("file", "x")]), PLAIN, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("file")).unwrap(), b"x");
}

#[test]
fn extended_header_can_have_a_mebibyte_and_must_be_complete() {
    // Its length, the blank, the key, the equals sign and the end of the line take up seventeen bytes.
    let comment = |more: usize| pax(&[("comment", &"x".repeat((1 << 20) - 17 + more))]);
    assert_eq!(comment(0).content.len(), 1 << 20);
    unpack(&Scratch::new(), &tar([comment(0), file("f", "x")]), PLAIN, &rules()).unwrap();
    let error = unpack(&Scratch::new(), &tar([comment(1), file("f", "x")]), PLAIN, &rules()).unwrap_err();
    assert_eq!(error.to_string(), "entry \"pax\" cannot be understood: what is said of it is too long");
    // One that fills its blocks, so that no padding is missing as well.
    let cut = &tar([comment(0)])[..512 + 1000];
    let error = unpack(&Scratch::new(), cut, PLAIN, &rules()).unwrap_err();
    assert_eq!(error.to_string(), "it is damaged: it ends too early");
}

#[test]
fn strip_components_applies_to_names_and_hard_links_but_not_to_symbolic_links() {
    let archive = tar([
        directory("app-1.0/"),
        file("app-1.0/bin/app", "x"),
        symlink("app-1.0/current", "bin/app"),
        hard_link("app-1.0/again", "app-1.0/bin/app"),
    ]);
    let scratch = Scratch::new();
    let stripped = Rules { strip_components: 1, ..rules() };
    unpack(&scratch, &archive, PLAIN, &stripped).unwrap();
    for name in ["bin/app", "current", "again"] {
        assert_eq!(fs::read(scratch.target().join(name)).unwrap(), b"x", "{name}");
    }
    let scratch = Scratch::new();
    let error = unpack(&scratch, &archive, PLAIN, &Rules { strip_components: 9, ..rules() }).unwrap_err();
    assert!(matches!(error, UnpackError::NothingLeft { strip_components: 9 }), "{error:?}");
    assert_eq!(left(&scratch), ["archive"]);
}

#[test]
fn size_too_large_for_the_header_is_read_from_the_pax_header() {
    // Nine gibibytes are announced and not there, which is more than that they are not announced.
    let announced = tar([pax(&[("size", "9663676416")]), file("large", "")]);
    damaged_at(&announced, PLAIN, "large");
}

#[test]
fn all_formats_of_gnu_tar_are_read() {
    let scratch = Scratch::new();
    let source = scratch.0.join("source");
    fs::create_dir_all(source.join("a/b")).unwrap();
    fs::write(source.join("a/b/file"), "x").unwrap();
    fs::write(source.join(format!("a/{}", "n".repeat(200))), "long").unwrap();
    std::os::unix::fs::symlink("b/file", source.join("a/link")).unwrap();
    fs::hard_link(source.join("a/b/file"), source.join("a/zhard")).unwrap();
    for format in ["gnu", "pax", "ustar", "oldgnu", "v7"] {
        let archive = scratch.0.join("made.tar");
        let made = std::process::Command::new("tar")
            .args([&format!("--format={format}"), "-cf"])
            .arg(&archive)
            .arg("-C")
            .arg(&source)
            .arg(".")
            .output();
        // What cannot hold the long name leaves it out and says so.
        made.expect("tar");
        let other = Scratch::new();
        let extracted = unpack(&other, &fs::read(&archive).unwrap(), PLAIN, &rules());
        let extracted = extracted.unwrap_or_else(|error| panic!("{format}: {error}"));
        assert!(extracted.iter().any(|entry| entry.path == Path::new("a/zhard")), "{format}");
        assert_eq!(fs::read(other.target().join("a/link")).unwrap(), b"x");
    }
}
