//! The files of hierarchies in a directory that one host does not read.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use ccm_expr::{Map, Object, Value};

use crate::{
    document::{self, Diagnostics, Severity, Source},
    hiera,
    host::{input, look},
    secrets::Keyring,
    template::{Provenance, Scope},
};

/// Endings of documents that can have a hierarchy.
const ENDINGS: [&str; 2] = ["yaml", "json"];

/// How deep directories are searched for documents.
const DEEPEST: usize = 10;

/// Largest document that is read.
const LARGEST: u64 = 64 << 20;

/// Why the files for a host are not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayerError {
    #[error(
        "{}: the hierarchy needs the fact `{fact}`, which is not known for this host: pass `--fact {fact}=VALUE` or `--facts FILE`",
        document.display()
    )]
    UnknownFact { document: PathBuf, fact: String },
    #[error("{}: {message}", document.display())]
    Invalid { document: PathBuf, message: String },
}

/// Returns the files of all hierarchies in a directory that a host with these facts does not read.
pub(crate) fn unread_layers(root: &Path, facts: &Value) -> Result<BTreeSet<PathBuf>, LayerError> {
    let (mut all, mut read) = (BTreeSet::new(), BTreeSet::new());
    for below in look::files_below(root, &ENDINGS, DEEPEST) {
        let path = root.join(&below);
        let Some(selection) = selection(&path, facts)? else { continue };
        all.extend(selection.all);
        read.extend(selection.read);
    }
    Ok(all.difference(&read).cloned().collect())
}

/// Returns the files of the hierarchy of a document, if it has one. What is no document has none.
fn selection(path: &Path, facts: &Value) -> Result<Option<hiera::Selection>, LayerError> {
    let Ok(bytes) = input::read_file(path, LARGEST) else { return Ok(None) };
    let Ok(source) = Source::read(path.display().to_string(), bytes) else { return Ok(None) };
    let Ok(parsed) = document::read(&source) else { return Ok(None) };
    let Some(entries) = parsed.root.as_map() else { return Ok(None) };
    let directory = path.parent().unwrap_or(Path::new(""));
    let unknown = Arc::default();
    let known = KnownFacts { known: facts.clone(), path: String::new(), unknown: Arc::clone(&unknown) };
    let scope = Scope::new(Value::Object(Arc::new(known)), Value::Null, directory.to_owned());
    let scope = scope.for_data(Provenance::Remote);
    let keyring = Keyring::none();
    let origin = hiera::Origin {
        source: &source,
        folder: Some(directory),
        provenance: Provenance::Remote,
        limit: LARGEST,
        keyring: &keyring,
    };
    let mut diagnostics = Diagnostics::default();
    let selection = hiera::selection(entries, &scope, &origin, &mut diagnostics);
    let document = || path.to_owned();
    let unknown = unknown.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
    match (unknown, diagnostics.iter().find(|problem| problem.severity == Severity::Error)) {
        (Some(fact), _) => Err(LayerError::UnknownFact { document: document(), fact }),
        (None, Some(problem)) => {
            Err(LayerError::Invalid { document: document(), message: problem.message.clone() })
        }
        (None, None) => Ok(selection),
    }
}

/// Facts of another machine, as far as they are known. A fact that an expression reads and that is not known is recorded.
struct KnownFacts {
    known: Value,
    /// The names that lead here, each followed by a dot.
    path: String,
    unknown: Arc<Mutex<BTreeSet<String>>>,
}

impl Object for KnownFacts {
    fn member(&self, name: &str) -> Option<Value> {
        let path = format!("{}{name}", self.path);
        match self.known.member(name) {
            Some(known @ Value::Map(_)) => {
                let unknown = Arc::clone(&self.unknown);
                Some(Value::Object(Arc::new(Self { known, path: format!("{path}."), unknown })))
            }
            Some(known) => Some(known),
            None => {
                self.unknown.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
                None
            }
        }
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.known.member_names()
    }
}

/// Returns the facts that the name of a host implies, with others over them.
pub(crate) fn facts_of_host(host: &str, given: Vec<Map>) -> Result<Value, String> {
    let short = host.split('.').next().unwrap_or(host);
    let mut names = Map::from_iter([("hostname".into(), Value::from(short))]);
    if short != host {
        names.insert("fqdn".into(), host.into());
    }
    let info = Map::from_iter([("hostname".into(), Value::from(short))]);
    names.insert("host".into(), Map::from_iter([("info".into(), info.into())]).into());
    given.into_iter().try_fold(Value::from(names), |facts, over| {
        hiera::deep(facts, &over.into()).map_err(|conflict| conflict.message("the facts", "other facts"))
    })
}
