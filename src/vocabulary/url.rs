//! URLs of web servers.
//!
//! The `url` crate parses them, as it does for NATS, so that all of ccm agrees on where the credentials of a URL end. [`Url`] keeps the
//! credentials and the query out of sight.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::ParseError;

use super::{NotAWord, Secret};
use crate::redaction::MASK;

/// URL that begins with `http://` or `https://`. ccm uses a user and password in it but never shows them, nor the query, in
/// which servers put signatures.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "URL", "pattern" = "^[Hh][Tt][Tt][Pp][Ss]?://"))]
pub(crate) struct Url {
    /// Without user, password and fragment.
    address: url::Url,
    /// User and password as sent.
    login: Option<Login>,
    /// User, password and query as written.
    written: Vec<Secret>,
}

/// Protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// User and password for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Secret,
    pub(crate) password: Secret,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, NotAWord> {
        let rest = match text.split_once("://") {
            Some((scheme, rest))
                if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
            {
                rest
            }
            Some((scheme, _)) if is_scheme(scheme) => {
                return Err(NotAWord(format!(
                    "the URL has the scheme \"{scheme}\": only http and https are known"
                )));
            }
            _ => return Err(NotAWord("it is not a URL: begin it with https:// or http://".to_owned())),
        };
        if text.contains(|c: char| c.is_control() || c == ' ') {
            return Err(NotAWord(
                "the URL contains a blank or control character: write it as %20 or the like".to_owned(),
            ));
        }
        let authority = authority(rest);
        // The crate accepts more, and takes a backslash for a slash. A part of a password must not become a host.
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._~:[]%".contains(c);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if host.is_empty() || !host.chars().all(is_host) || authority.contains('\\') {
            return Err(unusable("host", text));
        }
        let mut address = url::Url::parse(text).map_err(|error| unusable(part(error), text))?;
        let plain = |part: &str| Secret::new(String::from_utf8_lossy(&unescape(part)));
        let login = authority.contains('@').then(|| Login {
            user: plain(address.username()),
            password: plain(address.password().unwrap_or_default()),
        });
        let credentials = authority.rsplit_once('@').map(|(credentials, _)| credentials);
        let query = rest.split('#').next().and_then(|rest| rest.split_once('?')).map(|(_, query)| query);
        let written = credentials.into_iter().flat_map(|both| both.splitn(2, ':')).chain(query);
        let written = written.map(Secret::new).collect();
        let without = address.set_username("").and_then(|()| address.set_password(None));
        without.map_err(|()| unusable("host", text))?;
        address.set_fragment(None);
        Ok(Self { address, login, written })
    }

    pub(crate) fn scheme(&self) -> Scheme {
        if self.address.scheme() == "http" { Scheme::Http } else { Scheme::Https }
    }

    /// Returns the host in lower case; an IPv6 address in its brackets.
    pub(crate) fn host(&self) -> &str {
        self.address.host_str().unwrap_or_default()
    }

    /// Returns the port, or the default port of the scheme.
    pub(crate) fn port(&self) -> u16 {
        self.address.port_or_known_default().unwrap_or_default()
    }

    /// Returns the path without the query.
    pub(crate) fn path(&self) -> &str {
        self.address.path()
    }

    /// Returns the last part of the path, with `%` escapes resolved.
    pub(crate) fn file_name(&self) -> String {
        let last = self.path().rsplit('/').next().unwrap_or_default();
        String::from_utf8_lossy(&unescape(last)).into_owned()
    }

    /// Returns the URL with a longer path. The query stays.
    pub(crate) fn with_suffix(&self, suffix: &str) -> Self {
        let mut longer = self.clone();
        longer.address.set_path(&format!("{}{suffix}", self.path()));
        longer
    }

    /// Returns whether both have the same scheme, host and port, so that one can be sent the secrets of the other.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        self.address.origin() == other.address.origin()
    }

    /// Returns the user and password in the URL.
    pub(crate) fn login(&self) -> Option<Login> {
        self.login.clone()
    }

    /// Returns what must not be shown: user, password and query, as written and as sent.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let login = self.login.iter().flat_map(|login| [&login.user, &login.password]);
        let kept = login.chain(&self.written).map(|part| part.reveal().to_owned());
        kept.chain(self.address.query().map(str::to_owned)).collect()
    }

    /// Returns the URL for a request, without user and password.
    pub(crate) fn bare(&self) -> String {
        self.address.to_string()
    }

    /// Returns the URL that a reference found at this URL points to, without the credentials of this URL.
    pub(crate) fn join(&self, reference: &str) -> Result<Self, NotAWord> {
        match self.address.join(reference) {
            Ok(target) => Self::parse(target.as_str()),
            Err(error) => Err(unusable(part(error), reference)),
        }
    }
}

