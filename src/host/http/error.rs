//! HTTP errors.

use std::{io, path::PathBuf};

use ureq::Timeout;

use super::{distrust::Distrust, header::HeaderFault, severed::Severed};
use crate::vocabulary::Url;

/// Reason why a request failed. URLs are shown without user and password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("{url} answered {status}{}", phrase(*status))]
    Status { url: String, status: u16 },
    #[error("cannot reach {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} cannot be trusted: {distrust}")]
    Tls { url: String, distrust: Distrust },
    #[error("{url} sent nothing for too long")]
    Stalled { url: String },
    #[error("time was up before {url} was fetched")]
    TimeUp { url: String },
    #[error("{url} ended after {received} bytes{}", expected.map(|bytes| format!(" of {bytes}")).unwrap_or_default())]
    Truncated { url: String, received: u64, expected: Option<u64> },
    #[error("{url} did not speak HTTP as it should: {reason}")]
    Protocol { url: String, reason: String },
    #[error("{url} sent another part of the file than the one it was asked for")]
    WrongRange { url: String },
    #[error("{url} holds more than {limit} bytes")]
    TooLarge { url: String, limit: u64 },
    #[error("{from} redirects to {to}: what was asked for over https is not fetched over http")]
    Downgrade { from: String, to: String },
    #[error("{from} redirects to a place that cannot be followed: {reason}")]
    BadRedirect { from: String, reason: String },
    #[error("{url} redirects more than {limit} times")]
    TooManyRedirects { url: String, limit: usize },
    #[error(transparent)]
    Header(#[from] HeaderFault),
    #[error("cannot read certificates from {}: {reason}", path.display())]
    CaFile { path: PathBuf, reason: String },
    #[error("cannot reach {url} through the proxy {proxy}: {reason}")]
    Proxy { proxy: String, url: String, reason: String },
    #[error("cannot reach {url} through the proxy {proxy}: it answered {status}{}", phrase(*status))]
    ProxyRefused { proxy: String, url: String, status: u16 },
    /// A proxy opened no tunnel. [`Proxy::blame`](super::proxies::Proxy::blame) adds its URL.
    #[error("the proxy answered {status}{}", phrase(*status))]
    NoTunnel { url: String, status: u16 },
    #[error("the proxy for {url} cannot be used: its URL is not one of http or https")]
    NoProxy { url: String },
    #[error("interrupted")]
    Interrupted,
}

fn phrase(status: u16) -> String {
    let status = ureq::http::StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).map(|text| format!(" ({text})")).unwrap_or_default()
}

impl HttpError {
    /// Returns whether another attempt could succeed.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            Self::Unreachable { .. }
            | Self::Stalled { .. }
            | Self::Truncated { .. }
            | Self::Protocol { .. }
            | Self::Proxy { .. }
            | Self::ProxyRefused { .. }
            | Self::NoTunnel { .. }
            | Self::TimeUp { .. }
            | Self::WrongRange { .. } => true,
            Self::Tls { .. }
            | Self::TooLarge { .. }
            | Self::Downgrade { .. }
            | Self::BadRedirect { .. }
            | Self::TooManyRedirects { .. }
            | Self::Header(_)
            | Self::NoProxy { .. }
            | Self::CaFile { .. }
            | Self::Interrupted => false,
        }
    }

    /// Returns advice for the administrator.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Status { status: 401 | 403, .. } => {
                "give `username` and `password`, or a header that the server accepts"
            }
            Self::Status { status: 404 | 410, .. } => {
                "look whether the URL is spelled right and still offered"
            }
            Self::Status { status: 407, .. } | Self::ProxyRefused { status: 407, .. } => {
                "the proxy wants a user and password in its URL"
            }
            Self::Proxy { .. } | Self::ProxyRefused { .. } | Self::NoProxy { .. } => {
                "look at `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` in the environment"
            }
            Self::Tls { distrust, .. } => return distrust.hint(),
            Self::Downgrade { .. } => "use the address behind the redirect if it can be trusted",
            _ => return None,
        })
    }

    /// Converts an error of the transport. The message is not quoted if it could contain a URL.
    pub(super) fn from_transport(error: ureq::Error, address: &Url) -> Self {
        let url = address.to_string();
        match error {
            ureq::Error::Io(error) => Self::from_io(error, address),
            ureq::Error::Timeout(Timeout::Global | Timeout::PerCall) => Self::TimeUp { url },
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                Self::Unreachable { url, reason: "no answer in time".to_owned() }
            }
            ureq::Error::Timeout(_) => Self::Stalled { url },
            ureq::Error::HostNotFound => {
                Self::Unreachable { url, reason: "nobody knows a host of this name".to_owned() }
            }
            ureq::Error::Rustls(error) => Self::from_tls(&error, address),
            ureq::Error::Tls(reason) => Self::Tls { url, distrust: Distrust::Other(reason.to_owned()) },
            ureq::Error::ConnectProxyFailed(reason) => {
                // The message is `proxy server responded 502/502`.
                match reason.rsplit('/').next().and_then(|status| status.parse().ok()) {
                    Some(status) => Self::NoTunnel { url, status },
                    None => Self::Unreachable { url, reason },
                }
            }
            ureq::Error::ConnectionFailed => {
                Self::Unreachable { url, reason: "the connection failed".to_owned() }
            }
            ureq::Error::Protocol(error) => Self::Protocol { url, reason: error.to_string() },
            ureq::Error::LargeResponseHeader(..) => {
                Self::Protocol { url, reason: "its headers are too large".to_owned() }
            }
            _ => Self::Protocol { url, reason: "the request failed".to_owned() },
        }
    }

    pub(super) fn from_tls(error: &rustls::Error, address: &Url) -> Self {
        Self::Tls { url: address.to_string(), distrust: Distrust::of(error) }
    }

    pub(super) fn from_io(error: io::Error, address: &Url) -> Self {
        let error = match error.downcast::<ureq::Error>() {
            Ok(error) => return Self::from_transport(error, address),
            Err(error) => error,
        };
        let url = address.to_string();
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::from_tls(error, address);
        }
        if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Severed>) {
            return Self::Truncated { url, received: 0, expected: None };
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated { url, received: 0, expected: None },
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Stalled { url },
            io::ErrorKind::ConnectionRefused => {
                Self::Unreachable { url, reason: "the connection was refused".to_owned() }
            }
            _ => Self::Unreachable { url, reason: error.to_string() },
        }
    }
}
