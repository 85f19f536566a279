//! What was fetched and unpacked by earlier runs.
//!
//! From the tree alone nobody can tell which version of an archive it came from, whether its unpacking came to an end,
//! or which of its files a new version no longer has. A record is small and read on every run; the list of what was
//! unpacked lies in a file of its own, which is read only when it is needed.
//!
//! A record belongs to the directory that was unpacked into, and is found by the archive or by the file that it
//! creates: archives have their versions in their names. Each has a file of its own, because several commands may run
//! at once. Of addresses, which may hold passwords and tokens, only hashes are kept.

mod list;

use std::{
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::{StateDirectory, StateError, make_private};
use crate::{
    host::{files, unpack::Extracted},
    vocabulary::{Checksum, Url},
};

const FOLDER: &str = "archives";

/// Where an archive and its checksum came from, as hashes of the addresses without user and password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Origin {
    pub(crate) url: Option<Checksum>,
    pub(crate) checksum_url: Option<Checksum>,
}

impl Origin {
    pub(crate) fn of(url: Option<&Url>, checksum_url: Option<&Url>) -> Self {
        let hash = |url: &Url| fingerprint(url.bare().as_bytes());
        Self { url: url.map(hash), checksum_url: checksum_url.map(hash) }
    }
}

/// What is remembered of an archive that was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetched {
    pub(crate) origin: Origin,
    pub(crate) checksums: Vec<Checksum>,
}

/// An archive and where it is unpacked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unpacking<'a> {
    pub(crate) target: &'a Path,
    pub(crate) archive: &'a Path,
    pub(crate) creates: Option<&'a Path>,
}

/// What is remembered of an archive that was unpacked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtractionRecord {
    /// The path of the archive.
    archive: String,
    /// A hash of the path that it creates.
    creates: Option<Checksum>,
    pub(crate) fetched: Fetched,
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
    WriteJournal,
    Complete,
}

impl Fetched {
    /// Whether it is the archive with this checksum.
    pub(crate) fn is(&self, checksum: &Checksum) -> bool {
        self.checksums.contains(checksum)
    }
}

impl Unpacking<'_> {
    /// How sure it is that a record is of this: by what is created, by the archive, or by both; `None` if it is not.
    fn likeness(&self, record: &ExtractionRecord) -> Option<[bool; 2]> {
        let creates = self.creates.map(|path| fingerprint(path.as_os_str().as_bytes()));
        let likeness =
            [creates.is_some() && creates == record.creates, Path::new(&record.archive) == self.archive];
        likeness.contains(&true).then_some(likeness)
    }

    fn record_name(&self) -> String {
        format!("{}-{}.json", stem(self.target), stem(self.archive))
    }
}

impl StateDirectory {
    /// What is known of the archive at a path.
    pub(crate) fn fetched(&self, archive: &Path) -> Result<Option<Fetched>, StateError> {
        self.read(&fetched_name(archive))
    }

    pub(crate) fn keep_fetched(&self, archive: &Path, fetched: &Fetched) -> Result<(), StateError> {
        self.keep(&fetched_name(archive), fetched)
    }

    /// The record of what was unpacked.
    pub(crate) fn extraction(&self, unpacking: Unpacking) -> Result<Option<ExtractionRecord>, StateError> {
        let (records, damage) = self.extractions(unpacking);
        match (records.into_iter().next_back(), damage) {
            (None, Some(damage)) => Err(damage),
            (record, _) => Ok(record.map(|(_, record)| record)),
        }
    }

    /// Keeps the record of an extraction that is about to be published, together with those before it.
    pub(crate) fn begin_extraction(
        &self,
        unpacking: Unpacking,
        fetched: Fetched,
        files: &[Extracted],
    ) -> Result<ExtractionRecord, StateError> {
        let list = format!("{}-{}.list", stem(unpacking.target), list::fingerprint(files));
        self.make_archives()?;
        list::write(&self.archives().join(&list), files)?;
        let (before, _) = self.extractions(unpacking);
        let mut earlier: Vec<String> = Vec::new();
        for other in before.iter().flat_map(|(_, record)| record.earlier.iter().chain([&record.list])) {
            if *other != list && !earlier.contains(other) {
                earlier.push(other.clone());
            }
        }
        let record = ExtractionRecord {
            archive: unpacking.archive.display().to_string(),
            creates: unpacking.creates.map(|path| fingerprint(path.as_os_str().as_bytes())),
            fetched,
            progress: Progress::WriteJournal,
            list,
            earlier,
        };
        let name = unpacking.record_name();
        self.keep(&name, &record)?;
        for (other, _) in before.iter().filter(|(other, _)| *other != name) {
            // What it said is in the new one; if it stays, it is only found to be less like.
            let _ = fs::remove_file(self.archives().join(other));
        }
        Ok(record)
    }

