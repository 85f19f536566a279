//! Custom request headers.

use ureq::http::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers that control the transfer or select a part of the file. With other values, a server would wait for data or
/// send an unusable response.
const RESERVED: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "if-range",
    "keep-alive",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// Maximum length of a header value; servers accept less.
const LONGEST: usize = 60 * 1024;

/// Reason why a header cannot be sent. Does not contain its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderFault {
    #[error("{0:?} is not the name of a header")]
    Name(String),
    #[error("the header {0:?} cannot be given: it is part of how the download itself is done")]
    Reserved(String),
    #[error("the value of the header {0:?} holds a line break or another character that no header may hold")]
    Value(String),
    #[error("the value of the header {0:?} is longer than {LONGEST} bytes")]
    Long(String),
}

/// Checks the name of a header.
pub(crate) fn check_name(name: &str) -> Result<(), HeaderFault> {
    parse_name(name).map(drop)
}

/// Checks the value of a header.
pub(crate) fn check_value(name: &str, value: &str) -> Result<(), HeaderFault> {
    parse_value(name, value).map(drop)
}

/// Adds a custom header.
pub(super) fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), HeaderFault> {
    headers.insert(parse_name(name)?, parse_value(name, value)?);
    Ok(())
}

fn parse_name(name: &str) -> Result<HeaderName, HeaderFault> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderFault::Name(name.to_owned()))?;
    if RESERVED.contains(&parsed.as_str()) {
        return Err(HeaderFault::Reserved(name.to_owned()));
    }
    Ok(parsed)
}

fn parse_value(name: &str, value: &str) -> Result<HeaderValue, HeaderFault> {
    if value.len() > LONGEST {
        return Err(HeaderFault::Long(name.to_owned()));
    }
    let mut value: HeaderValue = value.parse().map_err(|_| HeaderFault::Value(name.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
