//! Texts with expressions in them.

mod scan;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::budget::{Budget, Exhausted};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::program::Program;
use crate::suggest::did_you_mean;
use crate::value::{JsonStyle, NoJson, Value, json};

pub use scan::{escape, has_template, only_expression, unclosed_openers};

/// The longest text that a template may come to, in bytes.
pub(crate) const LONGEST: usize = 64 << 20;

/// A text that a template evaluates to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text itself, with the text of secret values.
    pub text: String,
    /// Whether a part of the text is secret.
    pub is_secret: bool,
}

impl From<Text> for Value {
    fn from(Text { text, is_secret }: Text) -> Self {
        if is_secret { Self::secret(text) } else { text.into() }
    }
}

/// A text with expressions in `{{ }}` and `${ }`, read once and evaluated as often as needed.
///
/// Values are put in as they are: text that came out of an expression is never looked at again.
#[derive(Debug)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Expression(Expression),
}

#[derive(Debug)]
struct Expression {
    program: Program,
    source: String,
    /// Where it stands in the template, with its brackets.
    whole: Range<usize>,
    /// Where the source begins.
    offset: usize,
    /// How its opener is written when it is meant as text.
    escape: &'static str,
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// What is wrong with the first expression that cannot be read, and where in the text.
    pub fn parse(text: &str) -> Result<Self> {
        let part = |part| match part {
            scan::Part::Text(text) => Ok(Part::Text(text)),
            scan::Part::Expression { whole, inner } => expression(text, whole, inner).map(Part::Expression),
        };
        Ok(Self { parts: scan::parts(text)?.into_iter().map(part).collect::<Result<_>>()? })
    }

    /// The text with other expressions: `other` is given each and returns what takes its place, unless it stays.
    ///
    /// # Errors
    ///
    /// A text with too many openers that never close.
    pub fn rewrite(text: &str, other: impl Fn(&str) -> Option<String>) -> Result<String> {
        let mut rewritten = String::with_capacity(text.len());
        let mut end = 0;
        for part in scan::parts(text)? {
            let scan::Part::Expression { whole, inner } = part else { continue };
            rewritten.push_str(&text[end..whole.start]);
            match other(&text[inner]) {
                Some(expression) => {
                    rewritten.push_str("${ ");
                    rewritten.push_str(&expression);
                    rewritten.push_str(" }");
                }
                None => rewritten.push_str(&text[whole.clone()]),
            }
            end = whole.end;
        }
        rewritten.push_str(&text[end..]);
        Ok(rewritten)
    }

    /// All names that the environment does not know. Evaluates nothing.
    #[must_use]
    pub fn check(&self, environment: &dyn Environment) -> Vec<Error> {
        let placed = |expression: &Expression| {
            let errors = expression.program.check(environment);
            errors.into_iter().map(|error| expression.placed(error, environment)).collect::<Vec<_>>()
        };
        self.expressions().flat_map(placed).collect()
    }

    /// The value: that of the expression if the text is exactly one, otherwise text.
    ///
    /// # Errors
    ///
    /// What went wrong in the first expression that has no value, and where in the text.
    pub fn evaluate(&self, environment: &dyn Environment) -> Result<Value> {
        match self.parts.as_slice() {
            [Part::Expression(only)] => only.evaluate(environment),
            _ => self.render(environment).map(Value::from),
        }
    }

    /// As [`Template::evaluate`], for whom `nil` will not do.
    ///
    /// # Errors
    ///
    /// As for [`Template::evaluate`], and the expression that has no value.
    pub fn require(&self, environment: &dyn Environment) -> Result<Value> {
        match (self.evaluate(environment)?, self.parts.as_slice()) {
            (Value::Null, [Part::Expression(only)]) => Err(only.missing()),
            (value, _) => Ok(value),
        }
    }

    /// The text, also if it is exactly one expression. Lists and maps become JSON.
    ///
    /// # Errors
    ///
    /// As for [`Template::evaluate`]; `nil` has no text.
    pub fn render(&self, environment: &dyn Environment) -> Result<Text> {
        self.render_with(environment, |value| value)
    }