    /// Notes that an extraction is complete and that nothing is left to do about earlier ones.
    pub(crate) fn finish_extraction(
        &self,
        unpacking: Unpacking,
        mut record: ExtractionRecord,
    ) -> Result<(), StateError> {
        record.progress = Progress::Complete;
        let earlier = std::mem::take(&mut record.earlier);
        self.keep(&unpacking.record_name(), &record)?;
        let (others, _) = self.records(unpacking.target);
        let is_used = |list: &String| {
            others.iter().any(|(_, other)| other.list == *list || other.earlier.contains(list))
        };
        for list in earlier.iter().filter(|list| is_list_name(list) && !is_used(list)) {
            // One that stays is never looked at again.
            let _ = fs::remove_file(self.archives().join(list));
        }
        Ok(())
    }

    /// What was unpacked.
    pub(crate) fn extracted(&self, record: &ExtractionRecord) -> Result<Vec<Extracted>, StateError> {
        self.list(&record.list)
    }

    /// What was unpacked by all versions of which something may still be there, as each of them had it.
    pub(crate) fn extracted_before(&self, unpacking: Unpacking) -> Result<Vec<Extracted>, StateError> {
        let mut all = Vec::new();
        for (_, record) in self.extractions(unpacking).0 {
            for list in record.earlier.iter().chain([&record.list]) {
                all.extend(self.list(list)?);
            }
        }
        Ok(all)
    }

    /// The records that are of this, the one that is most like it last, and what was damaged.
    fn extractions(&self, unpacking: Unpacking) -> (Vec<(String, ExtractionRecord)>, Option<StateError>) {
        let (mut records, damage) = self.records(unpacking.target);
        records.retain(|(_, record)| unpacking.likeness(record).is_some());
        records.sort_by_key(|(_, record)| unpacking.likeness(record));
        (records, damage)
    }

    /// All records of a directory, each with its name.
    fn records(&self, target: &Path) -> (Vec<(String, ExtractionRecord)>, Option<StateError>) {
        let prefix = format!("{}-", stem(target));
        let path = self.archives();
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return (Vec::new(), Some(StateError::Io { path, error }));
            }
            entries => entries.into_iter().flatten().flatten(),
        };
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_record = |name: &String| {
            name.starts_with(&prefix) && Path::new(name).extension().is_some_and(|ending| ending == "json")
        };
        let mut names: Vec<String> = names.filter(is_record).collect();
        names.sort();
        let (mut records, mut damage) = (Vec::new(), None);
        for name in names {
            match self.read(&name) {
                Ok(record) => records.extend(record.map(|record| (name, record))),
                Err(error) => damage = Some(error),
            }
        }
        (records, damage)
    }

    fn list(&self, name: &str) -> Result<Vec<Extracted>, StateError> {
        let path = self.archives().join(name);
        // Which names exist is decided here; a record that says otherwise was tampered with.
        if !is_list_name(name) {
            return Err(StateError::Damaged { path, reason: "it cannot be a list".to_owned() });
        }
        list::read(&path)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let path = self.archives().join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| StateError::Damaged { path, reason: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StateError::Io { path, error }),
        }
    }

    fn keep(&self, name: &str, record: &impl Serialize) -> Result<(), StateError> {
        self.make_archives()?;
        // Records hold nothing that JSON cannot.
        self.store(&format!("{FOLDER}/{name}"), &serde_json::to_vec(record).unwrap_or_default())
    }

    fn archives(&self) -> PathBuf {
        self.path().join(FOLDER)
    }

    fn make_archives(&self) -> Result<(), StateError> {
        self.make()?;
        make_private(&self.archives())
    }
}

fn fetched_name(archive: &Path) -> String {
    format!("{}.json", stem(archive))
}

fn is_list_name(name: &str) -> bool {
    let stem = name.strip_suffix(".list");
    stem.is_some_and(|stem| stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

/// Paths are too long and too free for names of files: their hashes are neither.
fn stem(path: &Path) -> String {
    files::hex(&Sha256::digest(path.as_os_str().as_bytes())[..16])
}

fn fingerprint(bytes: &[u8]) -> Checksum {
    Checksum::Sha256(Sha256::digest(bytes).into())
}
