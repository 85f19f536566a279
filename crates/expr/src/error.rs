//! What can be wrong with an expression, a path or a template, and where.

use std::ops::Range;

/// A problem with a text, found while reading it or while evaluating it.
///
/// Displays as its message alone: whoever shows it decides how to show the place and the help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong, lower case, quoting the text it is about.
    pub message: String,
    /// The bytes of the expression, path or template that it is about.
    pub span: Range<usize>,
    /// What to do about it, when there is something better to say than the message.
    pub help: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, help: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same problem in a text that holds this one `offset` bytes in.
    pub(crate) fn shifted(mut self, offset: usize) -> Self {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;
