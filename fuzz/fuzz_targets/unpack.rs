//! Extracts any bytes as an archive: every entry is in the target, or nothing is left behind.
#![no_main]

use std::{
    fs,
    io::{Seek, Write},
    path::Path,
};

use ccm_files::{Attributes, Staging};
use ccm_unpack::{ArchiveFormat, Compression, Limits, Rules, unpack_file};
use libfuzzer_sys::fuzz_target;

const FORMATS: [ArchiveFormat; 6] = [
    ArchiveFormat::Tar(Compression::None),
    ArchiveFormat::Tar(Compression::Gzip),
    ArchiveFormat::Tar(Compression::Xz),
    ArchiveFormat::Tar(Compression::Bzip2),
    ArchiveFormat::Tar(Compression::Zstd),
    ArchiveFormat::Zip,
];

// The first byte selects the format and the number of components to strip.
fuzz_target!(|bytes: &[u8]| {
    let Some((choice, archive)) = bytes.split_first() else { return };
    let base = Path::new("/dev/shm").join(format!("ccm-fuzz-{}", std::process::id()));
    fs::create_dir_all(&base).expect("a directory in memory");
    let root = Attributes::own(0o755);
    let limits = Limits { size: 8 << 20, entries: 1000, ratio: 250 };
    let rules =
        Rules { uid: root.uid, gid: root.gid, strip_components: usize::from(choice >> 6), limits };
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let mut file = options.open(base.join("archive")).expect("a file");
    file.write_all(archive).and_then(|()| file.rewind()).expect("room in memory");
    let target = base.join("target");
    let mut staging = Staging::new(&target, root).expect("a staging directory");
    let format = FORMATS[usize::from(choice & 7) % FORMATS.len()];
    if let Ok(extracted) = unpack_file(&file, format, &mut staging, &rules, &mut || Ok(())) {
        staging.publish(root, None, &|_| false).expect("an empty target");
        for entry in &extracted {
            let path = target.join(&entry.path);
            let found = fs::symlink_metadata(&path).expect("an extracted entry");
            let real = if found.is_symlink() { path.canonicalize().ok() } else { None };
            assert!(real.is_none_or(|real| real.starts_with(&target)), "{entry:?} leaves the target");
        }
        fs::remove_dir_all(&target).expect("the extracted entries");
    } else {
        drop(staging);
    }
    let left: Vec<_> =
        fs::read_dir(&base).expect("the directory").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["archive"]);
});
