//! A compiled expression.

use crate::environment::{CallError, Environment};
use crate::error::{Error, ErrorKind, Result};
use crate::evaluate::Evaluation;
use crate::parser::{self, ConstantCall, Parsed};
use crate::suggest::did_you_mean;
use crate::value::Value;
use crate::{builtins, parser::Reference};

/// An expression, read once and evaluated as often as needed.
#[derive(Debug)]
pub struct Program {
    parsed: Parsed,
}

impl Program {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where.
    pub fn compile(text: &str) -> Result<Self> {
        parser::parse(text).map(|parsed| Self { parsed })
    }

    /// The names of the host's variables that the expression uses.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parsed.variables.iter().map(|reference| reference.name.as_str())
    }

    /// The names of the host's functions that the expression calls.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.parsed.functions.iter().map(|reference| reference.name.as_str())
    }

    /// All names that the environment does not know. Evaluates nothing.
    #[must_use]
    pub fn check(&self, environment: &dyn Environment) -> Vec<Error> {
        let variables = self.parsed.variables.iter();
        let mut errors: Vec<_> = variables
            .filter(|reference| environment.variable(&reference.name).is_none())
            .map(|reference| unknown_variable(reference, environment))
            .collect();
        errors.extend(self.unknown_functions(environment));
        if errors.is_empty() {
            let wrong = |call: &ConstantCall| {
                let CallError { kind, help, .. } = environment.check_call(&call.name, &call.argument)?;
                Some(Error { help, ..Error::new(kind, call.span.clone()) })
            };
            errors.extend(self.parsed.constant_calls.iter().filter_map(wrong));
        }
        errors
    }

    /// The value of the expression.
    ///
    /// # Errors
    ///
    /// The first name that the environment does not know, or what went wrong while evaluating, and where.
    pub fn evaluate(&self, environment: &dyn Environment) -> Result<Value> {
        self.evaluate_at(environment, 0)
    }

    /// As [`Program::evaluate`], for an expression that begins at a place of a larger text: what the environment takes
    /// note of is placed there. Errors are not.
    ///
    /// # Errors
    ///
    /// As for [`Program::evaluate`].
    pub fn evaluate_at(&self, environment: &dyn Environment, offset: usize) -> Result<Value> {
        let mut globals = Vec::with_capacity(self.parsed.variables.len());
        for reference in &self.parsed.variables {
            let value = environment.variable(&reference.name);
            globals.push(value.ok_or_else(|| unknown_variable(reference, environment))?);
        }
        if let Some(error) = self.unknown_functions(environment).next() {
            return Err(error);
        }
        let mut evaluation =
            Evaluation::new(&globals, &self.parsed.variables, &self.parsed.functions, environment);
        let value = evaluation.value(&self.parsed.root)?;
        if self.parsed.builds {
            evaluation.affordable(&value, &self.parsed.root)?;
        }
        for mut doubt in evaluation.doubts {
            doubt.span = doubt.span.start + offset..doubt.span.end + offset;
            environment.note(doubt);
        }
        Ok(value)
    }

    fn unknown_functions<'a>(&'a self, environment: &'a dyn Environment) -> impl Iterator<Item = Error> + 'a {
        let known = environment.function_names();
        let missing = move |reference: &&Reference| !known.iter().any(|name| *name == reference.name);
        self.parsed.functions.iter().filter(missing).map(move |reference| {
            let names =
                known.iter().map(|name| (*name).to_owned()).chain(builtins::names().map(str::to_owned));
            let kind = ErrorKind::UnknownFunction { name: reference.name.clone() };
            let help = did_you_mean(&reference.name, names);
            Error { help, ..Error::new(kind, reference.span.clone()) }
        })
    }
}

fn unknown_variable(reference: &Reference, environment: &dyn Environment) -> Error {
    let names = environment.variable_names();
    let help = did_you_mean(&reference.name, &names).or_else(|| listed(&names));
    let kind = ErrorKind::UnknownVariable { name: reference.name.clone() };
    Error { help, ..Error::new(kind, reference.span.clone()) }
}

/// A short list of what there is, when it is short.
fn listed(names: &[String]) -> Option<String> {
    let few = !names.is_empty() && names.len() <= 12;
    few.then(|| format!("the variables are {}; text needs quotes", names.join(", ")))
}
