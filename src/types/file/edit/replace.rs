//! `replace`: every match of a pattern.

use regex::Regex;

use crate::vocabulary::Pattern;

/// A pattern, and the text that stands in place of each match.
pub(super) struct Replacement<'a> {
    pattern: Pattern,
    /// `$1` and `$name` stand for groups of the pattern.
    with: &'a str,
}

impl<'a> Replacement<'a> {
    pub(super) fn new(pattern: Pattern, with: &'a str) -> Result<Self, String> {
        if let Some(name) = unknown_group(&pattern, with) {
            let text = name.trim_start_matches(|character: char| character.is_ascii_digit());
            let help = match &name[..name.len() - text.len()] {
                "" => format!("`$${name}` is a dollar and no group"),
                number => format!(
                    "`$${{{number}}}{text}` is the group {number} with text behind it, and `$$` a dollar"
                ),
            };
            return Err(format!("`with` names the group `{name}`, which `{pattern}` does not have; {help}"));
        }
        Ok(Self { pattern, with })
    }

    /// Replaces every match. In a text whose lines end with CR LF, `$` matches before both, and `.` neither of them.
    pub(super) fn apply(&self, text: &str) -> String {
        // A pattern that names the CR itself is about the ends of lines, and sees them as they are.
        let names_cr = self.pattern.as_str().contains("\\r") || self.pattern.as_str().contains('\r');
        let for_crlf = || format!("(?R){}", self.pattern).parse::<Pattern>().ok();
        let crlf = (text.contains("\r\n") && !names_cr).then(for_crlf).flatten();
        crlf.as_ref().unwrap_or(&self.pattern).replace_all(text, self.with).into_owned()
    }

    /// Returns the pattern as it was given.
    pub(super) fn pattern(&self) -> String {
        self.pattern.to_string()
    }
}

/// Returns the first group in the replacement that the pattern does not have: nothing would stand in its place.
fn unknown_group<'w>(pattern: &Regex, with: &'w str) -> Option<&'w str> {
    let mut rest = with;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('$') {
            rest = behind;
            continue;
        }
        let name = match rest.strip_prefix('{') {
            Some(braced) => braced.split_once('}').map(|(name, _)| name),
            None => {
                rest.split(|character: char| !character.is_ascii_alphanumeric() && character != '_').next()
            }
        };
        // A dollar that no name follows stands for itself.
        let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
        let is_known = match name.parse::<usize>() {
            Ok(number) => number < pattern.captures_len(),
            Err(_) => pattern.capture_names().flatten().any(|known| known == name),
        };
        if !is_known {
            return Some(name);
        }
    }
    None
}
