//! What can go wrong with a download, and what the user is told about it.

use crate::{
    host::{files::FileError, http::HttpError},
    resource::{Context, Error, Retry},
    vocabulary::Checksum,
};

/// What can go wrong with a download.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("cannot download: {error}")]
    Http { error: HttpError, property: &'static str },
    #[error("the download has the checksum {found}, not {wanted}")]
    OtherChecksum { found: Checksum, wanted: Checksum },
    /// From the checksum of a secret it could be guessed.
    #[error("the download has another checksum than the one that is wanted")]
    OtherSecretChecksum,
}

impl DownloadError {
    /// Returns the property to blame.
    fn property(&self) -> &'static str {
        match self {
            Self::Http { error: HttpError::CaFile { .. }, .. } => "ca_file",
            Self::Http { property, .. } => property,
            Self::OtherChecksum { .. } | Self::OtherSecretChecksum => "checksum",
        }
    }

    /// Returns what the user could do about it.
    fn help(&self) -> Option<&'static str> {
        match self {
            Self::Http { error: HttpError::TooLarge { .. }, property: "url" } => {
                Some("if the file is meant to be that large, raise `max_download`")
            }
            Self::Http { error, .. } => error.hint(),
            Self::OtherChecksum { .. } | Self::OtherSecretChecksum => {
                Some("either the checksum is that of another version, or the download was tampered with")
            }
        }
    }
}

impl From<DownloadError> for Error {
    fn from(error: DownloadError) -> Self {
        let is_passing = matches!(&error, DownloadError::Http { error, .. } if error.is_passing());
        let retry = if is_passing { Retry::Worthwhile } else { Retry::Pointless };
        let (property, help) = (Some(error.property()), error.help().map(str::to_owned));
        Self { property, help, ..Self::new(error.to_string()).with_retry(retry) }
    }
}

/// Returns the error of a file of this machine; another attempt is made only where it could go better.
pub(crate) fn local(error: FileError) -> Error {
    let retry = if error.is_passing() { Retry::Worthwhile } else { Retry::Pointless };
    Error::from(error).with_retry(retry)
}

/// Returns the failure of a request, or why it was stopped.
pub(crate) fn refusal(error: HttpError, property: &'static str, cx: &Context) -> Error {
    cx.tick().err().unwrap_or_else(|| DownloadError::Http { error, property }.into())
}
