//! Reasons to reject an archive. Nothing of a rejected archive is kept.
#![expect(
    clippy::unnecessary_debug_formatting,
    reason = "names come from whoever made the archive and may be hostile to the reader's terminal: quoted and escaped"
)]

use std::{ffi::OsString, io, os::unix::ffi::OsStringExt, path::PathBuf};

use super::{ArchiveFormat, meter::Breach};
use ccm_files::{CopyInterrupted, FileError};

/// Why an archive was rejected.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each error names all of its fields")]
pub enum UnpackError {
    #[error("it is not a {kind}, although its name says so")]
    OtherKind { kind: ArchiveFormat },
    #[error("entry {entry:?} {offence}")]
    Entry { entry: OsString, offence: Offence },
    #[error("it is damaged{}: {reason}", entry.as_ref().map_or_else(String::new, |entry| format!(" at entry {entry:?}")))]
    Damaged { entry: Option<OsString>, reason: String },
    #[error("{breach}{}", entry.as_ref().map_or_else(String::new, |entry| format!(", as entry {entry:?} shows")))]
    Breach { entry: Option<OsString>, breach: Breach },
    #[error(
        "nothing is left of it after the first {strip_components} components of every name are taken away"
    )]
    NothingLeft { strip_components: usize },
    #[error(transparent)]
    Files(#[from] FileError),
    #[error("stopped")]
    CopyInterrupted,
}

/// Why an entry was rejected. The message follows its name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each offence names all of its fields")]
pub enum Offence {
    #[error("has an absolute path")]
    Absolute,
    #[error("leads out of the target with \"..\"")]
    Upwards,
    #[error("has no name")]
    Nameless,
    #[error("has a name with a null byte in it")]
    NullByte,
    #[error("has a name with a backslash in it")]
    Backslash,
    #[error("has a name that is too long")]
    LongName,
    #[error("lies too deep: in more than {limit} directories")]
    Deep { limit: usize },
    #[error("has a name that is kept for unfinished work")]
    Reserved,
    #[error("is there twice")]
    Duplicate,
    #[error("lies below {above:?}, which is no directory")]
    BelowOther { above: PathBuf },
    #[error("is a link to {target:?}, which leads out of the target")]
    LinkOut { target: PathBuf },
    #[error("is a hard link to {target:?}, which is no file before it in the archive")]
    HardLink { target: PathBuf },
    #[error("is a {what}: only files, directories and links are unpacked")]
    Special { what: &'static str },
    #[error("says in two places how long it is, and not the same")]
    SizeMismatch,
    #[error("is called {other:?} where its content is")]
    OtherName { other: OsString },
    #[error("is compressed with a method that is not supported")]
    Method,
    #[error("is encrypted")]
    Encrypted,
    #[error("shares bytes of the archive with another entry")]
    Overlap,
    #[error("cannot be understood: {reason}")]
    Malformed { reason: String },
}

impl Offence {
    /// Returns the error for this entry.
    pub(super) fn at(self, entry: impl Into<Vec<u8>>) -> UnpackError {
        UnpackError::Entry { entry: OsString::from_vec(entry.into()), offence: self }
    }

    pub(super) fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed { reason: reason.into() }
    }
}

impl UnpackError {
    /// Converts an error of reading the archive.
    pub(super) fn from_read(error: io::Error) -> Self {
        let error = match error.downcast::<Breach>() {
            Ok(breach) => return breach.into(),
            Err(error) => error,
        };
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
            io::ErrorKind::OutOfMemory => "unpacking it would take too much memory".to_owned(),
            _ => error.to_string(),
        };
        Self::damaged(reason)
    }

    pub(super) fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged { entry: None, reason: reason.into() }
    }

    /// Adds the entry at which the problem was detected.
    pub(super) fn at(mut self, name: &[u8]) -> Self {
        if let Self::Damaged { entry, .. } | Self::Breach { entry, .. } = &mut self
            && !name.is_empty()
        {
            entry.get_or_insert_with(|| OsString::from_vec(name.to_owned()));
        }
        self
    }

    /// Returns help for the administrator.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Breach { breach: Breach::NoOutput(_), .. } => None,
            Self::Breach { .. } => Some("if the archive can be trusted, raise the limit".to_owned()),
            Self::Files(error) => error.hint(),
            Self::Entry { .. } => {
                Some("nothing of it was unpacked; ask whoever made it for another".to_owned())
            }
            _ => None,
        }
    }
}

impl From<Breach> for UnpackError {
    fn from(breach: Breach) -> Self {
        Self::Breach { entry: None, breach }
    }
}

impl From<CopyInterrupted> for UnpackError {
    fn from(CopyInterrupted: CopyInterrupted) -> Self {
        Self::CopyInterrupted
    }
}
