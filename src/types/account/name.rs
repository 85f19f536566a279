//! Names of accounts.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of a local user or group: letters, digits, `_`, `.` and `-`, optionally with a `$` at the end. It does not
/// begin with `-` or `.`, is not a number, and has at most 32 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = "^[A-Za-z0-9_][A-Za-z0-9_.-]*[$]?$", "maxLength" = 32))]
pub(crate) struct AccountName(String);

const LONGEST: usize = 32;

impl AccountName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reason why a string is not the name of an account.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAName {
    #[error("an account must have a name, not an empty text")]
    Empty,
    #[error("\"{0}\" is longer than the 32 characters that the name of an account can have")]
    TooLong(String),
    #[error("\"{0}\" is a number, which cannot be the name of an account")]
    Number(String),
    #[error("\"{text}\" cannot be the name of an account: it begins with {sign:?}")]
    Beginning { text: String, sign: char },
    #[error("\"{text}\" cannot be the name of an account: it contains {sign:?}; use letters, digits, _ . -")]
    Sign { text: String, sign: char },
}

impl FromStr for AccountName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let body = text.strip_suffix('$').unwrap_or(text);
        let wrong = |sign: &char| !(sign.is_ascii_alphanumeric() || "_.-".contains(*sign));
        match body.chars().find(wrong) {
            _ if body.is_empty() => Err(NotAName::Empty),
            Some(sign) => Err(NotAName::Sign { text: text.to_owned(), sign }),
            None if body.starts_with(['-', '.']) => {
                Err(NotAName::Beginning { text: text.to_owned(), sign: body.chars().next().unwrap_or('-') })
            }
            None if body.bytes().all(|byte| byte.is_ascii_digit()) => Err(NotAName::Number(text.to_owned())),
            None if text.len() > LONGEST => Err(NotAName::TooLong(text.to_owned())),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<String> for AccountName {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        text.parse()
    }
}

impl From<AccountName> for String {
    fn from(name: AccountName) -> Self {
        name.0
    }
}

impl AsRef<str> for AccountName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}
