//! Observed state of a file.

use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::editing::Edited;
use crate::{
    host::files::{Attributes, Entry, FileKind, UNKNOWN},
    resource::{Context, Error, State},
    types::{disk::modified, ownership::OwnerAndMode},
};

/// Observed state of a path.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileState {
    /// Attributes of the path.
    pub(super) metadata: Metadata,
    #[serde(skip)]
    pub(super) found: Found,
    /// Entry on disk that `found` describes, if there is one.
    #[serde(skip)]
    pub(super) entry: Option<Entry>,
    /// Desired owner, group and content on this machine, or the reason why they cannot be determined.
    #[serde(skip)]
    pub(super) target: Result<Target, Error>,
}

impl FileState {
    pub(super) fn attributes_wanted(&self) -> Option<Attributes> {
        self.target.as_ref().ok()?.attributes
    }

    /// Compares the content with the desired content.
    pub(super) fn content(&self) -> Comparison {
        let Ok(Target { checksum, size, .. }) = &self.target else { return Comparison::Impossible };
        match (checksum, &self.metadata.checksum) {
            (Some(wanted), Some(found)) if wanted == found && wanted != UNKNOWN => Comparison::Same,
            (Some(_), Some(_)) => Comparison::Different,
            (None, _) if size.is_none() => Comparison::NotAsked,
            // Compared by its size, it was not read any further.
            _ if size.zip(self.metadata.size).is_some_and(|(wanted, found)| wanted != found) => {
                Comparison::Different
            }
            _ => Comparison::Impossible,
        }
    }

    pub(super) fn unmanaged(&self) -> &[PathBuf] {
        self.target.as_ref().map_or(&[], |target| &target.unmanaged)
    }

    pub(super) fn edited(&self) -> Option<&Edited> {
        self.target.as_ref().ok()?.edited.as_ref()
    }

    pub(super) fn checksum_wanted(&self) -> Option<&String> {
        self.target.as_ref().ok()?.checksum.as_ref()
    }
}

/// Attributes of the path.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Path of the file.
    pub(super) name: String,
    /// SHA-256 of the content in hex, for readable regular files whose content is managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checksum: Option<String>,
    #[serde(flatten)]
    pub(super) permissions: OwnerAndMode,
    /// Provider that inspected the file.
    pub(super) provider: String,
    /// Time of the last change of the content, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mtime: Option<String>,
    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    /// Details of links and special files: `type`, and `target` of a symbolic link.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) extended: Map<String, Value>,
}

/// Kind of file at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Found {
    #[default]
    Nothing,
    File,
    Directory {
        contents: Contents,
    },
    Symlink {
        target: PathBuf,
    },
    /// A FIFO, socket or device, by its name.
    Special(&'static str),
}

/// Whether a directory contains something. Read only if the decision depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Some,
    /// Number of entries, which a dry run reports before a removal.
    Counted(Amount),
    None,
    NotAsked,
}

/// Size of a directory tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Number of entries that are not directories.
    pub(super) files: usize,
    pub(super) directories: usize,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let counted = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let parts =
            [counted(self.files, "file", "files"), counted(self.directories, "directory", "directories")];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(" and "))
    }
}

/// Result of comparing the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    Different,
    /// Only existence and attributes are managed.
    NotAsked,
    /// The file cannot be read.
    Impossible,
}

/// Desired state in terms of this machine: UID and GID for names, and the checksum of the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) attributes: Option<Attributes>,
    /// Checksum of the content. Not computed if the size already differs.
    pub(super) checksum: Option<String>,
    /// Size of the content, if it is known without reading it.
    pub(super) size: Option<u64>,
    /// Paths that `purge` removes, relative to the directory.
    pub(super) unmanaged: Vec<PathBuf>,
    /// Result of `edit`, if the current content is known.
    pub(super) edited: Option<Edited>,
}

impl Metadata {
    pub(super) fn describe(&mut self, entry: &Entry, cx: &Context) {
        self.permissions = OwnerAndMode::of(entry, cx);
        self.size = Some(entry.size);
        self.mtime = modified(entry);
        match &entry.kind {
            FileKind::File | FileKind::Directory => {}
            FileKind::Symlink { target } => {
                self.extended.insert("type".to_owned(), "symlink".into());
                self.extended.insert("target".to_owned(), target.to_string_lossy().into());
            }
            other => {
                self.extended.insert("type".to_owned(), special(other).into());
            }
        }
    }
}

/// Returns the word for a file that is not a regular file, directory or link.
pub(super) fn special(kind: &FileKind) -> &'static str {
    match kind {
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharacterDevice => "character device",
        FileKind::BlockDevice => "block device",
        _ => "special file",
    }
}

impl State for FileState {
    fn ensure(&self) -> String {
        match self.found {
            Found::Nothing => "absent",
            Found::File => "present",
            Found::Directory { .. } => "directory",
            Found::Symlink { .. } => "link",
            Found::Special(word) => word,
        }
        .to_owned()
    }

    fn redact(&mut self) {
        self.metadata.checksum = None;
        self.metadata.size = None;
        self.metadata.extended.remove("target");
    }
}
