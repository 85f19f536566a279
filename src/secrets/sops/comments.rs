//! Comments of a document that decide about the values after them.

use crate::document::{Entry, Span};

/// Returns the comments between the end of the previous value and a key, and the comment on the line of the value. Comments that are indented more than the key belong to the previous value.
pub(super) fn of_entry<'t>(entry: &Entry, from: u32, text: &'t str, marks: &[char]) -> Vec<&'t str> {
    let start = entry.key_span.start as usize;
    let column = column(text, start);
    let mut found = Vec::new();
    let between = text.get(from as usize..start).unwrap_or_default();
    for (at, line) in lines(between, from as usize) {
        let trimmed = line.trim_start();
        let place = at + line.len() - trimmed.len();
        if let Some(comment) = trimmed.strip_prefix(marks).filter(|_| at > from as usize || from == 0)
            && self::column(text, place) <= column
        {
            found.push(comment);
        }
    }
    found.extend(on_line_of(entry.key_span, text, marks));
    found.extend(on_line_of(entry.value.span, text, marks));
    found
}

/// Returns the comment after a key or value, on its line.
fn on_line_of<'t>(span: Span, text: &'t str, marks: &[char]) -> Option<&'t str> {
    let rest = text.get(span.end as usize..)?.lines().next()?;
    let rest = rest.trim_start_matches(['"', '\'', ':', ',']).trim_start();
    rest.strip_prefix(marks)
}

fn lines(text: &str, start: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut at = start;
    text.split('\n').map(move |line| {
        let this = (at, line);
        at += line.len() + 1;
        this
    })
}

fn column(text: &str, at: usize) -> usize {
    at - text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}
