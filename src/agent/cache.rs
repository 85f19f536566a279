//! What was last known to be good, on disk.
//!
//! Each source has a folder of its own. A file `content-N` in it is what the source sent, and `record.json` names the one
//! that is in force. The content is on disk before the record is renamed into its place, so that a kill at any point
//! leaves the old pair or the new one; what no record names is removed at the next start.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::source::{Address, Arrival, Seen, Version, hash_of};
use crate::{
    bundle::Label,
    host::files::{Attributes, FileError, PrivateFolder},
    host::look,
};

const RECORD: &str = "record.json";
const CONTENT: &str = "content-";
const LOADING: &str = "loading.json";

/// After so many loads that ended the agent, content is not loaded again.
const MOST_CRASHES: u32 = 2;
/// How many contents of a source have their crashes recorded.
const MOST_RECORDED: usize = 16;

/// The folder of one source.
pub(crate) struct Shelf {
    folder: PrivateFolder,
    record: Record,
}

/// What is known of a source across restarts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// The source, for people who look into the cache.
    pub(crate) source: String,
    /// What is in force.
    pub(crate) good: Option<Good>,
    /// What was refused last.
    pub(crate) refused: Option<Refused>,
}

/// The loads that began and did not end, by the digest of the content.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Begun {
    /// The version of ccm: another one might load the content.
    version: String,
    loads: Vec<(String, u32)>,
}

/// Content that is being loaded. If the agent aborts, the record of it stays.
#[must_use]
pub(crate) struct Loading<'s> {
    shelf: &'s Shelf,
    digest: String,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.shelf.record_load(&self.digest, |_| 0);
        }
    }
}

/// Content that passed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Good {
    /// The name of the file that holds it.
    pub(crate) content: String,
    /// The SHA-256 of it.
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) version: Option<Version>,
    pub(crate) fetched: Timestamp,
    /// What a signed bundle says of itself.
    #[serde(default)]
    pub(crate) label: Option<Label>,
    /// The signature that was verified, in its armor; none if none was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<String>,
}

/// Content that did not pass, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) version: Option<Version>,
    pub(crate) reason: String,
}

impl Shelf {
    /// Opens the folder of a source in the cache, and removes what a killed agent left there. A record that cannot be read
    /// is as good as none.
    pub(crate) fn open(cache: &PrivateFolder, address: &Address) -> Result<Self, FileError> {
        let folder = cache.make_folder(&address.id())?;
        let mut record = read(&folder)?.unwrap_or_default();
        record.source = address.to_string();
        let shelf = Self { folder, record };
        shelf.folder.sweep(&mut || Ok(()))?;
        shelf.tidy(&[])?;
        Ok(shelf)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Returns what need not be fetched again. What was refused is fetched once more after a restart: what it is loaded with
    /// may have changed.
    pub(crate) fn seen(&self) -> Seen {
        let good = self.record.good.as_ref();
        Seen {
            version: good.and_then(|good| good.version.clone()),
            digest: good.map(|good| good.digest.clone()),
            signature: good.and_then(|good| good.signature.as_ref()).map(|text| hash_of(text.as_bytes())),
        }
    }

    /// Returns the file of the content that is in force.
    pub(crate) fn good(&self) -> Option<(PathBuf, &Good)> {
        let good = self.record.good.as_ref()?;
        Some((self.folder.path().join(&good.content), good))
    }

    /// Gives what arrived its name and brings it to disk. No record names it yet.
    pub(crate) fn store(&self, arrival: Arrival) -> Result<Stored, FileError> {
        let Arrival { draft, name, version, digest, .. } = arrival;
        draft.publish(Attributes::own(0o600))?;
        Ok(Stored { path: self.folder.path().join(&name), name, version, digest })
    }

    /// Records stored content as the current content, with the label and the signature that were verified.
    pub(crate) fn accept(
        &mut self,
        stored: &Stored,
        label: Option<Label>,
        signature: Option<String>,
    ) -> Result<(), FileError> {
        let good = Good {
            content: stored.name.clone(),
            digest: stored.digest.clone(),
            version: stored.version.clone(),
            fetched: Timestamp::now(),
            label,
            signature,
        };
        self.write(Record { good: Some(good), refused: None, ..self.record.clone() })?;
        self.tidy(&[])
    }

    /// Records another signature over the current content.
    pub(crate) fn replace_signature(&mut self, signature: String) -> Result<(), FileError> {
        let good = self.record.good.clone().map(|good| Good { signature: Some(signature), ..good });
        self.write(Record { good, ..self.record.clone() })
    }

    /// Keeps in mind that stored content is not to be used.
    pub(crate) fn refuse(&mut self, refused: Refused) -> Result<(), FileError> {
        self.write(Record { refused: Some(refused), ..self.record.clone() })
    }

    /// Forgets what was refused: the source has again what is in force.
    pub(crate) fn reconcile(&mut self) -> Result<(), FileError> {
        if self.record.refused.is_none() {
            return Ok(());
        }
        self.write(Record { refused: None, ..self.record.clone() })
    }

    /// Records that loading content begins, until the returned value is dropped.
    pub(crate) fn begin_loading(&self, digest: &str) -> Loading<'_> {
        self.record_load(digest, |crashes| crashes + 1);
        Loading { shelf: self, digest: digest.to_owned() }
    }

