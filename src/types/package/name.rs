//! The name of a package.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::{Noun, PackageError};
use crate::vocabulary::PlainName;

/// A name that can be handed to a package manager, with an architecture if one was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct PackageName(PlainName);

/// A package as a system knows it: its name proper, and the architecture that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    pub(super) name: &'a str,
    pub(super) arch: Option<&'a str>,
}

/// What can stand behind the last dot of an rpm's name. Names have dots too.
const RPM_ARCHITECTURES: [&str; 16] = [
    "noarch",
    "x86_64",
    "x86_64_v2",
    "i386",
    "i486",
    "i586",
    "i686",
    "aarch64",
    "armv7hl",
    "armv6hl",
    "ppc64",
    "ppc64le",
    "s390x",
    "riscv64",
    "loongarch64",
    "mips64el",
];

impl PackageName {
    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Takes a name apart as apt does, or says why it cannot be one of a Debian package.
    pub(super) fn debian(&self) -> Result<Parts<'_>, PackageError> {
        let (name, arch) = match self.as_str().split_once(':') {
            Some((name, arch)) => (name, Some(arch)),
            None => (self.as_str(), None),
        };
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = name.len() > 1
            && name.bytes().next().is_some_and(lower)
            && name.bytes().all(|byte| lower(byte) || b"+-.".contains(&byte))
            // apt would take the hyphen for "remove it".
            && !name.ends_with('-');
        let is_architecture = |arch: &str| {
            !arch.is_empty() && arch.bytes().all(|byte| lower(byte) || byte == b'-') && !arch.starts_with('-')
        };
        if is_name && arch.is_none_or(is_architecture) {
            Ok(Parts { name, arch })
        } else {
            let rule = "lower case letters, digits and + - ., and an architecture behind a colon";
            Err(PackageError::Name { name: self.to_string(), noun: Noun::DebianPackage, rule })
        }
    }

    /// Takes a name apart as dnf does, or says why it cannot be one of an rpm.
    pub(super) fn rpm(&self) -> Result<Parts<'_>, PackageError> {
        let text = self.as_str();
        if text.contains([':', '~']) {
            let rule = "letters, digits and . _ + -, and an architecture behind a dot";
            return Err(PackageError::Name { name: self.to_string(), noun: Noun::Rpm, rule });
        }
        let arch =
            text.rsplit_once('.').filter(|(name, arch)| !name.is_empty() && RPM_ARCHITECTURES.contains(arch));
        Ok(arch.map_or(Parts { name: text, arch: None }, |(name, arch)| Parts { name, arch: Some(arch) }))
    }
}

impl TryFrom<String> for PackageName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error| match text.as_str() {
            "" => error.to_string(),
            _ => format!("package name contains dangerous characters: {text:?}; {error}"),
        })
    }
}

impl From<PackageName> for String {
    fn from(name: PackageName) -> Self {
        name.0.into()
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PackageName {
        PackageName::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn an_architecture_stands_behind_a_colon_for_apt_and_behind_a_dot_for_dnf() {
        for (text, plain, arch) in [
            ("nginx", "nginx", None),
            ("libc6:i386", "libc6", Some("i386")),
            ("g++", "g++", None),
            ("python3.11", "python3.11", None),
            ("gcc:kfreebsd-amd64", "gcc", Some("kfreebsd-amd64")),
        ] {
            assert_eq!(name(text).debian(), Ok(Parts { name: plain, arch }), "{text}");
        }
        for (text, plain, arch) in [
            ("nginx", "nginx", None),
            ("glibc.i686", "glibc", Some("i686")),
            ("python3.11", "python3.11", None),
            ("NetworkManager", "NetworkManager", None),
            ("java-1.8.0-openjdk.x86_64", "java-1.8.0-openjdk", Some("x86_64")),
            (".noarch", ".noarch", None),
        ] {
            assert_eq!(name(text).rpm(), Ok(Parts { name: plain, arch }), "{text}");
        }
    }

    #[test]
    fn a_name_that_a_system_would_take_for_something_else_is_refused() {
        for text in ["nginx-", "Nginx", "a", "+x", "nginx:", "nginx:i386:x", "nginx:-x", "a_b", "n~"] {
            assert!(name(text).debian().is_err(), "{text}");
        }
        for text in ["nginx:i386", "a~b"] {
            assert!(name(text).rpm().is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_never_an_option_a_path_or_a_pattern() {
        for text in
            ["-y", "--force-yes", "a b", "./x.deb", "lib*", "a=1", "nginx/stable", "task^", "@group", ""]
        {
            assert!(PackageName::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
