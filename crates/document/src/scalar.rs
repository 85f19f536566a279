//! Types of scalars: the core schema of YAML 1.2, and additionally `_` between digits and `0b`.

use std::fmt;

/// Text of a scalar, and how it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct Scalar {
    pub text: String,
    pub style: Style,
    /// Whether the text was encrypted or was computed from such a text: it must not be shown.
    pub is_secret: bool,
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.is_secret { ccm_expr::MASK } else { &self.text };
        f.debug_struct("Scalar").field("text", &text).field("style", &self.style).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes: a number, a boolean, null or a string.
    Plain,
    /// A number that was not written in YAML: from JSON, or the result of a template. Only its value counts, not its
    /// digits.
    Computed,
    /// In quotes or as a block: a string.
    Quoted,
    /// A string whose templates are concatenated as strings, even if it is exactly one expression.
    Joined,
    /// Result of a template, or a flag that is a string: final and never expanded again.
    Literal,
}

/// A scalar with the type that its text denotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Typed<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Only for values that exceed [`Typed::Int`].
    UInt(u64),
    Float(f64),
    Str(&'a str),
}

impl Scalar {
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, is_secret: false }
    }

    /// Returns a scalar that must not be shown. Its templates are never expanded.
    ///
    /// The style is [`Style::Literal`] for a string, [`Style::Computed`] for a number and [`Style::Plain`] for a boolean.
    pub fn secret(text: impl Into<String>, style: Style) -> Self {
        Self { is_secret: true, ..Self::new(text, style) }
    }

    /// Returns the text for people.
    pub fn shown(&self) -> &str {
        if self.is_secret { ccm_expr::MASK } else { &self.text }
    }

    pub fn typed(&self) -> Typed<'_> {
        match self.style {
            Style::Plain | Style::Computed => plain(&self.text),
            Style::Quoted | Style::Joined | Style::Literal => Typed::Str(&self.text),
        }
    }

    pub fn is_null(&self) -> bool {
        self.style == Style::Plain && is_null(&self.text)
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Returns the type of a text without quotes. `yes`, `on` and the like are strings.
fn plain(text: &str) -> Typed<'_> {
    match text {
        _ if is_null(text) => Typed::Null,
        "true" | "True" | "TRUE" => Typed::Bool(true),
        "false" | "False" | "FALSE" => Typed::Bool(false),
        _ => number(text).unwrap_or(Typed::Str(text)),
    }
}

fn number(text: &str) -> Option<Typed<'static>> {
    if !matches!(text.as_bytes()[0], b'0'..=b'9' | b'-' | b'+' | b'.') {
        return None;
    }
    let radix = match text.as_bytes() {
        [b'0', b'b', ..] => 2,
        [b'0', b'o', ..] => 8,
        [b'0', b'x', ..] => 16,
        _ => return decimal(text),
    };
    let value =
        u64::from_str_radix(&digits(&text[2..], |byte| (byte as char).is_digit(radix))?, radix).ok()?;
    Some(i64::try_from(value).map_or(Typed::UInt(value), Typed::Int))
}

fn decimal(text: &str) -> Option<Typed<'static>> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => {
            let infinity = if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
            return Some(Typed::Float(infinity));
        }
        ".nan" | ".NaN" | ".NAN" if unsigned.len() == text.len() => return Some(Typed::Float(f64::NAN)),
        _ => {}
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_digits = |text: &str| digits(text, |byte| byte.is_ascii_digit()).is_some();
    let whole_is_optional = fraction.is_some_and(|fraction| !fraction.is_empty());
    let fits = (is_digits(whole) || whole.is_empty() && whole_is_optional)
        && fraction.is_none_or(|fraction| fraction.is_empty() || is_digits(fraction))
        && exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    if !fits {
        return None;
    }
    let clean = text.replace('_', "");
    if fraction.is_none() && exponent.is_none() {
        if let Ok(value) = clean.parse() {
            return Some(Typed::Int(value));
        }
        // A float would lose digits of a longer number, which is probably an identifier.
        return clean.parse().ok().map(Typed::UInt);
    }
    // A value that exceeds a float, such as the hash 12e34567, is not a number.
    clean.parse().ok().filter(|value: &f64| value.is_finite()).map(Typed::Float)
}

/// Returns the digits of a text that has only digits with single `_` between them.
fn digits(text: &str, is_digit: impl Fn(u8) -> bool) -> Option<String> {
    let well_formed =
        !text.is_empty() && text.split('_').all(|group| !group.is_empty() && group.bytes().all(&is_digit));
    well_formed.then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::{Typed, plain};

    #[test]
    fn plain_text_has_the_type_of_the_core_schema() {
        let cases = [
            ("", Typed::Null),
            ("~", Typed::Null),
            ("null", Typed::Null),
            ("nULL", Typed::Str("nULL")),
            ("true", Typed::Bool(true)),
            ("FALSE", Typed::Bool(false)),
            ("yes", Typed::Str("yes")),
            ("on", Typed::Str("on")),
            ("n", Typed::Str("n")),
            ("0", Typed::Int(0)),
            ("-0", Typed::Int(0)),
            ("+12", Typed::Int(12)),
            ("0644", Typed::Int(644)),
            ("1_000_000", Typed::Int(1_000_000)),
            ("1__0", Typed::Str("1__0")),
            ("_1", Typed::Str("_1")),
            ("1_", Typed::Str("1_")),
            ("0b1010", Typed::Int(10)),
            ("0b12", Typed::Str("0b12")),
            ("0o644", Typed::Int(0o644)),
            ("0o9", Typed::Str("0o9")),
            ("0xFF", Typed::Int(255)),
            ("0xffff_ffff_ffff_ffff", Typed::UInt(u64::MAX)),
            ("0x", Typed::Str("0x")),
            ("-0x10", Typed::Str("-0x10")),
            ("9223372036854775807", Typed::Int(i64::MAX)),
            ("9223372036854775808", Typed::UInt(1 << 63)),
            ("18446744073709551616", Typed::Str("18446744073709551616")),
            ("-9223372036854775809", Typed::Str("-9223372036854775809")),
            ("1_8446744073709551616", Typed::Str("1_8446744073709551616")),
            ("18446744073709551616.0", Typed::Float(18_446_744_073_709_551_616.0)),
            ("-9223372036854775808", Typed::Int(i64::MIN)),
            ("1.5", Typed::Float(1.5)),
            ("-.5", Typed::Float(-0.5)),
            ("1.", Typed::Float(1.0)),
            (".", Typed::Str(".")),
            ("1e3", Typed::Float(1000.0)),
            ("1E+3", Typed::Float(1000.0)),
            ("e3", Typed::Str("e3")),
            ("1e", Typed::Str("1e")),
            ("12e34567", Typed::Str("12e34567")),
            (".inf", Typed::Float(f64::INFINITY)),
            ("-.INF", Typed::Float(f64::NEG_INFINITY)),
            ("inf", Typed::Str("inf")),
            ("-.nan", Typed::Str("-.nan")),
            ("1.2.3", Typed::Str("1.2.3")),
            ("10.0.0.1", Typed::Str("10.0.0.1")),
            ("1:30", Typed::Str("1:30")),
            ("2024-01-01", Typed::Str("2024-01-01")),
            ("-", Typed::Str("-")),
            ("+", Typed::Str("+")),
            ("--1", Typed::Str("--1")),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text), expected, "{text:?}");
        }
        assert!(matches!(plain(".nan"), Typed::Float(value) if value.is_nan()));
    }
}
