//! Why an inventory cannot be used.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use crate::document::{Diagnostics, Review, Source};

/// An error in an inventory or in a pattern.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InventoryError {
    #[error("{}:{line}: {message}", path.display())]
    Line { path: PathBuf, line: usize, message: String },
    /// Errors in a YAML or JSON document, with their positions.
    #[error("{}", .0.source.name)]
    Document(Box<Review>),
    #[error("cannot read inventory `{}`: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("inventory `{}`: {message}", path.display())]
    Unsupported { path: PathBuf, message: String, help: &'static str },
    #[error("inventory program `{}`: {reason}", path.display())]
    Program { path: PathBuf, reason: String },
    #[error("{}: `{name}` is encrypted with ansible-vault", path.display())]
    Vaulted { path: PathBuf, name: String },
    #[error("pattern `{pattern}`: {reason}")]
    Pattern { pattern: String, reason: String },
}

impl InventoryError {
    /// Returns advice.
    pub(crate) fn help(&self) -> Option<&str> {
        match self {
            Self::Unsupported { help, .. } => Some(help),
            Self::Vaulted { .. } => Some(
                "convert the file to an encrypted data file with `ccm secret import --ansible-vault FILE -o OUT`",
            ),
            _ => None,
        }
    }

    pub(super) fn line(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self::Line { path: path.to_owned(), line, message: message.into() }
    }

    pub(super) fn unreadable(path: &Path, reason: impl Display) -> Self {
        Self::Unreadable { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(super) fn pattern(pattern: &str, reason: impl Into<String>) -> Self {
        Self::Pattern { pattern: pattern.to_owned(), reason: reason.into() }
    }

    pub(super) fn document(source: &Source, diagnostics: impl Into<Diagnostics>) -> Self {
        Self::Document(Box::new(Review { source: source.clone(), diagnostics: diagnostics.into() }))
    }
}
