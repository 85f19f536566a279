//! Archive formats: detected by the file name, confirmed by the content.

use std::fmt;

/// An archive format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// A tar archive: old, ustar, pax or GNU.
    Tar(Compression),
    /// A zip archive.
    Zip,
}

/// How a tar archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// One or more gzip members.
    Gzip,
    /// An xz stream.
    Xz,
    /// One or more bzip2 streams.
    Bzip2,
    /// One or more zstd frames.
    Zstd,
}

/// All supported suffixes.
const ENDINGS: [(&str, ArchiveFormat); 10] = [
    (".tar.gz", ArchiveFormat::Tar(Compression::Gzip)),
    (".tgz", ArchiveFormat::Tar(Compression::Gzip)),
    (".tar.xz", ArchiveFormat::Tar(Compression::Xz)),
    (".txz", ArchiveFormat::Tar(Compression::Xz)),
    (".tar.bz2", ArchiveFormat::Tar(Compression::Bzip2)),
    (".tbz2", ArchiveFormat::Tar(Compression::Bzip2)),
    (".tar.zst", ArchiveFormat::Tar(Compression::Zstd)),
    (".tar", ArchiveFormat::Tar(Compression::None)),
    (".zip", ArchiveFormat::Zip),
    (".tzst", ArchiveFormat::Tar(Compression::Zstd)),
];

/// Number of bytes that identify the format.
pub(super) const MAGIC: usize = 512;

impl ArchiveFormat {
    /// Returns the format for the suffix of a file name.
    pub fn of(name: &str) -> Option<Self> {
        known(name).map(|(_, kind)| kind)
    }

    /// Returns the archive suffix of a file name.
    pub fn ending_of(name: &str) -> Option<&'static str> {
        known(name).map(|(ending, _)| ending)
    }

    /// Returns all suffixes for a message.
    pub fn endings() -> String {
        ENDINGS.map(|(ending, _)| ending).join(" ")
    }

    /// Returns whether a file that starts with these bytes can have this format.
    pub(super) fn is_confirmed_by(self, start: &[u8]) -> bool {
        match self {
            Self::Tar(Compression::Gzip) => start.starts_with(&[0x1f, 0x8b]),
            Self::Tar(Compression::Xz) => start.starts_with(b"\xfd7zXZ\0"),
            Self::Tar(Compression::Bzip2) => start.starts_with(b"BZh"),
            // Frames with data, and skippable frames.
            Self::Tar(Compression::Zstd) => {
                start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || start.get(1..4) == Some(&[0x2a, 0x4d, 0x18])
            }
            // Old tar archives have no magic: the checksum of the first header is better than one.
            Self::Tar(Compression::None) => {
                start.len() == MAGIC && (start.iter().all(|byte| *byte == 0) || super::tar::is_header(start))
            }
            Self::Zip => start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06"),
        }
    }
}

fn known(name: &str) -> Option<(&'static str, ArchiveFormat)> {
    let name = name.to_ascii_lowercase();
    // A suffix alone is not a name.
    let fits =
        |ending: &str| name.strip_suffix(ending).is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/'));
    ENDINGS.into_iter().find(|(ending, _)| fits(ending))
}

impl fmt::Display for ArchiveFormat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Tar(Compression::None) => "tar archive",
            Self::Tar(Compression::Gzip) => "gzip-compressed tar archive",
            Self::Tar(Compression::Xz) => "xz-compressed tar archive",
            Self::Tar(Compression::Bzip2) => "bzip2-compressed tar archive",
            Self::Tar(Compression::Zstd) => "zstd-compressed tar archive",
            Self::Zip => "zip archive",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffix_of_a_name_selects_the_format() {
        for (name, kind) in [
            ("a.tar.gz", Some(ArchiveFormat::Tar(Compression::Gzip))),
            ("A-1.2.TGZ", Some(ArchiveFormat::Tar(Compression::Gzip))),
            ("/x/a.tar", Some(ArchiveFormat::Tar(Compression::None))),
            ("a.zip", Some(ArchiveFormat::Zip)),
            ("a.gz", None),
            ("a.zip.sig", None),
            (".zip", None),
            ("/x/.tgz", None),
            ("tar", None),
        ] {
            assert_eq!(ArchiveFormat::of(name), kind, "{name}");
        }
    }

    #[test]
    fn all_listed_suffixes_are_supported() {
        let endings = ArchiveFormat::endings();
        assert_eq!(endings, ".tar.gz .tgz .tar.xz .txz .tar.bz2 .tbz2 .tar.zst .tar .zip .tzst");
        for ending in endings.split(' ') {
            assert_eq!(ArchiveFormat::ending_of(&format!("a{ending}")), Some(ending));
        }
    }

    #[test]
    fn tar_archive_starts_with_a_header_or_the_end_mark() {
        let plain = ArchiveFormat::Tar(Compression::None);
        let mut header = tar::Header::new_ustar();
        header.set_size(0);
        header.set_cksum();
        let text = [b'x'; MAGIC];
        for (start, is_tar) in [
            (&header.as_bytes()[..], true),
            (&[0; MAGIC], true),
            (&text, false),
            (&[0; MAGIC - 1], false),
            (&header.as_bytes()[..MAGIC - 1], false),
            (&[], false),
        ] {
            assert_eq!(plain.is_confirmed_by(start), is_tar, "{:?} of {}", start.first(), start.len());
        }
    }
}
