//! `ccm secret check`

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::{Exit, Failure, Output, absolute, format_of, rule, show};
use crate::{
    document::{Diagnostic, Diagnostics, Excerpt, Source, Span},
    host::look,
    secrets::{Format, document, find_plain, is_age_file, normal, placeholders, secret_form},
};

/// Endings of files that can be documents.
pub(super) const ENDINGS: [&str; 5] = ["yaml", "yml", "json", "env", "ini"];

/// Endings of files that are searched for secrets besides documents.
const KEYS: [&str; 3] = ["pem", "key", "txt"];

/// How deep directories are searched.
pub(super) const DEEPEST: usize = 16;

/// Arguments of `ccm secret check`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret check secrets")]
pub(super) struct Arguments {
    /// Directory to check [default: the working directory]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let directory = arguments.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    if !look::is_directory(&directory) {
        return Err(Failure::new(format!("there is no directory {}", directory.display())));
    }
    let endings: Vec<&str> = ENDINGS.iter().chain(&KEYS).copied().collect();
    let (mut documents, mut findings) = (0, 0);
    for below in look::files_below(&absolute(&directory), &endings, DEEPEST) {
        let path = directory.join(below);
        let Ok(source) = super::source(&path) else { continue };
        if is_age_file(source.text.as_bytes()) {
            continue;
        }
        let is_document = path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known));
        let found = if is_document { check(&path, &source, &mut documents)? } else { raw(&source) };
        findings += found.errors().count();
        if !found.is_empty() {
            show(&source, found);
        }
    }
    if findings > 0 {
        crate::cli::failure::error(&format!("{findings} error{}", if findings == 1 { "" } else { "s" }));
        return Ok(Exit::Failed);
    }
    output.message(&format!("{documents} encrypted document{}", if documents == 1 { "" } else { "s" }));
    Ok(Exit::Success)
}

/// Checks a document.
fn check(path: &Path, source: &Source, documents: &mut usize) -> Result<Diagnostics, Failure> {
    let format: Format = format_of(path);
    let mut found = Vec::new();
    let Ok(parsed) = format.read(source) else { return Ok(raw(source)) };
    if parsed.diagnostics.has_errors() {
        return Ok(raw(source));
    }
    let encrypted = match document(&parsed.root, format, source) {
        Ok(Some(encrypted)) => encrypted,
        Ok(None) => {
            find_plain(&parsed.root, "", &mut found);
            return Ok(found.into());
        }
        Err(diagnostics) => return Ok(diagnostics),
    };
    *documents += 1;
    find_plain(&encrypted.root, "", &mut found);
    found.extend(recipients(path, &encrypted.metadata.recipients(), encrypted.metadata_span)?);
    if let Err(diagnostics) = placeholders(encrypted, source) {
        found.extend(diagnostics.iter().cloned());
    }
    Ok(found.into())
}

/// Compares the recipients of a document with those of its rule.
fn recipients(path: &Path, of_document: &[String], span: Span) -> Result<Option<Diagnostic>, Failure> {
    let Some(rule) = rule(path)? else { return Ok(None) };
    let wanted = rule.recipients();
    let found: Vec<String> = of_document.iter().map(|recipient| normal(recipient)).collect();
    let missing = wanted
        .iter()
        .filter(|recipient| !found.contains(recipient))
        .map(|recipient| format!("{recipient} is missing"));
    let extra = found
        .iter()
        .filter(|recipient| !wanted.contains(recipient))
        .map(|recipient| format!("{recipient} is not in the rule"));
    let differences: Vec<String> = missing.chain(extra).collect();
    Ok((!differences.is_empty()).then(|| {
        let message = format!("the recipients are not those of .sops.yaml: {}", differences.join(", "));
        Diagnostic::error("wrong-recipients", message).at(span).with_help("run `ccm secret rekey`")
    }))
}

/// Finds secrets in a text that is not a document.
fn raw(source: &Source) -> Diagnostics {
    let mut at = 0;
    let mut found = Vec::new();
    for line in source.text.split('\n') {
        if let Some(name) = secret_form(line) {
            let message = format!("this looks like {name}, in plain text");
            let mut problem =
                Diagnostic::error("plain-text-secret", message).at(Span::new(at, at + line.len()));
            problem.excerpt = Excerpt::Hidden;
            found.push(problem.with_help("encrypt the file with `ccm secret encrypt`"));
        }
        at += line.len() + 1;
    }
    found.into()
}
