//! Escapes characters that a terminal would interpret.
//!
//! All foreign text (names, messages, output of commands, arguments) passes through this module before it is printed.
//! Control characters (C0, DEL, C1) and bidirectional controls become escapes such as `\u{9b}`.

use std::borrow::Cow;

/// Escapes a text of several lines. Tabs and line breaks stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && !is_layout(c), char::escape_default)
}

/// As [`visible`], but also escapes line breaks.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && c != '\t', char::escape_default)
}

/// As [`visible`] for data, with escapes that JSON supports.
pub fn visible_data(text: &str) -> Cow<'_, str> {
    let json = |c: char| format!("\\u{:04x}", u32::from(c)).chars().collect::<Vec<_>>();
    escaped(text, |c| is_obeyed(c) && !is_layout(c), json)
}

/// As [`visible`] for text with color sequences whose foreign parts contain no ESC.
pub fn visible_between_colours(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && !is_layout(c) && c != '\u{1b}', char::escape_default)
}

/// Returns whether a terminal interprets the character instead of showing it.
fn is_obeyed(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

fn is_layout(c: char) -> bool {
    matches!(c, '\t' | '\n')
}

fn escaped<E: IntoIterator<Item = char>>(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(char) -> E,
) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            shown.extend(escape(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_an_escape() {
        for (text, shown) in [
            ("plain ä 日本\tx\ny", "plain ä 日本\tx\ny"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\rb\u{7}\u{7f}\0", "a\\rb\\u{7}\\u{7f}\\u{0}"),
            ("\u{9b}2J \u{80}\u{9f}", "\\u{9b}2J \\u{80}\\u{9f}"),
            ("\u{61c}\u{200e}\u{200f}", "\\u{61c}\\u{200e}\\u{200f}"),
            ("\u{202a}\u{202e}\u{2066}\u{2069}", "\\u{202a}\\u{202e}\\u{2066}\\u{2069}"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(visible(shown), shown, "once is enough");
            assert_eq!(visible_line(text), shown.replace('\n', "\\n"));
        }
        assert_eq!(visible_data("\"\u{9b}\u{202e}\u{1b}\"\n"), "\"\\u009b\\u202e\\u001b\"\n");
        assert_eq!(visible_between_colours("\u{1b}[1m\u{9b}\u{202e}"), "\u{1b}[1m\\u{9b}\\u{202e}");
    }
}
