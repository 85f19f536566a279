//! The content that a file is to have, before anything is read that need not be.

use sha2::{Digest, Sha256};

use super::{Ensure, Properties, remote, source};
use crate::{
    host::files::{self, Digested, FileKind},
    resource::{Context, Error},
    vocabulary::{RunMode, Url},
};

/// The content that a file is to have.
pub(super) enum WantedContent<'w> {
    NotManaged,
    Text(&'w str),
    /// What the steps make of the text that is there.
    Edited,
    /// A download.
    Remote(Url),
    /// A copy, with the size of the original where that is certain.
    Copy {
        source: &'w str,
        size: Option<u64>,
    },
}

impl<'w> WantedContent<'w> {
    pub(super) fn of(want: &'w Properties, cx: &Context) -> Result<Self, Error> {
        match (&want.content, &want.source) {
            _ if want.ensure != Ensure::Present => Ok(Self::NotManaged),
            (Some(content), _) => Ok(Self::Text(content)),
            (None, Some(source)) => match want.remote() {
                Some(url) => Ok(Self::Remote(url)),
                None => Ok(Self::Copy { source, size: source::size(source, cx)? }),
            },
            (None, None) if want.is_edited() => Ok(Self::Edited),
            (None, None) => Ok(Self::NotManaged),
        }
    }

    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::NotManaged | Self::Edited | Self::Remote(_) => None,
            Self::Text(content) => Some(content.len() as u64),
            Self::Copy { size, .. } => *size,
        }
    }

    /// Works out the checksum, unless what was found cannot have it. A dry run needs it for those who come after.
    pub(super) fn checksum(
        &self,
        want: &Properties,
        found: Option<&Digested>,
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        let may_fit = |size: u64| {
            let fits = |found: &Digested| found.entry.kind == FileKind::File && found.entry.size == size;
            cx.mode() == RunMode::Noop || found.is_some_and(fits)
        };
        match self {
            Self::NotManaged | Self::Edited => Ok(None),
            Self::Remote(url) => remote::checksum(want, url, found, cx).map(Some),
            Self::Text(content) => Ok(Some(checksum(content))),
            Self::Copy { size: Some(size), .. } if !may_fit(*size) => Ok(None),
            Self::Copy { source, .. } => source::checksum(source, cx).map(Some),
        }
    }
}

/// Returns the SHA-256 of a text in hex.
pub(super) fn checksum(text: &str) -> String {
    files::hex(&Sha256::digest(text.as_bytes()))
}
