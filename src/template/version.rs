//! `versionCompare(a, b)`: which of two versions is newer.

use std::cmp::Ordering;

use ccm_expr::{CallError, Value};

/// Returns -1, 0 or 1, as the first version is older than, the same as or newer than the second.
pub(super) fn version_compare(arguments: &[Value]) -> Result<Value, CallError> {
    let [first, second] = arguments else {
        return Err(CallError::new("versionCompare takes two versions"));
    };
    let text = |at: usize, value: &Value| match value {
        Value::Str(text) => Ok(text.trim().to_owned()),
        Value::Int(_) | Value::Float(_) => Ok(value.to_text()),
        other => Err(CallError::at(at, format!("a version is a string, not {}", other.type_name()))),
    };
    Ok(Value::Int(match compare(&text(0, first)?, &text(1, second)?) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

/// A part of a version.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'v> {
    /// `~`, or a `-` before letters: what comes before a release.
    Before,
    /// Nothing more comes.
    End,
    Letters(&'v str),
    /// Digits without leading zeros, by their number and then by themselves: no length is too long.
    Number(usize, &'v str),
}

/// Compares part by part: numbers as numbers, letters as letters, and what comes before a release before it.
fn compare(first: &str, second: &str) -> Ordering {
    let (mut first, mut second) = (strip(first), strip(second));
    loop {
        let (left, right);
        (left, first) = next(first);
        (right, second) = next(second);
        match left.cmp(&right) {
            Ordering::Equal if left == Part::End => return Ordering::Equal,
            Ordering::Equal => {}
            other => return other,
        }
    }
}

/// Takes away what is written before many versions, and what only says how one was built.
fn strip(text: &str) -> &str {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    text.split_once('+').map_or(text, |(version, _)| version)
}

/// Returns the first part and what is left.
fn next(text: &str) -> (Part<'_>, &str) {
    if let Some(rest) = text.strip_prefix('~') {
        return (Part::Before, rest);
    }
    if let Some(rest) = text.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_alphabetic())) {
        return (Part::Before, rest);
    }
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '~');
    let Some(start) = text.chars().next() else { return (Part::End, "") };
    if start == '~' {
        return next(text);
    }
    let is_digit = start.is_ascii_digit();
    let end = text.find(|c: char| c.is_ascii_digit() != is_digit || !c.is_alphanumeric());
    let (part, rest) = text.split_at(end.unwrap_or(text.len()));
    if is_digit {
        let digits = part.trim_start_matches('0');
        (Part::Number(digits.len(), digits), rest)
    } else {
        (Part::Letters(part), rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_in_which_they_were_released() {
        let ordered = [
            "0.9",
            "1.0~rc1",
            "1.0~rc2",
            "1.0~rc10",
            "1.0",
            "1.0.1",
            "1.2",
            "1.9",
            "1.10",
            "1.10.1",
            "2.0-alpha",
            "2.0-beta",
            "2.0",
            "2.0a",
            "10",
            "99999999999999999999999",
            "100000000000000000000000",
        ];
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one} and {other}");
            }
        }
    }

    #[test]
    fn what_does_not_matter_does_not() {
        for (one, other) in
            [("v1.2", "1.2"), ("1.02", "1.2"), ("1.2+build5", "1.2"), ("1-2", "1.2"), ("", "")]
        {
            assert_eq!(compare(one, other), Ordering::Equal, "{one} and {other}");
        }
        assert!(version_compare(&[Value::Null, Value::from("1")]).is_err());
    }

    #[test]
    fn an_older_version_is_minus_one() {
        for (one, other, expected) in [("1.9", "1.10", -1), ("1.2", "v1.2", 0), ("1.10", "1.9", 1)] {
            let found = version_compare(&[one.into(), other.into()]).unwrap();
            assert_eq!(found, Value::Int(expected), "{one} and {other}");
        }
    }
}
