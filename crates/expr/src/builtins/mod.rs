//! The functions of the language, except those that take a predicate.

mod bits;
mod convert;
mod encoding;
mod lists;
pub(crate) mod maps;
mod numbers;
mod strings;
mod times;

use crate::ast::Predicate;
use crate::budget::{Budget, Exhausted};
use crate::environment::{CallError, Environment};
use crate::error::ErrorKind;
use crate::value::{Json, JsonStyle, NoJson, Value, json};

/// What a function may use besides its arguments.
pub(crate) struct Context<'a> {
    pub(crate) budget: &'a mut Budget,
    pub(crate) environment: &'a dyn Environment,
    /// Whether a secret element of an argument became part of the result.
    pub(crate) is_secret: bool,
}

pub(crate) type Outcome = Result<Value, CallError>;

/// A function of the language.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    least: usize,
    most: usize,
    pub(crate) run: fn(&mut Context<'_>, &[Value]) -> Outcome,
}

/// Any number of arguments from the least on.
const ANY: usize = usize::MAX;

const fn builtin(
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&mut Context<'_>, &[Value]) -> Outcome,
) -> Builtin {
    Builtin { name, least, most, run }
}

static TABLES: &[&[Builtin]] = &[
    strings::TABLE,
    lists::TABLE,
    maps::TABLE,
    numbers::TABLE,
    bits::TABLE,
    times::TABLE,
    convert::TABLE,
    encoding::TABLE,
];

pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    TABLES.iter().copied().flatten().find(|builtin| builtin.name == name)
}

/// The names of all functions of the language.
pub fn names() -> impl Iterator<Item = &'static str> {
    let plain = TABLES.iter().copied().flatten().map(|builtin| builtin.name);
    plain.chain(Predicate::NAMES.iter().map(|(name, _)| *name))
}

#[test]
fn every_function_is_in_the_table_of_results() {
    let table = include_str!("../../tests/language/results.txt");
    let is_called = |name: &str| table.contains(&format!("{name}(")) || table.contains(&format!("| {name}"));
    let missing: Vec<_> = names().filter(|name| !is_called(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

impl Builtin {
    /// Checks the number of arguments.
    pub(crate) fn check(&self, count: usize) -> Result<(), String> {
        if (self.least..=self.most).contains(&count) {
            return Ok(());
        }
        let wanted = match (self.least, self.most) {
            (1, 1) => "1 argument".to_owned(),
            (least, ANY) => format!("at least {least} argument{}", if least == 1 { "" } else { "s" }),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        };
        Err(format!("`{}` takes {wanted}, found {count}", self.name))
    }
}

impl Context<'_> {
    /// Returns the JSON of a value, and notes whether it contains a secret.
    fn json(&mut self, value: &Value, style: JsonStyle) -> Result<String, CallError> {
        let Json { text, is_secret } = json(value, style, self.budget.bytes_left())?;
        self.is_secret |= is_secret;
        self.budget.bytes(text.len())?;
        Ok(text)
    }

    /// Returns an element without its mark, and notes the mark.
    fn reveal<'v>(&mut self, element: &'v Value) -> &'v Value {
        self.is_secret |= element.is_secret();
        element.reveal()
    }
}

impl From<Exhausted> for CallError {
    fn from(problem: Exhausted) -> Self {
        Self { kind: problem.into(), help: None, argument: None }
    }
}

impl From<NoJson> for CallError {
    fn from(problem: NoJson) -> Self {
        match problem {
            NoJson::TooLong => Exhausted::Bytes.into(),
            NoJson::NotFinite => {
                Self::at(0, "it holds a number that is not finite, which JSON does not have")
                    .with_help("is something divided by zero?")
            }
        }
    }
}

fn wrong(place: usize, wanted: &'static str, found: &Value) -> CallError {
    let kind = ErrorKind::Type { wanted, found: found.type_name() };
    let error = CallError { kind, help: None, argument: Some(place) };
    if found.is_null() { error.with_help("give a default with `??`") } else { error }
}

fn text(arguments: &[Value], place: usize) -> Result<&str, CallError> {
    arguments[place].as_str().ok_or_else(|| wrong(place, "a string", &arguments[place]))
}

fn list(arguments: &[Value], place: usize) -> Result<&[Value], CallError> {
    arguments[place].as_list().ok_or_else(|| wrong(place, "an array", &arguments[place]))
}

fn whole(arguments: &[Value], place: usize) -> Result<i64, CallError> {
    arguments[place].whole().ok_or_else(|| wrong(place, "an int", &arguments[place]))
}
