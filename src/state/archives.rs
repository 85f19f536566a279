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

use std::{fs::File, io, os::unix::ffi::OsStrExt, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::{StateDirectory, StateError, read, write_journal::tick};
use crate::{
    host::{
        files::{self, PrivateFolder},
        interrupt::Interrupt,
        unpack::Extracted,
    },
    vocabulary::{Checksum, Url},
};

pub(super) const FOLDER: &str = "archives";
/// Held while a list is written that no record names yet.
const LOCK: &str = "lock";

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
    Unfinished,
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
    /// Returns what is known of the archive at a path.
    pub(crate) fn fetched(&self, archive: &Path) -> Result<Option<Fetched>, StateError> {
        self.archives()?.map_or(Ok(None), |folder| read_record(&folder, &fetched_name(archive)))
    }

    /// Keeps what is known of the archive at a path.
    pub(crate) fn keep_fetched(&self, archive: &Path, fetched: &Fetched) -> Result<(), StateError> {
        keep(&self.make_folder(FOLDER)?, &fetched_name(archive), fetched)
    }

    /// Returns the record of what was unpacked.
    pub(crate) fn extraction(&self, unpacking: Unpacking) -> Result<Option<ExtractionRecord>, StateError> {
        let Some(folder) = self.archives()? else { return Ok(None) };
        let (records, damage) = extractions(&folder, unpacking)?;
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
        let folder = self.make_folder(FOLDER)?;
        let list = format!("{}-{}.list", stem(unpacking.target), list::fingerprint(files));
        // Until the record names the list, nobody else can tell that it is needed.
        let _alone = lock(&folder, File::lock)?;
        list::write(&folder, &list, files)?;
        let (before, _) = extractions(&folder, unpacking)?;
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
            progress: Progress::Unfinished,
            list,
            earlier,
        };
        let name = unpacking.record_name();
        keep(&folder, &name, &record)?;
        for (other, _) in before.iter().filter(|(other, _)| *other != name) {
            // What it said is in the new one; if it stays, it is only found to be less like.
            let _ = folder.remove(other.as_ref());
        }
        Ok(record)
    }

    /// Notes that an extraction is complete and that nothing is left to do about earlier ones.
    pub(crate) fn finish_extraction(
        &self,
        unpacking: Unpacking,
        mut record: ExtractionRecord,
    ) -> Result<(), StateError> {
        let folder = self.make_folder(FOLDER)?;
        record.progress = Progress::Complete;
        let earlier = std::mem::take(&mut record.earlier);
        keep(&folder, &unpacking.record_name(), &record)?;
        let (others, _) = records(&folder, &format!("{}-", stem(unpacking.target)))?;
        for list in earlier.iter().filter(|list| is_list_name(list) && !is_used(list, &others)) {
            // One that stays is swept by a later run.
            let _ = folder.remove(list.as_ref());
        }
        Ok(())
    }

    /// Returns what was unpacked.
    pub(crate) fn extracted(&self, record: &ExtractionRecord) -> Result<Vec<Extracted>, StateError> {
        match self.archives()? {
            Some(folder) => read_list(&folder, &record.list),
            None => Err(StateError::Damaged {
                path: self.path()?.join(FOLDER),
                reason: "it is not there".to_owned(),
            }),
        }
    }

    /// Returns what was unpacked by all versions of which something may still be there, as each of them had it.
    pub(crate) fn extracted_before(&self, unpacking: Unpacking) -> Result<Vec<Extracted>, StateError> {
        let mut all = Vec::new();
        let Some(folder) = self.archives()? else { return Ok(all) };
        for (_, record) in extractions(&folder, unpacking)?.0 {
            for list in record.earlier.iter().chain([&record.list]) {
                all.extend(read_list(&folder, list)?);
            }
        }
        Ok(all)
    }

    pub(super) fn archives(&self) -> Result<Option<PrivateFolder>, StateError> {
        self.open()?.map_or(Ok(None), |state| Ok(state.folder(FOLDER)?))
    }
}

/// Removes what killed runs left among the records: files that were being written, and lists that no record names.
pub(super) fn sweep_archives(state: &PrivateFolder, interrupt: &Interrupt) -> Result<(), StateError> {
    let Some(folder) = state.folder(FOLDER)? else { return Ok(()) };
    folder.sweep(&mut || tick(interrupt))?;
    let is_record = |name: &String| is_record_name(name) && name.contains('-');
    // Every list that is needed is named by a record, and hardly ever by more than one.
    let names = text_names(&folder)?;
    if names.iter().filter(|name| is_list_name(name)).count()
        <= names.iter().filter(|name| is_record(name)).count()
    {
        return Ok(());
    }
    // A living run has the lock between writing a list and the record that names it.
    let Ok(_alone) = lock(&folder, |file| file.try_lock().map_err(io::Error::from)) else { return Ok(()) };
    let names = text_names(&folder)?;
    let (records, damage) = records(&folder, "")?;
    // A record that cannot be read may name any list.
    let is_orphan = |name: &&String| is_list_name(name) && damage.is_none() && !is_used(name, &records);
    for list in names.iter().filter(is_orphan) {
        folder.remove(list.as_ref())?;
    }
    Ok(())
}

type Named = (String, ExtractionRecord);

/// Whether a list is named by one of these records.
fn is_used(list: &String, records: &[Named]) -> bool {
    records.iter().any(|(_, record)| record.list == *list || record.earlier.contains(list))
}

/// Keeps other runs from sweeping lists.
fn lock(folder: &PrivateFolder, take: fn(&File) -> io::Result<()>) -> Result<File, StateError> {
    let file = folder.make_to_append(LOCK)?;
    match take(&file) {
        Ok(()) => Ok(file),
        Err(error) => Err(StateError::Io { path: folder.path().join(LOCK), error }),
    }
}

