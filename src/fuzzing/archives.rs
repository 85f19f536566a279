//! Archives, as they come from somebody else.

use std::{
    fs,
    io::{Seek, Write},
    path::Path,
};

use rustix::process::{getegid, geteuid};

use crate::host::{
    files::{Attributes, Staging},
    unpack::{ArchiveFormat, Compression, Limits, Rules, unpack_file},
};

/// Unpacks a text as each kind of archive in turn, as the first byte says, and throws the result away.
///
/// # Panics
///
/// When something is left behind, or cannot be made that has nothing to do with the archive.
pub fn unpack(bytes: &[u8]) {
    let Some((choice, archive)) = bytes.split_first() else { return };
    let kinds = [
        ArchiveFormat::Tar(Compression::None),
        ArchiveFormat::Tar(Compression::Gzip),
        ArchiveFormat::Tar(Compression::Xz),
        ArchiveFormat::Tar(Compression::Bzip2),
        ArchiveFormat::Tar(Compression::Zstd),
        ArchiveFormat::Zip,
    ];
    let kind = kinds[usize::from(choice & 7) % kinds.len()];
    let base = Path::new("/dev/shm").join(format!("ccm-fuzz-{}", std::process::id()));
    fs::create_dir_all(&base).expect("a folder in memory");
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let limits = Limits { size: "8MiB".parse().expect("a size"), entries: 1000, ratio: 250 };
    let rules = Rules { uid, gid, strip_components: usize::from(choice >> 6), limits };
    let root = Attributes { uid, gid, mode: 0o755 };
    let path = base.join("archive");
    let mut file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("a file");
    file.write_all(archive).and_then(|()| file.rewind()).expect("room in memory");
    let target = base.join("target");
    let mut staging = Staging::new(&target, root).expect("a staging directory");
    let unpacked = unpack_file(&file, kind, &mut staging, &rules, &mut || Ok(()));
    if let Ok(extracted) = unpacked {
        staging.publish(root, None, &|_| false).expect("nothing is in the way");
        for entry in &extracted {
            let found = fs::symlink_metadata(target.join(&entry.path)).expect("what was unpacked");
            let real = if found.is_symlink() { target.join(&entry.path).canonicalize().ok() } else { None };
            assert!(real.is_none_or(|real| real.starts_with(&target)), "{entry:?} leads out");
        }
        fs::remove_dir_all(&target).expect("what was unpacked");
    } else {
        drop(staging);
    }
    let left: Vec<_> =
        fs::read_dir(&base).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["archive"]);
}
