//! Extracts tar and zip archives from untrusted sources atomically.
//!
//! The author of an archive decides which names it contains. Extractors have followed `../`, absolute paths and symbolic links
//! of the archive itself out of the target, have created devices and setuid programs, and have filled disks from a few
//! kilobytes. This crate extracts into a private directory first, a [`ccm_files::Staging`], through directory
//! descriptors. The first entry that violates a rule makes it reject the whole archive with an [`Offence`]. Until the caller publishes
//! the staging directory, nothing is visible at the target.
//!
//! An archive is rejected if
//!
//! - a name is absolute, contains `..`, is too long or too deep, is empty, or contains a null byte or a backslash (zip);
//! - two entries have the same path, or an entry is below a file or link;
//! - a symbolic link points out of the target, also through other links of the archive, or a hard link points to anything but
//!   an earlier file;
//! - an entry is a device, FIFO or socket, is encrypted, or has an unsupported compression method;
//! - headers contradict each other, checksums are wrong, or the archive ends early;
//! - it exceeds a limit on size, entries or compression ratio ([`Limits`], [`Breach`]).
//!
//! Owner and group of all entries are given by the caller. Setuid and setgid bits are dropped; modification times are kept.
//! The result lists every path with its SHA-256, mode or link target ([`Extracted`]).
//!
//! [`unpack_tar`] reads a tar archive while it arrives; [`unpack_file`] extracts any archive in a file; [`read_member`] reads one
//! small file of an archive without extracting it. Memory is bounded for every input: decompression windows are limited to 128 MiB.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make archives and read extracted files"))]
#![warn(missing_docs)]

mod error;
mod format;
mod meter;
mod name;
mod tar;
#[cfg(test)]
mod tests;
mod tree;
mod zip;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek},
    path::{Component, Path},
};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

pub use self::{
    error::{Offence, UnpackError},
    format::{ArchiveFormat, Compression},
    meter::{Breach, Limits},
    tree::{Extracted, What},
};
use self::{format::MAGIC, tree::Tree};
use ccm_files::{CopyInterrupted, Staging};

const BUFFER: usize = 128 * 1024;
/// Memory limit of decompressors: the largest window that compression tools use by default.
const WINDOW_KIB: u32 = 128 * 1024;

/// Owner, stripped components and limits of an extraction.
#[derive(Clone, Debug)]
pub struct Rules {
    /// UID of the owner of all entries.
    pub uid: u32,
    /// GID of the group of all entries.
    pub gid: u32,
    /// Number of leading components to remove from every name.
    pub strip_components: usize,
    /// Limits on the extracted files.
    pub limits: Limits,
}

/// Extracts an archive in a file, and returns its entries ordered by path.
pub fn unpack_file(
    mut archive: &File,
    kind: ArchiveFormat,
    into: &mut Staging,
    rules: &Rules,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<Vec<Extracted>, UnpackError> {
    archive.rewind().map_err(UnpackError::from_read)?;
    if let ArchiveFormat::Tar(compression) = kind {
        return unpack_tar(archive, compression, into, rules, tick);
    }
    let mut start = [0; 4];
    if archive.read_exact(&mut start).is_err() || !kind.is_confirmed_by(&start) {
        return Err(UnpackError::OtherKind { kind });
    }
    let mut tree = Tree::new(into, rules, tick);
    zip::read(archive, &mut tree).map_err(|error| error.at(tree.current()))?;
    tree.finish()
}

/// Reads a file in the root of an archive, or in a top-level directory, without extracting anything. Returns `None` if it does not
/// exist.
pub fn read_member(
    mut archive: &File,
    kind: ArchiveFormat,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, UnpackError> {
    archive.rewind().map_err(UnpackError::from_read)?;
    match kind {
        ArchiveFormat::Zip => zip::member(archive, name, limit),
        ArchiveFormat::Tar(compression) => {
            let start = confirm(&mut archive, compression)?;
            let archive = BufReader::with_capacity(BUFFER, start.as_slice().chain(archive));
            // A file after gigabytes of zeros is treated as missing.
            let plain = decompressor(archive, compression).take(Limits::default().size);
            tar::member(plain, name, limit)
        }
    }
}

/// Returns whether a path in an archive is `name`, in the root or in a top-level directory.
fn is_at_the_top(path: &Path, name: &str) -> bool {
    let parts: Vec<_> = path.components().filter(|part| *part != Component::CurDir).collect();
    parts.len() <= 2 && parts.last().is_some_and(|last| last.as_os_str() == name)
}

/// Extracts a tar archive while it arrives.
pub fn unpack_tar(
    archive: impl Read,
    compression: Compression,
    into: &mut Staging,
    rules: &Rules,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<Vec<Extracted>, UnpackError> {
    let mut tree = Tree::new(into, rules, tick);
    let meter = tree.meter.clone();
    let mut archive = meter.before(archive);
    let start = confirm(&mut archive, compression)?;
    let archive = BufReader::with_capacity(BUFFER, start.as_slice().chain(archive));
    let mut plain = meter.after(decompressor(archive, compression));
    tar::read(&mut plain, &mut tree).map_err(|error| error.at(tree.current()))?;
    tree.finish()
}

/// Reads the first bytes and checks that they match the format.
fn confirm(archive: &mut impl Read, compression: Compression) -> Result<Vec<u8>, UnpackError> {
    let kind = ArchiveFormat::Tar(compression);
    let mut start = Vec::with_capacity(MAGIC);
    archive.take(MAGIC as u64).read_to_end(&mut start).map_err(UnpackError::from_read)?;
    if kind.is_confirmed_by(&start) { Ok(start) } else { Err(UnpackError::OtherKind { kind }) }
}

fn decompressor<'r>(archive: impl BufRead + 'r, compression: Compression) -> Box<dyn Read + 'r> {
    match compression {
        Compression::None => Box::new(archive),
        Compression::Gzip => Box::new(Members { current: Some(GzDecoder::new(archive)) }),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(archive)),
        Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(archive, true, WINDOW_KIB)),
        Compression::Zstd => Box::new(Frames { current: None, rest: Some(archive) }),
    }
}

