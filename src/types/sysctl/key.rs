//! Names of kernel settings.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

/// Name of a kernel setting: with dots, as in `net.ipv4.ip_forward`, or with slashes, as in `net/ipv4/ip_forward`.
///
/// As in `sysctl.d(5)`, the first separator decides. If it is a dot, a slash stands for a dot in a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Key {
    /// The path below `/proc/sys`.
    path: String,
}

impl Key {
    /// Reads a key. Returns `None` if no setting can have this name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let first = text.find(['.', '/']).map(|at| text.as_bytes()[at]);
        let path = if first == Some(b'.') { swapped(text) } else { text.to_owned() };
        let is_component = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && !part.contains(|c: char| c.is_control() || c.is_whitespace() || "*?[=#;".contains(c))
        };
        (path.split('/').all(is_component) && !path.starts_with('-')).then_some(Self { path })
    }

    /// Returns the path of the setting in `/proc/sys`.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/sys/{}", self.path))
    }

    /// Returns the file in which the value is stored by default.
    pub(super) fn default_file(&self) -> PathBuf {
        PathBuf::from(format!("/etc/sysctl.d/90-{}.conf", self.path.replace('/', ".")))
    }
}

/// Exchanges dots and slashes.
fn swapped(text: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    text.chars().map(swap).collect()
}

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(below) = text.strip_prefix("/proc/sys/") {
            return Err(format!("{text:?} is a path: write \"{}\"", below.replace('/', ".")));
        }
        Self::parse(&text).ok_or_else(|| {
            format!("{text:?} is not the name of a kernel setting, such as net.ipv4.ip_forward")
        })
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

/// With dots.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&swapped(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_key() {
        for (text, path, name) in [
            ("net.ipv4.ip_forward", "net/ipv4/ip_forward", "net.ipv4.ip_forward"),
            ("net/ipv4/ip_forward", "net/ipv4/ip_forward", "net.ipv4.ip_forward"),
            (
                "net/ipv4/conf/eth0.100/forwarding",
                "net/ipv4/conf/eth0.100/forwarding",
                "net.ipv4.conf.eth0/100.forwarding",
            ),
            (
                "net.ipv4.conf.eth0/100.forwarding",
                "net/ipv4/conf/eth0.100/forwarding",
                "net.ipv4.conf.eth0/100.forwarding",
            ),
        ] {
            let key = Key::try_from(text.to_owned()).unwrap();
            assert_eq!((key.path.as_str(), key.to_string().as_str()), (path, name), "{text}");
        }
    }

    #[test]
    fn paths_patterns_and_unprintable_names_are_rejected() {
        for text in [
            "",
            ".",
            "..",
            "a..b",
            "a.",
            ".a",
            "a//b",
            "/a",
            "a/../b",
            "../etc/passwd",
            "a b",
            "a\nb",
            "a=1",
            "a.*.b",
            "-a.b",
            "/proc/sys/net/ipv4/ip_forward",
        ] {
            assert!(Key::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