/// Returns whether a text is meant as a URL: a scheme in any case and `://`, or `http:` or `https:` alone.
pub(crate) fn has_scheme(text: &str) -> bool {
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let is_address = |(scheme, _): (&str, &str)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && is_scheme(scheme)
    };
    text.split_once("://").is_some_and(is_address) || begins("http:") || begins("https:")
}

/// Returns whether a text might contain a URL, valid or not, with a user, password or query.
pub(crate) fn holds_secrets(text: &str) -> bool {
    let has_query =
        |rest: &str| rest.split(char::is_whitespace).next().is_some_and(|word| word.contains('?'));
    let is_secret = |rest: &str| rest.contains('@') || has_query(rest);
    let is_address = |word: &str| word.contains('@') && word.contains([':', '/']);
    text.split("://").skip(1).any(is_secret)
        || text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http")) && text.contains('@')
        || text.split_whitespace().any(is_address)
}

fn is_scheme(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Returns the part of a URL between the slashes and the path.
fn authority(rest: &str) -> &str {
    &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
}

/// Returns the part of a URL that an error is about.
fn part(error: ParseError) -> &'static str {
    if error == ParseError::InvalidPort { "port" } else { "host" }
}

/// Returns the reason why a URL cannot be used. The text before an `@` might be a password, so it is not quoted.
fn unusable(part: &str, text: &str) -> NotAWord {
    NotAWord(if text.contains('@') {
        format!("the URL has no usable {part}: write `/`, `#` and `?` in a password as %2F, %23 and %3F")
    } else {
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        format!("the URL has no usable {part}: \"{}\"", authority(rest))
    })
}

/// Returns the bytes that `%` escapes stand for.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok()))
            .flatten();
        plain.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    plain
}

impl TryFrom<String> for Url {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        Self::parse(&text)
    }
}

impl From<Url> for String {
    fn from(url: Url) -> Self {
        url.to_string()
    }
}

impl fmt::Display for Url {
    /// Writes the URL with a mask for user and password, and without the query.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (scheme, rest) = self.address.as_str().split_once("://").unwrap_or_default();
        let mask = if self.login.is_some() { format!("{MASK}@") } else { String::new() };
        let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?…"));
        write!(f, "{scheme}://{mask}{rest}{query}")
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn an_address_is_taken_apart() {
        let url = url("HTTPS://Example.COM:8443/a%20b/app.tar.gz?x=/y#z");
        assert_eq!((url.scheme(), url.host(), url.port()), (Scheme::Https, "example.com", 8443));
        assert_eq!((url.path(), url.file_name().as_str()), ("/a%20b/app.tar.gz", "app.tar.gz"));
        assert_eq!(url.bare(), "https://example.com:8443/a%20b/app.tar.gz?x=/y");
        assert_eq!(super::Url::parse("http://[::1]:81/x").unwrap().port(), 81);
        assert_eq!(super::Url::parse("http://h").unwrap().bare(), "http://h/");
    }

