//! Reads tar archives, header by header.
//!
//! The headers are taken apart by the `tar` crate; the loop is here, because an archive that ends without its end mark,
//! that contradicts itself, or that holds a name of a gigabyte has to be refused, not read as well as possible.

use std::io::Read;

use tar::{EntryType, Header};

use super::{
    UnpackError,
    error::Offence,
    tree::{About, Tree},
};

const BLOCK: usize = 512;
/// Longer than any path; names are held in memory.
const LONGEST_NAME: u64 = 64 * 1024;
const LONGEST_RECORDS: u64 = 1024 * 1024;

/// Maximum size in the eleven octal digits of a header. For a larger file the header contains 0, and an extended header the size.
const LARGEST_IN_HEADER: u64 = 0o77_777_777_777;

/// A key and its value in an extended header.
type Record = (Vec<u8>, Vec<u8>);

/// Values of the extended headers before an entry.
#[derive(Default)]
struct Preface {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    modified: Option<i64>,
    is_sparse: bool,
}

pub(super) fn read(archive: &mut dyn Read, tree: &mut Tree) -> Result<(), UnpackError> {
    let mut preface = Preface::default();
    while let Some(header) = next_header(archive)? {
        let size = header.entry_size().map_err(|_| malformed(&header, "its size is not a number"))?;
        match header.entry_type() {
            EntryType::GNULongName => preface.name = Some(text(archive, &header, size)?),
            EntryType::GNULongLink => preface.link = Some(text(archive, &header, size)?),
            EntryType::XHeader => preface.read_records(&records(archive, &header, size)?, &header)?,
            EntryType::XGlobalHeader => refuse_names(&records(archive, &header, size)?, &header)?,
            kind => entry(archive, tree, &header, kind, size, std::mem::take(&mut preface))?,
        }
    }
    if preface.name.is_some() || preface.link.is_some() || preface.size.is_some() {
        return Err(UnpackError::damaged("its last header announces an entry that is not there"));
    }
    // Data after the end mark is ignored, but the decompressor must check that it is complete.
    tree.drain(archive)?;
    Ok(())
}

