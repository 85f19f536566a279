//! Reads zip archives by their directory.

use std::{
    collections::HashSet,
    ffi::OsString,
    io::{self, BufReader, Read, Seek, SeekFrom},
    os::unix::ffi::OsStringExt,
};

use zip::{CompressionMethod, ZipArchive, read::ZipReadOptions, result::ZipError};

use super::{
    UnpackError,
    error::Offence,
    tree::{About, STICKY, Tree},
};

const LONGEST_TARGET: u64 = 4096;

const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

pub(super) fn read<R: Read + Seek>(mut file: R, tree: &mut Tree) -> Result<(), UnpackError> {
    let size = file.seek(SeekFrom::End(0)).map_err(UnpackError::from_read)?;
    tree.meter.consume(size);
    refuse_claims(&mut file, size, tree)?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    refuse_number(&mut archive, tree)?;
    refuse_overlap(&mut archive)?;
    if archive.has_duplicate_names() {
        return Err(duplicate(archive));
    }
    // Headers that contradict the directory make two programs see two different archives.
    if let Err(error) = archive.validate_header_consistency() {
        return Err(contradiction(archive).unwrap_or_else(|| damaged(error)));
    }
    for index in 0..archive.len() {
        entry(&mut archive, index, tree)?;
    }
    Ok(())
}

/// Reads one file at the top of an archive, as far as it is no larger than `limit`.
pub(super) fn member<R: Read + Seek>(
    file: R,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, UnpackError> {
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    let is_it = |path: &str| super::is_at_the_top(path.as_ref(), name);
    let found = archive.file_names().position(|path| path.is_ok_and(|path| is_it(&path)));
    let Some(index) = found else { return Ok(None) };
    let mut bytes = Vec::new();
    let entry = archive.by_index(index).map_err(damaged)?;
    entry.take(limit).read_to_end(&mut bytes).map_err(UnpackError::from_read)?;
    Ok(Some(bytes))
}

fn entry<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    index: usize,
    tree: &mut Tree,
) -> Result<(), UnpackError> {
    let about = archive.by_index_data(index).map_err(damaged)?;
    let name = about.name().map_err(damaged)?.into_owned().into_bytes();
    tree.begin(&name);
    let refuse = |offence: Offence| Err(offence.at(name.clone()));
    if about.name_raw().contains(&b'\\') {
        return refuse(Offence::Backslash);
    }
    if about.encrypted() {
        return refuse(Offence::Encrypted);
    }
    if !matches!(about.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        return refuse(Offence::Method);
    }
    // The reader leaves out all special bits, of which one is wanted.
    let sticky = about.external_attributes() >> 16 & STICKY;
    let (size, mode) = (about.size(), about.unix_mode());
    let is_directory = name.ends_with(b"/");
    let kind = mode.map_or(0, |mode| mode & TYPE);
    if is_directory && !matches!(kind, 0 | DIRECTORY) || !is_directory && kind == DIRECTORY {
        return refuse(Offence::malformed("its name and its type contradict each other"));
    }
    if is_directory {
        return tree.add_directory(&name, mode.unwrap_or(0o755) | sticky);
    }
    let meter = tree.meter.clone();
    let content = archive.by_index_with_options(index, ZipReadOptions::new()).map_err(damaged)?;
    let mut content = meter.after(content);
    match kind {
        0 | REGULAR => {
            let mode = mode.unwrap_or(0o644);
            let read = tree.add_file(&name, About { mode, modified: None }, &mut content)?;
            if read == size { Ok(()) } else { Err(Offence::SizeMismatch.at(name)) }
        }
        LINK => {
            let mut target = Vec::new();
            content.take(LONGEST_TARGET).read_to_end(&mut target).map_err(UnpackError::from_read)?;
            if target.len() as u64 == size {
                tree.add_symlink(&name, &target)
            } else {
                Err(Offence::SizeMismatch.at(name))
            }
        }
        _ => refuse(Offence::Special { what: "device, fifo or socket" }),
    }
}

/// Refuses more entries than are allowed, and names the first that is too many.
fn refuse_number<R: Read + Seek>(archive: &mut ZipArchive<R>, tree: &Tree) -> Result<(), UnpackError> {
    let Err(breach) = tree.meter.entries_allowed(archive.len() as u64) else { return Ok(()) };
    let limit = usize::try_from(tree.meter.most_entries()).unwrap_or(usize::MAX);
    let entry = archive.by_index_data(limit).map_err(damaged)?;
    Err(UnpackError::from(breach).at(entry.name_raw()))
}

