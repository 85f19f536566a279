//! Reasons to distrust a server.

use rustls::CertificateError;

/// Reason to distrust a server; follows "cannot be trusted" in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Distrust {
    #[error("its certificate has expired")]
    Expired,
    #[error("its certificate is not valid yet")]
    NotYet,
    #[error("its certificate is for another host")]
    OtherHost,
    #[error("its certificate is from an unknown authority")]
    UnknownAuthority,
    #[error("its certificate is that of an authority, not of a server")]
    Authority,
    #[error("its certificate is not valid ({0})")]
    Certificate(String),
    /// The server did not respond with TLS.
    #[error("it does not speak TLS")]
    PlainText,
    #[error("{0}")]
    Other(String),
}

impl Distrust {
    pub(super) fn of(error: &rustls::Error) -> Self {
        let certificate = match error {
            rustls::Error::InvalidCertificate(certificate) => certificate,
            rustls::Error::InvalidMessage(_) => return Self::PlainText,
            other => return Self::Other(other.to_string()),
        };
        match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYet,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherHost
            }
            CertificateError::UnknownIssuer => Self::UnknownAuthority,
            // rustls passes on this error of the underlying library.
            CertificateError::Other(other)
                if other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
            {
                Self::Authority
            }
            other => Self::Certificate(other.to_string()),
        }
    }

    /// Returns advice for the administrator.
    pub(super) fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnknownAuthority => {
                "name the certificate of its authority in `ca_file` if it is not one that the system trusts"
            }
            Self::Authority => "name this very certificate in `ca_file` if the server is to be trusted",
            Self::Expired | Self::NotYet => {
                "the server needs another certificate, unless the clock of this machine is wrong"
            }
            Self::OtherHost => "use a name of the server that its certificate is for",
            Self::PlainText => "begin the URL with http:// or name the port on which the server speaks https",
            Self::Certificate(_) | Self::Other(_) => return None,
        })
    }
}
