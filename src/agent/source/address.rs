//! What an entry of `manifests` and `external_data_url` means.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    host::{files::hex, unpack::ArchiveFormat},
    nats,
    vocabulary::{Url, has_scheme},
};
use sha2::{Digest, Sha256};

/// Where a manifest or data comes from.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// A file, or a folder that holds `manifest.yaml`.
    Path(PathBuf),
    Http(Url),
    /// An object or a key in a NATS bucket.
    Nats(nats::Address),
}

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Manifest,
    Data,
}

impl Address {
    /// Reads an address. Relative paths start at `folder`. The message of an error does not quote what may hold a password.
    pub(crate) fn parse(text: &str, purpose: Purpose, folder: &Path) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("file://") {
            return match path.strip_prefix("localhost").unwrap_or(path) {
                path if path.starts_with('/') => Ok(Self::Path(clean(Path::new(path)))),
                _ => Err("it names no absolute path: write file:///path".to_owned()),
            };
        }
        if let Some(address) = nats::Address::from_argument(text) {
            return match address {
                Ok(address) if purpose == Purpose::Manifest && address.store == nats::Store::KeyValue => {
                    Err("a manifest cannot come from kv://: put it into an object store and write obj://BUCKET/KEY"
                        .to_owned())
                }
                address => address.map(Self::Nats).map_err(|error| error.to_string()),
            };
        }
        if has_scheme(text) {
            return Url::parse(text).map(Self::Http).map_err(|error| error.to_string());
        }
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        Ok(Self::Path(clean(&folder.join(text))))
    }

    /// Whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Path(_))
    }

    /// Returns the name that a bundle from here must have: the last part without its ending.
    pub(crate) fn expected_name(&self) -> String {
        let name = self.file_name();
        match ArchiveFormat::ending_of(&name) {
            Some(ending) => name[..name.len() - ending.len()].to_owned(),
            None => name.rsplit_once('.').map_or(name.clone(), |(stem, _)| stem.to_owned()),
        }
    }

    /// Returns what tells it from other addresses in the cache: a hash in which credentials have no part.
    pub(crate) fn id(&self) -> String {
        let name = match self {
            Self::Http(url) => url.bare(),
            other => other.to_string(),
        };
        let digest = Sha256::digest(name.as_bytes());
        hex(&digest)[..32].to_owned()
    }

    /// Returns the last part of the address.
    pub(crate) fn file_name(&self) -> String {
        match self {
            Self::Path(path) => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Self::Http(url) => url.file_name(),
            Self::Nats(nats::Address { key, .. }) => key.rsplit('/').next().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Address {
    /// Writes it without credentials.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Http(url) => write!(f, "{url}"),
            Self::Nats(address) => write!(f, "{address}"),
        }
    }
}

/// Returns the path without `.` and doubled slashes.
fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, purpose: Purpose) -> String {
        match Address::parse(text, purpose, Path::new("/etc/ccm")) {
            Ok(address) => address.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn addresses_are_paths_urls_objects_and_keys() {
        for (text, expected) in [
            ("/srv/site.yaml", "/srv/site.yaml"),
            ("site/./base.yaml", "/etc/ccm/site/base.yaml"),
            ("file:///srv//x", "/srv/x"),
            ("obj://site/base/web.tar.gz", "obj://site/base/web.tar.gz"),
            ("http://user:hunter2@host/x.tar.gz", "http://host/x.tar.gz"),
        ] {
            let found = parsed(text, Purpose::Manifest);
            assert!(!found.contains("hunter2"), "{found}");
            if text.starts_with("http") {
                assert!(found.ends_with("host/x.tar.gz"), "{found}");
            } else {
                assert_eq!(found, expected);
            }
        }
        assert_eq!(parsed("kv://data/common", Purpose::Data), "kv://data/common");
    }

    #[test]
    fn other_addresses_are_refused_in_words() {
        for (text, purpose, expected) in [
            ("ftp://host/x", Purpose::Manifest, "http"),
            ("kv://data/common", Purpose::Manifest, "obj://BUCKET/KEY"),
            ("obj://site", Purpose::Manifest, "obj://BUCKET/KEY"),
            ("kv:///x", Purpose::Data, "kv://BUCKET/KEY"),
            ("file://relative", Purpose::Manifest, "file:///path"),
            ("", Purpose::Manifest, "empty"),
        ] {
            let found = parsed(text, purpose);
            assert!(found.starts_with("error: ") && found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn credentials_have_no_part_in_the_id_and_the_name_is_the_last_part() {
        let address = |text| Address::parse(text, Purpose::Manifest, Path::new("/")).unwrap();
        assert_eq!(address("http://a:b@host/web.tar.gz").id(), address("http://c:d@host/web.tar.gz").id());
        assert_ne!(address("http://host/web.tar.gz").id(), address("http://host/db.tar.gz").id());
        for (text, name) in [
            ("http://host/site/web.tar.gz?x=1", "web"),
            ("obj://b/site/web.tgz", "web"),
            ("/srv/base.yaml", "base"),
            ("obj://b/web", "web"),
        ] {
            assert_eq!(address(text).expected_name(), name);
        }
    }
}
