//! Regular expressions of the `matches` operator.
//!
//! The language defines them as Go's RE2. The `regex` crate understands the same patterns but is stricter about
//! brackets that can only be meant literally, so those are escaped here.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// The most memory that a compiled pattern may take, in bytes.
const LARGEST: usize = 1 << 20;

/// The longest pattern that is looked at, in bytes.
const LONGEST: usize = 8 << 10;

pub(crate) fn compile(text: &str, span: Range<usize>) -> Result<Regex> {
    if text.len() > LONGEST {
        return Err(Error::syntax(format!("a pattern may not be longer than {LONGEST} bytes"), span));
    }
    RegexBuilder::new(&translated(text)).size_limit(LARGEST).nest_limit(100).build().map_err(|error| {
        let reason = match error {
            regex::Error::CompiledTooBig(_) => "it needs too much memory".to_owned(),
            other => last_line(&other.to_string()),
        };
        Error::syntax(format!("bad pattern `{}`: {reason}", shortened(text)), span)
    })
}

/// The crate draws the pattern and says what is wrong on the last line.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message);
    line.trim_start_matches("error: ").to_owned()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut letters = text.char_indices().peekable();
    // Where the class began, since `]` is literal as its first member.
    let mut class: Option<usize> = None;
    while let Some((at, letter)) = letters.next() {
        let rest = &text[at..];
        match (letter, class) {
            ('\\', _) => {
                out.push(letter);
                out.extend(letters.next().map(|(_, escaped)| escaped));
                continue;
            }
            ('[', Some(_)) if rest.starts_with("[:") && rest.contains(":]") => {
                let length = rest.find(":]").map_or(0, |end| end + 2);
                out.push_str(&rest[..length]);
                while letters.next_if(|(next, _)| *next < at + length).is_some() {}
                continue;
            }
            ('[', None) => class = Some(at),
            (']', Some(start)) => {
                let members = &text[start + 1..at];
                if members.is_empty() || members == "^" {
                    out.push('\\');
                } else {
                    class = None;
                }
            }
            ('[' | '&' | '~', Some(_)) => out.push('\\'),
            ('-', Some(_)) if rest.starts_with("--") => out.push('\\'),
            ('{', None) if !repeats(rest) => out.push('\\'),
            _ => {}
        }
        out.push(letter);
    }
    out
}

/// Whether the text begins with `{1}`, `{1,}` or `{1,2}`.
fn repeats(text: &str) -> bool {
    let Some((counts, _)) = text[1..].split_once('}') else { return false };
    let (least, most) = counts.split_once(',').unwrap_or((counts, ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

#[cfg(test)]
mod tests {
    use super::{compile, translated};

    #[test]
    fn brackets_that_repeat_nothing_are_literal() {
        assert_eq!(translated("{a}"), "\\{a}");
        assert_eq!(translated("a{2}{2,3}{4,}"), "a{2}{2,3}{4,}");
        assert_eq!(translated("[[:alpha:][&&]]"), "[[:alpha:]\\[\\&\\&]]");
        assert!(compile("{\"Bar\": [1]}", 0..0).unwrap().is_match("{\"Bar\": 1}"));
        assert!(compile("[]a]", 0..0).unwrap().is_match("]"));
    }

    #[test]
    fn a_pattern_that_would_need_much_memory_is_refused() {
        let error = compile("(a{1000}){1000}", 3..5).unwrap_err();
        assert!(error.to_string().contains("too much memory"), "{error}");
        assert_eq!(error.span, 3..5);
        assert!(compile(&"(".repeat(1000), 0..0).is_err());
    }
}
