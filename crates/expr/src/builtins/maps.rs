//! Functions on maps, and those that read members.

use super::{Builtin, Context, Outcome, builtin, list, wrong};
use crate::environment::CallError;
use crate::evaluate::place;
use crate::value::{Map, Value, key_text};

pub(super) static TABLE: &[Builtin] = &[
    builtin("keys", 1, 1, keys),
    builtin("values", 1, 1, values),
    builtin("toPairs", 1, 1, to_pairs),
    builtin("fromPairs", 1, 1, from_pairs),
    builtin("get", 2, 2, |context, arguments| member(context, &arguments[0], &arguments[1])),
    builtin("len", 1, 1, len),
];

/// Names of members are shown everywhere.
pub(crate) const SECRET_KEY: &str = "a secret value cannot be a key of a map";

fn entries(context: &mut Context<'_>, arguments: &[Value]) -> Result<std::sync::Arc<Map>, CallError> {
    let entries = match &arguments[0] {
        Value::Map(entries) => entries.clone(),
        Value::Object(object) => object.contents(),
        other => return Err(wrong(0, "a map", other)),
    };
    context.budget.elements(entries.len())?;
    Ok(entries)
}

fn keys(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    // The names of an object are known without gathering what they stand for.
    if let Value::Object(object) = &arguments[0] {
        return Ok(object.names().into_iter().map(Value::Str).collect());
    }
    Ok(entries(context, arguments)?.keys().cloned().map(Value::Str).collect())
}

fn values(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    Ok(entries(context, arguments)?.values().cloned().collect())
}

fn to_pairs(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let entries = entries(context, arguments)?;
    context.budget.elements(entries.len() * 2)?;
    let pair =
        |(name, value): (&std::sync::Arc<str>, &Value)| vec![Value::Str(name.clone()), value.clone()].into();
    Ok(entries.iter().map(pair).collect())
}

fn from_pairs(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let mut map = Map::new();
    for item in list(arguments, 0)? {
        let Some([key, value]) = context.reveal(item).as_list() else {
            return Err(
                CallError::at(0, "expected an array of pairs").with_help("a pair is written `[key, value]`")
            );
        };
        context.budget.elements(1)?;
        context.budget.walk(key)?;
        let name = match key {
            Value::Secret(_) => return Err(CallError::at(0, SECRET_KEY)),
            Value::Str(name) => name.clone(),
            other => key_text(other).into(),
        };
        map.insert(name, value.clone());
    }
    Ok(map.into())
}

/// What `value[key]` would give, or nil.
pub(super) fn member(context: &mut Context<'_>, value: &Value, key: &Value) -> Outcome {
    let found = match (value, key) {
        (Value::Map(_) | Value::Object(_), Value::Str(name)) => value.member(name),
        (Value::Map(_) | Value::Object(_), other) => {
            context.budget.walk(other)?;
            value.member(&key_text(other))
        }
        (Value::List(items), key) => {
            key.whole().and_then(|index| place(index, items.len())).map(|place| items[place].clone())
        }
        (Value::Str(text), key) => key
            .whole()
            .and_then(|index| place(index, text.chars().count()))
            .and_then(|place| text.chars().nth(place))
            .map(|letter| Value::from(letter.to_string())),
        _ => None,
    };
    Ok(found.unwrap_or_default())
}

fn len(_: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let length = match &arguments[0] {
        Value::Str(text) => text.chars().count(),
        Value::List(items) => items.len(),
        Value::Map(entries) => entries.len(),
        Value::Object(object) => object.names().len(),
        other => return Err(wrong(0, "a string, an array or a map", other)),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}
