//! From a path to the reader of its format.

use std::path::Path;

use super::{Loader, error::InventoryError, graph::Graph, ini, script, short_form, yaml};
use crate::{
    document::{Diagnostic, Diagnostics, Node, Source},
    host::input::{self, InputError, Kind},
    secrets::{self, Format},
};

/// Endings of files in a directory that are not inventories.
const IGNORED: [&str; 12] =
    [".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry"];

/// Adds an inventory to those that were read before it.
pub(super) fn read(
    path: &Path,
    loader: &Loader,
    graph: &mut Graph,
    warnings: &mut Vec<String>,
) -> Result<(), InventoryError> {
    match input::kind(path) {
        Some(Kind::Directory) => {
            let names = input::names_in(path).map_err(|error| InventoryError::unreadable(path, error))?;
            for name in names.iter().filter(|name| is_inventory(name)) {
                read(&path.join(name), loader, graph, warnings)?;
            }
            Ok(())
        }
        Some(Kind::Program) => script::run(path, loader, graph),
        _ => {
            let bytes = read_file(path, loader)?;
            parse(path, bytes, loader, graph, warnings)
        }
    }
}

fn is_inventory(name: &str) -> bool {
    !name.starts_with('.')
        && !["host_vars", "group_vars", "vars_plugins"].contains(&name)
        && !IGNORED.iter().any(|ending| name.ends_with(ending))
}

pub(super) fn read_file(path: &Path, loader: &Loader) -> Result<Vec<u8>, InventoryError> {
    let read = input::read_argument(path, loader.limits.document, loader.interrupt);
    let bytes = read.map_err(|error: InputError| InventoryError::unreadable(path, error))?;
    if bytes.starts_with(b"$ANSIBLE_VAULT;") {
        return Err(InventoryError::Vaulted { path: path.to_owned(), name: "the file".to_owned() });
    }
    Ok(bytes)
}

fn parse(
    path: &Path,
    bytes: Vec<u8>,
    loader: &Loader,
    graph: &mut Graph,
    warnings: &mut Vec<String>,
) -> Result<(), InventoryError> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending == Some("toml") {
        let message = "TOML inventories are not supported".to_owned();
        let help = "`ansible-inventory -i FILE --list --yaml > hosts.yaml` converts it";
        return Err(InventoryError::Unsupported { path: path.to_owned(), message, help });
    }
    let source = Source::read(path.display().to_string(), bytes)
        .map_err(|error| InventoryError::unreadable(path, error.message))?;
    if !matches!(ending, None | Some("yaml" | "yml" | "json")) {
        return ini::read(path, &source.text, graph);
    }
    let root = match document(&source, loader) {
        Ok(root) => root,
        // Without an ending, a file is YAML only if it can be read as YAML.
        Err(_) if ending.is_none() && !looks_like_yaml(&source.text) => {
            return ini::read(path, &source.text, graph);
        }
        Err(diagnostics) => return Err(vaulted(path, &source, diagnostics)),
    };
    let Some(groups) = root.as_map() else {
        if ending.is_none() && !looks_like_yaml(&source.text) {
            return ini::read(path, &source.text, graph);
        }
        let message = format!("an inventory is a map of groups, not {}", root.kind());
        let diagnostic = Diagnostic::error("invalid-inventory", message).at(root.span);
        return Err(InventoryError::document(&source, diagnostic));
    };
    if let Some(plugin) = root.lookup("plugin") {
        let message = format!("inventory plug-in `{}` is not supported", plugin.as_str().unwrap_or_default());
        let help = "save its result: `ansible-inventory -i FILE --list > hosts.json`";
        return Err(InventoryError::Unsupported { path: path.to_owned(), message, help });
    }
    let is_list =
        if ending == Some("json") { script::is_output(&root) } else { root.lookup("_meta").is_some() };
    if is_list {
        return script::read(path, &root, graph, |_| Ok(None));
    }
    if short_form::is_short(groups) {
        return short_form::read(&source, groups, graph);
    }
    yaml::Reader { source: &source, graph, warnings }.read(groups)
}

/// Reads a YAML or JSON document, and decrypts it if it is encrypted.
pub(super) fn document(source: &Source, loader: &Loader) -> Result<Node, Diagnostics> {
    let parsed = secrets::read(source, Format::Yaml, loader.keyring)?;
    if parsed.diagnostics.has_errors() { Err(parsed.diagnostics) } else { Ok(parsed.root) }
}

fn looks_like_yaml(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    first.is_some_and(|line| line == "---" || line.ends_with(':') || line.starts_with('{'))
}

/// Returns the errors of a document, unless the document cannot be read because of a value that ansible-vault encrypted.
pub(super) fn vaulted(path: &Path, source: &Source, diagnostics: Diagnostics) -> InventoryError {
    let at = diagnostics.iter().filter(|one| one.message.contains("!vault")).find_map(|one| one.span);
    let Some(span) = at else { return InventoryError::document(source, diagnostics) };
    let (line, _) = source.line_column(span.start);
    let line = source.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let name = line.split_once(':').map_or("a value", |(name, _)| name.trim().trim_start_matches("- "));
    InventoryError::Vaulted { path: path.to_owned(), name: name.to_owned() }
}
