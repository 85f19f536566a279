//! Observed state of an archive: its file, the path in `creates`, and the records of earlier runs.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Ensure, Properties, decision::reason_to_extract_again, hashing::HashedFile};
pub(super) use crate::host::files::{Attributes, Entry, FileKind};
use crate::{
    download::local,
    host::files::{self, Digested, FileError},
    resource::{Context, Error, State},
    state::{ExtractionRecord, Fetched, Progress, StateError},
    types::{
        disk::modified,
        ownership::{OwnerAndMode, Ownership},
    },
    vocabulary::{Checksum, Mode},
};

/// Observed state of an archive.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArchiveState {
    /// Attributes of the archive.
    pub(super) metadata: Metadata,
    /// Entry at the path.
    #[serde(skip)]
    pub(super) entry: Option<Entry>,
    /// Checksums of the file at the path, if they are needed.
    #[serde(skip)]
    pub(super) checksums: Vec<Checksum>,
    /// Owner, group and mode as numbers.
    #[serde(skip)]
    pub(super) target: Option<Attributes>,
    /// Record of the last download, if its checksum is needed.
    #[serde(skip)]
    pub(super) fetched: Option<Fetched>,
    /// Record of the last extraction.
    #[serde(skip)]
    pub(super) extraction: Option<ExtractionRecord>,
    /// Whether the list of extracted files is needed and cannot be read.
    #[serde(skip)]
    pub(super) is_list_lost: bool,
}

/// Attributes of the archive.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Path of the archive file.
    pub(super) name: String,
    /// SHA-256 of the archive file in hex. Omitted if the file does not exist, or if nothing depends on it because the
    /// path in `creates` exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checksum: Option<String>,
    /// Whether the archive file exists.
    pub(super) archive_exists: bool,
    /// Whether the path in `creates` exists.
    pub(super) creates_exists: bool,
    #[serde(flatten)]
    pub(super) permissions: OwnerAndMode,
    /// Time of the last change of the archive file, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mtime: Option<String>,
    /// Size of the archive file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    /// Provider that inspected the archive.
    pub(super) provider: String,
    /// SHA-256 of the archive that was last extracted to `extract_parent`, or is being extracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extracted_checksum: Option<String>,
    /// Whether the last extraction was interrupted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) extraction_unfinished: bool,
    /// Extracted files that are missing or differ from the record in content, owner, group or mode; at most the first
    /// few, and only with `verify`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tampered: Vec<String>,
}

impl State for ArchiveState {
    fn ensure(&self) -> String {
        if self.metadata.archive_exists { "present" } else { "absent" }.to_owned()
    }

    fn redact(&mut self) {
        self.metadata.checksum = None;
        self.metadata.extracted_checksum = None;
        self.metadata.size = None;
        self.metadata.tampered.clear();
    }
}

pub(super) fn inspect(want: &Properties, cx: &Context) -> Result<ArchiveState, Error> {
    let path = want.name.as_path();
    let mut metadata =
        Metadata { name: want.name.to_string(), provider: "http".to_owned(), ..Metadata::default() };
    let target = if want.ensure == Ensure::Absent { None } else { attributes(want, cx)? };
    if let Some(creates) = &want.creates {
        metadata.creates_exists =
            match cx.prediction.borrow().files.inspect(creates.as_path()).map_err(local)? {
                Some(predicted) => predicted.entry(FileKind::File).is_some(),
                None => files::inspect(creates.as_path()).map_err(local)?.is_some(),
            };
    }
    let fetched = want.remembers_origin().then(|| recall(cx.state.directory.fetched(path), cx)).flatten();
    let extraction =
        want.unpacking().and_then(|unpacking| recall(cx.state.directory.extraction(unpacking), cx));
    if let Some(ExtractionRecord { fetched, progress, .. }) = &extraction {
        metadata.extraction_unfinished = *progress == Progress::Unfinished;
        metadata.extracted_checksum = fetched.checksums.first().map(ToString::to_string);
    }
    let Found { file, entry, checksum } = Found::at(path, cx).map_err(local)?;
    metadata.checksum = checksum.as_ref().map(ToString::to_string);
    if let Some(entry) = &entry {
        metadata.describe(entry, cx);
    }
    let mut state = ArchiveState {
        metadata,
        entry,
        checksums: checksum.into_iter().collect(),
        target,
        fetched,
        extraction,
        is_list_lost: false,
    };
    state.doubt_checksum(want, cx);
    if want.verify {
        state.verify(want, cx)?;
    }
    let is_settled = state.metadata.creates_exists && reason_to_extract_again(want, &state).is_none();
    if let (Some(file), false) = (file, is_settled) {
        state.checksums = HashedFile::new(&file, want.algorithm(), path, cx).finish()?;
        state.metadata.checksum = state.checksums.first().map(ToString::to_string);
    }
    Ok(state)
}

