//! The files of `hierarchy.directory`: an entry `role:web` of the order is `role/web.yaml` in it, or the same file with
//! another ending.

use std::path::{Component, Path, PathBuf};

use ccm_expr::{Map, Value};

use super::{doubts, layers::Origin};
use crate::{
    document::{Diagnostic, Diagnostics, Node, Parsed, Source, Span, to_value},
    host::{
        input::{self, InputError},
        look,
    },
    secrets::{self, Format, Keyring},
    template::{Provenance, Scope, check_closed, expand},
};

/// The directory that a hierarchy names.
pub(super) struct Directory {
    path: PathBuf,
    /// How it is written, for messages.
    shown: String,
    /// Where it is written.
    pub(super) span: Span,
}

/// How deep directories are searched for files that no entry selects.
const DEEPEST: usize = 5;

/// Endings of data files.
pub(crate) const ENDINGS: [&str; 4] = ["yaml", "json", "env", "ini"];

/// A file that an entry of the order led to.
pub(crate) struct LayerFile {
    pub(crate) source: Source,
    /// What it holds; `Err` with what is wrong where that cannot be read as YAML.
    pub(crate) parsed: Result<Parsed, Diagnostics>,
    /// What is wrong with what it says.
    pub(crate) diagnostics: Diagnostics,
    pub(super) data: Value,
}

impl Directory {
    /// Reads the directory of a key of the hierarchy, which is `directory` or `folder`.
    pub(super) fn of(key: &str, value: &Node, origin: &Origin) -> Result<Self, Diagnostic> {
        let invalid = |message: String| Diagnostic::error("invalid-hierarchy", message).at(value.span);
        let Some(written) = value.as_str().filter(|text| !text.is_empty()) else {
            return Err(invalid(format!("`{key}` must be the path of a directory, not {}", value.kind())));
        };
        let Some(beside) = origin.folder else {
            return Err(invalid(format!(
                "`{key}` is for data that has one: this came alone, from an address"
            ))
            .with_help("serve it as a bundle (.tar.gz) together with its directory"));
        };
        let is_inside = Path::new(written)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if origin.provenance == Provenance::Remote && !is_inside {
            return Err(invalid(format!("`{key}: {written}` leads out of the bundle")));
        }
        let path = beside.join(written);
        if !look::is_directory(&path) {
            return Err(invalid(format!("there is no directory {}", path.display()))
                .with_help("a relative path starts at the directory of this file"));
        }
        Ok(Self { path, shown: written.to_owned(), span: value.span })
    }

    /// Returns the data files in it, relative to it, in order.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        look::files_below(&self.path, &ENDINGS, DEEPEST)
    }

    /// Returns the paths of all data files in it.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        self.files().into_iter().map(|below| self.path.join(below)).collect()
    }

    /// Returns the paths of the files of an entry that exist.
    pub(super) fn files_of(&self, entry: &str) -> Vec<PathBuf> {
        let files = files_of(entry).into_iter().map(|below| self.path.join(below));
        files.filter(|path| look::exists(path)).collect()
    }

    /// Returns the file in which data of an entry belongs, as it is written in messages.
    pub(super) fn file_for(&self, entry: &str, origin: &Origin) -> Option<String> {
        let below = files_of(entry).into_iter().next()?;
        let beside = Path::new(&origin.source.name).parent().unwrap_or(Path::new(""));
        Some(beside.join(&self.shown).join(below).display().to_string())
    }

    /// Returns a file in it as it is written in messages.
    pub(super) fn shown(&self, below: &Path) -> String {
        Path::new(&self.shown).join(below).display().to_string()
    }

    /// Returns the file of an entry, if there is one. What could not be read is told at the place of the folder.
    pub(super) fn find(
        &self,
        entry: &str,
        origin: &Origin,
        scope: &Scope,
        diagnostics: &mut Diagnostics,
    ) -> Option<LayerFile> {
        let mut files = files_of(entry);
        files.retain(|below| look::exists(&self.path.join(below)));
        if let [first, second, ..] = &files[..] {
            let (first, second) = (self.shown(first), self.shown(second));
            let message = format!("the entry `{entry}` has two files: {first} and {second}");
            let problem = Diagnostic::error("invalid-hierarchy", message).at(self.span);
            diagnostics.push(problem.with_help("keep one of them"));
            return None;
        }
        // Without a file, the reason can be that the directory is not accessible.
        let below = files.pop().or_else(|| files_of(entry).into_iter().next())?;
        let path = self.path.join(&below);
        let failed = |reason: String| {
            Diagnostic::error("invalid-hierarchy", format!("cannot read {}: {reason}", path.display()))
        };
        let bytes = match input::read_file(&path, origin.limit) {
            Ok(bytes) => bytes,
            Err(InputError::Missing) => return None,
            Err(error) => {
                diagnostics.push(failed(error.to_string()).at(self.span));
                return None;
            }
        };
        let beside = Path::new(&origin.source.name).parent().unwrap_or(Path::new(""));
        let shown = beside.join(&self.shown).join(below).display().to_string();
        match Source::read(shown, bytes) {
            Ok(source) => Some(LayerFile::read(source, scope, origin.keyring)),
            Err(error) => {
                diagnostics.push(error.at(self.span));
                None
            }
        }
    }
}

