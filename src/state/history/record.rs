//! Records of the history: one JSON document per line.
//!
//! A run that changed nothing is one line ([`Line::Run`]). Otherwise it begins with [`Line::Begin`], has a
//! [`Line::Change`] before and a [`Line::Done`] after each change, and ends with [`Line::End`]. A push has a [`Line::Host`] when
//! the run on a host begins, and when its result is known.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Snapshot;

/// Format of the lines that this version writes.
pub(crate) const FORMAT: u32 = 1;

/// A line of the history.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(crate) enum Line {
    /// A complete run without changes.
    Run {
        #[serde(flatten)]
        start: Start,
        outcome: End,
    },
    Begin(Start),
    Change(Box<Change>),
    Done(Box<Done>),
    Host {
        run: String,
        host: HostRun,
    },
    End(End),
}

/// How and by whom a run was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the history names its fields")]
pub(crate) struct Start {
    pub(crate) run: String,
    pub(crate) start: String,
    pub(crate) kind: RunKind,
    /// The command line without secrets.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    pub(crate) who: Who,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) manifests: Vec<ManifestDigest>,
    /// Digest of the plan that the run applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undo_of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The selected hosts of a push, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<String>,
}

/// The front end that started a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunKind {
    #[default]
    Apply,
    Plan,
    Ensure,
    Api,
    Session,
    Agent,
    Push,
    Undo,
}

impl RunKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Plan => "plan",
            Self::Ensure => "ensure",
            Self::Api => "api",
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Push => "push",
            Self::Undo => "undo",
        }
    }
}

/// The user who started a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) uid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) login_uid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sudo_user: Option<String>,
}

/// A manifest and the digest of its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestDigest {
    pub(crate) path: String,
    pub(crate) digest: String,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the history names its fields")]
pub(crate) struct End {
    pub(crate) run: String,
    pub(crate) end: String,
    pub(crate) exit_status: u8,
    pub(crate) total: usize,
    pub(crate) changed: usize,
    pub(crate) failed: usize,
    /// The hosts of a push.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<HostRun>,
}

/// A host of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostRun {
    pub(crate) host: String,
    pub(crate) result: String,
    /// Id of the run in the history of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl HostRun {
    pub(crate) fn new(host: &str, result: &str) -> Self {
        Self { host: host.to_owned(), result: result.to_owned(), ..Self::default() }
    }
}

/// One change, as recorded before it is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) run: String,
    /// Position of the change among those of the run.
    pub(crate) number: u32,
    pub(crate) resource: String,
    /// File, line and column of the resource.
    #[serde(default)]
    pub(crate) position: String,
    #[serde(default)]
    pub(crate) provider: String,
    pub(crate) action: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) differences: Vec<PropertyChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
    /// The paths that the change affects, parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<PathBefore>,
    pub(crate) undo: Undo,
    /// Resources that are refreshed because of the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refreshes: Vec<String>,
    /// Changes that this refresh follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<String>,
    /// Properties of a refreshed resource, to refresh it again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) properties: Map<String, Value>,
    /// The property `validate` of the resource, if it has one.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) validate: Map<String, Value>,
    /// Where relative paths of the resource start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) directory: String,
    /// The included manifests that contain the resource, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) within: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sensitive: bool,
    /// Whether the change was recorded before ccm reached the resource.
    #[serde(default, rename = "ahead", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_ahead: bool,
}

/// A property that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PropertyChange {
    pub(crate) property: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) have: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) want: Option<String>,
}

/// A path and its state before the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathBefore {
    pub(crate) path: String,
    pub(crate) before: Snapshot,
    /// The state that the change is to leave, as far as that is known before it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) intended: Option<Snapshot>,
}

/// How a change is undone, in addition to its paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Undo {
    /// The paths are restored, and nothing else changed.
    #[default]
    Paths,
    /// The paths, and then a resource of the same type with these properties.
    PathsAndResource(Map<String, Value>),
    /// A resource of the same type with these properties.
    Resource(Map<String, Value>),
    /// A command that was run; the other command, if there is one, undoes it.
    Command(Option<Map<String, Value>>),
}

/// A completed change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) run: String,
    pub(crate) number: u32,
    /// States of the paths after the change, in the order of the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<Snapshot>,
    /// State of the resource after the change.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) state: Map<String, Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
}

/// Returns a path or link target as a string: as it is if it is UTF-8, else encoded after a NUL, which no path contains.
pub(crate) fn to_text(path: &OsStr) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("\0{}", URL_SAFE.encode(path.as_bytes())),
    }
}

/// Returns the path that [`to_text`] encoded.
pub(crate) fn from_text(text: &str) -> Option<std::path::PathBuf> {
    match text.strip_prefix('\0') {
        Some(encoded) => Some(Path::new(OsStr::from_bytes(&URL_SAFE.decode(encoded).ok()?)).to_owned()),
        None => Some(text.into()),
    }
}
