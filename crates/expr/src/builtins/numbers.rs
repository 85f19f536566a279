//! Functions on numbers.

use std::cmp::Ordering;

use super::{ANY, Builtin, Context, Outcome, builtin, wrong};
use crate::environment::CallError;
use crate::value::{Value, compare, number};

pub(super) static TABLE: &[Builtin] = &[
    builtin("abs", 1, 1, abs),
    builtin("ceil", 1, 1, |_, arguments| Ok(Value::Float(fraction(arguments)?.ceil()))),
    builtin("floor", 1, 1, |_, arguments| Ok(Value::Float(fraction(arguments)?.floor()))),
    builtin("round", 1, 1, |_, arguments| Ok(Value::Float(fraction(arguments)?.round()))),
    builtin("max", 1, ANY, |context, arguments| extreme(context, arguments, Ordering::Greater)),
    builtin("min", 1, ANY, |context, arguments| extreme(context, arguments, Ordering::Less)),
    builtin("mean", 1, ANY, mean),
    builtin("median", 1, ANY, median),
];

fn fraction(arguments: &[Value]) -> Result<f64, CallError> {
    number(&arguments[0]).ok_or_else(|| wrong(0, "a number", &arguments[0]))
}

fn abs(_: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    match arguments[0].settled() {
        Value::Int(number) => {
            number.checked_abs().map(Value::Int).ok_or_else(|| CallError::at(0, "number is too large"))
        }
        Value::Float(number) => Ok(Value::Float(number.abs())),
        Value::Duration(length) => Ok(Value::Duration(length.saturating_abs())),
        other => Err(wrong(0, "a number", other)),
    }
}

/// All numbers in the arguments and in the lists among them.
fn numbers(context: &mut Context<'_>, arguments: &[Value]) -> Result<Vec<Value>, CallError> {
    fn gather(
        context: &mut Context<'_>,
        place: usize,
        value: &Value,
        found: &mut Vec<Value>,
    ) -> Result<(), CallError> {
        context.budget.steps(1)?;
        match context.reveal(value).settled() {
            Value::List(items) => items.iter().try_for_each(|item| gather(context, place, item, found)),
            Value::Int(_) | Value::Named(_) | Value::Float(_) | Value::Duration(_) | Value::Time(_) => {
                found.push(value.settled().clone());
                Ok(())
            }
            other => Err(wrong(place, "numbers or arrays of numbers", other)),
        }
    }
    let mut found = Vec::new();
    for (place, argument) in arguments.iter().enumerate() {
        gather(context, place, argument, &mut found)?;
    }
    Ok(found)
}

/// The first of the largest or smallest numbers; nil if there are none.
fn extreme(context: &mut Context<'_>, arguments: &[Value], wanted: Ordering) -> Outcome {
    // Of one alone there is nothing to compare.
    if let [only] = arguments
        && !matches!(only, Value::List(_))
    {
        return Ok(only.clone());
    }
    let mut best: Option<Value> = None;
    for candidate in numbers(context, arguments)? {
        match &best {
            None => best = Some(candidate),
            Some(known) => match compare(&candidate, known) {
                Some(order) if order == wanted => best = Some(candidate),
                None if candidate.type_name() != known.type_name() && number(&candidate).is_none() => {
                    return Err(CallError::new(format!(
                        "{} and {} have no order",
                        candidate.type_name(),
                        known.type_name()
                    )));
                }
                _ => {}
            },
        }
    }
    Ok(best.unwrap_or_default())
}

fn fractions(context: &mut Context<'_>, arguments: &[Value]) -> Result<Vec<f64>, CallError> {
    let found = numbers(context, arguments)?;
    found.iter().map(|value| number(value).ok_or_else(|| wrong(0, "numbers", value))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "no list has that many elements")]
fn mean(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let numbers = fractions(context, arguments)?;
    let count = numbers.len().max(1) as f64;
    // The sum of nothing is 0; what an iterator takes for it is -0.
    Ok(Value::Float(numbers.iter().fold(0.0, |sum, number| sum + number) / count))
}

fn median(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let mut numbers = fractions(context, arguments)?;
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let value = match numbers.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    };
    Ok(Value::Float(value))
}
