//! `edit`: steps that turn the old text of a file into the new one, for files that are only partly ours.
//!
//! Every step is a pure function from text to text, and applied to its own result it changes nothing: otherwise no
//! second run would ever be stable. [`apply`] makes sure of that before anything is written.

mod block;
mod ini;
mod json;
mod line;
mod lines;
mod replace;
mod step;
#[cfg(test)]
mod tests;
mod toml;

use std::path::Path;

use self::step::Operation;
pub(crate) use self::step::Step;
use crate::resource::Error;

/// Why a step cannot be applied to a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Reason {
    #[error("the pattern `{pattern}` would match its own result again")]
    Restless { pattern: String },
    #[error("applied to its own result it would change the file again")]
    NotStable,
    #[error("a later step undoes it, so that the file would change in every run")]
    Undone,
    #[error("line {line} begins a block that has no `{end}`")]
    BlockNotClosed { line: usize, end: String },
    #[error("line {line} ends a block that has no `{begin}`")]
    BlockNotOpened { line: usize, begin: String },
    #[error("the block stands in the file more than once, again at line {line}")]
    BlockTwice { line: usize },
    #[error("the file is not {format}: {error}")]
    NotParsed { format: &'static str, error: String },
    #[error("the key `{key}` stands in one object more than once, and only one of them can be kept")]
    KeyTwice { key: String },
    #[error("`{key}` is a value in the file, not a table")]
    NotATable { key: String },
}

/// A step that cannot be applied, counted from one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {number} (`{name}`): {reason}")]
pub(super) struct EditError {
    pub(super) number: usize,
    pub(super) name: &'static str,
    pub(super) reason: Reason,
}

/// Returns the text that the steps make of `old`. `path` tells how comments are written in the file.
pub(super) fn apply(steps: &[Step], old: &str, path: &Path) -> Result<String, EditError> {
    let operations: Vec<Operation> = steps.iter().filter_map(|step| step.operation().ok()).collect();
    let mut text = old.to_owned();
    for (at, operation) in operations.iter().enumerate() {
        let failed = |reason| EditError { number: at + 1, name: operation.name(), reason };
        let new = operation.apply(&text, path).map_err(failed)?;
        if operation.apply(&new, path).map_err(failed)? != new {
            return Err(failed(operation.unstable()));
        }
        text = new;
    }
    // Each step is content with its own result, but a later one may have changed it.
    for (at, operation) in operations.iter().enumerate() {
        let failed = |reason| EditError { number: at + 1, name: operation.name(), reason };
        if operation.apply(&text, path).map_err(failed)? != text {
            return Err(failed(Reason::Undone));
        }
    }
    Ok(text)
}

/// Returns doubts about the steps that change a text.
pub(super) fn doubts(steps: &[Step], old: &str, path: &Path) -> Vec<String> {
    let mut text = old.to_owned();
    let mut doubts = Vec::new();
    for (at, operation) in steps.iter().filter_map(|step| step.operation().ok()).enumerate() {
        let Ok(new) = operation.apply(&text, path) else { break };
        if new != text {
            doubts
                .extend(operation.doubts(&text).into_iter().map(|doubt| format!("step {}: {doubt}", at + 1)));
        }
        text = new;
    }
    doubts
}

/// Returns everything that is wrong with how the steps are written.
pub(super) fn problems(steps: &[Step]) -> Vec<Error> {
    let wrong = steps.iter().enumerate().filter_map(|(at, step)| Some((at + 1, step.operation().err()?)));
    wrong.map(|(number, reason)| Error::new(format!("step {number}: {reason}")).on("edit")).collect()
}
