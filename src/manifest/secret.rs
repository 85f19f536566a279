//! What must not be quoted from a manifest or the configuration of the agent.
//!
//! A message shows the line it is about, and on that line may stand what a sensitive resource holds, a password, or a signature.

use std::{ops::Range, sync::LazyLock};

use super::repetition::KEY;
use crate::{
    checks,
    document::{Diagnostic, Entry, Excerpt, Node, Span, Typed, Value, closest},
    resource::{AnyType, fields},
    types,
    vocabulary::holds_secrets,
};

const MARK: &str = "sensitive";

/// Leaves the excerpts out of problems that would show lines of a sensitive resource.
pub(crate) fn hide(problems: &mut [Diagnostic], root: &Node, text: &str) {
    if problems.is_empty() {
        return;
    }
    let mut secrets = Vec::new();
    collect(root, &mut secrets);
    let secrets: Vec<_> = secrets.into_iter().map(|secret| to_line_end(text, secret)).collect();
    for problem in problems {
        let shown = problem.span.into_iter().chain(problem.also.iter().map(|(span, _)| *span));
        // Lines between two marks may be shown as well.
        let shown = shown.map(|span| to_line_end(text, Span::new(span.start as usize, span.start as usize)));
        let shown = shown.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end));
        let holds = |secret: &Range<usize>| {
            shown.as_ref().is_some_and(|shown| shown.start < secret.end && secret.start < shown.end)
        };
        if secrets.iter().any(holds) {
            problem.excerpt = Excerpt::Hidden;
        }
    }
}

/// Of a text that cannot be read, nobody knows what in it is sensitive.
pub(crate) fn hide_all(problems: &mut [Diagnostic], text: &str) {
    if text.contains(MARK) || holds_secrets(text) || secret_keys().iter().any(|key| text.contains(key)) {
        for problem in problems {
            problem.excerpt = Excerpt::Hidden;
        }
    }
}

/// What holds secrets: maps of properties that are marked, properties whose values are never shown, and addresses with a
/// password or query in them. Whether something in the node is marked.
fn collect(node: &Node, secrets: &mut Vec<Span>) -> bool {
    match &node.value {
        Value::Scalar(_) => {
            secrets.extend(is_address(node).then_some(node.span));
            false
        }
        Value::Map(_) if is_marked(node) => {
            secrets.push(node.span);
            true
        }
        Value::Map(entries) => {
            let mut marked = false;
            for Entry { key, key_span, value } in entries {
                if is_secret_key(key) || is_address(value) {
                    secrets.push(Span::new(key_span.start as usize, value.span.end as usize));
                }
                marked |= collect(value, secrets);
            }
            // What a sensitive item is made from is as secret as the item.
            if marked && node.lookup(KEY).is_some() {
                secrets.push(node.span);
            }
            marked
        }
        Value::Seq(items) => {
            let marked = items.iter().fold(false, |marked, item| collect(item, secrets) | marked);
            // Items of a list share their `defaults`, and with them the secrets.
            match items.iter().find_map(|item| item.lookup("defaults")) {
                Some(defaults) if is_marked(defaults) => secrets.push(node.span),
                Some(defaults) if marked => secrets.push(defaults.span),
                _ => {}
            }
            marked
        }
    }
}

/// Also one that is misspelt holds what was meant for it.
fn is_secret_key(key: &String) -> bool {
    secret_keys().contains(key) || closest(key, secret_keys().iter().map(String::as_str)).is_some()
}

/// Returns whether an address with a password or query is in a value.
pub(crate) fn holds_address(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(_) => is_address(node),
        Value::Map(entries) => entries.iter().any(|entry| holds_address(&entry.value)),
        Value::Seq(items) => items.iter().any(holds_address),
    }
}

fn is_address(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar(scalar) if holds_secrets(&scalar.text))
}

/// The properties, of whatever type and of health checks, whose values are never shown.
pub(super) fn secret_keys() -> &'static [String] {
    static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let of = |kind: &&dyn AnyType| {
            fields(*kind).into_iter().filter(|field| field.is_secret).map(|field| field.name)
        };
        types::TYPES.iter().flat_map(of).chain(checks::SECRET.map(str::to_owned)).collect()
    });
    &KEYS
}

/// What is not plainly false may have been meant to be true.
fn is_marked(node: &Node) -> bool {
    match node.lookup(MARK).map(|node| &node.value) {
        None => false,
        Some(Value::Scalar(scalar)) => !matches!(scalar.typed(), Typed::Bool(false)),
        Some(_) => true,
    }
}

/// A span up to and with the end of its last line. Of two that touch the same line, each begins before the other ends.
fn to_line_end(text: &str, span: Span) -> Range<usize> {
    let (start, end) = (span.start as usize, span.end as usize);
    let rest = &text.as_bytes()[end..];
    start..end + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()) + 1
}
