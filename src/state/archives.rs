//! What was fetched and unpacked by earlier runs.
//!
//! From the tree alone nobody can tell which version of an archive it came from, whether its unpacking came to an end,
//! or which of its files a new version no longer has. The record of an archive is small and read on every run; the list
//! of what was unpacked lies in a file of its own, which is read only when it is needed.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::{StateDirectory, StateError, make_private};
use crate::{
    host::unpack::{Extracted, What},
    vocabulary::{Algorithm, Checksum},
};

const FOLDER: &str = "archives";

/// What is remembered of one archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchiveRecord {
    /// The path of the archive.
    pub(crate) archive: String,
    /// Where it came from, without user and password.
    pub(crate) url: String,
    /// Where its checksum came from, without user and password.
    pub(crate) checksum_url: Option<String>,
    /// Its checksums.
    pub(crate) checksums: Vec<Checksum>,
    /// What was made of it.
    pub(crate) extraction: Option<Extraction>,
}

/// What was unpacked, and how far that came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extraction {
    /// Where it was unpacked.
    pub(crate) target: PathBuf,
    pub(crate) progress: Progress,
    /// The list of what is in it.
    list: String,
    /// Lists of earlier versions, of which something may still be there.
    earlier: Vec<String>,
}

/// How far an extraction came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Progress {
    /// It is owed, or its files are being put in place: some may be there and some may not.
    Unfinished,
    Complete,
}

impl ArchiveRecord {
    /// Whether it is of the archive with this checksum.
    pub(crate) fn is_of(&self, checksum: &Checksum) -> bool {
        self.checksums.contains(checksum)
    }
}

impl StateDirectory {
    /// The record of the archive at a path.
    pub(crate) fn archive(&self, path: &Path) -> Result<Option<ArchiveRecord>, StateError> {
        self.read(&record_name(path))
    }

    /// Keeps a record without a list.
    pub(crate) fn keep_archive(&self, path: &Path, record: &ArchiveRecord) -> Result<(), StateError> {
        let text = json(record);
        self.make_archives()?;
        self.store(&format!("{FOLDER}/{}", record_name(path)), &text)
    }

    /// Keeps the record of an extraction that is about to be published, together with those before it.
    pub(crate) fn begin_extraction(
        &self,
        path: &Path,
        mut record: ArchiveRecord,
        target: &Path,
        files: &[Extracted],
    ) -> Result<ArchiveRecord, StateError> {
        let list = list_name(path, &record);
        let lines: Vec<Line> = files.iter().map(Line::of).collect();
        self.make_archives()?;
        self.store(&format!("{FOLDER}/{list}"), &json(&lines))?;
        let before = self.archive(path).ok().flatten().and_then(|record| record.extraction);
        let mut earlier: Vec<String> = before
            .filter(|before| before.target == target)
            .map(|before| before.earlier.into_iter().chain([before.list]).collect())
            .unwrap_or_default();
        earlier.retain(|other| *other != list && !other.is_empty());
        record.extraction =
            Some(Extraction { target: target.to_owned(), progress: Progress::Unfinished, list, earlier });
        self.keep_archive(path, &record)?;
        Ok(record)
    }

    /// Notes that an extraction is complete and that nothing is left to do about earlier ones.
    pub(crate) fn finish_extraction(&self, path: &Path, mut record: ArchiveRecord) -> Result<(), StateError> {
        let Some(extraction) = &mut record.extraction else { return Ok(()) };
        extraction.progress = Progress::Complete;
        let earlier = std::mem::take(&mut extraction.earlier);
        self.keep_archive(path, &record)?;
        for list in earlier {
            // One that stays is never looked at again.
            let _ = fs::remove_file(self.path().join(FOLDER).join(list));
        }
        Ok(())
    }

    /// What was unpacked.
    pub(crate) fn extracted(&self, extraction: &Extraction) -> Result<Vec<Extracted>, StateError> {
        self.list(&extraction.list)
    }

    /// What was unpacked from an archive into a directory by all versions of which something may still be there; of
    /// what several had, the last.
    pub(crate) fn extracted_at(&self, path: &Path, target: &Path) -> Result<Vec<Extracted>, StateError> {
        let extraction = self.archive(path)?.and_then(|record| record.extraction);
        let Some(extraction) = extraction.filter(|extraction| extraction.target == target) else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for list in extraction.earlier.iter().chain([&extraction.list]) {
            all.extend(self.list(list)?);
        }
        Ok(all)
    }

    fn list(&self, name: &str) -> Result<Vec<Extracted>, StateError> {
        // Which names exist is decided here; a record that says otherwise was tampered with.
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        let lines: Option<Vec<Line>> = if is_name { self.read(name)? } else { None };
        Ok(lines.unwrap_or_default().into_iter().map(Line::into_extracted).collect())
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let path = self.path().join(FOLDER).join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| StateError::Damaged { path, reason: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StateError::Io { path, error }),
        }
    }

    fn make_archives(&self) -> Result<(), StateError> {
        self.make()?;
        make_private(&self.path().join(FOLDER))
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Records hold nothing that JSON cannot.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Paths are too long and too free for names of files: their checksums are neither.
fn record_name(path: &Path) -> String {
    format!("{}.json", stem(path))
}

fn list_name(path: &Path, record: &ArchiveRecord) -> String {
    let version = record.checksums.first().map(ToString::to_string).unwrap_or_default();
    format!("{}-{}.list", stem(path), version.chars().take(16).collect::<String>())
}

fn stem(path: &Path) -> String {
    Checksum::of(Algorithm::Sha256, &Sha256::digest(path.as_os_str().as_bytes())[..16]).to_string()
}

/// One entry of a list.
#[derive(Serialize, Deserialize)]
struct Line {
    path: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<Checksum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Name>,
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
            What::File { sha256 } => Self { path, sha256: Some(sha256.clone()), link: None },
            What::Link { target } => Self { path, sha256: None, link: Some(Name::of(target)) },
            What::Directory => Self { path, sha256: None, link: None },
        }
    }

    fn into_extracted(self) -> Extracted {
        let what = match (self.sha256, self.link) {
            (Some(sha256), _) => What::File { sha256 },
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
