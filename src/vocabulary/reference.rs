//! References to resources.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// Resource as `type#name`, where the name can be an alias.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = "^[a-z]+#.+$"))]
pub(crate) struct Reference {
    /// Name of the type.
    pub(crate) kind: String,
    /// Name or alias of the resource.
    pub(crate) name: String,
}

impl FromStr for Reference {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        match text.split_once('#') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            _ => Err(NotAWord(format!(
                "\"{text}\" is not a reference: write it as type#name, such as file#/etc/motd"
            ))),
        }
    }
}

impl TryFrom<String> for Reference {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        text.parse()
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_split_at_the_first_hash() {
        let reference: Reference = "file#/etc/a#b".parse().unwrap();
        assert_eq!((reference.kind.as_str(), reference.name.as_str()), ("file", "/etc/a#b"));
        assert_eq!(reference.to_string(), "file#/etc/a#b");
    }

    #[test]
    fn half_a_reference_is_refused() {
        for text in ["", "file", "file#", "#x"] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
