//! Names of facts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// Name that expressions can read as `Facts.NAME`: letters, digits and `_`, not beginning with a digit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "name", "pattern" = "^[A-Za-z_][A-Za-z0-9_]*$"))]
pub(crate) struct FactName(String);

impl TryFrom<String> for FactName {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name {
            return Ok(Self(text));
        }
        Err(NotAWord(format!("{text:?} is not the name of a fact: only letters, digits and _ are allowed")))
    }
}

impl From<FactName> for String {
    fn from(name: FactName) -> Self {
        name.0
    }
}

impl fmt::Display for FactName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_an_expression_can_read() {
        for (text, is_name) in [
            ("nginx_version", true),
            ("_a1", true),
            ("1a", false),
            ("a-b", false),
            ("a.b", false),
            ("", false),
        ] {
            assert_eq!(FactName::try_from(text.to_owned()).is_ok(), is_name, "{text:?}");
        }
    }
}
