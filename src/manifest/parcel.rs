//! Everything that a manifest needs of the machine on which it was written, to load it on another machine.
//!
//! A bundle or directory is taken as it is. Of a single file, the files are taken that it names, and the files that these name:
//! a path with a template stands for all files that the template can select. Files of `hierarchy.directory` are kept apart,
//! because each machine gets only those that its order entries select.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
    sync::LazyLock,
};

use ccm_expr::Value as Data;
use regex::Regex;

use super::{
    Bundle, Location, Unreadable,
    source::{IN_A_FOLDER, Origin},
};
use crate::{
    document::{self, Node, Source, Value},
    hiera::ENDINGS,
    host::{Host, input, look},
    nats::Nats,
    state::LocalState,
    template::Provenance,
    vocabulary::Glob,
};

/// Deepest directory below a manifest that is taken.
const DEEPEST: usize = 32;

/// Larger files are not searched for names of other files.
const SEARCHED: u64 = 1 << 20;

/// Keys whose values are paths, including directories.
const PATHS: [&str; 6] = ["source", "directory", "folder", "apply", "include", "includes"];

/// Documents and the files that they need.
#[derive(Default)]
pub(crate) struct Parcel {
    pub(crate) documents: Vec<Packed>,
    /// Files by their paths in the parcel.
    pub(crate) files: BTreeMap<String, Packaged>,
    hierarchies: Vec<Hierarchy>,
    /// Keeps the files of bundles until they are packed.
    bundles: Vec<Bundle>,
}

/// A document in a parcel.
pub(crate) struct Packed {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Path in the parcel.
    pub(crate) path: String,
    pub(crate) is_remote: bool,
    /// Whether no files came with it.
    pub(crate) stands_alone: bool,
}

/// A file of a parcel.
pub(crate) enum Packaged {
    Text(String),
    File(PathBuf),
}

/// A `hierarchy` with a directory.
struct Hierarchy {
    directory: PathBuf,
    /// Path of the directory in the parcel.
    path: String,
    order: Vec<String>,
}

/// The files that one document needs.
#[derive(Default)]
struct Found {
    files: BTreeSet<PathBuf>,
    searched: BTreeSet<PathBuf>,
    hierarchies: Vec<(PathBuf, Vec<String>)>,
}

impl Parcel {
    /// Reads a document and everything that it needs.
    pub(crate) fn add(
        &mut self,
        location: &Location,
        host: &Host,
        state: &LocalState,
        nats: &Nats,
        limit: u64,
    ) -> Result<(), Unreadable> {
        let Origin { source, provenance, folder, bundle, stands_alone } =
            location.read(host, state, nats, limit)?;
        let folder = clean(&folder);
        let is_remote = provenance == Provenance::Remote;
        let is_directory = matches!(location, Location::Path(path) if look::is_directory(path));
        let file_name = match location {
            Location::Path(path) if !is_directory && bundle.is_none() => {
                path.file_name().map(|name| name.to_string_lossy().into_owned())
            }
            _ => None,
        };
        let file = folder.join(file_name.unwrap_or_else(|| IN_A_FOLDER.to_owned()));
        let mut found = Found::default();
        if !stands_alone {
            found.document(&source, &folder);
            if is_directory || bundle.is_some() {
                let kept_apart: Vec<PathBuf> =
                    found.hierarchies.iter().map(|(path, _)| path.clone()).collect();
                found.files.clear();
                found.tree(&folder, &kept_apart);
            }
        }
        found.files.remove(&file);
        let number = self.documents.len();
        let root = common(
            std::iter::once(&file).chain(&found.files).chain(found.hierarchies.iter().map(|(path, _)| path)),
        );
        let inside = |path: &Path| {
            let below = path.strip_prefix(&root).unwrap_or(path);
            format!("{number}/{}", below.to_string_lossy().trim_start_matches('/'))
        };
        for path in &found.files {
            self.files.insert(inside(path), Packaged::File(path.clone()));
        }
        for (directory, order) in found.hierarchies {
            let path = inside(&directory);
            self.hierarchies.push(Hierarchy { directory, path, order });
        }
        self.files.insert(inside(&file), Packaged::Text(source.text.clone()));
        let path = inside(&file);
        self.documents.push(Packed { name: source.name, text: source.text, path, is_remote, stands_alone });
        self.bundles.extend(bundle);
        Ok(())
    }

