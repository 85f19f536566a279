//! The changes that cargo-mutants lists.

use std::path::Path;

use serde::Deserialize;

/// One change, of one place.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Change {
    /// What cargo-mutants calls it: the place, and what is done there.
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) function: Option<Function>,
    pub(crate) genre: Genre,
    pub(crate) replacement: String,
    pub(crate) span: Span,
}

impl Change {
    /// The name without line and column, which move.
    pub(crate) fn name_without_place(&self) -> String {
        let mut parts = self.name.splitn(4, ':');
        let (file, what) = (parts.next().unwrap_or_default(), parts.nth(2).unwrap_or_default());
        format!("{file}:{what}")
    }

    /// Where it is, for those that learn from their neighbours.
    pub(crate) fn function_name(&self) -> &str {
        self.function.as_ref().map_or("", |function| &function.function_name)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Function {
    pub(crate) function_name: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(crate) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: Place,
}

/// Both count from 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Reads what `cargo mutants --list --json` printed.
pub(crate) fn read(path: &Path) -> Vec<Change> {
    let text = std::fs::read(path).expect("the list of cargo-mutants");
    serde_json::from_slice(&text).expect("the form of cargo-mutants")
}
