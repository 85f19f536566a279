//! Values in plain text, as the MAC of a document covers them: by the types that SOPS reads in YAML.
//!
//! SOPS reads YAML with a library whose plain scalars have types of YAML 1.1: `0644` is an octal number, and `2026-01-31`
//! a time. The MAC covers the value, not its text.

use std::borrow::Cow;

use jiff::{Timestamp, civil::Date};

use super::value::float;
use crate::document::{Scalar, Style};

/// Returns the bytes of a value that the MAC covers; `None` for null.
pub(super) fn authenticated(scalar: &Scalar) -> Option<Cow<'_, str>> {
    match scalar.style {
        Style::Plain => of_plain(&scalar.text),
        Style::Computed => Some(number(&scalar.text).map_or(Cow::Borrowed(&*scalar.text), Cow::Owned)),
        _ => Some(Cow::Borrowed(&scalar.text)),
    }
}

fn of_plain(text: &str) -> Option<Cow<'_, str>> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return None,
        "true" | "True" | "TRUE" => return Some("True".into()),
        "false" | "False" | "FALSE" => return Some("False".into()),
        ".nan" | ".NaN" | ".NAN" => return Some("NaN".into()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some("+Inf".into()),
        "-.inf" | "-.Inf" | "-.INF" => return Some("-Inf".into()),
        _ => {}
    }
    let is_candidate =
        text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'));
    let typed = is_candidate.then(|| time(text).or_else(|| number(text))).flatten();
    Some(typed.map_or(Cow::Borrowed(text), Cow::Owned))
}

fn number(text: &str) -> Option<String> {
    let clean = text.replace('_', "");
    let (sign, digits) = match clean.strip_prefix(['-', '+']) {
        Some(digits) => (if clean.starts_with('-') { "-" } else { "" }, digits),
        None => ("", clean.as_str()),
    };
    let radix = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        [b'0', _, ..] => 0,
        _ => 10,
    };
    let digits = match radix {
        2 | 8 | 16 => &digits[2..],
        _ => digits,
    };
    // A leading zero is octal, as in C.
    let radix = if radix == 0 { 8 } else { radix };
    if digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && let Ok(number) = i128::from_str_radix(&format!("{sign}{digits}"), radix)
        && (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number)
    {
        return Some(number.to_string());
    }
    let is_float = clean.bytes().any(|byte| byte.is_ascii_digit())
        && clean
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    // A number that is too large is a string.
    clean.parse().ok().filter(|number: &f64| is_float && number.is_finite()).map(float)
}

/// Returns the time that a text of one of YAML's forms denotes.
fn time(text: &str) -> Option<String> {
    let is_date = text
        .get(..5)
        .is_some_and(|year| year.bytes().take(4).all(|byte| byte.is_ascii_digit()) && year.ends_with('-'));
    if !is_date {
        return None;
    }
    if text.len() <= 10 {
        let mut parts = text.split('-');
        let mut part = || parts.next()?.parse::<i16>().ok();
        let (year, month, day) = (part()?, part()?, part()?);
        let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
        return Some(format!("{date}T00:00:00Z"));
    }
    if text.contains(' ') {
        let time: Timestamp = format!("{}Z", text.replacen(' ', "T", 1)).parse().ok()?;
        return Some(time.to_string());
    }
    // A zone is kept as it is written.
    let upper = text.replace('t', "T").replace('z', "Z");
    upper.parse::<Timestamp>().ok().map(|_| upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_have_the_types_of_yaml_1_1() {
        for (text, expected) in [
            ("word", "word"),
            ("true", "True"),
            ("yes", "yes"),
            ("0644", "420"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0b101", "5"),
            ("1_000", "1000"),
            ("+12", "12"),
            ("-7", "-7"),
            ("089", "89"),
            ("1.50", "1.5"),
            ("1e3", "1000"),
            (".5", "0.5"),
            (".inf", "+Inf"),
            ("18446744073709551615", "18446744073709551615"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-1-3", "2026-01-03T00:00:00Z"),
            ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
            ("2026-01-31 10:00:00", "2026-01-31T10:00:00Z"),
            ("2026-01-31T10:00:00+02:00", "2026-01-31T10:00:00+02:00"),
            ("10.0.0.1", "10.0.0.1"),
            ("1.2.3", "1.2.3"),
            ("1e400", "1e400"),
            ("-", "-"),
            ("1-2", "1-2"),
        ] {
            assert_eq!(of_plain(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "~", "null"] {
            assert_eq!(of_plain(text), None, "{text}");
        }
    }
}
