//! What the host lends to expressions: variables, functions and a clock.

use std::ops::Range;

use jiff::Timestamp;

use crate::ast::Node;
use crate::budget::Memory;
use crate::error::{Error, ErrorKind};
use crate::value::{Map, Value};

/// The names that expressions can use besides the language's own.
///
/// Names are checked before anything is evaluated, so a variable in a branch that is never taken has to exist
/// as well. The language's own functions cannot be replaced.
pub trait Environment {
    /// The value of a variable, or `None` when there is no such variable.
    fn variable(&self, name: &str) -> Option<Value>;

    /// The names of all variables.
    fn variable_names(&self) -> Vec<String>;

    /// The names of all functions.
    fn function_names(&self) -> &[&str] {
        &[]
    }

    /// Calls one of the functions in [`Environment::function_names`].
    ///
    /// # Errors
    ///
    /// What went wrong and what to do about it; the caller knows where in the text the call is.
    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Value, CallError> {
        let _ = arguments;
        Err(CallError::new(format!("unknown function `{name}`")))
    }

    /// Calls a method of a value, if the host gives values such a method.
    ///
    /// # Errors
    ///
    /// What went wrong and what to do about it.
    fn method(&self, value: &Value, name: &str, arguments: &[Value]) -> Option<Result<Value, CallError>> {
        let _ = (value, name, arguments);
        None
    }

    /// What is wrong with a call of one of the functions, as far as its first argument alone shows, which is a constant.
    /// Asked before anything is evaluated.
    fn check_call(&self, name: &str, argument: &Value) -> Option<CallError> {
        let _ = (name, argument);
        None
    }

    /// The memory that evaluations share.
    fn memory(&self) -> Memory {
        Memory::default()
    }

    /// Takes note of something in an expression that was probably not meant.
    fn note(&self, doubt: Doubt) {
        let _ = doubt;
    }

    /// The present moment, for `now()`.
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Something that an expression does and that was probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// What it does.
    pub kind: DoubtKind,
    /// The file, line and column where it stands, if that is in a template that was called.
    pub place: Option<String>,
    /// Where in the text it stands.
    pub span: Range<usize>,
}

/// What was probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoubtKind {
    /// A member of one of the host's variables is read that does not exist, and nothing says that it may be missing.
    MissingMember {
        /// The variable and the members that lead there, as they are written: `Data.port`.
        path: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// A number is compared with a text, which is never the same, though it reads the same.
    MixedComparison {
        /// The number as it is written.
        number: String,
        /// The text.
        text: String,
    },
    /// A member of one of the host's variables is compared with a constant that differs from it only by case.
    CaseComparison {
        /// The variable and the members that lead to the value, as they are written.
        path: String,
        /// The value.
        value: String,
        /// The constant.
        constant: String,
    },
}

/// What a function of the host is called with: a list of values without marks of secrets.
pub struct Arguments<'a> {
    pub(crate) values: &'a [Value],
    pub(crate) nodes: &'a [Node],
    pub(crate) secrets: &'a [usize],
}

impl Arguments<'_> {
    /// Whether an argument is a constant of the expression, or a choice between such: whoever wrote the expression
    /// wrote this, and nothing from elsewhere is in it.
    #[must_use]
    pub fn is_literal(&self, place: usize) -> bool {
        self.nodes.get(place).is_some_and(Node::is_literal)
    }

    /// Returns whether an argument is secret. The values of arguments have no mark, and the result gets it.
    #[must_use]
    pub fn is_secret(&self, place: usize) -> bool {
        self.secrets.contains(&place)
    }
}

impl std::ops::Deref for Arguments<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.values
    }
}

/// Why a function of the host could not give a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// What to do about it.
    pub help: Option<String>,
    /// The argument that is to blame, counted from zero, when it is one argument alone.
    pub argument: Option<usize>,
}

impl CallError {
    /// A problem with the call as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Value(message.into()), help: None, argument: None }
    }

    /// A limit of the host that the call would go past.
    pub fn limit(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::HostLimit(message.into()), help: None, argument: None }
    }

    /// A problem with one argument, counted from zero.
    pub fn at(argument: usize, message: impl Into<String>) -> Self {
        Self { argument: Some(argument), ..Self::new(message) }
    }

    /// The same problem with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The place in the inner text is dropped: the caller's place is that of the call.
impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self { kind: *error.kind, help: error.help, argument: None }
    }
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// A map is an environment of its entries, without functions.
impl Environment for Map {
    fn variable(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }

    fn variable_names(&self) -> Vec<String> {
        self.keys().map(|name| name.as_ref().to_owned()).collect()
    }
}