    /// Returns paths and texts of the files in hierarchies that a machine with these facts can select. Other facts are not known.
    pub(crate) fn selected(&self, facts: &Data) -> Result<Vec<(String, String)>, String> {
        let mut selected = BTreeMap::new();
        for Hierarchy { directory, path, order } in &self.hierarchies {
            let patterns: Vec<Glob> = order.iter().flat_map(|entry| patterns(entry, facts)).collect();
            for below in look::files_below(directory, &ENDINGS, DEEPEST) {
                let name = below.to_string_lossy().into_owned();
                if !patterns.iter().any(|pattern| pattern.matches(&below)) {
                    continue;
                }
                let file = directory.join(&below);
                let failed =
                    |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
                let bytes = input::read_file(&file, u64::MAX).map_err(|error| failed(&error))?;
                let text = String::from_utf8(bytes).map_err(|_| failed(&"it is not UTF-8 text"))?;
                selected.insert(format!("{path}/{name}"), text);
            }
            // An empty directory exists, too.
            selected.entry(format!("{path}/.ccm")).or_default();
        }
        Ok(selected.into_iter().collect())
    }
}

/// Returns the patterns of the files that an order entry selects.
fn patterns(entry: &str, facts: &Data) -> Vec<Glob> {
    static TEMPLATE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[{$]\{(.*?)\}+").ok());
    let Some(template) = TEMPLATE.as_ref() else { return Vec::new() };
    let known = template.replace_all(entry, |found: &regex::Captures| {
        let fact = found[1].trim().strip_prefix("Facts.").and_then(|path| ccm_expr::Path::parse(path).ok());
        match fact.and_then(|path| path.require(facts).ok()) {
            Some(value) => value.to_text().replace(['*', '?', '[', '/'], "-"),
            None => "*".to_owned(),
        }
    });
    let path = known.replace(':', "/");
    // With a slash in front, a name without one does not match in all directories.
    ENDINGS.iter().filter_map(|ending| Glob::try_from(format!("./{path}.{ending}")).ok()).collect()
}

impl Found {
    /// Finds the files that a YAML document names.
    fn document(&mut self, source: &Source, folder: &Path) {
        let Ok(root) = document::parse(source) else { return };
        self.node(&root, "", folder);
        for entry in root.as_map().unwrap_or_default().iter().filter(|entry| entry.key == "hierarchy") {
            self.hierarchy(&entry.value, folder);
        }
    }

    fn hierarchy(&mut self, hierarchy: &Node, folder: &Path) {
        let entries = hierarchy.as_map().unwrap_or_default();
        let value = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let Some(directory) = value("directory").or_else(|| value("folder")).and_then(Node::as_str) else {
            return;
        };
        if Path::new(directory).is_absolute() {
            return;
        }
        let order = value("order").and_then(Node::as_seq).unwrap_or_default();
        let order = order.iter().filter_map(Node::as_str).map(str::to_owned);
        let order: Vec<String> = order.chain(["default".to_owned()]).collect();
        let directory = clean(&folder.join(directory));
        self.files.retain(|file| !file.starts_with(&directory));
        self.hierarchies.push((directory, order));
    }

    fn node(&mut self, node: &Node, key: &str, folder: &Path) {
        match &node.value {
            Value::Scalar(scalar) => self.string(&scalar.text, key, folder),
            Value::Seq(items) => items.iter().for_each(|item| self.node(item, key, folder)),
            Value::Map(entries) => {
                for entry in entries.iter().filter(|entry| entry.key != "hierarchy") {
                    // The name of a resource is a key; that of an included manifest is a path.
                    self.string(&entry.key, key, folder);
                    self.node(&entry.value, &entry.key, folder);
                }
            }
        }
    }

    /// Finds the files that a string names: all of it, or strings in its expressions.
    fn string(&mut self, text: &str, key: &str, folder: &Path) {
        let is_path = PATHS.contains(&key);
        if is_template(text) || text.contains('(') {
            self.literals(text, folder);
        }
        if is_template(text) {
            static TEMPLATE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[{$]\{.*?\}+").ok());
            let Some(template) = TEMPLATE.as_ref() else { return };
            self.matching(&template.replace_all(text, "*"), folder);
        } else if is_path || text.contains(['/', '.']) {
            self.named(text, is_path, folder);
        }
    }

    /// Finds the files that string literals of a text name.
    fn literals(&mut self, text: &str, folder: &Path) {
        static LITERAL: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r#""([^"\\\n]+)"|'([^'\\\n]+)'|`([^`\n]+)`"#).ok());
        let Some(literal) = LITERAL.as_ref() else { return };
        for found in literal.captures_iter(text) {
            if let Some(name) = found.iter().skip(1).flatten().next() {
                self.named(name.as_str(), true, folder);
            }
        }
    }

    fn named(&mut self, name: &str, may_be_directory: bool, folder: &Path) {
        if !is_relative(name) {
            return;
        }
        let path = clean(&folder.join(name));
        if look::is_file(&path) {
            self.file(path, folder);
        } else if may_be_directory
            && path != folder
            && !folder.starts_with(&path)
            && look::is_directory(&path)
        {
            self.tree(&path, &[]);
            let manifest = path.join(IN_A_FOLDER);
            if look::is_file(&manifest) {
                self.search(&manifest, &path);
            }
        }
    }

    /// Adds the files that a pattern matches. The first part of the path must be constant.
    fn matching(&mut self, pattern: &str, folder: &Path) {
        let Some((constant, _)) = pattern.split_once('*') else { return };
        let Some((directory, _)) = constant.rsplit_once('/').filter(|_| is_relative(pattern)) else { return };
        let directory = clean(&folder.join(directory));
        let Ok(glob) = Glob::try_from(format!("./{}", pattern.trim_start_matches("./"))) else { return };
        let mut below = Self::default();
        below.tree(&directory, &[]);
        let matches = |file: &PathBuf| file.strip_prefix(folder).is_ok_and(|below| glob.matches(below));
        for file in below.files.into_iter().filter(matches) {
            self.file(file, folder);
        }
    }

    fn file(&mut self, path: PathBuf, folder: &Path) {
        self.search(&path, folder);
        self.files.insert(path);
    }

    /// Searches a file for names of other files.
    fn search(&mut self, path: &Path, folder: &Path) {
        if !self.searched.insert(path.to_owned()) {
            return;
        }
        let Some(text) =
            input::read_file(path, SEARCHED).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return;
        };
        let is_document = path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if is_document {
            let name = path.to_string_lossy().into_owned();
            self.document(&Source { name, text }, path.parent().unwrap_or(folder));
        } else {
            self.literals(&text, folder);
        }
    }

    /// Adds all files in a directory, except those in directories that are kept apart.
    fn tree(&mut self, directory: &Path, kept_apart: &[PathBuf]) {
        for file in look::all_files_below(directory, DEEPEST) {
            let path = directory.join(file);
            if !kept_apart.iter().any(|other| path.starts_with(other)) {
                self.files.insert(path);
            }
        }
    }
}

/// Returns whether a string has an expression in it.
fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("${")
}

fn is_relative(name: &str) -> bool {
    !name.is_empty()
        && name.len() < 1024
        && !name.starts_with('/')
        && !name.contains("://")
        && !name.contains(['\n', '\0'])
}

/// Returns a path without `.` and `..`, by its text alone.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            other => clean.push(other),
        }
    }
    clean
}

/// Returns the directory that all files are in.
fn common<'p>(mut files: impl Iterator<Item = &'p PathBuf>) -> PathBuf {
    let first = files.next().and_then(|file| file.parent()).unwrap_or(Path::new("/")).to_owned();
    files.fold(first, |root, file| {
        let mut root = root;
        while !file.starts_with(&root) && root.pop() {}
        root
    })
}
