//! `replace`: every match of a pattern.

use regex::Regex;

/// Replaces every match; `$1` and `$name` in the replacement stand for groups of the pattern.
pub(super) fn replace(text: &str, pattern: &Regex, with: &str) -> String {
    pattern.replace_all(text, with).into_owned()
}
