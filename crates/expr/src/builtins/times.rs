//! Functions that make moments, lengths of time and time zones.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::{Builtin, Context, Outcome, builtin, text};
use crate::dates;
use crate::environment::CallError;
use crate::value::Value;

pub(super) static TABLE: &[Builtin] = &[
    builtin("now", 0, 0, |context, _| {
        Ok(Value::Time(Arc::new(context.environment.now().to_zoned(TimeZone::UTC))))
    }),
    builtin("duration", 1, 1, |_, arguments| {
        let written = text(arguments, 0)?;
        dates::duration(written).map(Value::Duration).ok_or_else(|| {
            CallError::at(0, format!("`{written}` is not a duration"))
                .with_help("for example `1h30m`, `45s`, `250ms`")
        })
    }),
    builtin("timezone", 1, 1, |_, arguments| {
        dates::zone(text(arguments, 0)?).map(Value::Zone).map_err(|message| CallError::at(0, message))
    }),
    builtin("date", 1, 4, date),
];

/// `date(text, layout, zone)`, or `date(zone, text, layout)` for a pipe that begins with the zone.
fn date(_: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let (zone, rest, offset) = match &arguments[0] {
        Value::Zone(zone) => (Some(zone.clone()), &arguments[1..], 1),
        _ => (None, arguments, 0),
    };
    if rest.is_empty() || rest.len() > 3 {
        return Err(CallError::new("expected a text, a layout and a time zone"));
    }
    if let Value::Time(time) = &rest[0] {
        return Ok(Value::Time(time.clone()));
    }
    let written = text(rest, 0)?;
    let layout = if rest.len() > 1 { Some(text(rest, 1)?) } else { None };
    let zone = match rest.get(2) {
        Some(Value::Zone(zone)) => Some(zone.clone()),
        Some(_) => Some(dates::zone(text(rest, 2)?).map_err(|message| CallError::at(offset + 2, message))?),
        None => zone,
    };
    dates::date(written, layout, zone.unwrap_or(TimeZone::UTC))
        .map(|time| Value::Time(Arc::new(time)))
        .map_err(|message| CallError::at(offset, message))
}
