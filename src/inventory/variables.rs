//! Variables in `group_vars` and `host_vars` next to an inventory.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use ccm_expr::Map;

use super::{Loader, error::InventoryError, graph::Graph, sources, yaml_1_1};
use crate::{
    document::{Diagnostic, Source},
    host::input::{self, Kind},
};

/// Endings of a file with variables, in the order in which they are tried.
const ENDINGS: [&str; 4] = ["", ".yml", ".yaml", ".json"];

/// Variables that the directories of all inventories have for the groups and hosts that exist.
#[derive(Debug, Default)]
pub(super) struct VariableFiles(Vec<Directory>);

#[derive(Debug, Default)]
struct Directory {
    groups: HashMap<String, Vec<Map>>,
    hosts: HashMap<String, Vec<Map>>,
}

impl VariableFiles {
    pub(super) fn read(sources: &[PathBuf], graph: &Graph, loader: &Loader) -> Result<Self, InventoryError> {
        let directories = sources.iter().map(|source| {
            let directory = match input::kind(source) {
                Some(Kind::Directory) => source.as_path(),
                _ => source.parent().unwrap_or(Path::new("")),
            };
            Ok(Directory {
                groups: read_all(&directory.join("group_vars"), graph.groups(), loader)?,
                hosts: read_all(&directory.join("host_vars"), graph.hosts(), loader)?,
            })
        });
        directories.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn of_group(&self, name: &str) -> impl Iterator<Item = &Map> {
        self.0.iter().filter_map(move |directory| directory.groups.get(name)).flatten()
    }

    /// Returns the variables of several groups, the later ones last, one inventory after the other.
    pub(super) fn of_groups(&self, names: &[&str]) -> impl Iterator<Item = &Map> {
        self.0.iter().flat_map(move |directory| {
            names.iter().filter_map(move |&name| directory.groups.get(name)).flatten()
        })
    }

    pub(super) fn of_host(&self, name: &str) -> impl Iterator<Item = &Map> {
        self.0.iter().filter_map(move |directory| directory.hosts.get(name)).flatten()
    }
}

fn read_all<'n>(
    directory: &Path,
    names: impl Iterator<Item = (usize, &'n str)>,
    loader: &Loader,
) -> Result<HashMap<String, Vec<Map>>, InventoryError> {
    let mut found = HashMap::new();
    if input::kind(directory) != Some(Kind::Directory) {
        return Ok(found);
    }
    for (_, name) in names.filter(|(_, name)| is_file_name(name)) {
        let mut files = Vec::new();
        for ending in ENDINGS {
            let path = directory.join(format!("{name}{ending}"));
            match input::kind(&path) {
                None => continue,
                Some(Kind::Directory) => read_directory(&path, loader, &mut files)?,
                Some(_) => files.extend(read_file(&path, loader)?),
            }
            break;
        }
        if !files.is_empty() {
            found.insert(name.to_owned(), files);
        }
    }
    Ok(found)
}

/// Returns whether a name can be the name of a file: an inventory cannot choose files elsewhere.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != ".."
}

fn read_directory(path: &Path, loader: &Loader, files: &mut Vec<Map>) -> Result<(), InventoryError> {
    let names = input::names_in(path).map_err(|error| InventoryError::unreadable(path, error))?;
    for name in names.iter().filter(|name| !name.starts_with('.') && !name.ends_with('~')) {
        let path = path.join(name);
        let ending =
            path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
        match input::kind(&path) {
            Some(Kind::Directory) if ending.is_empty() => read_directory(&path, loader, files)?,
            Some(Kind::Directory) | None => {}
            Some(_) if ENDINGS.contains(&ending.as_str()) => files.extend(read_file(&path, loader)?),
            Some(_) => {}
        }
    }
    Ok(())
}

fn read_file(path: &Path, loader: &Loader) -> Result<Option<Map>, InventoryError> {
    let bytes = sources::read_file(path, loader)?;
    let source = Source::read(path.display().to_string(), bytes)
        .map_err(|error| InventoryError::unreadable(path, error.message))?;
    let root = sources::document(&source, loader)
        .map_err(|diagnostics| sources::vaulted(path, &source, diagnostics))?;
    match yaml_1_1::value(&root).as_map() {
        Some(variables) => Ok(Some(variables.clone())),
        None if root.is_null() => Ok(None),
        None => {
            let message = format!("a file of variables is a map, not {}", root.kind());
            let diagnostic = Diagnostic::error("invalid-inventory", message).at(root.span);
            Err(InventoryError::document(&source, diagnostic))
        }
    }
}
