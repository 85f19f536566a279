//! Checksums of whole files.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// A SHA-256 in hex, or a SHA-512 as `sha512:` and hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = "^((sha256:)?[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128})$"))]
pub(crate) struct Checksum {
    algorithm: Algorithm,
    /// In lower case.
    hex: String,
}

/// How a checksum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Sha256,
    Sha512,
}

impl Algorithm {
    const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    fn prefix(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256:",
            Self::Sha512 => "sha512:",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl Checksum {
    /// What a hash function gave.
    pub(crate) fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        use std::fmt::Write;
        let hex = bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self { algorithm, hex }
    }

    /// A line of digits as checksum files hold them, where the length tells the algorithm.
    pub(crate) fn from_digits(digits: &str) -> Option<Self> {
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.digits() == digits.len())?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hex.then(|| Self { algorithm, hex: digits.to_ascii_lowercase() })
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl FromStr for Checksum {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let prefixed = Algorithm::ALL
            .into_iter()
            .find_map(|algorithm| Some((algorithm, text.strip_prefix(algorithm.prefix())?)));
        let (algorithm, digits) = prefixed.unwrap_or((Algorithm::Sha256, text));
        Self::from_digits(digits).filter(|checksum| checksum.algorithm == algorithm).ok_or_else(|| {
            NotAWord(format!(
                "\"{text}\" is not a checksum: write the 64 hex digits of a SHA-256, or sha512: and the 128 of a SHA-512"
            ))
        })
    }
}

impl TryFrom<String> for Checksum {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        text.parse()
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> Self {
        checksum.to_string()
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.algorithm {
            Algorithm::Sha256 => f.write_str(&self.hex),
            Algorithm::Sha512 => write!(f, "sha512:{}", self.hex),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_checksum_is_the_same_checksum() {
        let lower = "ab".repeat(32);
        for text in [lower.clone(), lower.to_uppercase(), format!("sha256:{}", lower.to_uppercase())] {
            assert_eq!(text.parse::<Checksum>().unwrap().to_string(), lower);
        }
        let long = format!("sha512:{}", "0F".repeat(64));
        assert_eq!(long.parse::<Checksum>().unwrap().to_string(), long.to_lowercase().replace("SHA", "sha"));
    }

    #[test]
    fn anything_else_is_refused() {
        let (short, long) = ("a".repeat(64), "a".repeat(128));
        for text in [
            "",
            "abc",
            &long,
            &format!("sha512:{short}"),
            &format!("sha256:{long}"),
            &format!("md5:{short}"),
            &"g".repeat(64),
        ] {
            assert!(text.parse::<Checksum>().is_err(), "{text}");
        }
    }
}
