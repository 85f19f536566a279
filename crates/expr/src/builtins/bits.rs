//! Functions on the bits of whole numbers.

use super::{Builtin, Outcome, builtin, whole};
use crate::environment::CallError;
use crate::value::Value;

pub(super) static TABLE: &[Builtin] = &[
    builtin("bitand", 2, 2, |_, arguments| combine(arguments, |left, right| left & right)),
    builtin("bitor", 2, 2, |_, arguments| combine(arguments, |left, right| left | right)),
    builtin("bitxor", 2, 2, |_, arguments| combine(arguments, |left, right| left ^ right)),
    builtin("bitnand", 2, 2, |_, arguments| combine(arguments, |left, right| left & !right)),
    builtin("bitnot", 1, 1, |_, arguments| Ok(Value::Int(!whole(arguments, 0)?))),
    builtin("bitshl", 2, 2, |_, arguments| {
        shift(arguments, |number, by| number.checked_shl(by).unwrap_or(0))
    }),
    builtin("bitshr", 2, 2, |_, arguments| shift(arguments, |number, by| number >> by.min(63))),
    builtin("bitushr", 2, 2, |_, arguments| {
        shift(arguments, |number, by| number.cast_unsigned().checked_shr(by).unwrap_or(0).cast_signed())
    }),
];

fn combine(arguments: &[Value], operation: fn(i64, i64) -> i64) -> Outcome {
    Ok(Value::Int(operation(whole(arguments, 0)?, whole(arguments, 1)?)))
}

fn shift(arguments: &[Value], operation: fn(i64, u32) -> i64) -> Outcome {
    let number = whole(arguments, 0)?;
    let by = whole(arguments, 1)?;
    if by < 0 {
        return Err(CallError::at(1, format!("cannot shift by a negative count {by}")));
    }
    Ok(Value::Int(operation(number, u32::try_from(by).unwrap_or(u32::MAX))))
}