impl ArchiveState {
    /// Warns about a checksum that belongs to an archive from another URL, in which case nothing is downloaded.
    fn doubt_checksum(&self, want: &Properties, cx: &Context) {
        let Some(checksum) = want.sum().filter(|_| want.ensure == Ensure::Present) else {
            return;
        };
        let unpacked = self.extraction.as_ref().map(|record| &record.fetched);
        let known = unpacked.or(self.fetched.as_ref()).filter(|fetched| fetched.is(checksum));
        let url = known.and_then(|fetched| fetched.origin.url.as_ref());
        if url.is_some_and(|url| Some(url) != want.origin().url.as_ref()) {
            cx.warn(
                "`url` is another than the archive with this `checksum` came from, so nothing is downloaded from there: give \
                 the checksum of what is there now",
            );
        }
    }
}

/// Entry at the path of the archive.
struct Found {
    file: Option<File>,
    entry: Option<Entry>,
    /// Checksum of a file that is only predicted, if it is known.
    checksum: Option<Checksum>,
}

impl Found {
    fn at(path: &Path, cx: &Context) -> Result<Self, FileError> {
        let mut predicted = None;
        if let Some(found) = cx.prediction.borrow().files.inspect(path)? {
            match found.entry(FileKind::File) {
                None => return Ok(Self { file: None, entry: None, checksum: None }),
                Some(digested) if digested.is_as_on_disk() => predicted = Some(digested.entry),
                Some(Digested { entry, sha256 }) => {
                    let checksum = sha256.as_deref().and_then(Checksum::from_digits);
                    return Ok(Self { file: None, entry: Some(entry), checksum });
                }
            }
        }
        let (file, entry) = files::open_regular(path)?.unzip();
        Ok(Self { file: file.flatten(), entry: predicted.or(entry), checksum: None })
    }
}

impl Metadata {
    fn describe(&mut self, entry: &Entry, cx: &Context) {
        self.archive_exists = entry.kind == FileKind::File;
        self.permissions = OwnerAndMode::of(entry, cx);
        self.size = Some(entry.size);
        self.mtime = modified(entry);
    }
}

/// Returns the record of an earlier run. If it cannot be read, ccm prints a warning and might download the archive
/// again.
fn recall<T>(found: Result<Option<T>, StateError>, cx: &Context) -> Option<T> {
    found.unwrap_or_else(|error| {
        cx.warn(format!("{error}; what was unpacked earlier is not known"));
        None
    })
}

/// Returns owner, group and mode as numbers; `None` if not all of them are given, as in `ccm status`.
fn attributes(want: &Properties, cx: &Context) -> Result<Option<Attributes>, Error> {
    let (Some(uid), Some(gid)) = Ownership::of(want.owner.as_ref(), want.group.as_ref()).ids(cx)? else {
        return Ok(None);
    };
    let mode = want.mode.map_or_else(|| 0o644 & !umask(), Mode::bits);
    Ok(Some(Attributes { uid, gid, mode }))
}

/// Returns the umask of this process from `/proc`. The system call could only read the umask by changing it.
fn umask() -> u32 {
    let status = crate::host::system_file::read("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

/// Returns the error of a file operation, or the reason why the operation was stopped.
pub(super) fn blame(error: FileError, cx: &Context) -> Error {
    cx.tick().err().unwrap_or_else(|| local(error))
}

/// Returns the path relative to the target directory, if it is below it.
pub(super) fn below(path: &Path, target: &Path) -> Option<PathBuf> {
    path.strip_prefix(target).ok().map(Path::to_owned)
}
