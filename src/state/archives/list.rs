//! The list of what was unpacked: a line of JSON for each file, link and directory. Its hash is part of its name, so that
//! a list is never taken for another, and damage to it is noticed.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, BufWriter, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::StateError;
use crate::{
    host::{
        files::{self, PrivateFolder},
        unpack::{Extracted, What},
    },
    vocabulary::Checksum,
};

/// What names a list.
pub(super) fn fingerprint(files: &[Extracted]) -> String {
    let mut hash = BufWriter::new(Hash(Sha256::new()));
    // Hashing does not fail.
    let _ = put(&mut hash, files);
    hash.into_inner().map(Hash::finish).unwrap_or_default()
}

pub(super) fn write(folder: &PrivateFolder, name: &str, files: &[Extracted]) -> Result<(), StateError> {
    Ok(folder.replace(name, |out| put(out, files))?)
}

pub(super) fn read(folder: &PrivateFolder, name: &str) -> Result<Vec<Extracted>, StateError> {
    let path = folder.path().join(name);
    let damaged = |reason: String| StateError::Damaged { path: path.clone(), reason };
    let file = folder.open_file(name)?.ok_or_else(|| damaged("it is not there".to_owned()))?;
    let mut hash = Hash(Sha256::new());
    let mut list = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(|error| StateError::Io { path: path.clone(), error })?;
        hash.0.update(&line);
        hash.0.update(b"\n");
        let line: Line = serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
        list.push(line.into_extracted());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if !stem.ends_with(&hash.finish()) {
        return Err(damaged("it is not what was written".to_owned()));
    }
    Ok(list)
}

fn put(out: &mut dyn Write, files: &[Extracted]) -> io::Result<()> {
    for extracted in files {
        serde_json::to_writer(&mut *out, &Line::of(extracted))?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

struct Hash(Sha256);

impl Hash {
    fn finish(self) -> String {
        files::hex(&self.0.finalize()[..16])
    }
}

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One entry of a list.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<Content>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Name>,
}

/// What a file holds, and who may use it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    sha256: Sha256Sum,
    mode: u32,
}

/// The SHA-256 of a file, written as in manifests.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "Checksum", into = "Checksum")]
struct Sha256Sum([u8; 32]);

impl TryFrom<Checksum> for Sha256Sum {
    type Error = &'static str;

    fn try_from(checksum: Checksum) -> Result<Self, Self::Error> {
        match checksum {
            Checksum::Sha256(bytes) => Ok(Self(bytes)),
            Checksum::Sha512(_) => Err("expected a SHA-256"),
        }
    }
}

impl From<Sha256Sum> for Checksum {
    fn from(Sha256Sum(bytes): Sha256Sum) -> Self {
        Self::Sha256(bytes)
    }
}

/// A path; as bytes where it is not text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

impl Line {
    fn of(extracted: &Extracted) -> Self {
        let path = Name::of(&extracted.path);
        match &extracted.what {
            What::File { sha256, mode } => {
                Self { path, file: Some(Content { sha256: Sha256Sum(*sha256), mode: *mode }), link: None }
            }
            What::Link { target } => Self { path, file: None, link: Some(Name::of(target)) },
            What::Directory => Self { path, file: None, link: None },
        }
    }

    fn into_extracted(self) -> Extracted {
        let what = match (self.file, self.link) {
            (Some(Content { sha256: Sha256Sum(sha256), mode }), _) => What::File { sha256, mode },
            (None, Some(link)) => What::Link { target: link.into_path() },
            (None, None) => What::Directory,
        };
        Extracted { path: self.path.into_path(), what }
    }
}

impl Name {
    fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_owned()),
        }
    }

    fn into_path(self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}
