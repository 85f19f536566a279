//! Why a server that says it is the right one is not believed.

use rustls::CertificateError;

/// Why a server is not trusted; follows "cannot be trusted" in a sentence.
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
    /// What came first was no TLS at all.
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
            // rustls has no name of its own for it, and hands on the error of the library that it comes from.
            CertificateError::Other(other)
                if other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
            {
                Self::Authority
            }
            other => Self::Certificate(other.to_string()),
        }
    }

    /// Returns what the administrator could do about it.
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
