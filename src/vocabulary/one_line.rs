//! Texts that go into one line of a file.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotAWord, Raw};

/// Text without line breaks and other control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline)]
pub(crate) struct OneLine(String);

impl OneLine {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<Raw> for OneLine {
    type Error = NotAWord;

    fn try_from(Raw(text): Raw) -> Result<Self, NotAWord> {
        match text.chars().find(|c| c.is_control() && *c != '\t') {
            Some('\n' | '\r') => {
                Err(NotAWord(format!("{text:?} contains a line break: it must be one line")))
            }
            Some(c) => Err(NotAWord(format!("{text:?} contains the control character {c:?}"))),
            None => Ok(Self(text)),
        }
    }
}

impl From<OneLine> for String {
    fn from(line: OneLine) -> Self {
        line.0
    }
}

impl fmt::Display for OneLine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_control_characters_are_rejected() {
        assert_eq!(OneLine::try_from(Raw("a\tb ü".to_owned())).unwrap().as_str(), "a\tb ü");
        for (text, message) in
            [("a\nb", "line break"), ("a\r", "line break"), ("a\0", "'\\0'"), ("\u{1b}[m", "'\\u{1b}'")]
        {
            let error = OneLine::try_from(Raw(text.to_owned())).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
