//! Makes archives, valid or not.

use std::io::{self, Write};

use ::tar::{EntryType, Header};
use ::zip::{ZipWriter, write::SimpleFileOptions};

/// One entry of a tar archive, however wrong.
pub(super) struct Entry {
    pub(super) header: Header,
    pub(super) content: Vec<u8>,
}

pub(super) fn entry(kind: EntryType, name: &str) -> Entry {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_mtime(1_000_000_000);
    header.set_size(0);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    Entry { header, content: Vec::new() }
}

pub(super) fn file(name: &str, content: &str) -> Entry {
    entry(EntryType::Regular, name).content(content)
}

pub(super) fn directory(name: &str) -> Entry {
    entry(EntryType::Directory, name).mode(0o755)
}

pub(super) fn symlink(name: &str, target: &str) -> Entry {
    entry(EntryType::Symlink, name).target(target)
}

pub(super) fn hard_link(name: &str, target: &str) -> Entry {
    entry(EntryType::Link, name).target(target)
}

impl Entry {
    pub(super) fn content(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.content = content.into();
        self.header.set_size(self.content.len() as u64);
        self
    }

    pub(super) fn mode(mut self, mode: u32) -> Self {
        self.header.set_mode(mode);
        self
    }

    pub(super) fn target(mut self, target: &str) -> Self {
        self.header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        self
    }

    pub(super) fn bytes(mut self) -> Vec<u8> {
        self.header.set_cksum();
        let mut bytes = self.header.as_bytes().to_vec();
        bytes.extend(&self.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }
}

pub(super) fn tar(entries: impl IntoIterator<Item = Entry>) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.into_iter().flat_map(Entry::bytes).collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

pub(super) fn pax(records: &[(&str, &str)]) -> Entry {
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

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The tools that most archives are made with.
pub(super) fn piped(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
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

pub(super) fn zip(fill: impl FnOnce(&mut ZipWriter<io::Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = ZipWriter::new(io::Cursor::new(Vec::new()));
    fill(&mut writer);
    writer.finish().unwrap().into_inner()
}

pub(super) fn options() -> SimpleFileOptions {
    SimpleFileOptions::default()
}

pub(super) fn zip_file(writer: &mut ZipWriter<io::Cursor<Vec<u8>>>, name: &str, content: &[u8]) {
    writer.start_file(name, options()).unwrap();
    writer.write_all(content).unwrap();
}

/// Gives an entry a type and mode that the writer would not.
pub(super) fn with_mode(mut bytes: Vec<u8>, name: &str, mode: u32) -> Vec<u8> {
    let named =
        |at: &usize| bytes[*at..].starts_with(b"PK\x01\x02") && bytes[at + 46..].starts_with(name.as_bytes());
    let at = (0..bytes.len() - 46).find(named).unwrap();
    bytes[at + 5] = 3; // made on Unix
    bytes[at + 38..at + 42].copy_from_slice(&(mode << 16).to_le_bytes());
    bytes
}

/// Changes every occurrence of a text in an archive to another of the same length.
pub(super) fn patch(mut bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    for at in 0..=bytes.len() - from.len() {
        if &bytes[at..at + from.len()] == from.as_bytes() {
            bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        }
    }
    bytes
}
