//! Functions on text. Places in a text are counted in characters.

use super::{Builtin, Context, Outcome, builtin, list, text, whole, wrong};
use crate::environment::CallError;
use crate::value::Value;

pub(super) static TABLE: &[Builtin] = &[
    builtin("trim", 1, 2, trim),
    builtin("trimPrefix", 1, 2, |_, arguments| {
        let affix = affix(arguments)?;
        let subject = text(arguments, 0)?;
        Ok(subject.strip_prefix(affix).unwrap_or(subject).into())
    }),
    builtin("trimSuffix", 1, 2, |_, arguments| {
        let affix = affix(arguments)?;
        let subject = text(arguments, 0)?;
        Ok(subject.strip_suffix(affix).unwrap_or(subject).into())
    }),
    builtin("upper", 1, 1, |context, arguments| made(context, text(arguments, 0)?.to_uppercase())),
    builtin("lower", 1, 1, |context, arguments| made(context, text(arguments, 0)?.to_lowercase())),
    builtin("split", 2, 3, |context, arguments| split(context, arguments, Separator::Dropped)),
    builtin("splitAfter", 2, 3, |context, arguments| split(context, arguments, Separator::Kept)),
    builtin("replace", 3, 4, replace),
    builtin("repeat", 2, 2, repeat),
    builtin("join", 1, 2, join),
    builtin("indexOf", 2, 2, |_, arguments| {
        let subject = text(arguments, 0)?;
        Ok(place(subject, subject.find(text(arguments, 1)?)))
    }),
    builtin("lastIndexOf", 2, 2, |_, arguments| {
        let subject = text(arguments, 0)?;
        Ok(place(subject, subject.rfind(text(arguments, 1)?)))
    }),
    builtin("hasPrefix", 2, 2, |_, arguments| {
        Ok(text(arguments, 0)?.starts_with(text(arguments, 1)?).into())
    }),
    builtin("hasSuffix", 2, 2, |_, arguments| Ok(text(arguments, 0)?.ends_with(text(arguments, 1)?).into())),
];

/// Counts the bytes of a text that was made.
fn made(context: &mut Context<'_>, text: String) -> Outcome {
    context.budget.bytes(text.len())?;
    Ok(text.into())
}

fn trim(_: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let subject = text(arguments, 0)?;
    if arguments.len() == 1 {
        return Ok(subject.trim().into());
    }
    let unwanted = text(arguments, 1)?;
    Ok(subject.trim_matches(|letter| unwanted.contains(letter)).into())
}

fn affix(arguments: &[Value]) -> Result<&str, CallError> {
    if arguments.len() == 1 { Ok(" ") } else { text(arguments, 1) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Kept,
    Dropped,
}

fn split(context: &mut Context<'_>, arguments: &[Value], separator: Separator) -> Outcome {
    let subject = text(arguments, 0)?;
    let delimiter = text(arguments, 1)?;
    // A negative limit is none.
    let limit = if arguments.len() == 3 { whole(arguments, 2)? } else { -1 };
    let limit = match limit {
        0 => return Ok(Value::from(Vec::new())),
        some => usize::try_from(some).unwrap_or(usize::MAX),
    };
    let parts: Vec<Value> = if delimiter.is_empty() {
        letters(subject, limit)
    } else if separator == Separator::Kept {
        kept(subject, delimiter, limit)
    } else {
        subject.splitn(limit, delimiter).map(Value::from).collect()
    };
    context.budget.elements(parts.len())?;
    context.budget.bytes(subject.len())?;
    Ok(parts.into())
}

/// One letter each; the last part is all that is left.
fn letters(subject: &str, limit: usize) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut rest = subject;
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == limit {
            break;
        }
        let (letter, others) = rest.split_at(first.len_utf8());
        parts.push(letter.into());
        rest = others;
    }
    if !rest.is_empty() {
        parts.push(rest.into());
    }
    parts
}

fn kept(subject: &str, delimiter: &str, limit: usize) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut rest = subject;
    while parts.len() + 1 < limit {
        let Some(found) = rest.find(delimiter) else { break };
        let (part, others) = rest.split_at(found + delimiter.len());
        parts.push(part.into());
        rest = others;
    }
    parts.push(rest.into());
    parts
}

fn replace(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let (subject, old, new) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    let limit = if arguments.len() == 4 { whole(arguments, 3)? } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // Count before making: a short text can grow by the product of two lengths.
    let matches = if old.is_empty() { subject.chars().count() + 1 } else { subject.matches(old).count() };
    context.budget.bytes(subject.len().saturating_add(matches.min(limit).saturating_mul(new.len())))?;
    Ok(subject.replacen(old, new, limit).into())
}

fn repeat(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let subject = text(arguments, 0)?;
    let times = usize::try_from(whole(arguments, 1)?)
        .map_err(|_| CallError::at(1, "cannot repeat a negative number of times"))?;
    context.budget.bytes(subject.len().saturating_mul(times))?;
    Ok(subject.repeat(if subject.is_empty() { 0 } else { times }).into())
}

fn join(context: &mut Context<'_>, arguments: &[Value]) -> Outcome {
    let items = list(arguments, 0)?;
    let delimiter = if arguments.len() == 2 { text(arguments, 1)? } else { "" };
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        let Value::Str(part) = context.reveal(item) else {
            return Err(
                wrong(0, "an array of strings", item).with_help("make strings with `map(list, string(#))`")
            );
        };
        let separator = if index > 0 { delimiter } else { "" };
        context.budget.bytes(separator.len() + part.len())?;
        joined.push_str(separator);
        joined.push_str(part);
    }
    Ok(joined.into())
}

fn place(subject: &str, found: Option<usize>) -> Value {
    let letters = found.map(|end| subject[..end].chars().count());
    Value::Int(letters.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1))
}
