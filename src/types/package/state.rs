//! Observed state of a package.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::Scheme;
use crate::resource::State;

/// Whether a package is installed, and in which version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PackageState {
    /// Attributes of the package.
    pub(super) metadata: Metadata,
    #[serde(skip)]
    pub(super) standing: Standing,
    /// Configuration files that go with the package when it is removed as requested.
    #[serde(skip)]
    pub(super) configuration: Vec<PathBuf>,
}

/// Attributes of the package.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Name of the package, as requested.
    pub(super) name: String,
    /// Installed version: with apt including the epoch, with dnf VERSION-RELEASE. Omitted if the package is not
    /// installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Architecture of the installed version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arch: Option<String>,
    /// Provider that inspected the package.
    pub(super) provider: String,
    /// Other packages that this run installed together with the package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) installed_along: Vec<String>,
    /// Other packages that this run removed together with the package, as `NAME=VERSION`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) removed_along: Vec<String>,
    /// Further attributes of the package.
    pub(super) extended: Extended,
}

/// Further attributes of a package.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Extended {
    /// Epoch of the installed version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<String>,
    /// Release of the installed version, which Debian calls revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) release: Option<String>,
    /// Status in the words of `dpkg-query`: `installed`, `config-files`, `half-configured` and others.
    pub(super) status: String,
    /// Version that would be installed, if it had to be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) candidate: Option<String>,
    /// Whether the package is on hold, if it had to be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hold: Option<bool>,
    /// All installed versions, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) versions: Vec<String>,
}

/// What the decision is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) scheme: Scheme,
    pub(super) provider: &'static str,
    pub(super) presence: Presence,
    pub(super) hold: Hold,
    pub(super) offer: Offer,
    pub(super) index: Index,
}

/// How current the package index is that the offer was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// This run refreshed it, or had no reason to.
    Current,
    /// Refreshing it failed, for this reason.
    NotRefreshed(String),
    /// `refresh: never` forbids to refresh it.
    Kept,
}

/// How far a package is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    /// Only its configuration is left.
    Configuration,
    /// It is not completely installed; this is the system's word for how far it is.
    Broken(String),
    /// It is installed in these complete versions, of which the first counts.
    Installed(Vec<String>),
}

/// Whether a package is protected from changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Nobody had to know.
    NotAsked,
    Held,
    Free,
}

/// What the sources offer of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// Nobody had to know.
    NotAsked,
    /// No source knows the package.
    Unknown,
    /// It is known, but there is no version of it that could be installed.
    NoCandidate,
    /// The version that would be installed, and all complete versions, newest first.
    Known { candidate: String, versions: Vec<String> },
    /// Not known now, but a real run would know more: it would bring the lists up to date first, or an earlier resource
    /// may bring a source.
    Unforeseen,
}

impl Presence {
    /// Returns the installed version that counts.
    pub(super) fn version(&self) -> Option<&str> {
        match self {
            Self::Installed(versions) => versions.first().map(String::as_str),
            Self::Absent | Self::Configuration | Self::Broken(_) => None,
        }
    }
}

impl State for PackageState {
    fn ensure(&self) -> String {
        self.metadata.version.clone().unwrap_or_else(|| "absent".to_owned())
    }
}
