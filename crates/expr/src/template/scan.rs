//! Finds the expressions in a text.
//!
//! | written | means |
//! |---|---|
//! | `{{ expr }}`, `${ expr }` | the value of the expression; quotes and braces within it are respected |
//! | `{{{{` | the text `{{` |
//! | `$${` | the text `${` |
//! | `${{ expr }}` | the text `$` and the value of `{{ expr }}` |
//! | an opener that never closes | itself |

use std::ops::Range;

use crate::error::{Error, Result};

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text that stands for itself.
    Text(String),
    /// An expression: where it stands with its brackets, and where without.
    Expression { whole: Range<usize>, inner: Range<usize> },
}

/// Whether a text can hold anything but itself. Costs next to nothing, and is true of every text that does.
#[must_use]
pub fn has_template(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices('{')
        .any(|(at, _)| bytes.get(at + 1) == Some(&b'{') || (at > 0 && bytes[at - 1] == b'$'))
}

/// The text as it has to be written to come to itself.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(brace) = rest.find('{') {
        let (before, after) = rest.split_at(brace);
        let (opener, end) = if before.ends_with('$') {
            // One `$` stands in `before` already.
            ("${", 1)
        } else if after.starts_with("{{") {
            ("{{{{", 2)
        } else {
            ("{", 1)
        };
        written.push_str(before);
        written.push_str(opener);
        rest = &after[end..];
    }
    written + rest
}

/// How many bytes may be looked at in vain, besides a few times the text: each opener that never closes makes
/// the rest of the text be read once more.
const VAIN: usize = 16 << 20;

/// Returns the positions of openers that never close; none if there are too many of them to read.
#[must_use]
pub fn unclosed_openers(text: &str) -> Vec<usize> {
    let mut unclosed = Vec::new();
    match parts_with(text, &mut |opener| unclosed.push(opener)) {
        Ok(_) => unclosed,
        Err(_) => Vec::new(),
    }
}

/// The parts of a text in order; neighbouring texts are joined.
pub(super) fn parts(text: &str) -> Result<Vec<Part>> {
    parts_with(text, &mut |_| {})
}

/// As [`parts`]; calls `unclosed` with the position of each opener that never closes.
fn parts_with(text: &str, unclosed: &mut dyn FnMut(usize)) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    let mut patience = VAIN + text.len().saturating_mul(8);
    while let Some(found) = opener(text, at) {
        literal.push_str(&text[at..found]);
        let rest = &text[found..];
        if rest.starts_with("{{{{") {
            literal.push_str("{{");
            at = found + 4;
            continue;
        }
        if rest.starts_with("$${") {
            literal.push_str("${");
            at = found + 3;
            continue;
        }
        if rest.starts_with("${{") {
            literal.push('$');
            at = found + 1;
            continue;
        }
        let kind = if rest.starts_with("{{") { Kind::Double } else { Kind::Dollar };
        let Some(inner) = kind.close(text, found + 2) else {
            patience = patience.checked_sub(rest.len()).ok_or_else(|| too_many(found))?;
            unclosed(found);
            literal.push_str(&rest[..2]);
            at = found + 2;
            continue;
        };
        if !literal.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut literal)));
        }
        at = inner.end + kind.closer().len();
        parts.push(Part::Expression { whole: found..at, inner });
    }
    literal.push_str(&text[at..]);
    if !literal.is_empty() {
        parts.push(Part::Text(literal));
    }
    Ok(parts)
}

/// Where the expression stands, without its brackets, in a text that is nothing else but blanks.
#[must_use]
pub fn only_expression(text: &str) -> Option<Range<usize>> {
    let before = text.len() - text.trim_start().len();
    match parts(text.trim()).ok()?.as_slice() {
        [Part::Expression { inner, .. }] => Some(before + inner.start..before + inner.end),
        _ => None,
    }
}

fn too_many(found: usize) -> Error {
    Error::syntax("the text has too many `{{` and `${` that never close", found..found + 2)
        .with_help("write `{{{{` and `$${` for those that are meant as text")
}

/// The next place that is not plain text.
fn opener(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let rest = &text[from..];
    rest.match_indices('{').find_map(|(at, _)| {
        let brace = from + at;
        if brace > from && bytes[brace - 1] == b'$' {
            // `$${` begins one earlier.
            let doubled = brace >= from + 2 && bytes[brace - 2] == b'$';
            return Some(brace - 1 - usize::from(doubled));
        }
        (bytes.get(brace + 1) == Some(&b'{')).then_some(brace)
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Double,
    Dollar,
}

impl Kind {
    fn closer(self) -> &'static str {
        match self {
            Self::Double => "}}",
            Self::Dollar => "}",
        }
    }

    /// What stands between the opener that ends at `start` and its closer.
    fn close(self, text: &str, start: usize) -> Option<Range<usize>> {
        let counted = self.scan(text, start, Braces::Counted);
        // A brace too many inside `{{ }}` is a mistake in the expression, not a reason to show it as text.
        let end = if self == Self::Double {
            counted.or_else(|| self.scan(text, start, Braces::Ignored))
        } else {
            counted
        };
        end.map(|end| start..end)
    }

    fn scan(self, text: &str, start: usize, braces: Braces) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut depth = 0_usize;
        let mut at = start;
        while at < bytes.len() {
            match bytes[at] {
                quote @ (b'"' | b'\'' | b'`') => at = quoted(bytes, at, quote)?,
                b'}' if depth == 0 && text[at..].starts_with(self.closer()) => return Some(at),
                b'{' if braces == Braces::Counted => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        None
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Braces {
    Counted,
    Ignored,
}

/// The place of the quote that closes the one at `start`.
fn quoted(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 1,
            byte if byte == quote => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}
