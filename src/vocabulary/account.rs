//! Users and groups by name or number.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotAWord, Raw};

/// User or group: a name, or a UID or GID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline, extend("x-type" = "name or ID"))]
pub(crate) struct Account(String);

impl Account {
    /// Returns the number, if digits were given, without a look-up.
    pub(crate) fn id(&self) -> Option<u32> {
        self.0.parse().ok().filter(|_| self.is_number())
    }

    /// Returns the name or the digits.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn is_number(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl FromStr for Account {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        if text.is_empty() {
            return Err(NotAWord(
                "a user or group must have a name or a number, not an empty text".to_owned(),
            ));
        }
        if text.starts_with('-')
            || text.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, ':' | '/' | ','))
        {
            return Err(NotAWord(format!("{text:?} cannot be the name of a user or group")));
        }
        let account = Self(text.to_owned());
        // The largest id is the system's word for "leave it as it is".
        if account.is_number() && account.id().is_none_or(|id| id == u32::MAX) {
            return Err(NotAWord(format!("{text} is too large for the id of a user or group")));
        }
        Ok(account)
    }
}

impl TryFrom<Raw> for Account {
    type Error = NotAWord;

    fn try_from(raw: Raw) -> Result<Self, NotAWord> {
        raw.0.parse()
    }
}

impl From<Account> for String {
    fn from(account: Account) -> Self {
        account.0
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_an_id_and_everything_else_a_name() {
        for (text, id) in
            [("0", Some(0)), ("1000", Some(1000)), ("root", None), ("www-data", None), ("1st", None)]
        {
            assert_eq!(text.parse::<Account>().unwrap().id(), id, "{text}");
        }
    }

    #[test]
    fn impossible_names_and_ids_are_refused() {
        for text in ["", "-x", "a b", "a:b", "a/b", "a\n", "4294967295", "99999999999"] {
            assert!(text.parse::<Account>().is_err(), "{text:?}");
        }
    }
}
