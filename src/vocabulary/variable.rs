//! Environment variables of a command.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{NotAWord, Secret};

/// Environment variable, written `KEY=value`. Its value might be a secret, so messages show only its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, extend("x-type" = "`KEY=value`", "pattern" = "^[^=]+="))]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Secret,
}

impl TryFrom<String> for Variable {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        match text.split_once('=') {
            None => Err(NotAWord("an entry without \"=\" is not a variable: write KEY=value".to_owned())),
            Some(("", _)) => {
                Err(NotAWord("an entry that begins with \"=\" has no name: write KEY=value".to_owned()))
            }
            Some((name, _)) if name.contains(|c: char| c == '\0' || c.is_whitespace()) => {
                Err(NotAWord(format!("the name of variable {name:?} contains a space or null byte")))
            }
            Some((name, value)) if value.contains('\0') => {
                Err(NotAWord(format!("the value of variable \"{name}\" contains a null byte")))
            }
            Some((name, value)) => Ok(Self { name: name.to_owned(), value: Secret::from(value.to_owned()) }),
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}={}", self.name, Secret::serialized(self.value.reveal()))
    }
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_shown_without_its_value() {
        let variable = Variable::try_from("TOKEN=a=b".to_owned()).unwrap();
        assert_eq!((variable.name.as_str(), variable.value.reveal()), ("TOKEN", "a=b"));
        assert_eq!(serde_json::to_value(&variable).unwrap(), "TOKEN=[secret]");
        assert_eq!(Variable::try_from("EMPTY=".to_owned()).unwrap().value.reveal(), "");
    }

    #[test]
    fn what_is_not_a_variable_is_refused_without_showing_it() {
        for (text, part) in [
            ("canary", "without \"=\""),
            ("=canary", "has no name"),
            ("", "without \"=\""),
            ("A B=canary", "\"A B\""),
            ("KEY=can\0ary", "variable \"KEY\""),
        ] {
            let error = Variable::try_from(text.to_owned()).expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains("ary"), "{text:?}: {error}");
        }
    }
}