    /// As [`Template::render`], but what each expression came to goes through `settle` first.
    ///
    /// # Errors
    ///
    /// The first that `settle` gives, or a value that has no text.
    pub fn render_with(
        &self,
        environment: &dyn Environment,
        mut settle: impl FnMut(Result<Value>) -> Result<Value>,
    ) -> Result<Text> {
        let mut out = Text { text: String::new(), is_secret: false };
        let mut budget = Budget::new(environment.memory());
        for part in &self.parts {
            match part {
                Part::Text(text) => out.text.push_str(text),
                Part::Expression(expression) => {
                    expression.write(&settle(expression.evaluate(environment))?, &mut out, &mut budget)?;
                }
            }
        }
        Ok(out)
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Expression(expression) = part { Some(expression) } else { None })
    }
}

fn expression(text: &str, whole: Range<usize>, inner: Range<usize>) -> Result<Expression> {
    let escape = if text[whole.start..].starts_with('$') { "$${" } else { "{{{{" };
    let source = &text[inner.clone()];
    let program = Program::compile(source).map_err(|error| {
        let error = error.shifted(inner.start);
        if error.help.is_some() { error } else { error.with_help(escaped(escape)) }
    })?;
    Ok(Expression { program, source: source.trim().to_owned(), whole, offset: inner.start, escape })
}

fn escaped(escape: &str) -> String {
    format!("if this is meant as text and not as an expression, begin it with `{escape}`")
}

impl Expression {
    fn evaluate(&self, environment: &dyn Environment) -> Result<Value> {
        match self.program.evaluate_at(environment, self.offset) {
            // In the language a division by zero is infinite; nobody means to write that into a text.
            Ok(value) if matches!(value.reveal(), Value::Float(number) if !number.is_finite()) => {
                Err(self.infinite("is not a finite number"))
            }
            Ok(value) => Ok(value),
            Err(error) => Err(self.placed(error, environment)),
        }
    }

    fn missing(&self) -> Error {
        Error::new(ErrorKind::NoValue { expression: self.source.clone() }, self.whole.clone())
            .with_help("give a default with `??`, for example `?? \"\"`")
    }

    fn infinite(&self, fault: &str) -> Error {
        Error::new(ErrorKind::Value(format!("`{}` {fault}", self.source)), self.whole.clone())
            .with_help("is something divided by zero?")
    }

    /// Adds the text of what the expression came to.
    fn write(&self, value: &Value, out: &mut Text, budget: &mut Budget) -> Result<()> {
        let room = LONGEST.saturating_sub(out.text.len());
        let too_long = || Error::new(Exhausted::Text.into(), self.whole.clone());
        out.is_secret |= value.is_secret();
        let text = match value.reveal() {
            Value::Null => return Err(self.missing()),
            value @ (Value::List(_) | Value::Map(_) | Value::Object(_)) => {
                let json = json(value, JsonStyle::Compact, room).map_err(|problem| match problem {
                    NoJson::TooLong => too_long(),
                    NoJson::NotFinite => self.infinite("holds a number that is not finite"),
                })?;
                out.is_secret |= json.is_secret;
                json.text
            }
            other => other.to_text(),
        };
        if text.len() > room {
            return Err(too_long());
        }
        budget.hold(text.len() as u64).map_err(|problem| Error::new(problem.into(), self.whole.clone()))?;
        out.text.push_str(&text);
        Ok(())
    }

    /// An error of the expression as one of the template.
    fn placed(&self, error: Error, environment: &dyn Environment) -> Error {
        let error = error.shifted(self.offset);
        // Shell variables look like expressions: `${HOME}`.
        let is_shell = match &*error.kind {
            ErrorKind::UnknownVariable { name } => {
                self.escape == "$${"
                    && self.source == *name
                    && did_you_mean(name, environment.variable_names()).is_none()
            }
            _ => false,
        };
        if is_shell {
            return error
                .with_help(format!("write `$${{{}}}` for the text `${{{}}}`", self.source, self.source));
        }
        error
    }
}
