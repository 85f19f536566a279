//! Functions that turn one kind of value into another.

use super::{Builtin, Context, Outcome, builtin, wrong};
use crate::environment::CallError;
use crate::value::{JsonStyle, Value, number, truncated};

pub(super) static TABLE: &[Builtin] = &[
    builtin("type", 1, 1, |_, arguments| Ok(arguments[0].type_name().into())),
    builtin("int", 1, 1, int),
    builtin("float", 1, 1, float),
    builtin("string", 1, 1, string),
];

fn int(_: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    match arguments[0].settled() {
        Value::Int(number) | Value::Duration(number) => Ok(Value::Int(*number)),
        Value::Named(named) => Ok(Value::Int(named.number())),
        Value::Float(number) => truncated(*number)
            .map(Value::Int)
            .ok_or_else(|| CallError::at(0, "number is too large for an int")),
        Value::Str(text) => {
            let digits = text.trim();
            digits
                .parse()
                .map(Value::Int)
                .map_err(|_| CallError::at(0, format!("`{text}` is not a whole number")))
        }
        other => Err(wrong(0, "a number or a string", other)),
    }
}

fn float(_: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    if let Some(number) = number(&arguments[0]) {
        return Ok(Value::Float(number));
    }
    match &arguments[0] {
        Value::Str(text) => {
            let digits = text.trim();
            digits
                .parse()
                .map(Value::Float)
                .map_err(|_| CallError::at(0, format!("`{text}` is not a number")))
        }
        other => Err(wrong(0, "a number or a string", other)),
    }
}

/// Lists and maps become JSON.
fn string(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let text = match &arguments[0] {
        Value::Str(text) => return Ok(Value::Str(text.clone())),
        Value::Null => "nil".to_owned(),
        value @ (Value::List(_) | Value::Map(_) | Value::Object(_)) => {
            return context.json(value, JsonStyle::Compact).map(Value::from);
        }
        other => other.to_text(),
    };
    context.budget.bytes(text.len())?;
    Ok(text.into())
}
