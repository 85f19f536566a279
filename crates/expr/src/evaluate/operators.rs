//! Operators between two values.
//!
//! Arithmetic on whole numbers that leaves the range of 64 bits is an error: a silently wrapped number in a
//! configuration would be worse.

use std::cmp::Ordering;

use regex::Regex;

use super::{Evaluation, at, exhausted, mistyped, unfit};
use crate::ast::{Binary, Comparison, Node, Span};
use crate::budget::Budget;
use crate::dates;
use crate::environment::{Doubt, DoubtKind};
use crate::error::{Error, Result};
use crate::evaluate::ranges;
use crate::pattern;
use crate::value::{Value, compare, equal, key_text, number};

/// How many steps making a pattern counts for; it is by far the slowest thing an operator does.
const PATTERN_STEPS: usize = 5_000;
/// How many patterns that are not constant are kept during one evaluation.
const PATTERNS_KEPT: usize = 8;

pub(super) fn overflow(span: Span) -> Error {
    at(span, "number is too large").with_help("use fractions, such as `1.0`, for very large numbers")
}

/// Where the left operand, the right operand and both stand.
type Spans = [Span; 3];

/// Applies an operator that needs both values.
pub(super) fn apply(
    binary: Binary,
    left: &Value,
    right: &Value,
    budget: &mut Budget,
    spans: Spans,
) -> Result<Value> {
    if left.is_secret() || right.is_secret() {
        let result = of_bare(binary, left, right, budget, spans);
        return result.map(Value::derived).map_err(Error::masked);
    }
    of_bare(binary, left, right, budget, spans)
}

fn of_bare(binary: Binary, left: &Value, right: &Value, budget: &mut Budget, spans: Spans) -> Result<Value> {
    let whole = spans[2];
    let (left, right) = (left.settled(), right.settled());
    match binary {
        Binary::Equal | Binary::NotEqual => {
            let same = budget.with_steps(|fuel| equal(left, right, fuel)).map_err(exhausted(whole))?;
            Ok(Value::Bool(same == (binary == Binary::Equal)))
        }
        Binary::In => contained(left, right, budget, spans).map(Value::Bool),
        Binary::Contains | Binary::StartsWith | Binary::EndsWith => {
            // What is missing contains nothing and is in nothing.
            if left.is_null() || right.is_null() {
                return Ok(Value::Bool(false));
            }
            let (left, right) = texts(left, right, spans)?;
            Ok(Value::Bool(match binary {
                Binary::Contains => left.contains(right),
                Binary::StartsWith => left.starts_with(right),
                _ => left.ends_with(right),
            }))
        }
        Binary::Range => ranges::range(left, right, budget, spans),
        _ => arithmetic(binary, left, right, budget, spans),
    }
}

/// Returns what is doubtful about comparing two values: a number and a text that reads the same.
pub(super) fn mixed(binary: Binary, left: &Value, right: &Value, span: Span) -> Option<Doubt> {
    let kind = match (binary, right) {
        (Binary::Equal | Binary::NotEqual, _) => reads_the_same(left, right),
        // Of many items one is enough.
        (Binary::In, Value::List(items)) => items.iter().find_map(|item| reads_the_same(left, item)),
        _ => None,
    };
    Some(Doubt { kind: kind?, place: None, span: span.into() })
}

fn reads_the_same(left: &Value, right: &Value) -> Option<DoubtKind> {
    let ((Value::Str(text), number) | (number, Value::Str(text))) = (left, right) else { return None };
    let is_number = !number.is_secret() && matches!(number.settled(), Value::Int(_) | Value::Float(_));
    (is_number && number.to_text() == text.as_ref())
        .then(|| DoubtKind::MixedComparison { number: number.to_text(), text: text.as_ref().to_owned() })
}

fn contained(left: &Value, right: &Value, budget: &mut Budget, spans: Spans) -> Result<bool> {
    match right {
        Value::Null => Ok(false),
        Value::List(items) => {
            let found = |fuel: &mut u64| items.iter().any(|item| equal(left, item, fuel));
            budget.with_steps(found).map_err(exhausted(spans[2]))
        }
        Value::Map(_) | Value::Object(_) => {
            budget.walk(left).map_err(exhausted(spans[0]))?;
            Ok(match left {
                Value::Str(name) => has_member(right, name),
                other => has_member(right, &key_text(other)),
            })
        }
        Value::Str(_) => Err(at(spans[1], "`in` looks in arrays and maps, found string")
            .with_help("`text contains part` looks in texts")),
        other => Err(at(spans[1], format!("`in` looks in arrays and maps, found {}", other.type_name()))),
    }
}

fn has_member(value: &Value, name: &str) -> bool {
    match value {
        Value::Map(entries) => entries.contains_key(name),
        // The names of an object are known without gathering what they stand for.
        other => other.member_names().iter().any(|known| known.as_ref() == name),
    }
}

fn texts<'v>(left: &'v Value, right: &'v Value, spans: Spans) -> Result<(&'v str, &'v str)> {
    let text = |value: &'v Value, span| {
        value.as_str().ok_or_else(|| {
            mistyped(span, "a string", value).with_help("`string(...)` makes text of other values")
        })
    };
    Ok((text(left, spans[0])?, text(right, spans[1])?))
}

