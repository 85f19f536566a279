//! JSON and Base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Builtin, Context, Outcome, builtin, text};
use crate::environment::CallError;
use crate::value::{JsonStyle, Value};

pub(super) static TABLE: &[Builtin] = &[
    builtin("toJSON", 1, 1, to_json),
    builtin("fromJSON", 1, 1, from_json),
    builtin("toBase64", 1, 1, |context, arguments| {
        let encoded = STANDARD.encode(text(arguments, 0)?);
        context.budget.bytes(encoded.len())?;
        Ok(encoded.into())
    }),
    builtin("fromBase64", 1, 1, from_base64),
];

fn to_json(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    context.json(&arguments[0], JsonStyle::Indented).map(Value::from)
}

fn from_json(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let source = text(arguments, 0)?;
    // Every element but the first of a list or map has a comma before it.
    let most = source.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    context.budget.elements(most)?;
    serde_json::from_str(source).map_err(|error| CallError::at(0, format!("not JSON: {error}")))
}

fn from_base64(_: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let bytes = STANDARD
        .decode(text(arguments, 0)?)
        .map_err(|error| CallError::at(0, format!("not Base64: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| CallError::at(0, "what is encoded is not text"))?;
    Ok(text.into())
}
