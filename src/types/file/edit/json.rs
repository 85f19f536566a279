//! `json`: a merge patch for a file that programs read.
//!
//! The file is not read into values: numbers and texts stay as they are written, whatever a program would make of them.

use std::{collections::HashSet, str::Chars};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::Reason;

/// How deep arrays and objects may stand in one another.
const DEEPEST: usize = 128;

/// A JSON text as a tree.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// A text, a number, true, false or null, as it is written.
    Scalar(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    /// The key without quotes and escapes.
    name: String,
    /// The key as it is written.
    written: String,
    value: Node,
}

/// Merges a patch into a JSON text as RFC 7396 says: maps merge, null removes, anything else replaces.
pub(super) fn merge(text: &str, patch: &Value) -> Result<String, Reason> {
    let is_empty = text.trim().is_empty();
    let old = if is_empty { Node::Object(Vec::new()) } else { parse(text)? };
    let mut new = old.clone();
    new.merge(patch);
    if new == old && !is_empty {
        return Ok(text.to_owned());
    }
    let mut written = String::with_capacity(text.len());
    new.write(indent(text), 0, &mut written);
    if text.is_empty() || text.ends_with('\n') {
        written.push('\n');
    }
    if text.contains("\r\n") {
        // Within texts and keys there is no line end that is not escaped.
        written = written.replace('\n', "\r\n");
    }
    Ok(written)
}

/// Returns how far the text indents its first level.
fn indent(text: &str) -> &str {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    indented.map_or("  ", |line| &line[..line.len() - line.trim_start().len()])
}

fn not_json(error: &impl ToString) -> Reason {
    Reason::NotParsed { format: "JSON", error: error.to_string() }
}

fn parse(text: &str) -> Result<Node, Reason> {
    // Behind this the text is known to be JSON, and the rest is only about where things begin and end.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(&error))?;
    Reader { rest: text.chars() }.node(0)
}

/// Takes a text apart that is known to be JSON.
struct Reader<'t> {
    rest: Chars<'t>,
}

impl Reader<'_> {
    /// Returns the next character that is no blank, without going on.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.as_str().trim_start().chars();
        self.rest.clone().next()
    }

    /// Goes on behind the next character if it is this one.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.rest.next();
        }
        is_next
    }

    fn node(&mut self, depth: usize) -> Result<Node, Reason> {
        if depth == DEEPEST {
            return Err(not_json(&format!("it is nested more than {DEEPEST} levels deep")));
        }
        if self.take('[') {
            let mut items = Vec::new();
            while !self.take(']') {
                items.push(self.node(depth + 1)?);
                self.take(',');
            }
            return Ok(Node::Array(items));
        }
        if self.take('{') {
            return self.members(depth).map(Node::Object);
        }
        Ok(Node::Scalar(self.scalar()))
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member>, Reason> {
        let (mut members, mut names) = (Vec::new(), HashSet::new());
        while !self.take('}') {
            let written = self.scalar();
            let name: String = serde_json::from_str(&written).map_err(|error| not_json(&error))?;
            if !names.insert(name.clone()) {
                return Err(Reason::KeyTwice { key: name });
            }
            self.take(':');
            members.push(Member { name, written, value: self.node(depth + 1)? });
            self.take(',');
        }
        Ok(members)
    }

    /// Returns the text, number or word that comes next.
    fn scalar(&mut self) -> String {
        let is_text = self.peek() == Some('"');
        let rest = self.rest.as_str();
        let end = if is_text {
            let mut escaped = false;
            let closes = |character: char| {
                let is_end = character == '"' && !escaped;
                escaped = character == '\\' && !escaped;
                is_end
            };
            rest[1..].find(closes).map_or(rest.len(), |at| at + 2)
        } else {
            let ends = |character: char| ",:]}".contains(character) || character.is_ascii_whitespace();
            rest.find(ends).unwrap_or(rest.len())
        };
        self.rest = rest[end..].chars();
        rest[..end].to_owned()
    }
}

impl Node {
    fn merge(&mut self, patch: &Value) {
        let Value::Object(patch) = patch else {
            if !self.means(patch) {
                *self = Self::of(patch);
            }
            return;
        };
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Vec::new());
        }
        let Self::Object(members) = self else { return };
        for (key, value) in patch {
            let found = members.iter().position(|member| member.name == *key);
            match found {
                Some(at) if value.is_null() => drop(members.remove(at)),
                Some(at) => members[at].value.merge(value),
                None if value.is_null() => {}
                None => {
                    let mut new = Member::of(key, &Value::Null);
                    new.value.merge(value);
                    members.push(new);
                }
            }
        }
    }

    /// Tells whether a program reads this value here, however it is written.
    fn means(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Scalar(written), _) => {
                serde_json::from_str::<Value>(written).is_ok_and(|old| old == *value)
            }
            (Self::Array(nodes), Value::Array(values)) => {
                nodes.len() == values.len() && nodes.iter().zip(values).all(|(node, value)| node.means(value))
            }
            (Self::Object(members), Value::Object(entries)) => {
                let is_same = |member: &Member| {
                    entries.get(&member.name).is_some_and(|value| member.value.means(value))
                };
                members.len() == entries.len() && members.iter().all(is_same)
            }
            _ => false,
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Array(values) => Self::Array(values.iter().map(Self::of).collect()),
            Value::Object(entries) => {
                Self::Object(entries.iter().map(|(key, value)| Member::of(key, value)).collect())
            }
            _ => Self::Scalar(value.to_string()),
        }
    }

    /// Writes the value, each item and each member on a line of its own.
    fn write(&self, indent: &str, depth: usize, text: &mut String) {
        match self {
            Self::Scalar(written) => text.push_str(written),
            Self::Array(nodes) => write_lines(['[', ']'], nodes, indent, depth, text, |node, text| {
                node.write(indent, depth + 1, text);
            }),
            Self::Object(members) => write_lines(['{', '}'], members, indent, depth, text, |member, text| {
                text.push_str(&member.written);
                text.push_str(": ");
                member.value.write(indent, depth + 1, text);
            }),
        }
    }
}

impl Member {
    fn of(key: &str, value: &Value) -> Self {
        Self { name: key.to_owned(), written: Value::from(key).to_string(), value: Node::of(value) }
    }
}

/// Writes what stands between two brackets; where there is nothing, they stand together.
fn write_lines<T>(
    [open, close]: [char; 2],
    items: &[T],
    indent: &str,
    depth: usize,
    text: &mut String,
    write: impl Fn(&T, &mut String),
) {
    text.push(open);
    for (at, item) in items.iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&indent.repeat(depth + 1));
        write(item, text);
    }
    if !items.is_empty() {
        text.push('\n');
        text.push_str(&indent.repeat(depth));
    }
    text.push(close);
}
