//! A regular expression.

use std::{borrow::Cow, fmt, ops::Deref, str::FromStr};

use regex::{Regex, RegexBuilder};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// A regular expression in which `^` and `$` match at the lines of a text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Pattern(Regex);

impl FromStr for Pattern {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let regex = RegexBuilder::new(text).multi_line(true).build();
        regex.map(Self).map_err(|error| {
            // The last line of the message is the reason; those above draw the pattern.
            let message = error.to_string();
            let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            NotAWord(format!("\"{text}\" is not a regular expression: {reason}"))
        })
    }
}

impl TryFrom<String> for Pattern {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "regex" })
    }

    fn inline_schema() -> bool {
        true
    }
}