/// Reads one file at the top of an archive, as far as it is no larger than `limit`.
pub(super) fn member(archive: impl Read, name: &str, limit: u64) -> Result<Option<Vec<u8>>, UnpackError> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(UnpackError::from_read)? {
        let entry = entry.map_err(UnpackError::from_read)?;
        let is_it = entry.path().is_ok_and(|path| super::is_at_the_top(&path, name));
        if is_it && entry.header().entry_type().is_file() {
            let mut bytes = Vec::new();
            entry.take(limit).read_to_end(&mut bytes).map_err(UnpackError::from_read)?;
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn entry(
    archive: &mut dyn Read,
    tree: &mut Tree,
    header: &Header,
    kind: EntryType,
    size: u64,
    preface: Preface,
) -> Result<(), UnpackError> {
    let name = preface.name.unwrap_or_else(|| header.path_bytes().into_owned());
    tree.begin(&name);
    let refuse = |offence: Offence| Err(offence.at(name.clone()));
    if preface.is_sparse || kind == EntryType::GNUSparse {
        return refuse(Offence::Special { what: "sparse file" });
    }
    let size = match preface.size {
        Some(other) if size == 0 && other > LARGEST_IN_HEADER => other,
        Some(other) if other != size => return refuse(Offence::SizeMismatch),
        _ => size,
    };
    let link = preface.link.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
    let mode = header.mode().map_err(|_| Offence::malformed("its mode is not a number").at(name.clone()))?;
    // In old archives a directory is a file whose name ends with a slash.
    let is_directory = kind == EntryType::Directory || kind == EntryType::Regular && name.ends_with(b"/");
    let is_file = matches!(kind, EntryType::Regular | EntryType::Continuous) && !is_directory;
    if size > 0 && !is_file {
        return refuse(Offence::malformed("it has content, and is no file"));
    }
    match kind {
        _ if is_directory => tree.add_directory(&name, mode),
        _ if is_file => {
            let modified = preface.modified.or_else(|| header.mtime().ok()?.try_into().ok());
            let content = &mut archive.take(size);
            let read = tree.add_file(&name, About { mode, modified }, content)?;
            if read < size {
                return Err(ends_early());
            }
            skip_padding(archive, size)
        }
        EntryType::Symlink => tree.add_symlink(&name, &link.unwrap_or_default()),
        EntryType::Link => tree.add_hard_link(&name, &link.unwrap_or_default()),
        EntryType::Char => refuse(Offence::Special { what: "character device" }),
        EntryType::Block => refuse(Offence::Special { what: "block device" }),
        EntryType::Fifo => refuse(Offence::Special { what: "fifo" }),
        other => {
            refuse(Offence::malformed(format!("it is of the unknown type {:?}", char::from(other.as_byte()))))
        }
    }
}

/// Reads the next header; `None` at the end mark.
fn next_header(archive: &mut dyn Read) -> Result<Option<Header>, UnpackError> {
    let mut header = Header::new_old();
    let block = header.as_mut_bytes();
    archive.read_exact(block).map_err(UnpackError::from_read)?;
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if !is_header(block) {
        return Err(UnpackError::damaged("the checksum of a header does not fit"));
    }
    Ok(Some(header))
}

/// Returns whether the checksum in a block is that of the block.
pub(super) fn is_header(block: &[u8]) -> bool {
    let Ok(bytes) = <&[u8; BLOCK]>::try_from(block) else { return false };
    let sum = |field: &[u8]| field.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    let blank = 8 * u32::from(b' ');
    Header::from_byte_slice(bytes)
        .cksum()
        .is_ok_and(|found| found == sum(&bytes[..148]) + blank + sum(&bytes[156..]))
}

fn malformed(header: &Header, reason: &str) -> UnpackError {
    Offence::malformed(reason).at(header.path_bytes().into_owned())
}

fn ends_early() -> UnpackError {
    UnpackError::damaged("it ends too early")
}

fn skip_padding(archive: &mut dyn Read, size: u64) -> Result<(), UnpackError> {
    let padding = usize::try_from(size.next_multiple_of(BLOCK as u64) - size).unwrap_or_default();
    archive.read_exact(&mut [0; BLOCK][..padding]).map_err(UnpackError::from_read)
}

/// Reads the content of a header that speaks of the next entry.
fn content(archive: &mut dyn Read, header: &Header, size: u64, limit: u64) -> Result<Vec<u8>, UnpackError> {
    if size > limit {
        return Err(malformed(header, "what is said of it is too long"));
    }
    let mut bytes = Vec::new();
    (&mut *archive).take(size).read_to_end(&mut bytes).map_err(UnpackError::from_read)?;
    if (bytes.len() as u64) < size {
        return Err(ends_early());
    }
    skip_padding(archive, size)?;
    Ok(bytes)
}

/// Reads a long name, which ends with a null byte; anything after that is refused.
fn text(archive: &mut dyn Read, header: &Header, size: u64) -> Result<Vec<u8>, UnpackError> {
    let mut bytes = content(archive, header, size, LONGEST_NAME)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    if bytes[end..].iter().any(|byte| *byte != 0) {
        return Err(Offence::NullByte.at(bytes));
    }
    bytes.truncate(end);
    Ok(bytes)
}

fn records(archive: &mut dyn Read, header: &Header, size: u64) -> Result<Vec<Record>, UnpackError> {
    let bytes = content(archive, header, size, LONGEST_RECORDS)?;
    parse_records(&bytes).ok_or_else(|| malformed(header, "its extended header does not follow the rules"))
}

/// `LENGTH KEY=VALUE\n`, where the length is that of the whole.
fn parse_records(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let blank = bytes.iter().take(20).position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&bytes[..blank]).ok()?.parse().ok()?;
        let record = bytes.get(blank + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        records.push((record[..equals].to_owned(), record[equals + 1..].to_owned()));
        bytes = &bytes[length..];
    }
    Some(records)
}

/// Refuses a global header that gives a name or size to all entries; a comment is fine.
fn refuse_names(records: &[Record], header: &Header) -> Result<(), UnpackError> {
    let is_name = |(key, _): &Record| matches!(key.as_slice(), b"path" | b"linkpath" | b"size");
    if records.iter().any(is_name) {
        return Err(malformed(header, "a global header gives a name or size to all entries"));
    }
    Ok(())
}

impl Preface {
    fn read_records(&mut self, records: &[Record], header: &Header) -> Result<(), UnpackError> {
        for (key, value) in records {
            let number = || std::str::from_utf8(value).ok();
            match key.as_slice() {
                b"path" => self.name = Some(value.clone()),
                b"linkpath" => self.link = Some(value.clone()),
                b"size" => {
                    let size = number().and_then(|text| text.parse().ok());
                    self.size = Some(size.ok_or_else(|| malformed(header, "its size is not a number"))?);
                }
                b"mtime" => {
                    self.modified = number().and_then(|text| text.split('.').next()?.parse().ok());
                }
                _ if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
        }
        Ok(())
    }
}