/// Rejects entries that share bytes: with them, a small archive can expand to any size.
fn refuse_overlap<R: Read + Seek>(archive: &mut ZipArchive<R>) -> Result<(), UnpackError> {
    let mut spans = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(damaged)?;
        let start = entry.header_start();
        let end = entry.data_start().and_then(|data| data.checked_add(entry.compressed_size()));
        spans.push((start, end.unwrap_or(u64::MAX), index));
    }
    spans.sort_unstable();
    let directory = archive.central_directory_start();
    let next = spans.iter().skip(1).map(|(start, ..)| *start).chain([directory]);
    let overlapping = spans.iter().zip(next).find(|((_, end, _), next)| end > next);
    match overlapping {
        None => Ok(()),
        Some(((.., index), _)) => {
            let entry = archive.by_index_data(*index).map_err(damaged)?;
            Err(Offence::Overlap.at(entry.name_raw()))
        }
    }
}

/// Finds the name that the directory holds twice: the reader keeps only the last of equal ones.
fn duplicate<R: Read + Seek>(archive: ZipArchive<R>) -> UnpackError {
    let start = archive.central_directory_start();
    let mut file = archive.into_inner();
    let mut seen = HashSet::new();
    let mut find = || -> io::Result<Vec<u8>> {
        file.seek(SeekFrom::Start(start))?;
        loop {
            let mut fixed = [0; 46];
            file.read_exact(&mut fixed)?;
            let length = |at: usize| usize::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
            let mut name = vec![0; length(28)];
            file.read_exact(&mut name)?;
            io::copy(&mut (&mut file).take((length(30) + length(32)) as u64), &mut io::sink())?;
            if !seen.insert(name.clone()) {
                return Ok(name);
            }
        }
    };
    match find() {
        Ok(name) => Offence::Duplicate.at(name),
        Err(error) => UnpackError::from_read(error),
    }
}

/// Finds the entry that has another name in the directory than in front of its content.
fn contradiction<R: Read + Seek>(archive: ZipArchive<R>) -> Option<UnpackError> {
    let mut named = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).ok()?;
        named.push((entry.header_start(), entry.name_raw().to_owned()));
    }
    let mut file = archive.into_inner();
    for (start, name) in named {
        let mut fixed = [0; 30];
        file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut fixed)).ok()?;
        let mut other = vec![0; usize::from(u16::from_le_bytes([fixed[26], fixed[27]]))];
        file.read_exact(&mut other).ok()?;
        if other != name {
            return Some(Offence::OtherName { other: OsString::from_vec(other) }.at(name));
        }
    }
    None
}

/// Refuses an archive that claims to have more entries than are allowed: the reader would make room for all of them.
fn refuse_claims<R: Read + Seek>(file: &mut R, size: u64, tree: &Tree) -> Result<(), UnpackError> {
    const TAIL: u64 = 128 * 1024;
    const LOCATOR: &[u8] = b"PK\x06\x07";
    const RECORD: &[u8] = b"PK\x06\x06";
    let mut look = || -> io::Result<Option<u64>> {
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail)?;
        let mut most = None;
        for at in tail.windows(4).enumerate().filter(|(_, bytes)| *bytes == LOCATOR).map(|(at, _)| at) {
            let offset =
                tail.get(at + 8..at + 16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
            let Some(offset) = offset.filter(|offset| offset.checked_add(56).is_some_and(|end| end <= size))
            else {
                continue;
            };
            let mut record = [0; 56];
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut record)?;
            // A locator in the content of an entry, which may be an archive itself, counts from another beginning.
            if !record.starts_with(RECORD) {
                continue;
            }
            let count = record[32..40].try_into().map(u64::from_le_bytes).ok();
            most = most.max(count);
        }
        Ok(most)
    };
    let most = look().map_err(UnpackError::from_read)?;
    Ok(tree.meter.entries_allowed(most.unwrap_or(0))?)
}

fn damaged(error: ZipError) -> UnpackError {
    match error {
        ZipError::Io(error) => UnpackError::from_read(error),
        other => UnpackError::damaged(other.to_string()),
    }
}
