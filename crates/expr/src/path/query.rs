//! What stands in `#(...)`: a path, an operator and a value.

use std::cmp::Ordering;

use super::Path;
use super::wildcard::Wildcard;
use crate::budget::{Budget, Exhausted};
use crate::value::{Value, compare};

#[derive(Debug)]
pub(super) struct Query {
    /// From an element to what is compared; the element itself without it.
    pub(super) path: Option<Path>,
    pub(super) test: Test,
}

#[derive(Debug)]
pub(super) enum Test {
    Exists,
    /// `~true` and the like: whether the value counts as that, and whether it should.
    Like {
        like: Like,
        wanted: bool,
    },
    Compare {
        operator: Operator,
        value: Operand,
    },
    Matches {
        wildcard: Wildcard,
        wanted: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Like {
    True,
    False,
    Null,
    Anything,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The right side: its text, and the number that text is.
#[derive(Debug)]
pub(super) struct Operand {
    pub(super) text: String,
    pub(super) number: Option<Value>,
}

impl Query {
    pub(super) fn holds(&self, element: &Value, budget: &mut Budget) -> Result<bool, Exhausted> {
        budget.steps(1)?;
        let found = match &self.path {
            Some(path) => super::evaluate::follow(path, element, budget)?,
            None => Some(element.clone()),
        };
        Ok(match (&self.test, found) {
            (Test::Like { like, wanted }, found) => like.holds(found.as_ref()) == *wanted,
            (Test::Exists, Some(_)) => true,
            (Test::Matches { wildcard, wanted }, Some(found)) => {
                found.reveal().as_str().is_some_and(|text| wildcard.matches(text) == *wanted)
            }
            (_, None) => false,
            (Test::Compare { operator, value }, Some(found)) => {
                value.order(&found).is_some_and(|order| operator.holds(order))
            }
        })
    }
}

impl Operator {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual => order != Ordering::Less,
        }
    }
}

impl Operand {
    /// How a value that was found stands to this one. Only texts, numbers and booleans can be compared.
    fn order(&self, found: &Value) -> Option<Ordering> {
        match found.settled() {
            Value::Str(text) => Some(text.as_ref().cmp(self.text.as_str())),
            Value::Int(_) | Value::Float(_) => {
                // What is no number counts as zero, as the syntax defines.
                compare(found, self.number.as_ref().unwrap_or(&Value::Int(0)))
            }
            Value::Bool(truth) => match self.text.as_str() {
                "true" => Some(truth.cmp(&true)),
                "false" => Some(truth.cmp(&false)),
                // Neither equal nor in any order, but different.
                _ => Some(if *truth { Ordering::Less } else { Ordering::Greater }),
            },
            _ => None,
        }
    }
}

impl Like {
    fn holds(self, found: Option<&Value>) -> bool {
        match (self, found) {
            (Self::Anything, found) => found.is_some(),
            (Self::Null | Self::False, None | Some(Value::Null)) => true,
            (Self::Null, _) => false,
            (Self::True, found) => truth(found) == Some(true),
            (Self::False, found) => truth(found) == Some(false),
        }
    }
}

fn truth(found: Option<&Value>) -> Option<bool> {
    match found?.settled() {
        Value::Bool(truth) => Some(*truth),
        Value::Int(number) => Some(*number != 0),
        Value::Float(number) => Some(*number != 0.0),
        Value::Str(text) => match text.to_lowercase().as_str() {
            "1" | "t" | "true" => Some(true),
            "0" | "f" | "false" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