    /// Returns why content must not be loaded: it has ended the agent again and again.
    pub(crate) fn crashes(&self, digest: &str) -> Option<String> {
        let begun = self.begun();
        let (_, crashes) = begun.loads.iter().find(|(known, _)| known == digest)?;
        (*crashes >= MOST_CRASHES)
            .then(|| format!("the agent crashed {crashes} times while it loaded this content"))
    }

    fn begun(&self) -> Begun {
        let file = self.folder.open_file(LOADING).ok().flatten();
        let begun: Option<Begun> = file.and_then(|file| serde_json::from_reader(file).ok());
        let version = env!("CARGO_PKG_VERSION");
        begun
            .filter(|begun| begun.version == version)
            .unwrap_or_else(|| Begun { version: version.to_owned(), loads: Vec::new() })
    }

    /// Changes the number of loads that did not end. An abort does not lose what the kernel has, so nothing is synced; if the
    /// record cannot be written, only this protection is missing.
    fn record_load(&self, digest: &str, change: impl FnOnce(u32) -> u32) {
        let mut begun = self.begun();
        let known = begun.loads.iter().position(|(known, _)| known == digest);
        let crashes = change(known.map_or(0, |at| begun.loads.remove(at).1));
        if crashes > 0 {
            begun.loads.push((digest.to_owned(), crashes));
        }
        let oldest = begun.loads.len().saturating_sub(MOST_RECORDED);
        begun.loads.drain(..oldest);
        let _ = if begun.loads.is_empty() {
            self.folder.remove(LOADING.as_ref())
        } else {
            self.folder.replace_unsynced(LOADING, &serde_json::to_vec(&begun).unwrap_or_default())
        };
    }

    /// Removes content that is neither in force nor among `kept`.
    pub(crate) fn tidy(&self, kept: &[&str]) -> Result<(), FileError> {
        let in_force = self.record.good.as_ref().map(|good| good.content.as_str());
        for name in self.folder.names()? {
            let text = name.to_string_lossy();
            let is_kept = in_force == Some(text.as_ref()) || kept.contains(&text.as_ref());
            if text.starts_with(CONTENT) && !is_kept {
                self.folder.remove(&name)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, record: Record) -> Result<(), FileError> {
        let text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        self.folder.replace(RECORD, |out| out.write_all(&text))?;
        self.record = record;
        Ok(())
    }
}

/// Content that is on disk under its own name.
pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) version: Option<Version>,
    pub(crate) digest: String,
}

fn read(folder: &PrivateFolder) -> Result<Option<Record>, FileError> {
    let Some(mut file) = folder.open_file(RECORD)? else { return Ok(None) };
    let mut bytes = Vec::new();
    if file.read_to_end(&mut bytes).is_err() {
        return Ok(None);
    }
    let record: Option<Record> = serde_json::from_slice(&bytes).ok();
    // Content that is gone is not in force.
    let is_there = |good: &Good| look::is_file(&folder.path().join(&good.content));
    Ok(record.map(|record| Record { good: record.good.filter(is_there), ..record }))
}
