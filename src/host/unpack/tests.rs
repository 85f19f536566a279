//! Archives that are as they should be, and every way in which they are not.

mod zips;

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use ::tar::{EntryType, Header};
use ::zip::{ZipWriter, write::SimpleFileOptions};
use rustix::process::{getegid, geteuid};

use super::{error::Offence, meter::Breach, *};
use crate::{host::files::Attributes, vocabulary::Size};

/// A directory of its own for one test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().canonicalize().unwrap();
        let path = base.join(format!("ccm-unpack-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn target(&self) -> PathBuf {
        self.0.join("target")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn rules() -> Rules {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    Rules { uid, gid, strip_components: 0, limits: Limits::default() }
}

fn root() -> Attributes {
    Attributes { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode: 0o755 }
}

/// Unpacks into a target, and publishes what could be unpacked.
fn unpack(
    scratch: &Scratch,
    archive: &[u8],
    kind: ArchiveFormat,
    rules: &Rules,
) -> Result<Vec<Extracted>, UnpackError> {
    let path = scratch.0.join("archive");
    fs::write(&path, archive).unwrap();
    let file = fs::File::open(&path).unwrap();
    let mut staging = Staging::new(&scratch.target(), root())?;
    let extracted = unpack_file(&file, kind, &mut staging, rules, &mut || Ok(()))?;
    staging.publish(root(), None, &|_| false)?;
    Ok(extracted)
}

/// The archive is refused for this offence of this entry, and leaves nothing behind.
#[track_caller]
fn refused(archive: &[u8], kind: ArchiveFormat, entry: &str, wanted: &Offence) {
    let scratch = Scratch::new();
    match unpack(&scratch, archive, kind, &rules()) {
        Err(UnpackError::Entry { entry: found, offence }) => {
            assert_eq!((found.to_str(), &offence), (Some(entry), wanted));
        }
        other => panic!("{wanted:?}: {other:?}"),
    }
    assert_eq!(left(&scratch), ["archive"]);
}

#[track_caller]
fn damaged(archive: &[u8], kind: ArchiveFormat) {
    let scratch = Scratch::new();
    match unpack(&scratch, archive, kind, &rules()) {
        Err(UnpackError::Damaged { .. } | UnpackError::OtherKind { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(left(&scratch), ["archive"]);
}

/// The archive is damaged, and that was noticed at this entry.
#[track_caller]
fn damaged_at(archive: &[u8], kind: ArchiveFormat, entry: &str) {
    let error = unpack(&Scratch::new(), archive, kind, &rules()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("it is damaged at entry {entry:?}: ")), "{error}");
}

fn left(scratch: &Scratch) -> Vec<String> {
    fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// One entry of a tar archive, however wrong.
struct Entry {
    header: Header,
    content: Vec<u8>,
}

fn entry(kind: EntryType, name: &str) -> Entry {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_mtime(1_000_000_000);
    header.set_size(0);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    Entry { header, content: Vec::new() }
}

fn file(name: &str, content: &str) -> Entry {
    entry(EntryType::Regular, name).content(content)
}

fn directory(name: &str) -> Entry {
    entry(EntryType::Directory, name).mode(0o755)
}

fn symlink(name: &str, target: &str) -> Entry {
    entry(EntryType::Symlink, name).target(target)
}

fn hard_link(name: &str, target: &str) -> Entry {
    entry(EntryType::Link, name).target(target)
}

impl Entry {
    fn content(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.content = content.into();
        self.header.set_size(self.content.len() as u64);
        self
    }

    fn mode(mut self, mode: u32) -> Self {
        self.header.set_mode(mode);
        self
    }

    fn target(mut self, target: &str) -> Self {
        self.header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        self
    }

    fn bytes(mut self) -> Vec<u8> {
        self.header.set_cksum();
        let mut bytes = self.header.as_bytes().to_vec();
        bytes.extend(&self.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }
}

fn tar(entries: impl IntoIterator<Item = Entry>) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.into_iter().flat_map(Entry::bytes).collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn pax(records: &[(&str, &str)]) -> Entry {
    let mut text = String::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while length != rest + length.to_string().len() {
            length = rest + length.to_string().len();
        }
        text.extend([&length.to_string(), " ", key, "=", value, "\n"]);
    }
    entry(EntryType::XHeader, "pax").content(text)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The tools that most archives are made with.
fn piped(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    use std::process::{Command, Stdio};
    let mut child =
        Command::new(program).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output.status.success().then_some(output.stdout)
}

const PLAIN: ArchiveFormat = ArchiveFormat::Tar(Compression::None);
const GZIP: ArchiveFormat = ArchiveFormat::Tar(Compression::Gzip);

fn sample() -> Vec<u8> {
    tar([
        directory("./"),
        directory("bin/").mode(0o700),
        file("bin/app", "#!/bin/sh\n").mode(0o4755),
        file("share/doc/readme", "hello"),
        directory("tmp/").mode(0o7777),
        symlink("bin/link", "../share/doc/readme"),
        hard_link("share/again", "share/doc/readme"),
        file("empty", ""),
    ])
}

#[track_caller]
fn is_sample(scratch: &Scratch, extracted: &[Extracted]) {
    let target = scratch.target();
    let paths: Vec<_> = extracted.iter().map(|entry| entry.path.to_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "bin",
            "bin/app",
            "bin/link",
            "empty",
            "share",
            "share/again",
            "share/doc",
            "share/doc/readme",
            "tmp"
        ]
    );
    let mode = |name: &str| fs::symlink_metadata(target.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("bin"), mode("bin/app"), mode("empty"), mode("share")), (0o700, 0o755, 0o644, 0o755));
    assert_eq!(mode("tmp"), 0o1777, "what protects files of others in it stays");
    assert_eq!(fs::read(target.join("bin/link")).unwrap(), b"hello");
    let inode = |name: &str| fs::metadata(target.join(name)).unwrap().ino();
    assert_eq!(inode("share/again"), inode("share/doc/readme"));
    assert_eq!(fs::metadata(target.join("empty")).unwrap().mtime(), 1_000_000_000);
    let what: BTreeMap<_, _> =
        extracted.iter().map(|entry| (entry.path.to_str().unwrap(), &entry.what)).collect();
    let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".parse().unwrap();
    assert_eq!(what["share/again"], &What::File { sha256: hello, mode: 0o644 });
    assert_eq!(what["bin/link"], &What::Link { target: "../share/doc/readme".into() });
}

#[test]
fn an_archive_is_unpacked_with_its_modes_times_and_links_but_no_set_id_bits() {
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
fn members_that_follow_each_other_are_one_archive() {
    let plain = sample();
    let (front, back) = plain.split_at(700);
    for (kind, pack) in [
        (GZIP, gzip as fn(&[u8]) -> Vec<u8>),
        (ArchiveFormat::Tar(Compression::Bzip2), bzip2),
        (ArchiveFormat::Tar(Compression::Zstd), zstd),
    ] {
        let scratch = Scratch::new();
        let mut bytes = pack(front);
        if kind == ArchiveFormat::Tar(Compression::Zstd) {
            // A frame that is to be skipped.
            bytes.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        }
        bytes.extend(pack(back));
        is_sample(&scratch, &unpack(&scratch, &bytes, kind, &rules()).unwrap());
    }
}

#[test]
fn long_names_are_understood_in_both_ways_of_writing_them() {
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
fn a_link_may_lead_through_other_links_of_the_archive() {
    let archive = tar([
        directory("versions/1/"),
        file("versions/1/app", "x"),
        symlink("versions/latest", "1"),
        symlink("current", "versions/latest"),
        symlink("app", "current/app"),
    ]);
    let scratch = Scratch::new();
    unpack(&scratch, &archive, PLAIN, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("app")).unwrap(), b"x");
}

#[test]
fn a_link_may_lead_through_as_many_links_as_the_kernel_follows() {
    let chain = |links: usize| {
        let link = |number: usize| symlink(&format!("{number:02}"), &format!("{:02}", number + 1));
        tar((1..links).map(link).chain([symlink(&format!("{links:02}"), "file"), file("file", "x")]))
    };
    let scratch = Scratch::new();
    unpack(&scratch, &chain(40), PLAIN, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("01")).unwrap(), b"x");
    std::os::unix::fs::symlink("01", scratch.target().join("00")).unwrap();
    fs::read(scratch.target().join("00")).unwrap_err();
    refused(&chain(41), PLAIN, "01", &Offence::LinkOut { target: "02".into() });
}

#[test]
fn an_archive_may_hold_nothing() {
    for archive in [tar([]), tar([directory("./")])] {
        let scratch = Scratch::new();
        assert_eq!(unpack(&scratch, &archive, PLAIN, &rules()).unwrap(), []);
        assert_eq!(fs::read_dir(scratch.target()).unwrap().count(), 0);
    }
}

#[test]
fn a_size_may_be_said_twice_if_it_is_the_same() {
    let scratch = Scratch::new();
    unpack(&scratch, &tar([pax(&[("size", "1")]), file("file", "x")]), PLAIN, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("file")).unwrap(), b"x");
}

#[test]
fn an_extended_header_may_be_a_mebibyte_long_and_has_to_be_there() {
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
fn components_are_stripped_from_names_and_from_hard_links_but_not_from_symbolic_ones() {
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
fn tar_archives_with_entries_that_are_out_of_order_are_refused_whole() {
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
fn headers_that_cannot_be_understood_are_refused_whole() {
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

#[test]
fn an_archive_that_was_cut_short_is_refused_wherever_it_was_cut() {
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
fn a_file_of_another_kind_than_its_name_says_is_refused() {
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
fn archives_that_unpack_to_too_much_are_stopped() {
    let with = |limits: Limits| Rules { limits, ..rules() };
    let limits = Limits::default();
    let zeros = gzip(&tar([entry(EntryType::Regular, "zeros").content(vec![0; 70 << 20])]));
    let many = tar((0..100).map(|number| file(&format!("{number}/{number}"), "")));
    for (archive, kind, rules, wanted, at) in [
        (&zeros, GZIP, rules(), Breach::Ratio(250), "zeros"),
        (
            &zeros,
            GZIP,
            with(Limits { size: "1MiB".parse().unwrap(), ..limits }),
            Breach::Size("1MiB".parse().unwrap()),
            "zeros",
        ),
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
    assert_eq!(Limits::default().size, Size::gibibytes(16));
}

fn zip(fill: impl FnOnce(&mut ZipWriter<io::Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = ZipWriter::new(io::Cursor::new(Vec::new()));
    fill(&mut writer);
    writer.finish().unwrap().into_inner()
}

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default()
}

fn zip_file(writer: &mut ZipWriter<io::Cursor<Vec<u8>>>, name: &str, content: &[u8]) {
    writer.start_file(name, options()).unwrap();
    writer.write_all(content).unwrap();
}

#[test]
fn one_file_at_the_top_is_read_without_unpacking() {
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
fn a_zip_archive_is_unpacked_with_its_modes_and_links() {
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

/// Gives an entry a type and mode that the writer would not.
fn with_mode(mut bytes: Vec<u8>, name: &str, mode: u32) -> Vec<u8> {
    let named =
        |at: &usize| bytes[*at..].starts_with(b"PK\x01\x02") && bytes[at + 46..].starts_with(name.as_bytes());
    let at = (0..bytes.len() - 46).find(named).unwrap();
    bytes[at + 5] = 3; // made on Unix
    bytes[at + 38..at + 42].copy_from_slice(&(mode << 16).to_le_bytes());
    bytes
}

/// Changes every occurrence of a text in an archive to another of the same length.
fn patch(mut bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    for at in 0..=bytes.len() - from.len() {
        if &bytes[at..at + from.len()] == from.as_bytes() {
            bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        }
    }
    bytes
}

#[test]
fn zip_archives_with_entries_that_are_out_of_order_are_refused_whole() {
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
fn zip_archives_that_contradict_themselves_are_refused() {
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

#[test]
fn zip_bombs_are_stopped() {
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
fn unpacking_ends_when_it_is_asked_to() {
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
fn the_size_of_a_file_that_the_header_has_no_room_for_stands_before_it() {
    // Nine gibibytes are announced and not there, which is more than that they are not announced.
    let announced = tar([pax(&[("size", "9663676416")]), file("large", "")]);
    damaged_at(&announced, PLAIN, "large");
}

#[test]
fn zeros_after_the_compressed_data_are_padding_and_anything_else_is_not() {
    let scratch = Scratch::new();
    let mut padded = gzip(&sample());
    padded.resize(padded.len() + 300_000, 0);
    let extracted = unpack(&scratch, &padded, GZIP, &rules()).unwrap();
    is_sample(&scratch, &extracted);
    padded.push(1);
    damaged(&padded, GZIP);
    let mut followed = gzip(&sample());
    followed.push(b'x');
    damaged(&followed, GZIP);
    let mut after = gzip(&sample());
    after.push(0);
    after.extend(gzip(&sample()));
    damaged(&after, GZIP);
}

#[test]
fn everything_that_gnu_tar_makes_is_understood() {
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

#[test]
fn members_that_hold_nothing_do_not_go_on_without_end() {
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
fn a_zstd_frame_whose_checksum_does_not_fit_is_refused() {
    // Too random to be compressed, so that a wrong byte of content is decoded without complaint.
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    let content: Vec<u8> = (0..100_000).map(|_| noise()).collect();
    let kind = ArchiveFormat::Tar(Compression::Zstd);
    let good = zstd(&tar([entry(EntryType::Regular, "a").content(content)]));
    unpack(&Scratch::new(), &good, kind, &rules()).unwrap();
    for at in [good.len() / 2, good.len() - 4, good.len() - 3, good.len() - 2, good.len() - 1] {
        let mut wrong = good.clone();
        wrong[at] ^= 1;
        damaged(&wrong, kind);
    }
}

#[test]
fn a_zstd_frame_to_be_skipped_has_to_be_there_and_to_be_one() {
    let kind = ArchiveFormat::Tar(Compression::Zstd);
    let after = |bytes: &[u8]| [&zstd(&sample())[..], bytes].concat();
    let frame = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    unpack(&Scratch::new(), &after(&frame), kind, &rules()).unwrap();
    for cut in [1, 7, 8, 10] {
        damaged(&after(&frame[..cut]), kind);
    }
    let mut other = frame;
    other[3] = 0x19;
    damaged(&after(&other), kind);
}

#[test]
fn an_xz_window_that_takes_too_much_memory_is_refused() {
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

#[test]
fn what_went_wrong_while_reading_is_said_in_words() {
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
fn what_to_do_about_the_target_is_said_as_of_any_other_file() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("file"), "").unwrap();
    let error = Staging::new(&scratch.0.join("file/target"), root()).err().unwrap();
    let hint = error.hint();
    assert!(hint.is_some(), "{error}");
    assert_eq!(UnpackError::from(error).hint(), hint);
}
