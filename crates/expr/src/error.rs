//! What can be wrong with an expression, a path or a template, and where.

use std::ops::Range;
use std::path::PathBuf;

use crate::budget::Exhausted;
use crate::path::Missing;
use crate::value::MASK;

/// Replaces a message that could quote a secret value.
const MASKED: &str = "a secret value is not valid here";

/// A problem with a text, found while reading it or while evaluating it.
///
/// Displays as its kind alone: whoever shows it decides how to show the place and the help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct Error {
    /// What is wrong. In a box, because every step of an evaluation makes room for an error on the stack.
    pub kind: Box<ErrorKind>,
    /// The bytes of the expression, path or template that it is about.
    pub span: Range<usize>,
    /// What to do about it, when there is something better to say than what is wrong.
    pub help: Option<String>,
}

/// What is wrong. Displays as a message: lower case, quoting the text it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// The host has no such variable.
    #[error("unknown variable `{name}`")]
    UnknownVariable {
        /// The name in the expression.
        name: String,
    },
    /// Neither the language nor the host has such a function.
    #[error("unknown function `{name}`")]
    UnknownFunction {
        /// The name in the expression.
        name: String,
    },
    /// A value of another type is needed.
    #[error("expected {wanted}, found {found}")]
    Type {
        /// What is needed, with its article.
        wanted: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// Something is asked of `nil` that only a value could give.
    #[error("{0}")]
    Nil(String),
    /// An expression of a template came to `nil`, which has no text.
    #[error("`{expression}` has no value")]
    NoValue {
        /// The expression as it is written.
        expression: String,
    },
    /// A path leads nowhere.
    #[error("{}", missing.message(path))]
    MissingPath {
        /// The whole path.
        path: String,
        /// Where it stops.
        missing: Box<Missing>,
    },
    /// More is asked for than there may be.
    #[error(transparent)]
    Limit(#[from] Exhausted),
    /// A limit of the host was reached.
    #[error("{0}")]
    HostLimit(String),
    /// The values do not allow it.
    #[error("{0}")]
    Value(String),
    /// The host has it, but not here.
    #[error("{0}")]
    Unavailable(String),
    /// The host will know it later.
    #[error("{0}")]
    NotYet(String),
    /// A file that the host is to read does not exist.
    #[error("cannot read {}: no such file", path.display())]
    MissingFile {
        /// The file, with the folder that a relative path starts at.
        path: PathBuf,
    },
    /// Something is wrong in a template that was called.
    #[error("{place}: {kind}")]
    InTemplate {
        /// The file, line and column, or the line of a text.
        place: String,
        /// What is wrong there.
        kind: Box<ErrorKind>,
    },
    /// A function failed.
    #[error("{function}: {kind}")]
    Call {
        /// The name of the function.
        function: String,
        /// Why it failed.
        kind: Box<ErrorKind>,
    },
}

impl ErrorKind {
    /// Returns the kind at the bottom of nested calls.
    #[must_use]
    pub fn innermost(&self) -> &Self {
        match self {
            Self::Call { kind, .. } | Self::InTemplate { kind, .. } => kind.innermost(),
            other => other,
        }
    }

    /// Replaces a message that could quote a secret value. Returns whether it did.
    pub(crate) fn mask(&mut self) -> bool {
        match self {
            Self::Call { kind, .. } | Self::InTemplate { kind, .. } => return kind.mask(),
            // These have only names and types.
            Self::UnknownVariable { .. }
            | Self::UnknownFunction { .. }
            | Self::Type { .. }
            | Self::Nil(_)
            | Self::NoValue { .. }
            | Self::Limit(_) => return false,
            Self::HostLimit(message)
            | Self::Value(message)
            | Self::Unavailable(message)
            | Self::NotYet(message)
            | Self::Syntax(message) => MASKED.clone_into(message),
            Self::MissingFile { path } => *path = MASK.into(),
            Self::MissingPath { .. } => *self = Self::Value(MASKED.to_owned()),
        }
        true
    }

    /// Returns whether the message was replaced because it could quote a secret value.
    #[must_use]
    pub fn is_masked(&self) -> bool {
        match self.innermost() {
            Self::HostLimit(message)
            | Self::Value(message)
            | Self::Unavailable(message)
            | Self::NotYet(message)
            | Self::Syntax(message) => message == MASKED,
            Self::MissingFile { path } => path.as_os_str() == MASK,
            _ => false,
        }
    }

    /// Returns whether all that is wrong is that something has no value.
    #[must_use]
    pub fn is_about_nil(&self) -> bool {
        matches!(self.innermost(), Self::Nil(_) | Self::NoValue { .. } | Self::Type { found: "nil", .. })
    }

    /// Returns whether a limit was reached, so that the same again would fail again.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.innermost(), Self::Limit(_) | Self::HostLimit(_))
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, span: Range<usize>) -> Self {
        Self { kind: Box::new(kind), span, help: None }
    }

    pub(crate) fn syntax(message: impl Into<String>, span: Range<usize>) -> Self {
        Self::new(ErrorKind::Syntax(message.into()), span)
    }

    /// Returns the same error without the parts of its message that could quote a secret value.
    pub(crate) fn masked(mut self) -> Self {
        if self.kind.mask() {
            self.help = None;
        }
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the same problem in a text that holds this one `offset` bytes in.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> Self {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;