fn arithmetic(
    binary: Binary,
    left: &Value,
    right: &Value,
    budget: &mut Budget,
    spans: Spans,
) -> Result<Value> {
    let whole = spans[2];
    let result = match (binary, left, right) {
        (_, Value::Named(named), _) => {
            return arithmetic(binary, &Value::Int(named.number()), right, budget, spans);
        }
        (_, _, Value::Named(named)) => {
            return arithmetic(binary, left, &Value::Int(named.number()), budget, spans);
        }
        (Binary::Add, Value::Str(left), Value::Str(right)) => {
            budget.bytes(left.len() + right.len()).map_err(exhausted(whole))?;
            return Ok(Value::from([left.as_ref(), right.as_ref()].concat()));
        }
        (Binary::Modulo, Value::Int(_), Value::Int(0)) => return Err(at(spans[1], "division by zero")),
        (Binary::Modulo, Value::Int(left), Value::Int(right)) => Some(Value::Int(left.wrapping_rem(*right))),
        (Binary::Add, Value::Int(left), Value::Int(right)) => left.checked_add(*right).map(Value::Int),
        (Binary::Subtract, Value::Int(left), Value::Int(right)) => left.checked_sub(*right).map(Value::Int),
        (Binary::Multiply, Value::Int(left), Value::Int(right)) => left.checked_mul(*right).map(Value::Int),
        _ => match fractions(binary, left, right) {
            Some(value) => Some(value),
            None => match dates::arithmetic(binary, left, right) {
                Some(result) => result.ok(),
                None => return Err(mismatch(binary, left, right, whole)),
            },
        },
    };
    result.ok_or_else(|| overflow(whole))
}

fn fractions(binary: Binary, left: &Value, right: &Value) -> Option<Value> {
    let (left, right) = (number(left)?, number(right)?);
    let result = match binary {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Power => left.powf(right),
        _ => return None,
    };
    Some(Value::Float(result))
}

fn mismatch(binary: Binary, left: &Value, right: &Value, span: Span) -> Error {
    let symbol = match binary {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Modulo => "%",
        _ => "**",
    };
    let values = [left, right];
    let (left, right) = (left.type_name(), right.type_name());
    let error = unfit(span, &values, format!("`{symbol}` cannot be applied to {left} and {right}"));
    match (binary, left, right) {
        (_, "nil", _) | (_, _, "nil") => error.with_help("give a default with `??`"),
        (Binary::Add, "string", _) => error.with_help("make text of the right side with `string(...)`"),
        (Binary::Add, _, "string") => error.with_help("make text of the left side with `string(...)`"),
        (Binary::Modulo, "float", _) | (Binary::Modulo, _, "float") => {
            error.with_help("make whole numbers with `int(...)`")
        }
        (_, "string", _) | (_, _, "string") => {
            error.with_help("make a number with `int(...)` or `float(...)`")
        }
        _ => error,
    }
}

impl<'a> Evaluation<'a> {
    pub(super) fn comparison(&mut self, first: &'a Node, rest: &'a [(Comparison, Node)]) -> Result<Value> {
        let mut left = self.place(first)?;
        let mut left_node = first;
        for (comparison, node) in rest {
            let right = self.place(node)?;
            let nan = number(&left).is_some() && number(&right).is_some();
            let holds = match compare(&left, &right) {
                Some(order) => match comparison {
                    Comparison::Less => order == Ordering::Less,
                    Comparison::LessOrEqual => order != Ordering::Greater,
                    Comparison::Greater => order == Ordering::Greater,
                    Comparison::GreaterOrEqual => order != Ordering::Less,
                },
                // Numbers without an order are not a number, and are neither less nor greater.
                None if nan => false,
                None => return Err(incomparable(&left, &right, left_node.span, node.span)),
            };
            if !holds {
                return Ok(Value::Bool(false));
            }
            left = right;
            left_node = node;
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn matches(&mut self, pair: &'a [Node; 2], regex: Option<&Regex>) -> Result<Value> {
        let [left, right] = pair;
        let text = self.place(left)?;
        let pattern = self.place(right)?;
        if text.is_null() || pattern.is_null() {
            return Ok(Value::Bool(false));
        }
        let is_secret = pattern.is_secret();
        let (text, pattern) = texts(text.settled(), pattern.settled(), [left.span, right.span, left.span])?;
        self.budget.steps(text.len() / 64).map_err(exhausted(left.span))?;
        if let Some(regex) = regex {
            return Ok(Value::Bool(regex.is_match(text)));
        }
        let known = self.patterns.iter().position(|(known, _)| known == pattern);
        let place = match known {
            Some(place) => place,
            None => match self.new_pattern(pattern, right.span) {
                Err(error) if is_secret => return Err(error.masked()),
                known => known?,
            },
        };
        Ok(Value::Bool(self.patterns[place].1.is_match(text)))
    }

    /// Makes a pattern that is not constant and keeps it: within a predicate it mostly stays the same.
    fn new_pattern(&mut self, pattern: &str, span: Span) -> Result<usize> {
        self.budget.steps(PATTERN_STEPS + pattern.len()).map_err(exhausted(span))?;
        let regex = pattern::compile(pattern, span.into())?;
        if self.patterns.len() == PATTERNS_KEPT {
            self.patterns.remove(0);
        }
        self.patterns.push((pattern.to_owned(), regex));
        Ok(self.patterns.len() - 1)
    }
}

fn incomparable(left: &Value, right: &Value, left_span: Span, right_span: Span) -> Error {
    let values = [left, right];
    let (left, right) = (left.type_name(), right.type_name());
    let error = unfit(left_span, &values, format!("{left} and {right} have no order"));
    let span = error.span.start..std::ops::Range::<usize>::from(right_span).end;
    let error = Error { span, ..error };
    if left == "nil" || right == "nil" { error.with_help("give a default with `??`") } else { error }
}
