//! Plain scalars as Ansible's YAML reader understands them: YAML 1.1, in which `yes` is a boolean and `0644` is 420.

use ccm_expr::{Map, Value};

use crate::document::{self, Node, Style};

/// Returns the value of a tree. Scalars without quotes have the types of YAML 1.1.
pub(super) fn value(node: &Node) -> Value {
    match &node.value {
        document::Value::Seq(items) => items.iter().map(value).collect(),
        document::Value::Map(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.as_str().into(), value(&entry.value)));
            entries.collect::<Map>().into()
        }
        document::Value::Scalar(scalar) if scalar.style == Style::Plain && !scalar.is_secret => {
            plain(&scalar.text)
        }
        document::Value::Scalar(_) => document::to_value(node),
    }
}

/// Returns the value of a scalar without quotes.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return true.into(),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return false.into(),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return f64::INFINITY.into(),
        "-.inf" | "-.Inf" | "-.INF" => return f64::NEG_INFINITY.into(),
        ".nan" | ".NaN" | ".NAN" => return f64::NAN.into(),
        _ => {}
    }
    whole(text).or_else(|| float(text)).unwrap_or_else(|| text.into())
}

fn whole(text: &str) -> Option<Value> {
    let (is_negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let first = *unsigned.as_bytes().first()?;
    if !first.is_ascii_digit() {
        return None;
    }
    let is_made_of = |text: &str, digits: &str| text.chars().all(|c| c == '_' || digits.contains(c));
    let parse = |digits: &str, radix| i64::from_str_radix(&digits.replace('_', ""), radix).ok();
    let number = if let Some(digits) = unsigned.strip_prefix("0b").filter(|digits| is_made_of(digits, "01")) {
        parse(digits, 2)?
    } else if let Some(digits) =
        unsigned.strip_prefix("0x").filter(|digits| is_made_of(digits, "0123456789abcdefABCDEF"))
    {
        parse(digits, 16)?
    } else if unsigned.contains(':') {
        sexagesimal(unsigned)?
    } else if first == b'0' && unsigned.len() > 1 {
        if !is_made_of(unsigned, "01234567") {
            return None;
        }
        parse(unsigned, 8)?
    } else if is_made_of(unsigned, "0123456789") {
        parse(unsigned, 10)?
    } else {
        return None;
    };
    Some(if is_negative { -number } else { number }.into())
}

/// Returns the value of `1:30`, which is 90.
fn sexagesimal(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let first = parts.next()?;
    if first.starts_with('0') || !first.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return None;
    }
    let mut number: i64 = first.replace('_', "").parse().ok()?;
    for part in parts {
        let is_part = matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
        let digits: i64 = if is_part { part.parse().ok()? } else { return None };
        number = number.checked_mul(60)?.checked_add(digits)?;
    }
    Some(number)
}

/// Returns the value of a number with a decimal point. An exponent needs a sign: `1.0e3` is a string.
fn float(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (before, after) = mantissa.split_once('.')?;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let begins_with_digit = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let is_mantissa = is_digits(before)
        && is_digits(after)
        && (begins_with_digit(before) || before.is_empty() && begins_with_digit(after) && text == unsigned);
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['-', '+']);
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if !is_mantissa || !exponent.is_none_or(is_exponent) {
        return None;
    }
    text.replace('_', "").parse::<f64>().ok().map(Value::from)
}
