//! What a rule says about how to look.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value as Json;

use super::kinds::Kind;
use crate::{
    checks::matcher::{LinePattern, noun},
    vocabulary::{self, Secret},
};

/// What a rule says about how to look. Each is only for some kinds of rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) timeout: Option<Duration>,
    pub(crate) method: Option<String>,
    pub(crate) request_headers: Vec<(String, Secret)>,
    pub(crate) request_body: Option<String>,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) allow_insecure: bool,
    pub(crate) no_follow_redirects: bool,
    pub(crate) ca_file: Option<String>,
    pub(crate) cert_file: Option<String>,
    pub(crate) key_file: Option<String>,
    pub(crate) proxy: Option<String>,
    pub(crate) local_address: Option<std::net::IpAddr>,
    pub(crate) server: Option<String>,
    /// Only processes of this user count.
    pub(crate) user: Option<String>,
    /// Only processes whose command line is like this count.
    pub(crate) args: Option<LinePattern>,
    /// What a `matching` rule holds.
    pub(crate) content: Option<Json>,
    /// A unit counts as running only after it has been for so long, without a restart.
    pub(crate) settled: Option<Duration>,
    /// What a server says by itself after it was connected to.
    pub(crate) greeting: Option<LinePattern>,
}

impl Options {
    /// Takes one option.
    pub(super) fn set(&mut self, key: &str, value: &Json) -> Result<(), String> {
        let text = || match value {
            Json::String(text) => Ok(text.clone()),
            other => Err(format!("expected a string, found {}", noun(other))),
        };
        let truth =
            || value.as_bool().ok_or_else(|| format!("expected true or false, found {}", noun(value)));
        match key {
            "timeout" => self.timeout = Some(milliseconds(value)?),
            "method" => self.method = Some(text()?),
            "request-headers" => self.request_headers = headers(value)?,
            "request-body" => self.request_body = Some(text()?),
            "username" => self.username = Some(text()?),
            "password" => self.password = Some(Secret::new(text()?)),
            "allow-insecure" => self.allow_insecure = truth()?,
            "no-follow-redirects" => self.no_follow_redirects = truth()?,
            "ca-file" => self.ca_file = Some(text()?),
            "cert-file" => self.cert_file = Some(text()?),
            "key-file" => self.key_file = Some(text()?),
            "proxy" => self.proxy = Some(text()?),
            "local-address" => {
                let text = text()?;
                let address = text.parse().map_err(|_| format!("\"{text}\" is not an IP address"))?;
                self.local_address = Some(address);
            }
            "server" => self.server = Some(text()?),
            "user" => self.user = Some(text()?),
            "args" => self.args = Some(text()?.parse()?),
            "content" => self.content = Some(value.clone()),
            other => return Err(format!("`{other}` says nothing about how to look")),
        }
        Ok(())
    }

    /// Returns what is wrong with the combination, each being right on its own.
    pub(super) fn problem(&self, kind: Kind) -> Option<String> {
        if self.cert_file.is_some() != self.key_file.is_some() {
            return Some("`cert-file` and `key-file` are given together or not at all".to_owned());
        }
        (kind == Kind::Matching && self.content.is_none()).then(|| "the key `content` is missing".to_owned())
    }
}

/// Reads a number of milliseconds, or a length of time such as `5s`.
fn milliseconds(value: &Json) -> Result<Duration, String> {
    match value {
        Json::Number(number) => {
            let number = number.as_u64().filter(|number| *number > 0);
            number
                .map(Duration::from_millis)
                .ok_or_else(|| "a time limit is a whole number of milliseconds".to_owned())
        }
        Json::String(text) => {
            let limit: vocabulary::Duration = text.parse().map_err(|error| format!("{error}"))?;
            Ok(limit.as_std())
        }
        other => Err(format!("expected milliseconds or a length of time, found {}", noun(other))),
    }
}

/// Reads headers, each as `Name: value`.
fn headers(value: &Json) -> Result<Vec<(String, Secret)>, String> {
    let lines = match value {
        Json::Array(lines) => lines.as_slice(),
        one @ Json::String(_) => std::slice::from_ref(one),
        other => return Err(format!("expected a list of `Name: value`, found {}", noun(other))),
    };
    let header = |line: &Json| {
        let pair = line.as_str().and_then(|line| line.split_once(':'));
        let (name, value) = pair.ok_or_else(|| "a header is written as `Name: value`".to_owned())?;
        Ok((name.trim().to_owned(), Secret::new(value.trim())))
    };
    lines.iter().map(header).collect()
}

/// A value of any type, as a document has it.
pub(super) struct Any(pub(super) Json);

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Json::deserialize(deserializer)?;
        if value.is_null() {
            Err(de::Error::custom("expected a value, found nothing"))
        } else {
            Ok(Self(value))
        }
    }
}
