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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_downloaded_is_remembered_for_each_path_and_for_its_address_alone() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-downloads-{}", std::process::id()));
        let state = StateDirectory::at(folder.clone());
        let url = |text: &str| Url::parse(text).unwrap();
        let (one, other) = (url("https://user:word@one.example/file"), url("https://other.example/file"));
        let downloaded = |url: &Url| Downloaded::new(url, Some("v1".to_owned()), "sum".to_owned());
        for (path, url) in [("/one", &one), ("/other", &other)] {
            state.keep_downloaded(Path::new(path), &downloaded(url)).unwrap();
        }
        let found = state.downloaded(Path::new("/one")).unwrap().unwrap();
        assert_eq!(found, downloaded(&one));
        assert!(found.is_from(&one) && !found.is_from(&other));
        assert!(found.is_from(&url("https://one.example/file")), "whoever asks, it is the same file");
        assert_eq!(state.downloaded(Path::new("/third")).unwrap(), None);
        let _ = std::fs::remove_dir_all(folder);
    }
}
