//! Ranges and slices.

use std::ops::Range;

use super::{exhausted, mistyped, unfit};
use crate::ast::Span;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::value::{Value, truncated};

/// `from..to`, both included; empty when the end is before the start.
pub(super) fn range(left: &Value, right: &Value, budget: &mut Budget, spans: [Span; 3]) -> Result<Value> {
    let from = whole(left, spans[0])?;
    let to = whole(right, spans[1])?;
    if from > to {
        return Ok(Value::from(Vec::new()));
    }
    let length = to.abs_diff(from).saturating_add(1);
    budget.elements(usize::try_from(length).unwrap_or(usize::MAX)).map_err(exhausted(spans[2]))?;
    Ok((from..=to).map(Value::Int).collect())
}

/// A whole number; a fraction is cut to its whole part.
pub(super) fn whole(value: &Value, span: Span) -> Result<i64> {
    let number = match value.settled() {
        Value::Float(number) => truncated(*number),
        other => other.whole(),
    };
    number.ok_or_else(|| mistyped(span, "an int", value))
}

/// The place that an index means in so many elements; negative ones count from the end.
pub(crate) fn place(index: i64, length: usize) -> Option<usize> {
    let place = match usize::try_from(index) {
        Ok(place) => place,
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    (place < length).then_some(place)
}

/// The part of a list or text between two places, counted from the end when negative. Places beyond the ends
/// mean the ends.
pub(super) fn slice(value: &Value, from: Option<i64>, to: Option<i64>, span: Span) -> Result<Value> {
    match value {
        Value::List(items) => {
            let range = bounds(from, to, items.len());
            if range.len() == items.len() {
                Ok(value.clone())
            } else {
                Ok(Value::from(items[range].to_vec()))
            }
        }
        Value::Str(text) => {
            let range = bounds(from, to, text.chars().count());
            let part: String = text.chars().skip(range.start).take(range.len()).collect();
            Ok(Value::from(part))
        }
        other => Err(sliceless(other, span)),
    }
}

fn sliceless(value: &Value, span: Span) -> Error {
    let error = unfit(span, &[value], format!("cannot take a part of {}", value.type_name()));
    if value.is_null() { error.with_help("give a default with `??`") } else { error }
}

fn bounds(from: Option<i64>, to: Option<i64>, length: usize) -> Range<usize> {
    let place = |wanted: i64| match usize::try_from(wanted) {
        Ok(place) => place.min(length),
        Err(_) => length.saturating_sub(usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let end = to.map_or(length, place);
    from.map_or(0, place).min(end)..end
}
