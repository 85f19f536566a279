//! What is observed of a package.

use schemars::JsonSchema;
use serde::Serialize;

use super::version::Scheme;
use crate::resource::State;

/// Whether a package is installed, and in which version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PackageState {
    /// What is known about the package.
    pub(super) metadata: Metadata,
    #[serde(skip)]
    pub(super) standing: Standing,
}

/// What is known about the package.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// The package's name, as it was asked for.
    pub(super) name: String,
    /// The installed version: of apt with its epoch, of dnf VERSION-RELEASE. Left out when it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// The architecture that the installed version was built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arch: Option<String>,
    /// The provider that looked.
    pub(super) provider: String,
    /// What else the package system knows.
    pub(super) extended: Extended,
}

/// What else the package system knows.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Extended {
    /// The epoch of the installed version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<String>,
    /// The release of the installed version, which Debian calls revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) release: Option<String>,
    /// How far it is installed, in the word of `dpkg-query`: `installed`, `config-files`, `half-configured` and others.
    pub(super) status: String,
    /// The version that would be installed, where that had to be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) candidate: Option<String>,
    /// Whether it is on hold, where that had to be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hold: Option<bool>,
    /// All installed versions, where there are several.
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
