//! What is observed of a file.

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

/// What is at a path.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileState {
    /// What is known about the path.
    pub(super) metadata: Metadata,
    #[serde(skip)]
    pub(super) found: Found,
    /// The entry behind `found`, where there is one on disk.
    #[serde(skip)]
    pub(super) entry: Option<Entry>,
    /// What the user's wish comes down to on this machine, or why it cannot be told.
    #[serde(skip)]
    pub(super) target: Result<Target, Error>,
}

impl FileState {
    pub(super) fn attributes_wanted(&self) -> Option<Attributes> {
        self.target.as_ref().ok()?.attributes
    }

    /// Compares the content with what it is wanted to be.
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

/// What is known about the path.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// The path.
    pub(super) name: String,
    /// SHA-256 of the content in hex; of regular files that can be read, and left out where the content is not managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checksum: Option<String>,
    #[serde(flatten)]
    pub(super) permissions: OwnerAndMode,
    /// The provider that looked.
    pub(super) provider: String,
    /// When the content was last changed, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mtime: Option<String>,
    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    /// More about what is neither a file nor a directory: `type`, and `target` of a symbolic link.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) extended: Map<String, Value>,
}

/// The kind of thing at a path.
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

/// Whether something is in a directory; only asked where the decision depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Some,
    /// That much, which a dry run tells before all of it is removed.
    Counted(Amount),
    None,
    NotAsked,
}

/// How much is in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// What is not a directory.
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

/// What became of comparing the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    Different,
    /// Only existence and attributes are managed.
    NotAsked,
    /// The file cannot be read.
    Impossible,
}

/// What the user's wish comes down to: numbers for names, and the content's checksum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) attributes: Option<Attributes>,
    /// The content's checksum. Not worked out where the size tells already that the content differs.
    pub(super) checksum: Option<String>,
    /// The content's size, where it is known before reading it.
    pub(super) size: Option<u64>,
    /// What `purge` removes, as paths below the directory.
    pub(super) unmanaged: Vec<PathBuf>,
    /// What `edit` makes of the text, where both are known.
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

/// The word for something that is neither a file, a directory nor a link.
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
    }
}
