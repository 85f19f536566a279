//! Checksums of files.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// SHA-256 in hex, or `sha512:` and a SHA-512 in hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "checksum", "pattern" = "^((sha256:)?[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128})$"))]
pub(crate) enum Checksum {
    Sha256([u8; 32]),
    /// Boxed, because SHA-256 is much more frequent.
    Sha512(Box<[u8; 64]>),
}

/// Checksum of a download, or `none` for a download that is not verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "checksum", "pattern" = "^(none|(sha256:)?[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128})$"))]
pub(crate) enum WantedChecksum {
    /// Any content is accepted on purpose.
    Unverified,
    Verified(Checksum),
}

impl WantedChecksum {
    pub(crate) fn checksum(&self) -> Option<&Checksum> {
        match self {
            Self::Unverified => None,
            Self::Verified(checksum) => Some(checksum),
        }
    }
}

impl TryFrom<String> for WantedChecksum {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        if text == "none" { Ok(Self::Unverified) } else { text.parse().map(Self::Verified) }
    }
}

impl From<WantedChecksum> for String {
    fn from(wanted: WantedChecksum) -> Self {
        wanted.checksum().map_or_else(|| "none".to_owned(), Checksum::to_string)
    }
}

/// Hash algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Sha256,
    Sha512,
}

impl Checksum {
    /// Parses hex digits of a checksum file. The number of digits determines the algorithm.
    pub(crate) fn from_digits(digits: &str) -> Option<Self> {
        Self::sha256(digits).or_else(|| Self::sha512(digits))
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Sha256(_) => Algorithm::Sha256,
            Self::Sha512(_) => Algorithm::Sha512,
        }
    }

    fn sha256(digits: &str) -> Option<Self> {
        Some(Self::Sha256(bytes(digits)?.try_into().ok()?))
    }

    fn sha512(digits: &str) -> Option<Self> {
        Some(Self::Sha512(Box::new(bytes(digits)?.try_into().ok()?)))
    }
}

/// Decodes hex digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

impl FromStr for Checksum {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let checksum = match text.strip_prefix("sha512:") {
            Some(digits) => Self::sha512(digits),
            None => Self::sha256(text.strip_prefix("sha256:").unwrap_or(text)),
        };
        checksum.ok_or_else(|| {
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
        let bytes: &[u8] = match self {
            Self::Sha256(bytes) => bytes,
            Self::Sha512(bytes) => {
                f.write_str("sha512:")?;
                bytes.as_slice()
            }
        };
        let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
        f.write_str(&bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect::<String>())
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
