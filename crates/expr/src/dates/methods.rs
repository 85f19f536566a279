//! The methods of moments, lengths of time and time zones.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

use super::{duration_text, layout, local, moved, time_text, zone_text};
use crate::value::{Named, Value, number};

const OF_TIMES: &[&str] = &[
    "Year",
    "Month",
    "Day",
    "Hour",
    "Minute",
    "Second",
    "Nanosecond",
    "Weekday",
    "YearDay",
    "Unix",
    "UnixMilli",
    "UnixMicro",
    "UnixNano",
    "Format",
    "String",
    "Add",
    "AddDate",
    "Sub",
    "Before",
    "After",
    "Equal",
    "IsZero",
    "UTC",
    "Local",
    "In",
    "Location",
    "Truncate",
];
const OF_DURATIONS: &[&str] = &[
    "Hours",
    "Minutes",
    "Seconds",
    "Milliseconds",
    "Microseconds",
    "Nanoseconds",
    "String",
    "Abs",
    "Truncate",
    "Round",
];

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
        "Format" | "Add" | "Sub" | "Before" | "After" | "Equal" | "In" | "Truncate" => {
            of_time_with(time, name, one_argument(arguments)?)
        }
        "AddDate" => add_date(time, arguments),
        _ => no_arguments(arguments).map(|()| part_of_time(time, name)),
    }
}

fn part_of_time(time: &Arc<Zoned>, name: &str) -> Value {
    let whole = |number: i128| i64::try_from(number).map_or(Value::Null, Value::Int);
    let moment = time.timestamp();
    match name {
        "Year" => Value::Int(time.year().into()),
        "Month" => Value::Named(Named::Month(time.month())),
        "Day" => Value::Int(time.day().into()),
        "Hour" => Value::Int(time.hour().into()),
        "Minute" => Value::Int(time.minute().into()),
        "Second" => Value::Int(time.second().into()),
        "Nanosecond" => Value::Int(time.subsec_nanosecond().into()),
        "Weekday" => Value::Named(Named::Weekday(time.weekday().to_sunday_zero_offset())),
        "YearDay" => Value::Int(time.day_of_year().into()),
        "Unix" => Value::Int(moment.as_nanosecond().div_euclid(1_000_000_000).try_into().unwrap_or_default()),
        "UnixMilli" => whole(moment.as_nanosecond().div_euclid(1_000_000)),
        "UnixMicro" => whole(moment.as_nanosecond().div_euclid(1_000)),
        "UnixNano" => whole(moment.as_nanosecond()),
        "IsZero" => {
            Value::Bool(time.year() == 1 && time.day_of_year() == 1 && time.hour() == 0 && time.minute() == 0)
        }
        "Local" => Value::Time(Arc::new(time.with_time_zone(local()))),
        "UTC" => Value::Time(Arc::new(time.with_time_zone(TimeZone::UTC))),
        "Location" => Value::Zone(time.time_zone().clone()),
        _ => time_text(time).into(),
    }
}

fn of_time_with(time: &Arc<Zoned>, name: &str, argument: &Value) -> Result<Value, String> {
    match (name, argument) {
        ("Format", Value::Str(layout)) => Ok(layout::format(time, layout).into()),
        ("Add", Value::Duration(length)) => {
            moved(time, *length).ok_or_else(|| "date is out of range".to_owned())
        }
        ("Truncate", Value::Duration(length)) => {
            let nanoseconds = time.timestamp().as_nanosecond();
            let cut = nanoseconds - nanoseconds.rem_euclid(i128::from((*length).max(1)));
            Timestamp::from_nanosecond(cut)
                .map(|moment| Value::Time(Arc::new(moment.to_zoned(time.time_zone().clone()))))
                .map_err(|_| "date is out of range".to_owned())
        }
        ("In", Value::Zone(zone)) => Ok(Value::Time(Arc::new(time.with_time_zone(zone.clone())))),
        ("Sub", Value::Time(other)) => {
            let apart = time.timestamp().as_nanosecond() - other.timestamp().as_nanosecond();
            i64::try_from(apart).map(Value::Duration).map_err(|_| "the dates are too far apart".to_owned())
        }
        ("Before", Value::Time(other)) => Ok((time.timestamp() < other.timestamp()).into()),
        ("After", Value::Time(other)) => Ok((time.timestamp() > other.timestamp()).into()),
        ("Equal", Value::Time(other)) => Ok((time.timestamp() == other.timestamp()).into()),
        ("Format", other) => Err(wrong("a layout", other)),
        ("Add" | "Truncate", other) => Err(wrong("a duration", other)),
        ("In", other) => Err(wrong("a time zone", other)),
        (_, other) => Err(wrong("a date", other)),
    }
}

/// A day that the month does not have is that many days into the next: a month after 31 January is 3 March.
fn add_date(time: &Zoned, arguments: &[Value]) -> Result<Value, String> {
    let [Value::Int(years), Value::Int(months), Value::Int(days)] = arguments else {
        return Err("takes whole numbers of years, months and days".to_owned());
    };
    let moved = || {
        let months = i64::from(time.month() - 1).checked_add(*months)?;
        let year = i64::from(time.year()).checked_add(*years)?.checked_add(months.div_euclid(12))?;
        let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
        let first = Date::new(year.try_into().ok()?, month, 1).ok()?;
        let days = i64::from(time.day() - 1).checked_add(*days)?;
        let day = first.checked_add(Span::new().try_days(days).ok()?).ok()?;
        day.to_datetime(time.time()).to_zoned(time.time_zone().clone()).ok()
    };
    moved().map(|time| Value::Time(Arc::new(time))).ok_or_else(|| "date is out of range".to_owned())
}

fn of_duration(length: i64, name: &str, arguments: &[Value]) -> Result<Value, String> {
    if matches!(name, "Truncate" | "Round") {
        let unit = match one_argument(arguments)? {
            Value::Duration(unit) if *unit > 0 => *unit,
            Value::Duration(_) => return Ok(Value::Duration(length)),
            other => return Err(wrong("a duration", other)),
        };
        let cut = length - length % unit;
        let rounded = if name == "Round" && (length % unit).unsigned_abs() * 2 >= unit.unsigned_abs() {
            cut.checked_add(unit * length.signum())
        } else {
            Some(cut)
        };
        return rounded.map(Value::Duration).ok_or_else(|| "duration is out of range".to_owned());
    }
    no_arguments(arguments)?;
    let fraction = |unit: f64| Value::Float(number(&Value::Int(length)).unwrap_or_default() / unit);
    Ok(match name {
        "Hours" => fraction(3.6e12),
        "Minutes" => fraction(6e10),
        "Seconds" => fraction(1e9),
        "Milliseconds" => Value::Int(length / 1_000_000),
        "Microseconds" => Value::Int(length / 1_000),
        "Nanoseconds" => Value::Int(length),
        "Abs" => Value::Duration(length.saturating_abs()),
        _ => duration_text(length).into(),
    })
}
