//! Custom facts in directories and files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ccm_expr::{Map, Value};

use super::overlay::merge;
use crate::{
    document::{self, Diagnostic, Diagnostics, Review, Severity, Source, to_value},
    host::{
        files::{self, FileError, FileKind},
        input::{self, UnreadableInput},
        interrupt::Interrupt,
        process::ProcessError,
    },
};

/// Reason why a file provides no facts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FactsError {
    #[error(transparent)]
    Unsafe(#[from] FileError),
    #[error(transparent)]
    Unreadable(#[from] UnreadableInput),
    #[error("{} belongs to uid {owner}: only facts of root or of the user running ccm are read", path.display())]
    Owner { path: PathBuf, owner: u32 },
    #[error(
        "others may write to {} (mode {mode:04o}): take that away with `chmod go-w`, then its facts are read",
        path.display()
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error("{} ended with {reason}", path.display())]
    Failed { path: PathBuf, reason: String },
    #[error(transparent)]
    NotRun(#[from] ProcessError),
    #[error("{}", in_one_line(file, problems))]
    Invalid { file: Source, problems: Diagnostics },
}

impl FactsError {
    /// Returns the error as a warning, because the other facts are still valid.
    pub(super) fn into_review(self) -> Review {
        match self {
            Self::Invalid { file, problems } => {
                let mut problems = problems.into_iter().take(1).collect::<Vec<_>>();
                for problem in &mut problems {
                    problem.severity = Severity::Warning;
                    problem.message = format!("facts ignored: {}", problem.message);
                }
                Review { source: file, diagnostics: problems.into() }
            }
            other => {
                let warning = Diagnostic::warning("facts-ignored", format!("facts ignored: {other}"));
                let source = Source { name: "facts".to_owned(), text: String::new() };
                Review { source, diagnostics: warning.into() }
            }
        }
    }
}

/// Returns the facts in directories; later ones override earlier ones. Reports files that cannot be used.
pub(super) fn in_folders(folders: &[PathBuf], limit: u64, ignore: &mut dyn FnMut(FactsError)) -> Map {
    let mut facts = Map::new();
    for folder in folders {
        let paths = files_in(folder).unwrap_or_else(|error| {
            ignore(error.into());
            Vec::new()
        });
        for path in paths {
            match trusted(&path, limit) {
                Ok(found) => merge(&mut facts, found),
                Err(error) => ignore(error),
            }
        }
    }
    facts
}

/// Returns the facts in a file that the user named.
pub(crate) fn in_file(path: &Path, limit: u64, interrupt: &Interrupt) -> Result<Map, FactsError> {
    let bytes = input::read_argument(path, limit, interrupt)
        .map_err(|error| UnreadableInput { path: path.to_owned(), error })?;
    read(path, bytes)
}

/// Returns the files with facts in a directory, in the order in which they are read.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    if files::inspect(folder)?.is_none() {
        return Ok(Vec::new());
    }
    let names = files::names(folder)?;
    let there = |name: &str| names.iter().any(|there| there == name).then(|| folder.join(name));
    let mut paths: Vec<PathBuf> = ["facts.json", "facts.yaml"].into_iter().filter_map(there).collect();
    if let Some(dropped) = there("facts.d") {
        paths.extend(dropped_in(&dropped)?);
    }
    Ok(paths)
}

/// Returns the files in `facts.d` with names of fact files, sorted by name.
fn dropped_in(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut paths = sorted(folder)?;
    paths.retain(|path| holds_facts(path));
    Ok(paths)
}

/// Returns whether the name of a file is that of a fact file.
pub(super) fn holds_facts(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "json" || kind == "yaml")
}

/// Returns the entries of a directory, sorted by name; none if it does not exist.
pub(super) fn sorted(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    if files::inspect(folder)?.is_none_or(|entry| entry.kind != FileKind::Directory) {
        return Ok(Vec::new());
    }
    let mut paths: Vec<PathBuf> = files::names(folder)?.into_iter().map(|name| folder.join(name)).collect();
    paths.sort();
    Ok(paths)
}

/// Returns the facts in a file that only root or the current user can have written; none if it does not exist.
fn trusted(path: &Path, limit: u64) -> Result<Map, FactsError> {
    let Some((Some(file), entry)) = files::open_regular(path)? else { return Ok(Map::new()) };
    if !files::is_ours(entry.uid) {
        return Err(FactsError::Owner { path: path.to_owned(), owner: entry.uid });
    }
    if entry.mode & 0o022 != 0 {
        return Err(FactsError::Writable { path: path.to_owned(), mode: entry.mode });
    }
    let bytes =
        input::read_to_end(file, limit).map_err(|error| UnreadableInput { path: path.to_owned(), error })?;
    read(path, bytes)
}

pub(super) fn read(path: &Path, bytes: Vec<u8>) -> Result<Map, FactsError> {
    let name = path.display().to_string();
    let unread = |problem: Diagnostic| FactsError::Invalid {
        file: Source { name: name.clone(), text: String::new() },
        problems: problem.into(),
    };
    let source = Source::read(&name, bytes).map_err(unread)?;
    let root = match document::parse(&source) {
        Ok(root) => root,
        Err(problems) => return Err(FactsError::Invalid { file: source, problems }),
    };
    match to_value(&root) {
        Value::Null => Ok(Map::new()),
        Value::Map(facts) => Ok(Arc::unwrap_or_clone(facts)),
        _ => {
            let problem = Diagnostic::error(
                "facts-not-a-map",
                format!("facts have to be a map of names to values, and this is {}", root.kind()),
            );
            Err(FactsError::Invalid { file: source, problems: problem.at(root.span).into() })
        }
    }
}

/// Returns the first error with its position.
fn in_one_line(source: &Source, problems: &[Diagnostic]) -> String {
    let Some(first) = problems.first() else { return source.name.clone() };
    let more = match problems.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("{}{more}", first.located(source))
}
