//! Types of the properties of an entry.

use std::{fmt, net::IpAddr, num::NonZeroU16, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::vocabulary::Raw;

/// Reason why a string is not part of an entry.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotAnEntry(pub(super) String);

/// Name of a cluster, protocol or service: a letter, then letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = "^[a-zA-Z][a-zA-Z0-9_-]*$"))]
pub(crate) struct Token(String);

/// Address of a service: an IP address or a host name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub(crate) struct Address(String);

/// Port of a service, 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "u16")]
pub(crate) struct Port(NonZeroU16);

/// Priority of a service, 1 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Priority(u8);

impl FromStr for Token {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Self, NotAnEntry> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAnEntry(format!("\"{text}\" is not a name: it is a letter, then letters, digits, _ and -")))
    }
}

impl FromStr for Address {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Self, NotAnEntry> {
        if text.parse::<IpAddr>().is_ok() || is_host_name(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAnEntry(format!("\"{text}\" is neither an IP address nor a host name")))
    }
}

/// Returns whether a string is a host name by RFC 1123, and not a malformed IP address.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253 && text.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

impl FromStr for Port {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Self, NotAnEntry> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let port = text.parse().ok().filter(|_| is_number);
        port.map(Self).ok_or_else(|| NotAnEntry(format!("\"{text}\" is not a port: it is 1 to 65535")))
    }
}

impl FromStr for Priority {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Self, NotAnEntry> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let priority = text.parse().ok().filter(|priority| *priority > 0 && is_number);
        priority.map(Self).ok_or_else(|| NotAnEntry(format!("\"{text}\" is not a priority: it is 1 to 255")))
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(100)
    }
}

impl Token {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Address {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address as part of a subject, where dots are separators.
    pub(super) fn in_subject(&self) -> String {
        self.0.replace('.', "_")
    }

    /// Returns the address for a part of a subject. Host names have no `_`.
    pub(super) fn from_subject(part: &str) -> Self {
        Self(part.replace('_', "."))
    }
}

impl Port {
    pub(crate) fn number(self) -> u16 {
        self.0.get()
    }
}

impl Priority {
    pub(crate) fn number(self) -> u8 {
        self.0
    }
}

impl TryFrom<String> for Token {
    type Error = NotAnEntry;

    fn try_from(text: String) -> Result<Self, NotAnEntry> {
        text.parse()
    }
}

impl TryFrom<String> for Address {
    type Error = NotAnEntry;

    fn try_from(text: String) -> Result<Self, NotAnEntry> {
        text.parse()
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.0
    }
}

impl From<Port> for u16 {
    fn from(port: Port) -> Self {
        port.number()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer)?.0.parse().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer)?.0.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Port {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Port".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 1, "maximum": 65535 })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl JsonSchema for Priority {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Priority".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 1, "maximum": 255 })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_takes_what_it_is_made_of() {
        for (text, token, address, port, priority) in [
            ("web", true, true, false, false),
            ("web-1_x", true, false, false, false),
            ("1web", false, true, false, false),
            ("web1.example.net", false, true, false, false),
            ("10.0.0.1", false, true, false, false),
            ("10.0.0", false, false, false, false),
            ("10.0.0.256", false, false, false, false),
            ("2001:db8::1", false, true, false, false),
            ("a*", false, false, false, false),
            ("", false, false, false, false),
            ("1", false, false, true, true),
            ("0", false, false, false, false),
            ("255", false, false, true, true),
            ("256", false, false, true, false),
            ("65535", false, false, true, false),
            ("65536", false, false, false, false),
            ("+1", false, false, false, false),
        ] {
            assert_eq!(text.parse::<Token>().is_ok(), token, "{text}");
            assert_eq!(text.parse::<Address>().is_ok(), address, "{text}");
            assert_eq!(text.parse::<Port>().is_ok(), port, "{text}");
            assert_eq!(text.parse::<Priority>().is_ok(), priority, "{text}");
        }
    }
}
