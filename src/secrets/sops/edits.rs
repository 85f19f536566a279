//! Replacements in the text of a document, so that everything else stays as it is.

use std::ops::Range;

use regex::Regex;
use std::sync::LazyLock;

use crate::document::{Node, Source, Span, Value};

/// Replacements of parts of a text that do not overlap.
#[derive(Default)]
pub(super) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(super) fn replace(&mut self, span: Span, text: String) {
        self.0.push((span.start as usize..span.end as usize, text));
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.0.push((range, String::new()));
    }

    pub(super) fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let (mut result, mut at) = (String::with_capacity(text.len()), 0);
        for (range, new) in self.0 {
            if range.start >= at {
                result.push_str(&text[at..range.start]);
                result.push_str(&new);
                at = range.end;
            }
        }
        result.push_str(&text[at..]);
        result
    }
}

/// A comment: its text without the character that begins it, and the path of the map that it is in.
pub(super) struct Comment {
    pub(super) span: Span,
    pub(super) path: String,
}

/// Returns the comments of a document. Everything outside of keys and values that begins with `#` is one.
pub(super) fn comments(root: &Node, source: &Source, begins: &[char]) -> Vec<Comment> {
    let (mut taken, mut keys) = (Vec::new(), Vec::new());
    collect(root, ":", &mut taken, &mut keys);
    taken.sort_by_key(|span: &Span| span.start);
    let text = source.text.as_str();
    let (mut found, mut next, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        if taken.get(next).is_some_and(|span| span.end as usize <= at && span.start < span.end) {
            next += 1;
            continue;
        }
        if let Some(span) = taken.get(next).filter(|span| span.start as usize <= at) {
            at = (span.end as usize).max(at);
            next += 1;
            continue;
        }
        let rest = &text[at..];
        let Some(letter) = rest.chars().next() else { break };
        let is_after_blank = text[..at].ends_with([' ', '\t', '\n']) || at == 0;
        if begins.contains(&letter) && is_after_blank {
            let line = rest.lines().next().unwrap_or_default();
            let start = at + letter.len_utf8();
            at += line.len();
            let is_alone =
                text[..start - 1].rsplit('\n').next().is_some_and(|before| before.trim().is_empty());
            let path = path_of(&keys, start, is_alone);
            found.push(Comment { span: Span::new(start, at), path });
            continue;
        }
        at += letter.len_utf8();
    }
    found
}

/// Returns the path of the map that a comment is in: of the next key if it has a line of its own, else of the last one.
fn path_of(keys: &[(usize, String)], at: usize, is_alone: bool) -> String {
    let next = keys.iter().find(|(start, _)| *start > at);
    let last = keys.iter().rev().find(|(start, _)| *start < at);
    let chosen = if is_alone { next.or(last) } else { last.or(next) };
    chosen.map_or(":", |(_, path)| path).to_owned()
}

fn collect(node: &Node, path: &str, taken: &mut Vec<Span>, keys: &mut Vec<(usize, String)>) {
    match &node.value {
        Value::Scalar(_) => taken.push(node.span),
        Value::Seq(items) => items.iter().for_each(|item| collect(item, path, taken, keys)),
        Value::Map(entries) => {
            for entry in entries {
                taken.push(entry.key_span);
                keys.push((entry.key_span.start as usize, path.to_owned()));
                let below =
                    if path == ":" { format!("{}:", entry.key) } else { format!("{path}{}:", entry.key) };
                collect(&entry.value, &below, taken, keys);
            }
        }
    }
}

/// Returns the encrypted comments of a document.
pub(super) fn encrypted_comments(text: &str) -> impl Iterator<Item = Span> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the pattern is constant, and tests run it")]
        Regex::new(r"[#;] ?(ENC\[AES256_GCM,[^\]\n]*,type:comment\])").unwrap()
    });
    PATTERN
        .captures_iter(text)
        .filter_map(|found| found.get(1))
        .map(|found| Span::new(found.start(), found.end()))
}

/// Returns the paths of all maps of a document.
pub(super) fn map_paths(root: &Node) -> Vec<String> {
    let (mut taken, mut keys) = (Vec::new(), Vec::new());
    collect(root, ":", &mut taken, &mut keys);
    let mut paths: Vec<String> = keys.into_iter().map(|(_, path)| path).collect();
    paths.dedup();
    paths
}
