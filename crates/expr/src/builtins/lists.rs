//! Functions on lists.

use std::collections::HashSet;

use super::{ANY, Builtin, Context, Outcome, builtin, list, maps::member, whole};
use crate::environment::CallError;
use crate::evaluate::Direction;
use crate::value::{Value, equal};

pub(super) static TABLE: &[Builtin] = &[
    builtin("first", 1, 1, |context, arguments| member(context, &arguments[0], &Value::Int(0))),
    builtin("last", 1, 1, |context, arguments| member(context, &arguments[0], &Value::Int(-1))),
    builtin("take", 2, 2, take),
    builtin("reverse", 1, 1, reverse),
    builtin("sort", 1, 2, sort),
    builtin("uniq", 1, 1, uniq),
    builtin("concat", 1, ANY, concat),
    builtin("flatten", 1, 1, flatten),
];

fn take(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let items = list(arguments, 0)?;
    let count = usize::try_from(whole(arguments, 1)?)
        .map_err(|_| CallError::at(1, "cannot take a negative number of elements"))?;
    let taken = &items[..count.min(items.len())];
    context.budget.elements(taken.len())?;
    Ok(taken.to_vec().into())
}

fn reverse(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let items = list(arguments, 0)?;
    context.budget.elements(items.len())?;
    Ok(items.iter().rev().cloned().collect())
}

fn sort(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let direction = match arguments.get(1) {
        Some(order) => Direction::of(order).map_err(|message| CallError::at(1, message))?,
        None => Direction::Ascending,
    };
    let mut items = match &arguments[0] {
        Value::List(items) => items.to_vec(),
        // The language defines that anything else sorts into nothing.
        _ => Vec::new(),
    };
    context.budget.elements(items.len())?;
    items.sort_by(|left, right| direction.order(left, right));
    Ok(items.into())
}

/// Keeps the first of equal elements.
fn uniq(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let items = list(arguments, 0)?;
    let mut texts = HashSet::new();
    let mut wholes = HashSet::new();
    // Texts and whole numbers are found by hash; the others are compared one by one.
    let mut others: Vec<&Value> = Vec::new();
    let mut kept = Vec::new();
    for item in items {
        let new = match item.reveal() {
            Value::Str(text) => texts.insert(text),
            Value::Int(number) if others.is_empty() => wholes.insert(*number),
            _ => {
                let seen = kept.iter().any(|known| same(context, known, item));
                context.budget.steps(kept.len())?;
                others.push(item);
                !seen
            }
        };
        if new {
            kept.push(item.clone());
        }
    }
    context.budget.elements(kept.len())?;
    Ok(kept.into())
}

fn same(context: &mut Context<'_>, left: &Value, right: &Value) -> bool {
    context.budget.with_steps(|fuel| equal(left, right, fuel)).unwrap_or(false)
}

fn concat(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let mut joined = Vec::new();
    for place in 0..arguments.len() {
        let items = list(arguments, place)?;
        context.budget.elements(items.len())?;
        joined.extend_from_slice(items);
    }
    Ok(joined.into())
}

fn flatten(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let mut flat = Vec::new();
    spread(context, list(arguments, 0)?, &mut flat)?;
    Ok(flat.into())
}

fn spread(context: &mut Context<'_>, items: &[Value], flat: &mut Vec<Value>) -> Result<(), CallError> {
    context.budget.elements(items.len())?;
    for item in items {
        match item.reveal() {
            Value::List(inner) => {
                context.is_secret |= item.is_secret();
                spread(context, inner, flat)?;
            }
            _ => flat.push(item.clone()),
        }
    }
    Ok(())
}
