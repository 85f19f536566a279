//! A pattern that lines of a text are held against.

use std::{fmt, str::FromStr};

use regex::{Regex, RegexBuilder};

/// A pattern: `text`, `/regex/`, `\literal`, each with `!` in front if no line may match.
#[derive(Clone, Debug)]
pub(crate) struct LinePattern {
    written: String,
    sense: Sense,
    looks_for: LooksFor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    SomeLine,
    NoLine,
}

#[derive(Clone, Debug)]
enum LooksFor {
    Anything,
    Substring(String),
    /// A part of a header, in whose name upper and lower case are the same.
    Header(String),
    Regex(Regex),
}

impl FromStr for LinePattern {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let (sense, text) = match written.strip_prefix('!') {
            Some(rest) if !rest.is_empty() => (Sense::NoLine, rest),
            _ => (Sense::SomeLine, written),
        };
        let between_slashes = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let looks_for = match (text.strip_prefix('\\'), between_slashes) {
            _ if text.is_empty() => LooksFor::Anything,
            (Some(literal), _) => LooksFor::Substring(literal.to_owned()),
            (None, Some(regex)) => {
                let regex = Regex::new(regex).map_err(|error| {
                    let message = error.to_string();
                    let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    format!("\"{written}\" is not a regular expression: {reason}")
                })?;
                LooksFor::Regex(regex)
            }
            (None, None) => LooksFor::Substring(text.to_owned()),
        };
        Ok(Self { written: written.to_owned(), sense, looks_for })
    }
}

impl LinePattern {
    /// Returns whether a text is as the pattern says.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let is_found = match &self.looks_for {
            LooksFor::Anything => return true,
            LooksFor::Substring(part) => text.lines().any(|line| line.contains(part)),
            LooksFor::Header(part) => text.lines().any(|line| is_in_header(part, line)),
            LooksFor::Regex(regex) => text.lines().any(|line| regex.is_match(line)),
        };
        is_found == (self.sense == Sense::SomeLine)
    }
}

impl LinePattern {
    /// Returns the pattern for headers, whose names are in lower case wherever they are observed.
    pub(super) fn of_headers(mut self) -> Self {
        self.looks_for = match self.looks_for {
            LooksFor::Substring(part) => LooksFor::Header(match part.split_once(':') {
                Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
                None => part,
            }),
            LooksFor::Regex(regex) => {
                let relaxed = RegexBuilder::new(regex.as_str()).case_insensitive(true).build();
                LooksFor::Regex(relaxed.unwrap_or(regex))
            }
            other => other,
        };
        self
    }
}

fn is_in_header(part: &str, line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    line.contains(part) || name.contains(&part.to_ascii_lowercase())
}

impl fmt::Display for LinePattern {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.sense {
            Sense::SomeLine => write!(f, "no line matches {:?}", self.written),
            Sense::NoLine => write!(f, "a line matches what {:?} forbids", self.written),
        }
    }
}
