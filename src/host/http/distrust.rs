//! Reasons to distrust a server.

use std::sync::Arc;

use rustls::{CertificateError, OtherError, pki_types::CertificateDer};

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
    #[error("its certificate is self-signed")]
    SelfSigned,
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
            CertificateError::Other(other) if other.0.is::<SelfSigned>() => Self::SelfSigned,
            // rustls passes on this error of the underlying library.
            CertificateError::Other(other)
                if other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
            {
                Self::Authority
            }
            other => Self::Certificate(other.to_string()),
        }
    }

    /// Returns the error about a certificate that is not trusted, which says whether the certificate is self-signed.
    pub(super) fn explain(error: rustls::Error, shown: &CertificateDer) -> rustls::Error {
        match Self::of(&error) {
            // An authority of the same name with another key makes the signature wrong.
            Self::UnknownAuthority | Self::Authority | Self::Certificate(_) if is_self_signed(shown) => {
                CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()
            }
            _ => error,
        }
    }

    /// Returns advice for the administrator.
    pub(super) fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnknownAuthority => {
                "if the server is to be trusted, add the certificate of its authority to those of the system \
                 (`update-ca-certificates`); an `archive` can name it in `ca_file`"
            }
            Self::SelfSigned => {
                "if the server is to be trusted, add its certificate to those of the system \
                 (`update-ca-certificates`); an `archive` can name it in `ca_file`"
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

/// Marks an error about a self-signed certificate.
#[derive(Debug, thiserror::Error)]
#[error("self-signed certificate")]
struct SelfSigned;

/// Returns whether issuer and subject of a certificate are equal (RFC 5280, section 4.1).
fn is_self_signed(certificate: &[u8]) -> bool {
    const VERSION: u8 = 0xa0;
    let content = |der| element(der).map(|(_, content, _)| content);
    let Some(mut rest) = content(certificate).and_then(content) else { return false };
    let mut fields = Vec::new();
    while let Some((tag, content, after)) = element(rest).filter(|_| fields.len() < 5) {
        rest = after;
        fields.extend((tag != VERSION).then_some(content));
    }
    // Serial number, algorithm, issuer, validity and subject.
    matches!(fields[..], [_, _, issuer, _, subject] if issuer == subject)
}

/// Returns tag and content of the first element of a DER encoding, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk()?;
    let long = usize::from(first & 0x7f);
    let (length, rest) = match first {
        0x80.. => {
            let (digits, rest) = rest.split_at_checked(long)?;
            (
                digits
                    .iter()
                    .try_fold(0_usize, |sum, &digit| Some(sum.checked_mul(256)? + usize::from(digit)))?,
                rest,
            )
        }
        _ => (long, rest),
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}
