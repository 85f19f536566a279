//! YAML and JSON documents whose every value knows its place.
//!
//! Manifests, data, facts, requests and flags all become the same tree of [`Node`]s. A scalar keeps the text that
//! was written: what type it has is asked for late ([`Scalar::typed`]), because templates are expanded in between
//! and because `0644` means something else to a mode than to a port. Positions are byte offsets; lines and columns
//! are computed only for a message.

mod deserialize;
mod diagnostic;
mod diagnostics;
mod json;
mod keys;
mod limits;
mod pair;
mod parse;
mod plain_yaml;
mod scalar;
#[cfg(test)]
mod serialize;
mod source;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use ccm_expr::closest;
pub(crate) use deserialize::{Fault, NodeError, RAW_SCALAR, WRITTEN_SCALAR, from_node};
pub(crate) use diagnostic::{Colour, Diagnostic, Excerpt, Severity, render};
pub(crate) use diagnostics::{Diagnostics, Review};
pub(crate) use pair::{Pair, pair};
pub(crate) use parse::{Parsed, parse, read};
pub(crate) use scalar::{Scalar, Style, Typed};
pub(crate) use source::{Source, Span};
pub(crate) use value::{from_value, to_value};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Scalar(Scalar),
    Seq(Vec<Node>),
    /// In the written order, keys unique.
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn null(span: Span) -> Self {
        Node { value: Value::Scalar(Scalar { text: String::new(), style: Style::Plain }), span }
    }

    pub(crate) fn as_map(&self) -> Option<&[Entry]> {
        self.value.as_map()
    }

    pub(crate) fn as_seq(&self) -> Option<&[Node]> {
        self.value.as_seq()
    }

    /// The text of a string; nothing for numbers, booleans and null.
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// The value under `key`, if this is a map that has it.
    pub(crate) fn lookup(&self, key: &str) -> Option<&Node> {
        self.value.lookup(key)
    }

    pub(crate) fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// What this is, in the words of a message.
    pub(crate) fn kind(&self) -> &'static str {
        self.value.kind()
    }
}

impl Value {
    pub(crate) fn as_map(&self) -> Option<&[Entry]> {
        if let Value::Map(entries) = self { Some(entries) } else { None }
    }

    pub(crate) fn as_seq(&self) -> Option<&[Node]> {
        if let Value::Seq(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Scalar(scalar) => match scalar.typed() {
                Typed::Str(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn lookup(&self, key: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Scalar(scalar) if scalar.is_null())
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Seq(_) => "a list",
            Value::Map(_) => "a map",
            Value::Scalar(scalar) => match scalar.typed() {
                Typed::Null => "nothing",
                Typed::Bool(_) => "a boolean",
                Typed::Int(_) | Typed::UInt(_) | Typed::Float(_) => "a number",
                Typed::Str(_) => "a string",
            },
        }
    }
}
