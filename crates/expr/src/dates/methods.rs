//! The methods of moments, lengths of time and time zones that the language's documentation names.

use std::sync::Arc;

use jiff::Zoned;

use super::{duration_text, layout, time_text, zone_text};
use crate::value::{Named, Value, number};

const OF_TIMES: &[&str] = &[
    "Year", "Month", "Day", "Hour", "Minute", "Second", "Weekday", "YearDay", "Unix", "Format", "String",
    "In",
];
const OF_DURATIONS: &[&str] = &["Hours", "Minutes", "Seconds", "Milliseconds", "String"];

/// The names of the methods that a value has.
pub(crate) fn method_names(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Time(_) => OF_TIMES,
        Value::Duration(_) => OF_DURATIONS,
        Value::Zone(_) | Value::Named(_) => &["String"],
        _ => &[],
    }
}

/// Calls a method; nothing if the value has none of that name.
pub(crate) fn method(value: &Value, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
    if !method_names(value).contains(&name) {
        return None;
    }
    Some(match value {
        Value::Time(time) => of_time(time, name, arguments),
        Value::Duration(length) => of_duration(*length, name, arguments),
        Value::Zone(zone) => no_arguments(arguments).map(|()| zone_text(zone).into()),
        Value::Named(named) => no_arguments(arguments).map(|()| named.name().into()),
        _ => return None,
    })
}

fn no_arguments(arguments: &[Value]) -> Result<(), String> {
    if arguments.is_empty() { Ok(()) } else { Err(format!("takes no arguments, found {}", arguments.len())) }
}

fn one_argument(arguments: &[Value]) -> Result<&Value, String> {
    if let [only] = arguments {
        Ok(only)
    } else {
        Err(format!("takes 1 argument, found {}", arguments.len()))
    }
}

fn wrong(wanted: &str, found: &Value) -> String {
    format!("expected {wanted}, found {}", found.type_name())
}

fn of_time(time: &Arc<Zoned>, name: &str, arguments: &[Value]) -> Result<Value, String> {
    match name {
        "Format" => match one_argument(arguments)? {
            Value::Str(layout) => Ok(layout::format(time, layout).into()),
            other => Err(wrong("a layout", other)),
        },
        "In" => match one_argument(arguments)? {
            Value::Zone(zone) => Ok(Value::Time(Arc::new(time.with_time_zone(zone.clone())))),
            other => Err(wrong("a time zone", other)),
        },
        _ => no_arguments(arguments).map(|()| part_of_time(time, name)),
    }
}

fn part_of_time(time: &Zoned, name: &str) -> Value {
    match name {
        "Year" => Value::Int(time.year().into()),
        "Month" => Value::Named(Named::Month(time.month())),
        "Day" => Value::Int(time.day().into()),
        "Hour" => Value::Int(time.hour().into()),
        "Minute" => Value::Int(time.minute().into()),
        "Second" => Value::Int(time.second().into()),
        "Weekday" => Value::Named(Named::Weekday(time.weekday().to_sunday_zero_offset())),
        "YearDay" => Value::Int(time.day_of_year().into()),
        "Unix" => Value::Int(time.timestamp().as_second()),
        _ => time_text(time).into(),
    }
}

fn of_duration(length: i64, name: &str, arguments: &[Value]) -> Result<Value, String> {
    no_arguments(arguments)?;
    let fraction = |unit: f64| Value::Float(number(&Value::Int(length)).unwrap_or_default() / unit);
    Ok(match name {
        "Hours" => fraction(3.6e12),
        "Minutes" => fraction(6e10),
        "Seconds" => fraction(1e9),
        "Milliseconds" => Value::Int(length / 1_000_000),
        _ => duration_text(length).into(),
    })
}
