//! Values as text and as JSON.
//!
//! Fractions are written as briefly as they can be read back, without an exponent unless they are huge or
//! tiny, and without a fractional part when they have none: `4 / 2` is `2`. What counts as tiny, and how an
//! exponent looks, differs between text and JSON as it does in Go.

use std::fmt::Write;

use super::{MASK, Value, truncated};

/// How JSON is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonStyle {
    /// No white space.
    Compact,
    /// One line with a space after commas and colons.
    Spaced,
    /// One element a line, indented by two spaces.
    Indented,
}

/// Why a value has no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoJson {
    /// It would be longer than the caller allows.
    TooLong,
    /// It holds a number that is not finite.
    NotFinite,
}

/// The text of a number with a fraction.
fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match exponential(number, 1e-4) {
        Some((digits, sign, exponent)) => format!("{digits}e{sign}{exponent:0>2}"),
        None => plain(number),
    }
}

/// A number as JSON has it; one that JSON does not have as text.
fn number_json(number: f64) -> String {
    match exponential(number, 1e-6) {
        _ if !number.is_finite() => number_text(number),
        Some((digits, sign, exponent)) => format!("{digits}e{sign}{exponent}"),
        None => plain(number),
    }
}

/// A number without an exponent: all digits of a whole one, so that it reads back as the same number.
fn plain(number: f64) -> String {
    let whole = truncated(number).filter(|_| number.fract() == 0.0);
    whole.map_or_else(|| number.to_string(), |whole| whole.to_string())
}

/// The digits, sign and exponent of a number that is huge, or smaller than the least that is written without.
fn exponential(number: f64, least: f64) -> Option<(String, char, String)> {
    let size = number.abs();
    if size == 0.0 || (least..1e21).contains(&size) {
        return None;
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e')?;
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    Some((digits.to_owned(), sign, exponent.to_owned()))
}

/// The name under which a map holds what belongs to this value.
pub(crate) fn key_text(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Named(named) => named.number().to_string(),
        other => text(other.settled()),
    }
}

/// The text of a value: lists and maps as compact JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Named(named) => named.name().to_owned(),
        Value::Float(number) => number_text(*number),
        Value::Str(text) => text.as_ref().to_owned(),
        Value::Duration(nanoseconds) => crate::dates::duration_text(*nanoseconds),
        Value::Written(written) => written.text.to_string(),
        Value::Time(time) => crate::dates::time_text(time),
        Value::Zone(zone) => crate::dates::zone_text(zone),
        Value::List(_) | Value::Map(_) | Value::Object(_) => shown(value),
        Value::Secret(_) => MASK.to_owned(),
    }
}

/// The JSON of a value, and whether it contains a secret.
pub(crate) struct Json {
    pub(crate) text: String,
    pub(crate) is_secret: bool,
}

/// The JSON of a value, of at most about `limit` bytes. Secrets are not masked.
pub(crate) fn json(value: &Value, style: JsonStyle, limit: usize) -> Result<Json, NoJson> {
    let secrets = Secrets::Revealed { is_any: false };
    let mut writer = Writer { out: String::new(), style, limit, depth: 0, lenient: false, secrets };
    writer.value(value)?;
    let is_secret = matches!(writer.secrets, Secrets::Revealed { is_any: true });
    Ok(Json { text: writer.out, is_secret })
}

/// The JSON of a value for people, with the text of numbers that are not finite, and with masked secrets.
pub(super) fn shown(value: &Value) -> String {
    let (style, limit) = (JsonStyle::Compact, usize::MAX);
    let secrets = Secrets::Masked;
    let mut writer = Writer { out: String::new(), style, limit, depth: 0, lenient: true, secrets };
    // Without a limit nothing is too long.
    let _ = writer.value(value);
    writer.out
}

struct Writer {
    out: String,
    style: JsonStyle,
    limit: usize,
    depth: usize,
    /// Whether numbers that are not finite may stand where JSON has no word for them.
    lenient: bool,
    secrets: Secrets,
}

enum Secrets {
    Masked,
    Revealed { is_any: bool },
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), NoJson> {
        if self.out.len() > self.limit {
            return Err(NoJson::TooLong);
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Int(_) => self.out.push_str(&text(value)),
            Value::Named(named) => self.out.push_str(&named.number().to_string()),
            Value::Float(number) if !number.is_finite() && !self.lenient => return Err(NoJson::NotFinite),
            Value::Float(number) => self.out.push_str(&number_json(*number)),
            Value::Written(written) => match written.json() {
                Some(text) => self.out.push_str(text),
                None => self.value(&written.number)?,
            },
            Value::Str(text) => self.string(text),
            Value::Duration(nanoseconds) => self.out.push_str(&nanoseconds.to_string()),
            Value::Time(_) | Value::Zone(_) => self.string(&text(value)),
            Value::List(items) => self.sequence(['[', ']'], items.iter(), Self::value)?,
            Value::Map(entries) => self.sequence(['{', '}'], entries.iter(), Self::entry)?,
            Value::Object(object) => self.sequence(['{', '}'], object.contents().iter(), Self::entry)?,
            Value::Secret(secret) => match &mut self.secrets {
                Secrets::Masked => self.string(MASK),
                Secrets::Revealed { is_any } => {
                    *is_any = true;
                    self.value(secret.reveal())?;
                }
            },
        }
        Ok(())
    }

    fn entry(&mut self, (name, value): (&std::sync::Arc<str>, &Value)) -> Result<(), NoJson> {
        self.string(name);
        self.out.push_str(if self.style == JsonStyle::Compact { ":" } else { ": " });
        self.value(value)
    }

    fn sequence<T>(
        &mut self,
        [open, close]: [char; 2],
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(&mut Self, T) -> Result<(), NoJson>,
    ) -> Result<(), NoJson> {
        self.out.push(open);
        if items.len() > 0 {
            self.depth += 1;
            for (index, item) in items.enumerate() {
                if index > 0 {
                    self.out.push_str(if self.style == JsonStyle::Spaced { ", " } else { "," });
                }
                self.line();
                write(self, item)?;
            }
            self.depth -= 1;
            self.line();
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self) {
        if self.style == JsonStyle::Indented {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", self.depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                control if control < ' ' => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.out, "\\u{:04x}", u32::from(control));
                }
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }
}
