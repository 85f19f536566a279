//! The Expr expression language, paths into values, and the templates that hold expressions.
//!
//! - [`Program`] is one expression, as <https://expr-lang.org> defines them: read once, evaluated often.
//! - [`Template`] is a text with expressions in `{{ }}` and `${ }`.
//! - [`Path`] is a GJSON path, evaluated over values instead of text.
//! - [`Value`] is what all of them work with; an [`Environment`] lends them variables and functions.
//!
//! ```
//! use ccm_expr::{Map, Path, Program, Template, Value};
//!
//! let data: Value = serde_json::from_str(r#"{"port": 8080, "hosts": [{"name": "a"}, {"name": "b"}]}"#)?;
//! let environment = Map::from_iter([("Data".into(), data.clone())]);
//!
//! let program = Program::compile("Data.port + 1")?;
//! assert_eq!(program.evaluate(&environment)?, Value::Int(8081));
//!
//! let template = Template::parse("listen ${ Data.port };")?;
//! assert_eq!(template.render(&environment)?.text, "listen 8080;");
//!
//! let path = Path::parse("hosts.#.name")?;
//! assert_eq!(path.require(&data)?.to_string(), r#"["a","b"]"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where the definition leaves a choice, or Go's types would show through:
//!
//! - whole numbers have 64 bits, and arithmetic that leaves that range is an error; larger ones that come from
//!   elsewhere are text, so that no digit is lost;
//! - text is Unicode, and `len`, indexes, slices and `indexOf` count characters;
//! - maps have text for keys and keep the order they were written in;
//! - numbers with a fraction print without one when it is zero: `4 / 2` is `2` as text;
//! - a number of the host may keep the text it was written as (`1.10`) until somebody calculates with it;
//! - lists and maps are JSON as text;
//! - a member that is missing is nil, an element that is missing is an error, and so is a member of nil
//!   without `?.`;
//! - `nil` contains nothing, matches nothing and is in nothing;
//! - months and days of the week are numbers, with their names as text;
//! - a number that is not finite, wherever it stands in a value, has no JSON and no place in a template.
//!
//! Nothing here panics, recurses or allocates without bound, whatever the text: nesting, steps and sizes have
//! limits, and going past one is an [`Error`] like any other.

#![forbid(unsafe_code)]

mod ast;
mod budget;
mod builtins;
mod dates;
mod environment;
mod error;
mod evaluate;
mod lexer;
mod parser;
mod path;
mod pattern;
mod program;
mod suggest;
mod template;
mod value;

pub use budget::{Exhausted, Memory};
pub use builtins::names as function_names;
pub use environment::{Arguments, CallError, Doubt, DoubtKind, Environment};
pub use error::{Error, ErrorKind};
pub use path::{Missing, Path};
pub use program::Program;
pub use suggest::closest;
pub use template::{Template, Text, escape, has_template, only_expression, unclosed_openers};
pub use value::{MASK, Map, Named, Object, Secret, Value, Written};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
