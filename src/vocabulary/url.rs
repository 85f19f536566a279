//! Addresses of things on the network.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotAWord, Secret};
use crate::redaction::MASK;

/// An address that begins with `http://` or `https://`. A user and password in it are used and never shown, and so is its
/// query, in which servers put signatures.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = "^[Hh][Tt][Tt][Pp][Ss]?://"))]
pub(crate) struct Url {
    scheme: Scheme,
    /// What stands before the `@`, as it was written.
    credentials: Option<Secret>,
    /// In lower case; an IPv6 address in its brackets.
    host: String,
    port: Option<u16>,
    /// Path and query, from the first slash on.
    path: String,
}

/// How the server is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// User and password for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Secret,
    pub(crate) password: Secret,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, NotAWord> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
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
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // A password may hold an unescaped `@`: the host begins after the last one.
        let (credentials, host_and_port) = match authority.rsplit_once('@') {
            Some((credentials, host)) => (Some(Secret::new(credentials)), host),
            None => (None, authority),
        };
        let (host, port) = split_port(host_and_port).map_err(|what| unusable(what, text))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { scheme, credentials, host: host.to_ascii_lowercase(), port, path })
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port, or the one that the scheme has when none is given.
    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(self.scheme.port())
    }

    /// Returns the path without the query.
    pub(crate) fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Returns the last part of the path, with `%` escapes resolved.
    pub(crate) fn file_name(&self) -> String {
        let last = self.path().rsplit('/').next().unwrap_or_default();
        String::from_utf8_lossy(&unescape(last)).into_owned()
    }

    /// Returns the address of what lies beside it under a longer name. The query stays.
    pub(crate) fn with_suffix(&self, suffix: &str) -> Self {
        let path = match self.path.split_once('?') {
            Some((path, query)) => format!("{path}{suffix}?{query}"),
            None => format!("{}{suffix}", self.path),
        };
        Self { path, ..self.clone() }
    }

    /// Returns whether both are served by the same server under the same scheme: what is meant for one may be told the
    /// other.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port()) == (other.scheme, &other.host, other.port())
    }

    /// Returns the user and password in the URL.
    pub(crate) fn login(&self) -> Option<Login> {
        let credentials = self.credentials.as_ref()?.reveal();
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let text = |part: &str| Secret::new(String::from_utf8_lossy(&unescape(part)));
        Some(Login { user: text(user), password: text(password) })
    }

    /// Returns what must not be seen of it: user and password, as written and as sent, and the query.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let login = self.login().map(|login| [login.user, login.password]);
        let sent = login.iter().flatten().map(|part| part.reveal().to_owned());
        let written = self.credentials.iter().flat_map(|whole| whole.reveal().splitn(2, ':'));
        let query = self.path.split_once('?').map(|(_, query)| query);
        sent.chain(written.chain(query).map(str::to_owned)).collect()
    }

    /// Returns the address as a request needs it: without user and password.
    pub(crate) fn bare(&self) -> String {
        self.written("", &self.path)
    }

    /// Returns the URL that a reference found at this one leads to. Nothing secret is carried over.
    pub(crate) fn join(&self, reference: &str) -> Result<Self, NotAWord> {
        let scheme = self.scheme.word();
        let address = if reference.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme)) {
            reference.to_owned()
        } else if let Some(rest) = reference.strip_prefix("//") {
            format!("{scheme}://{rest}")
        } else {
            let origin = Self { credentials: None, path: String::new(), ..self.clone() }.bare();
            let base = match reference.chars().next() {
                Some('/') => "",
                Some('?') => self.path(),
                None | Some('#') => &self.path,
                Some(_) => self.path().rfind('/').map_or("", |at| &self.path[..=at]),
            };
            format!("{origin}{base}{reference}")
        };
        Self::parse(&address).map(Self::without_dots)
    }

    /// Takes `.` and `..` out of the path (RFC 3986, section 5.2.4).
    fn without_dots(self) -> Self {
        let query = &self.path[self.path().len()..];
        let mut kept = Vec::new();
        let mut parts = self.path().split('/').skip(1).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            match part {
                "." => {}
                ".." => drop(kept.pop()),
                _ => {
                    kept.push(part);
                    continue;
                }
            }
            // What it leads to is a folder, also at the end.
            kept.extend(is_last.then_some(""));
        }
        let path = format!("/{}{query}", kept.join("/"));
        Self { path, ..self }
    }

    fn written(&self, credentials: &str, path: &str) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{credentials}{}{port}{path}", self.scheme.word(), self.host)
    }
}

/// Returns whether a text is meant as an address: a scheme in whatever case and `://`, or `http:` or `https:` alone.
pub(crate) fn has_scheme(text: &str) -> bool {
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let is_address = |(scheme, _): (&str, &str)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && is_scheme(scheme)
    };
    text.split_once("://").is_some_and(is_address) || begins("http:") || begins("https:")
}

/// Returns whether a text may hold an address with a user, password or query in it, well-formed or not.
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

/// Returns why a URL leads nowhere. What stands before an `@` may be a password, also where it seems to be a host or
/// port.
fn unusable((what, found): (&str, &str), text: &str) -> NotAWord {
    NotAWord(if text.contains('@') {
        format!("the URL has no usable {what}: write `/`, `#` and `?` in a password as %2F, %23 and %3F")
    } else {
        format!("the URL has no usable {what}: \"{found}\"")
    })
}

/// Returns the host and the port, or which of them is not usable.
fn split_port(text: &str) -> Result<(&str, Option<u16>), (&'static str, &str)> {
    let end_of_address = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[end_of_address..].split_once(':') {
        Some((before, port)) => (&text[..end_of_address + before.len()], Some(port)),
        None => (text, None),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._~:[]%".contains(c);
    if host.is_empty() || !host.chars().all(is_host) {
        return Err(("host", host));
    }
    match port.map(str::parse) {
        None => Ok((host, None)),
        Some(Ok(port)) => Ok((host, Some(port))),
        Some(Err(_)) => Err(("port", port.unwrap_or_default())),
    }
}

/// Returns the bytes behind `%` escapes.
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
    /// With a mask in place of user and password, and without the query.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mask = if self.credentials.is_some() { format!("{MASK}@") } else { String::new() };
        let query = if self.path.contains('?') { "?…" } else { "" };
        f.write_str(&self.written(&mask, &format!("{}{query}", self.path())))
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
