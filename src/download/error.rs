//! Download errors and their messages.

use crate::{
    host::{files::FileError, http::HttpError},
    resource::{Context, Error, Retry},
    vocabulary::Checksum,
};

/// Reason why a download failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("cannot download: {error}")]
    Http { error: HttpError, property: &'static str },
    #[error("the download has the checksum {found}, not {wanted}")]
    OtherChecksum { found: Checksum, wanted: Checksum },
    /// The checksum of a secret would make guesses verifiable.
    #[error("the download has another checksum than the one that is wanted")]
    OtherSecretChecksum,
}

impl DownloadError {
    /// Returns the property that the error belongs to.
    fn property(&self) -> &'static str {
        match self {
            Self::Http { error: HttpError::CaFile { .. }, .. } => "ca_file",
            Self::Http { property, .. } => property,
            Self::OtherChecksum { .. } | Self::OtherSecretChecksum => "checksum",
        }
    }

    /// Returns advice.
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

/// Returns the error of a local file. ccm retries only if another attempt can succeed.
pub(crate) fn local(error: FileError) -> Error {
    let retry = if error.is_passing() { Retry::Worthwhile } else { Retry::Pointless };
    Error::from(error).with_retry(retry)
}

/// Returns the error of a request, or the reason why it was stopped.
pub(crate) fn refusal(error: HttpError, property: &'static str, cx: &Context) -> Error {
    cx.tick().err().unwrap_or_else(|| DownloadError::Http { error, property }.into())
}
