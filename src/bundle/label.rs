//! What a bundle says of itself.

use std::{cmp::Ordering, fs::File};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::LABEL_FILE;
use crate::{
    host::unpack::{self, ArchiveFormat, UnpackError},
    vocabulary::package_version::Scheme,
};

const LARGEST: u64 = 64 * 1024;

/// Name, version and expiry of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Label {
    pub(crate) name: String,
    /// Ordered as Debian orders versions.
    #[serde(default = "no_version")]
    pub(crate) version: String,
    /// After this it is not taken any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<Timestamp>,
}

/// The version of a bundle that was built without one.
pub(crate) const NO_VERSION: &str = "0";

fn no_version() -> String {
    NO_VERSION.to_owned()
}

/// Why a bundle is not the one that is wanted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LabelError {
    #[error("it has no {LABEL_FILE}: make it with `ccm bundle build`")]
    Missing,
    #[error("it has no version, so agents could not refuse older content: build it with `--version`")]
    NoVersion,
    #[error("its {LABEL_FILE} is damaged: {0}")]
    Damaged(String),
    #[error("it is the bundle `{found}` and not `{wanted}`")]
    OtherName { found: String, wanted: String },
    #[error("it expired at {0}")]
    Expired(Timestamp),
    #[error("its version {found} is older than {known}, which was taken before")]
    Older { found: String, known: String },
    #[error("{0}")]
    Archive(#[from] UnpackError),
}

impl Label {
    /// Reads the label of a bundle without unpacking it.
    pub(crate) fn of(archive: &File, kind: ArchiveFormat) -> Result<Self, LabelError> {
        let bytes = unpack::read_member(archive, kind, LABEL_FILE, LARGEST)?.ok_or(LabelError::Missing)?;
        serde_json::from_slice(&bytes).map_err(|error| LabelError::Damaged(error.to_string()))
    }

    /// Checks that it has a version, by which agents tell older content from newer.
    pub(crate) fn check_version(&self) -> Result<(), LabelError> {
        if self.version == NO_VERSION { Err(LabelError::NoVersion) } else { Ok(()) }
    }

    /// Checks that it has this name, if one is wanted, and has not expired.
    pub(crate) fn check(&self, name: Option<&str>, now: Timestamp) -> Result<(), LabelError> {
        if let Some(wanted) = name.filter(|wanted| *wanted != self.name) {
            return Err(LabelError::OtherName { found: self.name.clone(), wanted: wanted.to_owned() });
        }
        match self.expires.filter(|expires| *expires <= now) {
            Some(expires) => Err(LabelError::Expired(expires)),
            None => Ok(()),
        }
    }

    /// Checks that it is not older than one that was taken before.
    pub(crate) fn check_against(&self, known: &Self) -> Result<(), LabelError> {
        if Scheme::Debian.order(&self.version, &known.version) == Ordering::Less {
            return Err(LabelError::Older { found: self.version.clone(), known: known.version.clone() });
        }
        Ok(())
    }
}