/// Returns the records that are of this, the one that is most like it last, and what was damaged.
fn extractions(
    folder: &PrivateFolder,
    unpacking: Unpacking,
) -> Result<(Vec<Named>, Option<StateError>), StateError> {
    let (mut records, damage) = records(folder, &format!("{}-", stem(unpacking.target)))?;
    records.retain(|(_, record)| unpacking.likeness(record).is_some());
    records.sort_by_key(|(_, record)| unpacking.likeness(record));
    Ok((records, damage))
}

/// Returns all records of extractions whose names begin like this, and what was damaged.
fn records(folder: &PrivateFolder, prefix: &str) -> Result<(Vec<Named>, Option<StateError>), StateError> {
    let is_record = |name: &String| name.starts_with(prefix) && is_record_name(name) && name.contains('-');
    let mut names: Vec<String> = text_names(folder)?.into_iter().filter(is_record).collect();
    names.sort();
    let (mut records, mut damage) = (Vec::new(), None);
    for name in names {
        match read_record(folder, &name) {
            Ok(record) => records.extend(record.map(|record| (name, record))),
            Err(error) => damage = Some(error),
        }
    }
    Ok((records, damage))
}

fn text_names(folder: &PrivateFolder) -> Result<Vec<String>, StateError> {
    Ok(folder.names()?.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

fn read_list(folder: &PrivateFolder, name: &str) -> Result<Vec<Extracted>, StateError> {
    // Which names exist is decided here; a record that says otherwise was tampered with.
    if !is_list_name(name) {
        let path = folder.path().join(name);
        return Err(StateError::Damaged { path, reason: "it cannot be a list".to_owned() });
    }
    list::read(folder, name)
}

pub(super) fn read_record<T: DeserializeOwned>(
    folder: &PrivateFolder,
    name: &str,
) -> Result<Option<T>, StateError> {
    let Some(bytes) = read(folder, name)? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| StateError::Damaged { path: folder.path().join(name), reason: error.to_string() })
}

pub(super) fn keep(folder: &PrivateFolder, name: &str, record: &impl Serialize) -> Result<(), StateError> {
    // Records hold nothing that JSON cannot.
    let text = serde_json::to_vec(record).unwrap_or_default();
    Ok(folder.replace(name, |out| out.write_all(&text))?)
}

fn is_record_name(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "json")
}

fn fetched_name(archive: &Path) -> String {
    format!("{}.json", stem(archive))
}

fn is_list_name(name: &str) -> bool {
    let stem = name.strip_suffix(".list");
    stem.is_some_and(|stem| stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

/// Paths are too long and too free for names of files: their hashes are neither.
pub(super) fn stem(path: &Path) -> String {
    files::hex(&Sha256::digest(path.as_os_str().as_bytes())[..16])
}

pub(super) fn fingerprint(bytes: &[u8]) -> Checksum {
    Checksum::Sha256(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::unpack::What;

    #[test]
    fn a_list_goes_when_the_last_archive_that_has_it_changes() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-archives-{}", std::process::id()));
        let state = StateDirectory::at(folder.clone());
        let holds = |name: &str| [Extracted { path: name.into(), what: What::Directory }];
        let unpack = |archive: &str, name: &str| {
            let (target, archive, creates) = (Path::new("/opt"), Path::new(archive), None);
            let fetched = Fetched { origin: Origin::of(None, None), checksums: Vec::new() };
            let unpacking = Unpacking { target, archive, creates };
            let record = state.begin_extraction(unpacking, fetched, &holds(name)).unwrap();
            state.finish_extraction(unpacking, record.clone()).unwrap();
            record
        };
        unpack("/one.tar", "a");
        let other = unpack("/other.tar", "a");
        unpack("/one.tar", "b");
        assert_eq!(state.extracted(&other).unwrap(), holds("a"));
        unpack("/other.tar", "b");
        assert!(state.extracted(&other).is_err(), "nobody has it any more");
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn lists_of_earlier_versions_are_kept_once_until_the_extraction_is_complete() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-earlier-{}", std::process::id()));
        let state = StateDirectory::at(folder.clone());
        let begin = |name: &str| {
            let (target, archive, creates) = (Path::new("/opt"), Path::new("/one.tar"), None);
            let fetched = Fetched { origin: Origin::of(None, None), checksums: Vec::new() };
            let files = [Extracted { path: name.into(), what: What::Directory }];
            let unpacking = Unpacking { target, archive, creates };
            state.begin_extraction(unpacking, fetched, &files).unwrap()
        };
        // None of them comes to its end.
        let [a, b] = ["a", "b"].map(|name| begin(name).list);
        assert_eq!(begin("b").earlier, [a.as_str()], "its own list is no earlier one");
        assert_eq!(begin("a").earlier, [b.as_str()]);
        assert_eq!(begin("c").earlier, [b, a]);
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn what_was_fetched_is_remembered_for_each_archive() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-fetched-{}", std::process::id()));
        let state = StateDirectory::at(folder.clone());
        let fetched = |name: &str| Fetched {
            origin: Origin::of(None, None),
            checksums: vec![fingerprint(name.as_bytes())],
        };
        let archives = ["/one.tar", "/other.tar"];
        for archive in archives {
            state.keep_fetched(Path::new(archive), &fetched(archive)).unwrap();
        }
        for archive in archives {
            assert_eq!(state.fetched(Path::new(archive)).unwrap(), Some(fetched(archive)), "{archive}");
        }
        assert_eq!(state.fetched(Path::new("/third.tar")).unwrap(), None);
        let _ = std::fs::remove_dir_all(folder);
    }
}
