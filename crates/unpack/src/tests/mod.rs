//! Valid archives, and every way in which an archive is rejected.

mod compression;
mod damage;
mod limits;
mod links;
mod making;
mod rejections;
mod tars;
mod zips;

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use ::tar::EntryType;
use ccm_files::Attributes;
use rustix::process::{getegid, geteuid};
use sha2::{Digest, Sha256};

use self::making::*;
use super::{error::Offence, meter::Breach, *};

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
    let hello = Sha256::digest(b"hello").into();
    assert_eq!(what["share/again"], &What::File { sha256: hello, mode: 0o644 });
    assert_eq!(what["bin/link"], &What::Link { target: "../share/doc/readme".into() });
}
