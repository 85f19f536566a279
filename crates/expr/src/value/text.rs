//! Values as text and as JSON.
//!
//! Fractions are written as briefly as they can be read back, without an exponent unless they are huge or
//! tiny, and without a fractional part when they have none: `4 / 2` is `2`.

use std::fmt::Write;

use super::{Value, truncated};

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

/// JSON would be longer than the caller allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The text of a number with a fraction.
fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = number.abs();
    // All digits of a whole number, so that it reads back as the same number.
    if let Some(whole) = truncated(number).filter(|_| number.fract() == 0.0) {
        return whole.to_string();
    }
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return if text.contains("e-") { text } else { text.replacen('e', "e+", 1) };
    }
    format!("{number}")
}

/// The name under which a map holds what belongs to this value.
pub(crate) fn key_text(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        other => text(other),
    }
}

/// The text of a value: lists and maps as compact JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number_text(*number),
        Value::Str(text) => text.as_ref().to_owned(),
        Value::Duration(nanoseconds) => crate::dates::duration_text(*nanoseconds),
        Value::Time(time) => crate::dates::time_text(time),
        Value::Zone(zone) => crate::dates::zone_text(zone),
        Value::List(_) | Value::Map(_) | Value::Object(_) => {
            json(value, JsonStyle::Compact, usize::MAX).unwrap_or_default()
        }
    }
}

/// The JSON of a value, of at most about `limit` bytes.
pub(crate) fn json(value: &Value, style: JsonStyle, limit: usize) -> Result<String, TooLong> {
    let mut writer = Writer { out: String::new(), style, limit, depth: 0 };
    writer.value(value)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    style: JsonStyle,
    limit: usize,
    depth: usize,
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), TooLong> {
        if self.out.len() > self.limit {
            return Err(TooLong);
        }
        match value {
            Value::Float(number) if !number.is_finite() => self.out.push_str("null"),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => self.out.push_str(&text(value)),
            Value::Str(text) => self.string(text),
            Value::Duration(nanoseconds) => self.out.push_str(&nanoseconds.to_string()),
            Value::Time(_) | Value::Zone(_) => self.string(&text(value)),
            Value::List(items) => self.sequence(['[', ']'], items.iter(), Self::value)?,
            Value::Map(entries) => self.sequence(['{', '}'], entries.iter(), Self::entry)?,
            Value::Object(object) => self.sequence(['{', '}'], object.contents().iter(), Self::entry)?,
        }
        Ok(())
    }

    fn entry(&mut self, (name, value): (&std::sync::Arc<str>, &Value)) -> Result<(), TooLong> {
        self.string(name);
        self.out.push_str(if self.style == JsonStyle::Compact { ":" } else { ": " });
        self.value(value)
    }

    fn sequence<T>(
        &mut self,
        [open, close]: [char; 2],
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(&mut Self, T) -> Result<(), TooLong>,
    ) -> Result<(), TooLong> {
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
