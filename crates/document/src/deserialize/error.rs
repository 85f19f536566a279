//! Type errors with their position and property.

use super::access::unexpected;
use crate::{Diagnostic, Scalar, Span, Style, Typed, Value, closest};
use serde::de::{Error, Expected, Unexpected};
use std::fmt;

/// Reason why a node is not a valid value.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    pub message: String,
    /// Expected value, if another one was found. It does not quote the actual value.
    pub wanted: Option<String>,
    pub span: Option<Span>,
    /// The first map key below the root on the path to the position: the property.
    pub key: Option<String>,
    pub help: Option<String>,
    pub fault: Fault,
}

/// Whether the error is in the value of a key or in the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Value,
    Key,
}

impl NodeError {
    pub(super) fn mismatch(wanted: &str, found: &str) -> Self {
        let message = format!("expected {wanted}, found {found}");
        NodeError { wanted: Some(wanted.to_owned()), ..NodeError::custom(message) }
    }

    /// Sets the position, unless an inner value already did.
    pub(super) fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// Sets the key. The outermost key is set last and stays.
    pub(super) fn below(self, key: &str) -> Self {
        NodeError { key: Some(key.to_owned()), ..self }
    }

    fn with_help(self, help: Option<String>) -> Self {
        NodeError { help, ..self }
    }

    fn of_key(message: String) -> Self {
        NodeError { fault: Fault::Key, ..NodeError::custom(message) }
    }
}

impl From<NodeError> for Diagnostic {
    fn from(error: NodeError) -> Self {
        Diagnostic { span: error.span, help: error.help, ..Diagnostic::error("invalid-value", error.message) }
    }
}

impl Error for NodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        NodeError {
            message: message.to_string(),
            wanted: None,
            span: None,
            key: None,
            help: None,
            fault: Fault::Value,
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        NodeError::mismatch(&wanted(expected, "something else"), &unexpected(found))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        NodeError::mismatch(&wanted(expected, "a list of another length"), &format!("a list of {length}"))
    }

    fn unknown_variant(found: &str, variants: &'static [&'static str]) -> Self {
        let meant = closest(found, variants.iter().copied());
        NodeError::mismatch(&one_of(variants), &quoted(found)).with_help(meant.map(did_you_mean))
    }

    fn unknown_field(found: &str, fields: &'static [&'static str]) -> Self {
        let help = match closest(found, fields.iter().copied()) {
            Some(field) => did_you_mean(field),
            None if fields.is_empty() => "no key is known here".to_owned(),
            None => format!("known keys are {}", list(fields)),
        };
        NodeError::of_key(format!("unknown key `{found}`")).with_help(Some(help))
    }

    fn missing_field(field: &'static str) -> Self {
        NodeError::of_key(format!("the key `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        NodeError::of_key(format!("`{field}` is given twice, under two names"))
    }
}

/// Returns the error for a number without written digits where octal digits are expected.
pub(super) fn without_digits(scalar: &Scalar) -> NodeError {
    let message = format!("a mode is written in octal digits, and the number {} has none", scalar.text);
    let help = match scalar.typed() {
        Typed::Int(number @ 0..=0o777) => {
            format!(
                "write it as text: \"{}\", or \"{number:04o}\" if {number} was made from that",
                scalar.text
            )
        }
        _ => format!("write it as text: \"{}\"", scalar.text),
    };
    NodeError::custom(message).with_help(Some(help))
}

/// Returns the error of a number such as `0100`, which is octal for some readers of YAML and decimal for others.
pub(super) fn leading_zero(scalar: &Scalar) -> Option<NodeError> {
    let digits = scalar.text.strip_prefix('0').filter(|digits| !digits.is_empty())?;
    let is_decimal = scalar.style == Style::Plain && digits.bytes().all(|byte| byte.is_ascii_digit());
    let decimal = digits.trim_start_matches('0').to_owned();
    let help = match i64::from_str_radix(digits, 8) {
        Ok(octal) if octal > 7 => format!("write {decimal}, or {octal} if it is meant as octal"),
        _ => format!("write {}", if decimal.is_empty() { "0" } else { &decimal }),
    };
    let message = format!("a number cannot begin with a zero: {}", scalar.text);
    is_decimal.then(|| NodeError::custom(message).with_help(Some(help)))
}

/// Returns the boolean that a keyword of other languages means.
pub(super) fn truth(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some("true"),
        "false" | "no" | "off" | "n" => Some("false"),
        _ => None,
    }
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean `{word}`?")
}

/// Describes a node in the words of messages, with its text in quotes.
pub(super) fn found(value: &Value) -> String {
    match value {
        Value::Scalar(scalar) => match scalar.typed() {
            Typed::Null => "nothing".to_owned(),
            Typed::Bool(_) => format!("the boolean {}", scalar.text),
            Typed::Int(_) | Typed::UInt(_) | Typed::Float(_) => format!("the number {}", scalar.text),
            Typed::Str(text) => quoted(text),
        },
        other => other.kind().to_owned(),
    }
}

const LONGEST_QUOTE: usize = 60;

/// Returns a string in quotes, truncated if it is long.
pub(super) fn quoted(text: &str) -> String {
    if text.len() <= LONGEST_QUOTE {
        format!("the string {text:?}")
    } else {
        format!("the string {:?}...", &text[..text.floor_char_boundary(LONGEST_QUOTE)])
    }
}

/// Describes the expectation of a visitor, unless it uses names of Rust types.
pub(super) fn wanted(expected: &dyn Expected, fallback: &str) -> String {
    let text = expected.to_string();
    if let Some(length) = text.strip_prefix("a tuple of size ") {
        return format!("a list of {length}");
    }
    let is_internal =
        ["struct ", "enum ", "tuple ", "unit", "newtype ", "option", "variant ", "field ", "internally"]
            .iter()
            .any(|prefix| text.starts_with(prefix));
    match text.as_str() {
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => {
            integer_range(&text)
        }
        _ if text.starts_with("a nonzero ") => "a whole number from 1".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        _ if is_internal => fallback.to_owned(),
        _ => text,
    }
}

pub(super) fn integer_range(type_name: &str) -> String {
    match type_name {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number that is not negative".to_owned(),
        "i8" => format!("a whole number from {} to {}", i8::MIN, i8::MAX),
        "i16" => format!("a whole number from {} to {}", i16::MIN, i16::MAX),
        _ => "a whole number".to_owned(),
    }
}

pub(super) fn one_of(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [word] => format!("`{word}`"),
        _ => format!("one of {}", list(words)),
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