impl LayerFile {
    fn read(source: Source, scope: &Scope, keyring: &Keyring) -> Self {
        let mut diagnostics = Diagnostics::default();
        let format = Format::of(&source.name);
        let parsed = secrets::read(&source, format, keyring);
        let mut data = Map::new().into();
        if parsed.is_err()
            && let Some(root) = secrets::stand_in(&source, format, keyring)
        {
            data = to_value(&root);
        }
        if let Ok(Parsed { root, .. }) = &parsed {
            check_closed(root, &source, &mut diagnostics);
            if let Some([entry]) = root.as_map()
                && entry.key == "data"
                && entry.value.as_map().is_some()
            {
                let message = "this file holds data: its key `data` becomes `Data.data`";
                diagnostics.push(
                    Diagnostic::warning(doubts::ID, message)
                        .at(entry.key_span)
                        .with_help("remove `data:` and one level of indentation"),
                );
            }
            if root.as_map().is_some() {
                let mut root = root.clone();
                expand(&mut root, scope, &source, &mut diagnostics);
                data = to_value(&root);
            } else if !root.is_null() {
                let message = format!("the data of an entry is a map, not {}", root.kind());
                diagnostics.push(Diagnostic::error("data-not-a-map", message).at(root.span));
            }
        }
        Self { source, parsed, diagnostics, data }
    }
}

/// Returns the paths that an entry's file can have: each part between colons is a name. What is no name, such as `..` or
/// something with a slash in it, has no file: entries are made from facts, and those do not choose what is opened.
fn files_of(entry: &str) -> Vec<PathBuf> {
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['/', '\0']);
    let parts: Vec<&str> = entry.split(':').collect();
    if !parts.iter().all(|part| is_name(part)) {
        return Vec::new();
    }
    ENDINGS.iter().map(|ending| PathBuf::from(format!("{}.{ending}", parts.join("/")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_file_below_the_folder_or_none() {
        for (entry, file) in [
            ("default", Some("default.yaml")),
            ("role:web", Some("role/web.yaml")),
            ("os:debian:12", Some("os/debian/12.yaml")),
            ("host:a.example.net", Some("host/a.example.net.yaml")),
            ("role:../../etc/passwd", None),
            ("role:..", None),
            ("role:a/b", None),
            ("role:", None),
            (":web", None),
            ("/etc/passwd", None),
            (".hidden", None),
            ("", None),
        ] {
            assert_eq!(files_of(entry).first(), file.map(PathBuf::from).as_ref(), "{entry}");
        }
    }
}
