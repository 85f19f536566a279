//! Failures that another attempt would only repeat.

use crate::{
    host::files::FileError,
    resource::{Error, Retry},
};

pub(super) fn hopeless(message: impl Into<String>) -> Error {
    Error { retry: Retry::Pointless, ..Error::new(message) }
}

/// What went wrong on this machine, and not on the way to another.
pub(super) fn local(error: FileError) -> Error {
    let retry = if error.is_passing() { Retry::Worthwhile } else { Retry::Pointless };
    Error { retry, ..error.into() }
}
