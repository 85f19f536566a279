//! Errors of archives and their messages.

use std::{io, path::PathBuf};

use crate::{
    host::unpack::{ArchiveFormat, Breach, UnpackError},
    resource::{Error, Retry, file_help},
    state::StateError,
    vocabulary::{AbsolutePath, Url},
};

/// Reason why an archive failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error("\"{name}\" does not end like an archive")]
    UnknownEnding { name: AbsolutePath },
    #[error("the path of the URL does not end like an archive: \"{file}\"")]
    UnknownUrlEnding { file: String },
    #[error("the URL is that of a {url}, and the name that of a {name}")]
    OtherEnding { url: ArchiveFormat, name: ArchiveFormat },
    #[error("`{property}` needs `{needed}`: {why}")]
    Needs { property: &'static str, needed: &'static str, why: &'static str },
    #[error("`checksum` and `checksum_url` cannot be given together")]
    TwoChecksums,
    #[error("`{property}` must be at least 1")]
    Zero { property: &'static str },
    #[error("{name} is {what}, not an archive")]
    NotAFile { name: AbsolutePath, what: &'static str },
    #[error("owner and group are not known")]
    UnknownAttributes,
    #[error("{url} holds no checksum of \"{file}\"")]
    NotListed { url: Url, file: String },
    #[error("cannot unpack {}: {error}", archive.display())]
    Unpack { archive: PathBuf, error: UnpackError },
    #[error("cannot unpack {}: {error}; it begins with `{start}`", archive.display())]
    NotAnArchive { archive: PathBuf, error: UnpackError, start: String },
    #[error("the archive does not hold {creates}: nothing of it was unpacked")]
    Uncreated { creates: AbsolutePath },
    #[error("failed to reach desired state: the archive was unpacked, but {creates} is not there")]
    StillUncreated { creates: AbsolutePath },
    #[error("{} was changed by somebody else meanwhile", path.display())]
    Changed { path: PathBuf },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot record what is unpacked: {0}")]
    Unrecorded(StateError),
}

impl ArchiveError {
    /// Returns the property that the error belongs to.
    fn property(&self) -> Option<&'static str> {
        match self {
            Self::Needs { property, .. } | Self::Zero { property } => Some(property),
            Self::UnknownEnding { .. } => Some("name"),
            Self::UnknownUrlEnding { .. } | Self::OtherEnding { .. } | Self::NotAnArchive { .. } => {
                Some("url")
            }
            Self::TwoChecksums | Self::NotListed { .. } => Some("checksum_url"),
            Self::Unpack { .. } => Some("extract_parent"),
            Self::Uncreated { .. } | Self::StillUncreated { .. } => Some("creates"),
            Self::NotAFile { .. }
            | Self::UnknownAttributes
            | Self::Changed { .. }
            | Self::Unreadable { .. }
            | Self::Unrecorded(_) => None,
        }
    }

    /// Returns advice.
    fn help(&self) -> Option<String> {
        let text = match self {
            Self::UnknownEnding { .. } | Self::UnknownUrlEnding { .. } => {
                return Some(format!("supported: {}", ArchiveFormat::endings()));
            }
            Self::Unpack { error, .. } => return unpack_help(error),
            Self::NotAnArchive { .. } => "check `url`: the server can send a page to log in, or an error",
            Self::OtherEnding { .. } => "give both the same ending",
            Self::TwoChecksums => "keep the one that is to be believed",
            Self::NotAFile { .. } => "remove it first, or name another path",
            Self::Uncreated { .. } | Self::StillUncreated { .. } => {
                "name a file that is in the archive; `strip_components` changes where it goes"
            }
            Self::Unrecorded(_) => "make room in the state directory or name another with --state-dir",
            Self::Needs { .. }
            | Self::Zero { .. }
            | Self::UnknownAttributes
            | Self::NotListed { .. }
            | Self::Changed { .. }
            | Self::Unreadable { .. } => return None,
        };
        Some(text.to_owned())
    }

    /// Returns whether another attempt could succeed.
    fn retry(&self) -> Retry {
        let is_passing = !matches!(
            self,
            Self::NotAFile { .. }
                | Self::NotListed { .. }
                | Self::Unpack { .. }
                | Self::NotAnArchive { .. }
                | Self::Uncreated { .. }
                | Self::StillUncreated { .. }
        );
        if is_passing { Retry::Worthwhile } else { Retry::Pointless }
    }
}

/// Returns what the user can do about an archive that could not be extracted, in terms of properties.
fn unpack_help(error: &UnpackError) -> Option<String> {
    let property = match error {
        UnpackError::Files(error) => return file_help(error),
        UnpackError::Breach { breach: Breach::Size(_), .. } => "max_size",
        UnpackError::Breach { breach: Breach::Entries(_), .. } => "max_entries",
        UnpackError::Breach { breach: Breach::Ratio(_), .. } => "max_ratio",
        _ => return error.hint(),
    };
    Some(format!("if the archive can be trusted, raise `{property}`"))
}

impl From<ArchiveError> for Error {
    fn from(error: ArchiveError) -> Self {
        let (property, help, retry) = (error.property(), error.help(), error.retry());
        Self { property, help, ..Self::new(error.to_string()).with_retry(retry) }
    }
}
