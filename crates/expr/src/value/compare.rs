//! Equality and order of values.
//!
//! Whole numbers and fractions are equal when they mean the same number. Values of different kinds are never
//! equal, and only numbers, texts, moments and durations have an order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Value;

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        let mut fuel = u64::MAX;
        equal(self, other, &mut fuel)
    }
}

/// Whether two values are equal, spending one unit of `fuel` for each pair looked at; without fuel they are
/// not equal. Lists that share elements many times over would otherwise take exponential time.
pub(crate) fn equal(left: &Value, right: &Value, fuel: &mut u64) -> bool {
    let Some(rest) = fuel.checked_sub(1) else { return false };
    *fuel = rest;
    match (left.settled(), right.settled()) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Str(left), Value::Str(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Time(left), Value::Time(right)) => left.timestamp() == right.timestamp(),
        (Value::Zone(left), Value::Zone(right)) => left == right,
        (Value::List(left), Value::List(right)) => {
            Arc::ptr_eq(left, right)
                || (left.len() == right.len()
                    && left.iter().zip(right.iter()).all(|(left, right)| equal(left, right, fuel)))
        }
        (Value::Map(left), Value::Map(right)) => {
            Arc::ptr_eq(left, right)
                || (left.len() == right.len()
                    && left
                        .iter()
                        .all(|(name, left)| right.get(name).is_some_and(|right| equal(left, right, fuel))))
        }
        (Value::Object(object), other) | (other, Value::Object(object)) => match other {
            Value::Object(other) if Arc::ptr_eq(object, other) => true,
            Value::Object(other) => {
                equal(&Value::Map(object.contents()), &Value::Map(other.contents()), fuel)
            }
            Value::Map(_) => equal(&Value::Map(object.contents()), other, fuel),
            _ => false,
        },
        _ => compare(left, right) == Some(Ordering::Equal),
    }
}

/// The order of two values, where they have one.
pub(crate) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left.settled(), right.settled()) {
        (Value::Int(left), Value::Int(right)) | (Value::Duration(left), Value::Duration(right)) => {
            Some(left.cmp(right))
        }
        (Value::Str(left), Value::Str(right)) => Some(left.cmp(right)),
        (Value::Time(left), Value::Time(right)) => Some(left.timestamp().cmp(&right.timestamp())),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Named(named), other) => compare(&Value::Int(named.number()), other),
        (other, Value::Named(named)) => compare(other, &Value::Int(named.number())),
        (Value::Int(left), Value::Float(right)) => compare_mixed(*left, *right),
        (Value::Float(left), Value::Int(right)) => compare_mixed(*right, *left).map(Ordering::reverse),
        _ => None,
    }
}

/// Compares without rounding: otherwise three numbers could be in an order that goes in a circle.
fn compare_mixed(whole: i64, fraction: f64) -> Option<Ordering> {
    match truncated(fraction) {
        Some(cut) => Some(whole.cmp(&cut).then_with(|| {
            let rest = fraction.fract();
            0.0_f64.partial_cmp(&rest).unwrap_or(Ordering::Equal)
        })),
        None => 0.0_f64.partial_cmp(&fraction),
    }
}

/// The whole part of a number, if 64 bits can hold it.
pub(crate) fn truncated(fraction: f64) -> Option<i64> {
    // The first number beyond; the last before it is not a fraction.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (-BEYOND..BEYOND).contains(&fraction).then_some(fraction as i64)
}

/// The number that a value is, as a fraction.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value.settled() {
        #[expect(clippy::cast_precision_loss, reason = "mixed arithmetic is done in floating point")]
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Named(named) => number(&Value::Int(named.number())),
        _ => None,
    }
}