    #[test]
    fn user_and_password_are_used_and_never_shown() {
        let url = url("http://us%3Aer:p@ss%2F@h/x");
        assert_eq!(url.to_string(), "http://[secret]@h/x");
        assert_eq!(
            format!("{url:?} {}", serde_json::to_string(&url).unwrap()),
            "http://[secret]@h/x \"http://[secret]@h/x\""
        );
        let login = url.login().unwrap();
        assert_eq!((login.user.reveal(), login.password.reveal()), ("us:er", "p@ss/"));
        assert_eq!(url.bare(), "http://h/x");
    }

    #[test]
    fn a_query_is_sent_and_never_shown() {
        let signed = url("https://h/x?token=hunter2");
        let json = serde_json::to_string(&signed).unwrap();
        assert_eq!(format!("{signed} {signed:?} {json}"), r#"https://h/x?… https://h/x?… "https://h/x?…""#);
        assert_eq!(signed.bare(), "https://h/x?token=hunter2");
        assert_eq!(url("https://h/x").to_string(), "https://h/x");
    }

    #[test]
    fn text_that_may_hold_a_secret_address_is_recognised() {
        for text in ["http://u@h/", "a: https://h/x?t", "http://h http://h?x", "ftp://u:p w@h", "HTTP u@h"] {
            assert!(holds_secrets(text), "{text}");
        }
        for text in ["", "a@b", "x?y", "https://h/x", "https://h/x - really?"] {
            assert!(!holds_secrets(text), "{text}");
        }
    }

    #[test]
    fn an_address_is_known_by_its_scheme_in_whatever_case() {
        for text in ["http://h", "HTTPS://u:p@h/x", "ftp://h", "s3+x://h", "http:/u:p@h", "Https:h"] {
            assert!(has_scheme(text), "{text}");
        }
        for text in ["", "-", "/a/b", "./http://h", "a b://x", "1://x", "://x", "site.yaml", "https"] {
            assert!(!has_scheme(text), "{text}");
        }
    }

    #[test]
    fn references_lead_where_browsers_go_and_take_no_credentials_along() {
        let base = url("https://u:p@h:8/a/b?q");
        for (reference, target) in [
            ("http://other/x", "http://other/x"),
            ("//other/x", "https://other/x"),
            ("/x?y=http://z", "https://h:8/x?y=http://z"),
            ("x", "https://h:8/a/x"),
            ("?y", "https://h:8/a/b?y"),
        ] {
            assert_eq!(base.join(reference).unwrap().bare(), target, "{reference}");
        }
    }

    #[test]
    fn references_lead_upwards_as_far_as_there_is_something() {
        let base = url("https://h:8/a/b?q");
        for (reference, target) in [
            ("", "https://h:8/a/b?q"),
            ("#x", "https://h:8/a/b?q"),
            ("../x", "https://h:8/x"),
            ("../../x/./y/..?z=/../", "https://h:8/x/?z=/../"),
            ("./", "https://h:8/a/"),
            ("..", "https://h:8/"),
            ("/c/../../x", "https://h:8/x"),
            ("//other/a/../x", "https://other/x"),
            ("http://other/a/./../..", "http://other/"),
            (".../x//y", "https://h:8/a/.../x//y"),
        ] {
            assert_eq!(base.join(reference).unwrap().bare(), target, "{reference}");
        }
    }

    #[test]
    fn origins_differ_in_scheme_host_or_port() {
        let base = url("https://h/a");
        assert!(base.is_same_origin(&url("https://u@H:443/b")));
        for other in ["http://h/a", "https://h:444/a", "https://g/a", "https://h.example/a"] {
            assert!(!base.is_same_origin(&url(other)), "{other}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_quoted() {
        for text in [
            "",
            "/x",
            "ftp://u:hunter2@h/x",
            "http://",
            "http://:80/",
            "http://h:x/",
            "http://h:99999/",
            "http://u:hunter2@h/a b",
            "http://h\\x/",
            "http://u:hunter2\\@h/",
            "http://hunter2!/@h/",
            "http://u:hunter2/@h/",
            "http://u:hunter2#@h/",
            "u:hunter2@h/://",
            "file:///x",
        ] {
            let error = Url::parse(text).expect_err(text).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
