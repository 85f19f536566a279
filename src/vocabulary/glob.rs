//! Patterns for file names.

use std::{fmt::Write, path::Path};

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// Pattern for paths below a directory: `*` and `?` match within a path component, `**` matches across components. A
/// pattern without a slash matches file names at any depth.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, with = "String", extend("x-type" = "pattern"))]
pub(crate) struct Glob {
    text: String,
    regex: Regex,
}

impl Glob {
    /// Returns whether a path below the directory matches.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let name = if self.text.contains('/') { Some(path.as_os_str()) } else { path.file_name() };
        name.is_some_and(|name| self.regex.is_match(&name.to_string_lossy()))
    }
}

impl TryFrom<String> for Glob {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        let mut pattern = "(?s)^".to_owned();
        let mut rest = text.trim_start_matches("./");
        while let Some(first) = rest.chars().next() {
            let (part, length) = match first {
                '*' if rest.starts_with("**/") => ("(.*/)?".to_owned(), 3),
                '*' if rest.starts_with("**") => (".*".to_owned(), 2),
                '*' => ("[^/]*".to_owned(), 1),
                '?' => ("[^/]".to_owned(), 1),
                other => (regex::escape(&other.to_string()), other.len_utf8()),
            };
            let _ = pattern.write_str(&part);
            rest = &rest[length..];
        }
        pattern.push('$');
        match Regex::new(&pattern) {
            Ok(regex) if !text.is_empty() && !text.starts_with('/') => Ok(Self { text, regex }),
            _ => Err(NotAWord(format!(
                "\"{text}\" is not a pattern of names below the directory, such as \"*.bak\""
            ))),
        }
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_about_names_or_about_paths() {
        for (pattern, path, matches) in [
            ("*.bak", "a.bak", true),
            ("*.bak", "sub/a.bak", true),
            ("*.bak", "a.bak.txt", false),
            ("sub/*", "sub/a", true),
            ("sub/*", "sub/b/a", false),
            ("sub/**", "sub/b/a", true),
            ("**/x", "x", true),
            ("**/x", "a/b/x", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[x]", "x", false),
        ] {
            let glob = Glob::try_from(pattern.to_owned()).unwrap();
            assert_eq!(glob.matches(Path::new(path)), matches, "{pattern} on {path}");
        }
        for wrong in ["", "/etc/*"] {
            assert!(Glob::try_from(wrong.to_owned()).is_err(), "{wrong:?}");
        }
    }
}
