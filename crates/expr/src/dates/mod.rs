//! Moments, lengths of time and time zones, with the names and layouts that the language takes from Go.

mod durations;
mod layout;
mod methods;

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};

use crate::ast::Binary;
use crate::value::{Value, number};

pub(crate) use durations::{duration, duration_text};
pub(crate) use methods::{method, method_names};

/// How a moment is written when nobody says how.
const RFC3339: &str = "2006-01-02T15:04:05.999999999Z07:00";

/// The layouts that are tried when none is given.
const LAYOUTS: &[&str] = &[
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    RFC3339,
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
];

pub(crate) fn time_text(time: &Zoned) -> String {
    layout::format(time, RFC3339)
}

pub(crate) fn zone_text(zone: &TimeZone) -> String {
    match zone.iana_name() {
        Some(name) => name.to_owned(),
        None => zone.to_fixed_offset().map_or_else(|_| "Local".to_owned(), |offset| offset.to_string()),
    }
}

/// The name of a month, counted from 1.
pub(crate) fn month_name(month: i8) -> &'static str {
    nth(&layout::MONTHS, i32::from(month) - 1)
}

/// The name of a day of the week, counted from Sunday as 0.
pub(crate) fn day_name(day: i8) -> &'static str {
    nth(&layout::DAYS, i32::from(day) - 1)
}

/// The name at a place; places before the first count from the end.
fn nth(names: &[&'static str], place: i32) -> &'static str {
    let length = i32::try_from(names.len()).unwrap_or(1);
    usize::try_from(place.rem_euclid(length)).map_or("", |place| names[place])
}

/// The zone with this name; looks it up in the system's time zone database unless it is UTC.
pub(crate) fn zone(name: &str) -> Result<TimeZone, String> {
    match name {
        "" | "UTC" => Ok(TimeZone::UTC),
        "Local" => {
            TimeZone::try_system().map_err(|error| format!("the machine's own time zone is unknown: {error}"))
        }
        _ => TimeZone::get(name).map_err(|_| format!("unknown time zone `{name}`")),
    }
}

/// Reads a moment. Without an offset in the text it is one of the zone.
pub(crate) fn date(text: &str, layout: Option<&str>, zone: TimeZone) -> Result<Zoned, String> {
    if let Some(layout) = layout {
        return layout::parse(text, layout, zone)
            .ok_or_else(|| format!("`{text}` is not written like the layout `{layout}`"));
    }
    LAYOUTS.iter().find_map(|layout| layout::parse(text, layout, zone.clone())).ok_or_else(|| {
        format!("`{text}` is not a date that can be recognised; give its layout, such as `2006-01-02`")
    })
}

/// The result is further away than dates and lengths of time go.
pub(crate) struct OutOfRange;

/// Arithmetic with moments and lengths of time; nothing if the operands are not of that kind.
pub(crate) fn arithmetic(binary: Binary, left: &Value, right: &Value) -> Option<Result<Value, OutOfRange>> {
    let result = match (binary, left, right) {
        (Binary::Add, Value::Time(time), Value::Duration(length))
        | (Binary::Add, Value::Duration(length), Value::Time(time)) => moved(time, *length),
        (Binary::Subtract, Value::Time(time), Value::Duration(length)) => {
            length.checked_neg().and_then(|length| moved(time, length))
        }
        (Binary::Subtract, Value::Time(left), Value::Time(right)) => {
            let apart = left.timestamp().as_nanosecond() - right.timestamp().as_nanosecond();
            i64::try_from(apart).ok().map(Value::Duration)
        }
        (Binary::Add, Value::Duration(left), Value::Duration(right)) => {
            left.checked_add(*right).map(Value::Duration)
        }
        (Binary::Subtract, Value::Duration(left), Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Duration)
        }
        (Binary::Multiply, Value::Duration(length), Value::Int(factor))
        | (Binary::Multiply, Value::Int(factor), Value::Duration(length)) => {
            length.checked_mul(*factor).map(Value::Duration)
        }
        // With fractions a length counts as its nanoseconds, as does a quotient of two lengths.
        (Binary::Multiply | Binary::Divide, Value::Duration(_), _)
        | (Binary::Multiply | Binary::Divide, _, Value::Duration(_)) => {
            let left = nanoseconds(left)?;
            let right = nanoseconds(right)?;
            Some(Value::Float(if binary == Binary::Multiply { left * right } else { left / right }))
        }
        _ => return None,
    };
    Some(result.ok_or(OutOfRange))
}

fn nanoseconds(value: &Value) -> Option<f64> {
    match value {
        Value::Duration(length) => number(&Value::Int(*length)),
        other => number(other),
    }
}

fn moved(time: &Zoned, nanoseconds: i64) -> Option<Value> {
    let moved = time.checked_add(SignedDuration::from_nanos(nanoseconds)).ok()?;
    Some(Value::Time(Arc::new(moved)))
}