/// Consecutive members of a gzip file, and zeros that pad its last block.
struct Members<R: BufRead> {
    current: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(current) = &mut self.current else { return Ok(0) };
            let count = current.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut rest) = self.current.take().map(GzDecoder::into_inner) else { return Ok(0) };
            match rest.fill_buf()?.first() {
                None => {}
                Some(0) => expect_zeros(rest)?,
                Some(_) => self.current = Some(GzDecoder::new(rest)),
            }
        }
    }
}

fn expect_zeros(mut rest: impl BufRead) -> io::Result<()> {
    loop {
        let (count, is_zero) = {
            let bytes = rest.fill_buf()?;
            (bytes.len(), bytes.iter().all(|byte| *byte == 0))
        };
        match (count, is_zero) {
            (0, _) => return Ok(()),
            (_, false) => return Err(io::Error::other("something follows the compressed data")),
            (count, true) => rest.consume(count),
        }
    }
}

/// Consecutive frames of a zstd file.
struct Frames<R: BufRead> {
    current: Option<StreamingDecoder<R, FrameDecoder>>,
    /// The input after the current frame.
    rest: Option<R>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(current) = &mut self.current {
                match current.read(buffer)? {
                    0 => self.rest = self.current.take().map(end_frame).transpose()?,
                    count => return Ok(count),
                }
            }
            let Some(mut rest) = self.rest.take() else { return Ok(0) };
            match rest.fill_buf()?.first() {
                None => {
                    self.rest = Some(rest);
                    return Ok(0);
                }
                Some(first) if first & 0xf0 == 0x50 => {
                    skip_frame(&mut rest)?;
                    self.rest = Some(rest);
                }
                Some(_) => {
                    let decoder =
                        StreamingDecoder::new_with_max_window_size(rest, u64::from(WINDOW_KIB) * 1024);
                    self.current = Some(decoder.map_err(|error| io::Error::other(error.to_string()))?);
                }
            }
        }
    }
}

fn end_frame<R: BufRead>(frame: StreamingDecoder<R, FrameDecoder>) -> io::Result<R> {
    let (rest, decoder) = frame.into_parts();
    let announced = decoder.get_checksum_from_data();
    if announced.is_some() && announced != decoder.get_calculated_checksum() {
        return Err(io::Error::other("the checksum of a zstd frame does not fit"));
    }
    Ok(rest)
}

/// Skips a skippable frame: a magic number of four bytes, a length of four bytes, and the content.
fn skip_frame(archive: &mut impl BufRead) -> io::Result<()> {
    let mut header = [0; 8];
    archive.read_exact(&mut header)?;
    let length = u64::from(u32::from_le_bytes([header[4], header[5], header[6], header[7]]));
    if header[1..4] != [0x2a, 0x4d, 0x18] || io::copy(&mut archive.take(length), &mut io::sink())? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
