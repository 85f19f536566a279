//! Keys of maps: valid keys, duplicate keys, and the merge key.

use super::{Diagnostic, Entry, Node, Span, Value};
use std::collections::{HashMap, HashSet};

/// The key of the next value.
pub(super) enum Key {
    Awaited,
    Text(String, Span),
    /// The key was rejected, and its value is dropped.
    Refused,
}

impl Key {
    /// Returns the key that a node denotes.
    pub(super) fn of(node: Node) -> Result<Key, Diagnostic> {
        let span = node.span;
        match node.value {
            Value::Scalar(scalar) if !scalar.is_null() => Ok(Key::Text(scalar.text, span)),
            Value::Scalar(_) => Err(Diagnostic::error("missing-key", "a key is missing")
                .at(span)
                .with_help("quote a key that is empty or `null`")),
            value @ (Value::Seq(_) | Value::Map(_)) => {
                let problem = Diagnostic::error(
                    "key-not-text",
                    format!("a key must be text, this is {}", value.kind()),
                )
                .at(span);
                Err(problem.with_help("quote it if it is text, as in `\"{{ name }}\": ...`"))
            }
        }
    }
}

/// Up to this number of entries, comparing all pairs is faster than hashing.
const FEW: usize = 12;

/// Removes entries with duplicate keys, and returns an error for each.
pub(super) fn drop_duplicates(entries: &mut Vec<Entry>) -> Vec<Diagnostic> {
    let (mut problems, mut again) = (Vec::new(), Vec::new());
    let mut report = |first: usize, second: usize| {
        let (first, repeated) = (entries[first].key_span, &entries[second]);
        let problem =
            Diagnostic::error("duplicate-key", format!("the key `{}` is given twice", repeated.key))
                .at(repeated.key_span);
        problems.push(problem.with_label("given again").with_also(first, "first given here"));
        again.push(second);
    };
    if entries.len() <= FEW {
        for (at, second) in entries.iter().enumerate() {
            if let Some(first) = entries[..at].iter().position(|first| first.key == second.key) {
                report(first, at);
            }
        }
    } else {
        let mut seen = HashMap::<&str, usize>::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let first = *seen.entry(entry.key.as_str()).or_insert(at);
            if first != at {
                report(first, at);
            }
        }
    }
    if !again.is_empty() {
        let (mut numbers, mut again) = (0.., again.into_iter().peekable());
        entries.retain(|_| numbers.next() != again.peek().copied() || again.next().is_none());
    }
    problems
}

/// Replaces the merge key at this position by the entries of other maps.
pub(super) fn resolve_merge(entries: &mut Vec<Entry>, key: Span) -> Result<(), Diagnostic> {
    let Some(at) = entries.iter().position(|entry| entry.key_span == key) else { return Ok(()) };
    let Node { value, span } = entries.remove(at).value;
    let refuse = |found: &Node| {
        let message = format!("the merge key `<<` takes a map or a list of maps, not {}", found.kind());
        Diagnostic::error("invalid-merge", message).at(found.span)
    };
    let sources = match value {
        Value::Seq(items) => items,
        value => vec![Node { value, span }],
    };
    let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let mut merged = Vec::new();
    for source in sources {
        let Value::Map(more) = source.value else { return Err(refuse(&source)) };
        merged.extend(more.into_iter().filter(|entry| known.insert(entry.key.clone())));
    }
    entries.splice(at..at, merged);
    Ok(())
}
