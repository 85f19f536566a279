//! Regular expressions.

use std::{fmt, ops::Deref, str::FromStr};

use regex::{Regex, RegexBuilder};

use super::NotAWord;

/// Regular expression in which `^` and `$` match at line boundaries.
#[derive(Clone, Debug)]
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
