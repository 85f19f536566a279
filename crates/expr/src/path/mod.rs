//! GJSON paths, evaluated over values instead of text.
//!
//! | written | finds |
//! |---|---|
//! | `a.b.0` | members by name and elements by place |
//! | `a\.b`, `a*`, `a?` | a name with a dot; the first name that matches |
//! | `list.#`, `list.#.a` | how many elements; the `a` of all that have one |
//! | `list.#(a=="x").b`, `list.#(a>1)#.b` | the first element for which it holds; all of them |
//! | `x\|y` | like a dot, but after `#` and `#()#` it goes on with the list instead of its elements |
//! | `@reverse`, `@flatten:{"deep":true}`, ... | what a modifier makes of the value |
//! | `{a,"n":b.c}`, `[a,b]` | a new map or list |
//! | `!"text"`, `!1` | that value |

mod evaluate;
mod missing;
mod modifiers;
mod parse;
mod query;
#[cfg(test)]
mod tests;
mod wildcard;

use std::ops::Range;

use crate::budget::{Budget, Memory};
use crate::error::{Error, ErrorKind, Result};
use crate::value::Value;

use modifiers::Modifier;
use query::Query;
use wildcard::Wildcard;

pub use missing::Missing;

/// A path into values, read once and followed as often as needed.
#[derive(Debug)]
pub struct Path {
    text: String,
    /// What stands between the `|`.
    stages: Vec<Vec<Segment>>,
    /// Whether it makes lists or maps, which can share parts many times over.
    builds: bool,
}

#[derive(Debug)]
struct Segment {
    kind: Kind,
    span: Range<usize>,
}

#[derive(Debug)]
enum Kind {
    /// A member by name, or an element by its place.
    Name {
        name: String,
        place: Option<usize>,
    },
    Wildcard(Wildcard),
    /// `#`: the number of elements, or what follows of each.
    Elements,
    First(Query),
    All(Query),
    Modifier(Modifier),
    List(Vec<Path>),
    Map(Vec<(String, Path)>),
    Literal(Value),
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where.
    pub fn parse(text: &str) -> Result<Self> {
        parse::parse(text)
    }

    /// What the path leads to, or nothing when it leads nowhere.
    ///
    /// # Errors
    ///
    /// When the path would make more than the limits allow.
    pub fn find(&self, root: &Value) -> Result<Option<Value>> {
        let mut budget = Budget::new(Memory::default());
        evaluate::follow(self, root, &mut budget)
            .and_then(|found| {
                if let (true, Some(value)) = (self.builds, &found) {
                    budget.walk(value)?;
                }
                Ok(found)
            })
            .map_err(|problem| Error::new(ErrorKind::Limit(problem), 0..self.text.len()))
    }

    /// What the path leads to.
    ///
    /// # Errors
    ///
    /// Which part of the path is missing, and what is there instead.
    pub fn require(&self, root: &Value) -> Result<Value> {
        match self.find(root)? {
            Some(value) => Ok(value),
            None => Err(self.missing(root).map_or_else(
                || {
                    let expression = self.text.clone();
                    Error::new(ErrorKind::NoValue { expression }, 0..self.text.len())
                },
                |missing| missing.to_error(&self.text),
            )),
        }
    }

    /// The path as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
