//! Which version of a file was downloaded by an earlier run, where no checksum tells.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    StateDirectory, StateError,
    archives::{FOLDER, fingerprint, keep, read_record, stem},
};
use crate::vocabulary::{Checksum, Url};

/// What is remembered of a file that was downloaded. Of its address, which may hold a token, only a hash is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Downloaded {
    url: Checksum,
    /// What the server calls this version of the file: its `ETag`, or when it was last modified.
    pub(crate) version: Option<String>,
    /// SHA-256 in hex of what was written.
    pub(crate) sha256: String,
}

impl Downloaded {
    pub(crate) fn new(url: &Url, version: Option<String>, sha256: String) -> Self {
        Self { url: fingerprint(url.bare().as_bytes()), version, sha256 }
    }

    /// Returns whether it came from this address.
    pub(crate) fn is_from(&self, url: &Url) -> bool {
        self.url == fingerprint(url.bare().as_bytes())
    }
}

impl StateDirectory {
    /// Returns what is known of the download at a path.
    pub(crate) fn downloaded(&self, path: &Path) -> Result<Option<Downloaded>, StateError> {
        self.archives()?.map_or(Ok(None), |folder| read_record(&folder, &name(path)))
    }

    /// Keeps what is known of the download at a path.
    pub(crate) fn keep_downloaded(&self, path: &Path, downloaded: &Downloaded) -> Result<(), StateError> {
        keep(&self.make_folder(FOLDER)?, &name(path), downloaded)
    }
}

fn name(path: &Path) -> String {
    format!("{}.download", stem(path))
}
