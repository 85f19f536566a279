//! Headers that somebody else gives for a request.

use ureq::http::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers that say how the request itself is sent or how much of the file is asked for. With one of them changed, a
/// server waits for what never comes, or answers what nobody can use.
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

/// Longer than any server takes; a header is sent in one piece.
const LONGEST: usize = 60 * 1024;

/// Why a header cannot be sent. Its value is not told.
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

/// Returns whether a header can be given by its name.
pub(crate) fn check_name(name: &str) -> Result<(), HeaderFault> {
    parse_name(name).map(drop)
}

/// Returns whether a header can have a value.
pub(crate) fn check_value(name: &str, value: &str) -> Result<(), HeaderFault> {
    parse_value(name, value).map(drop)
}

/// Adds a header that was given.
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
