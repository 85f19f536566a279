//! Desired state of a package.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Scheme,
    error::{Noun, PackageError},
};
use crate::{document::closest, vocabulary::Raw};

/// Desired state of a package: `present`, `absent`, `purged`, `latest` or a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline, with = "String", extend("type" = ["string", "number"]))]
pub(crate) enum Ensure {
    /// Any version is installed.
    #[default]
    Present,
    /// The package is not installed; its configuration can remain.
    Absent,
    /// Neither the package nor its configuration is installed.
    Purged,
    /// The newest available version is installed.
    Latest,
    /// This version is installed, even if it is a downgrade.
    Version(String),
}

/// Keywords that are not versions.
const WORDS: [(&str, Ensure); 4] = [
    ("present", Ensure::Present),
    ("absent", Ensure::Absent),
    ("purged", Ensure::Purged),
    ("latest", Ensure::Latest),
];

impl Ensure {
    /// Returns the error in a version, by the rules of a package system.
    pub(super) fn fault(&self, scheme: Scheme) -> Option<PackageError> {
        let Self::Version(version) = self else { return None };
        let fault = scheme.fault(version)?;
        Some(PackageError::Version { version: version.clone(), noun: Noun::of(scheme), fault })
    }
}

impl FromStr for Ensure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, word)) = WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(word.clone());
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._+:~^-".contains(c);
        let is_version = text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.chars().all(allowed)
            && text.contains(|c: char| c.is_ascii_digit());
        if is_version {
            return Ok(Self::Version(text.to_owned()));
        }
        let help = match closest(text, WORDS.iter().map(|(word, _)| *word)) {
            Some(word) => format!("did you mean {word}?"),
            None => "it has to be present, absent, purged, latest or a version".to_owned(),
        };
        Err(format!("{text:?} is no state of a package; {help}"))
    }
}

impl TryFrom<Raw> for Ensure {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        raw.0.parse()
    }
}

impl From<Ensure> for String {
    fn from(ensure: Ensure) -> Self {
        ensure.to_string()
    }
}

impl fmt::Display for Ensure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Purged => "purged",
            Self::Latest => "latest",
            Self::Version(version) => version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_word_is_a_version_if_it_can_be_one() {
        for (text, ensure) in
            [("present", Ensure::Present), ("purged", Ensure::Purged), ("latest", Ensure::Latest)]
        {
            assert_eq!(text.parse(), Ok(ensure));
        }
        for text in ["1", "1.0", "1:2.0-1~rc1+b2", "1.0-1.el9", "r123", "2.0^git1"] {
            assert_eq!(text.parse(), Ok(Ensure::Version(text.to_owned())));
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_what_was_probably_meant() {
        for (text, said) in [
            ("lastest", "did you mean latest?"),
            ("Present", "did you mean present?"),
            ("", "a version"),
            ("~1", "a version"),
            ("-1", "a version"),
            ("1.0 2", "a version"),
            ("1.0*", "a version"),
            ("whatever", "a version"),
        ] {
            let error = text.parse::<Ensure>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
