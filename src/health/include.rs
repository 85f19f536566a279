//! Rules in files, and included files.

use std::path::{Path, PathBuf};

use crate::{
    checks::{CheckKind, HealthCheck, Item, Rule, Rules},
    document::{Colour, Diagnostic, Diagnostics, NodeError, Source, Span, from_node, parse, render},
    host::{files, input},
};

/// Maximum size of a file with rules.
const LARGEST: u64 = 16 << 20;

/// Maximum depth of includes.
const DEEPEST: usize = 50;

/// Reason why rules in a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IncludeError {
    #[error("cannot read rules from {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}", rendered(document, diagnostics))]
    Invalid { document: Box<Source>, diagnostics: Diagnostics },
    #[error("no file is named by \"{pattern}\" in {}", folder.display())]
    NoMatch { pattern: String, folder: PathBuf },
    #[error("rules include each other: {}", chain(.0))]
    Cycle(Vec<PathBuf>),
    #[error("rules include each other more than {DEEPEST} files deep: {}", chain(.0))]
    TooDeep(Vec<PathBuf>),
}

fn rendered(source: &Source, diagnostics: &Diagnostics) -> String {
    render(diagnostics, source, Colour::Off).trim_end().to_owned()
}

fn chain(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" -> ")
}

/// Reads rules with all that they include. Rejects a path that an untrusted user could redirect.
pub(super) fn read_rules(path: &Path) -> Result<Rules, IncludeError> {
    let mut rules = Rules::default();
    rules.merge(read(path, &mut Vec::new())?);
    Ok(rules)
}

/// Checks the rule files of a check. A missing file is not an error here.
pub(crate) fn included_rules(check: &HealthCheck, folder: &Path) -> Result<(), IncludeError> {
    match check.kind() {
        Ok(CheckKind::Rules(rules)) => resolve(&rules, folder).map(drop),
        Ok(CheckKind::File(path)) => read_rules(&folder.join(path)).map(drop),
        Ok(CheckKind::Command(_)) | Err(_) => Ok(()),
    }
}

/// Reads the rules of a document with all that they include, relative to a directory.
pub(crate) fn rules_of(source: &Source, folder: &Path) -> Result<Rules, IncludeError> {
    let own = document_rules(source)?;
    resolve(&own, folder)
}

/// Returns the rules with their includes in place.
pub(super) fn resolve(rules: &Rules, folder: &Path) -> Result<Rules, IncludeError> {
    let mut resolved = Rules::default();
    resolved.merge(flat(rules, folder, &mut Vec::new())?);
    Ok(resolved)
}

fn flat(rules: &Rules, folder: &Path, within: &mut Vec<PathBuf>) -> Result<Vec<Rule>, IncludeError> {
    let mut all = Vec::new();
    for item in &rules.items {
        match item {
            Item::Rule(rule) => all.push(rule.as_ref().clone()),
            Item::Include(pattern) => {
                for file in matching(pattern, folder)? {
                    all.extend(read(&file, within)?);
                }
            }
        }
    }
    Ok(all)
}

fn read(path: &Path, within: &mut Vec<PathBuf>) -> Result<Vec<Rule>, IncludeError> {
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let with_it = || within.iter().cloned().chain([path.clone()]).collect();
    if within.contains(path) {
        return Err(IncludeError::Cycle(with_it()));
    }
    if within.len() + 1 >= DEEPEST {
        return Err(IncludeError::TooDeep(with_it()));
    }
    let unreadable = |reason: String| IncludeError::Unreadable { path: path.clone(), reason };
    let opened = files::open_followed(path).map_err(|error| unreadable(error.problem.to_string()))?;
    let (file, _) = opened.ok_or_else(|| unreadable("it does not exist".to_owned()))?;
    let bytes = input::read_to_end(file, LARGEST).map_err(|error| unreadable(error.to_string()))?;
    let rules = parsed(path, bytes)?;
    within.push(path.clone());
    let folder = path.parent().unwrap_or(path);
    let all = flat(&rules, folder, within);
    within.pop();
    all
}

/// Parses rules from a document.
fn parsed(path: &Path, bytes: Vec<u8>) -> Result<Rules, IncludeError> {
    let name = path.display().to_string();
    let source = Source::read(name.clone(), bytes).map_err(|problem| IncludeError::Invalid {
        document: Box::new(Source { name, text: String::new() }),
        diagnostics: problem.into(),
    })?;
    document_rules(&source)
}

fn document_rules(source: &Source) -> Result<Rules, IncludeError> {
    let invalid = |diagnostics| IncludeError::Invalid { document: Box::new(source.clone()), diagnostics };
    if let Some(at) = source.text.find("{{") {
        let problem = Diagnostic::error("foreign-template", "templates of Go are not expanded here")
            .at(Span::new(at, at + 2))
            .with_help("write the rules into a manifest, where `${ }` is expanded");
        return Err(invalid(problem.into()));
    }
    let node = parse(source).map_err(invalid)?;
    let rules: Result<Rules, NodeError> = from_node(&node);
    rules.map_err(|error| invalid(Diagnostics::from(Diagnostic::from(error))))
}

/// Returns the files that match a name or a pattern, sorted by name.
fn matching(pattern: &str, folder: &Path) -> Result<Vec<PathBuf>, IncludeError> {
    if !pattern.contains(['*', '?', '[']) {
        return Ok(vec![folder.join(pattern)]);
    }
    let whole = folder.join(pattern);
    let no_match = || IncludeError::NoMatch { pattern: pattern.to_owned(), folder: folder.to_owned() };
    let (parent, last) = whole.parent().zip(whole.file_name()).ok_or_else(no_match)?;
    let last = last.to_string_lossy();
    let regex = glob(&last).ok_or_else(no_match)?;
    let names = files::names(parent).map_err(|error| IncludeError::Unreadable {
        path: parent.to_owned(),
        reason: error.problem.to_string(),
    })?;
    let mut found: Vec<PathBuf> = names
        .into_iter()
        .filter(|name| {
            let name = name.to_string_lossy();
            regex.is_match(&name) && (last.starts_with('.') || !name.starts_with('.'))
        })
        .map(|name| parent.join(name))
        .collect();
    found.sort();
    if found.is_empty() { Err(no_match()) } else { Ok(found) }
}

fn glob(pattern: &str) -> Option<regex::Regex> {
    let escaped = regex::escape(pattern)
        .replace(r"\*", ".*")
        .replace(r"\?", ".")
        .replace(r"\[", "[")
        .replace(r"\]", "]");
    regex::Regex::new(&format!("^(?:{escaped})$")).ok()
}
