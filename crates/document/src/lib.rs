//! YAML and JSON as one tree that knows where every value was written, and diagnostics that point there.
//!
//! Programs that expand templates, merge data and report errors in what people wrote need three things that a
//! deserializer throws away: positions, the exact text of each scalar, and *all* errors instead of the first.
//!
//! - **One tree.** [`parse`] turns a [`Source`] into a [`Node`]; [`read`] also returns the tree if the document has errors,
//!   with the places where the tree is incomplete. JSON and YAML give the same tree. JSON and simple YAML have fast readers
//!   of their own; all other YAML goes through `saphyr-parser`. The tests compare the readers with each other.
//! - **Types are decided late.** A [`Scalar`] keeps its text; [`Scalar::typed`] interprets it. A template can be expanded in
//!   between, and `0644` can mean one thing as a mode and another as a port.
//! - **Positions are byte offsets** ([`Span`], eight bytes). Lines and columns are computed only for a message.
//! - **Values** come out through serde ([`from_node`]), strictly: a number is not a string. Errors ([`NodeError`]) have the
//!   position, the key and a hint. [`to_value`] and [`from_value`] convert from and to the values of `ccm-expr`.
//! - **Diagnostics** have a stable id, a position, a label and help. [`render`] prints them with an excerpt of the source;
//!   [`Diagnostic::located`] serializes them for programs. An [`Excerpt`] can be hidden if the line might contain a secret.
//! - **Untrusted text** cannot control the terminal: [`visible`] escapes control and bidirectional characters.
//!
//! No input panics or uses unbounded memory, time or stack: nesting, aliases and the size of a document are limited.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test reads the examples of the repository"))]

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
pub mod visible;

pub use ccm_expr::closest;
pub use deserialize::{Fault, NodeError, RAW_SCALAR, WRITTEN_SCALAR, from_node};
pub use diagnostic::{Colour, Diagnostic, Excerpt, Severity, render};
pub use diagnostics::{Diagnostics, Review};
pub use pair::{Pair, pair};
pub use parse::{Parsed, first_anchor, parse, read};
pub use scalar::{Scalar, Style, Typed};
pub use source::{Source, Span};
pub use value::{from_value, to_value};

/// A value with its position.
#[derive(Clone, Debug)]
pub struct Node {
    pub value: Value,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Value {
    Scalar(Scalar),
    Seq(Vec<Node>),
    /// Entries in written order, with unique keys.
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    pub fn null(span: Span) -> Self {
        Node { value: Value::Scalar(Scalar::new(String::new(), Style::Plain)), span }
    }

    pub fn as_map(&self) -> Option<&[Entry]> {
        self.value.as_map()
    }

    pub fn as_seq(&self) -> Option<&[Node]> {
        self.value.as_seq()
    }

    /// Returns the string; `None` for numbers, booleans and null.
    pub fn as_str(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// Returns the value of a key, if this is a map that has it.
    pub fn lookup(&self, key: &str) -> Option<&Node> {
        self.value.lookup(key)
    }

    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// Marks all scalars as secret.
    pub fn mark_secret(&mut self) {
        match &mut self.value {
            Value::Scalar(scalar) => scalar.is_secret = true,
            Value::Seq(items) => items.iter_mut().for_each(Self::mark_secret),
            Value::Map(entries) => entries.iter_mut().for_each(|entry| entry.value.mark_secret()),
        }
    }

    /// Replaces the text of secret scalars by `[secret]`.
    pub fn mask_secrets(&mut self) {
        match &mut self.value {
            Value::Scalar(scalar) if scalar.is_secret => {
                *scalar = Scalar::new(ccm_expr::MASK, Style::Literal);
            }
            Value::Scalar(_) => {}
            Value::Seq(items) => items.iter_mut().for_each(Self::mask_secrets),
            Value::Map(entries) => entries.iter_mut().for_each(|entry| entry.value.mask_secrets()),
        }
    }

    /// Returns whether any scalar is secret.
    pub fn holds_secret(&self) -> bool {
        match &self.value {
            Value::Scalar(scalar) => scalar.is_secret,
            Value::Seq(items) => items.iter().any(Self::holds_secret),
            Value::Map(entries) => entries.iter().any(|entry| entry.value.holds_secret()),
        }
    }

    /// Describes the kind of the value in the words of messages.
    pub fn kind(&self) -> &'static str {
        self.value.kind()
    }
}

impl Value {
    pub fn as_map(&self) -> Option<&[Entry]> {
        if let Value::Map(entries) = self { Some(entries) } else { None }
    }

    pub fn as_seq(&self) -> Option<&[Node]> {
        if let Value::Seq(items) = self { Some(items) } else { None }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Scalar(scalar) => match scalar.typed() {
                Typed::Str(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn lookup(&self, key: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Scalar(scalar) if scalar.is_null())
    }

    pub fn kind(&self) -> &'static str {
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

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
