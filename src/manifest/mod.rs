//! From a manifest to resources: every problem of the whole file, or none.

mod bundle;
mod entries;
mod reading;
mod references;
mod repetition;
mod rule_files;
mod schema;
pub(crate) mod secret;
mod source;

pub(crate) use crate::resource::{Manifest, ManifestSettings};
pub(crate) use bundle::Bundle;
pub(crate) use rule_files::RuleFiles;
pub(crate) use schema::manifest_schema;
pub(crate) use source::{IN_A_FOLDER, Location, Unreadable};

use reading::{Content, File, Reading, Way};
use source::Origin;

use std::{path::Path, sync::Arc};

use crate::{
    declare::Declaration,
    document::{
        self, Diagnostic, Diagnostics, Entry, Node, Pair, Parsed, Review, Severity, Source, Span, Value,
        closest, from_node, to_value,
    },
    facts::Facts,
    hiera::{self, LayerFile, MERGE_ADVICE, Resolved, deep, set},
    host::{Host, input::Limits},
    nats::Nats,
    secrets::{self, Format, Keyring},
    state::LocalState,
    template::{self, Learned, Provenance, Scope},
};

/// Why there is no manifest.
pub(crate) enum LoadError {
    Unreadable(Unreadable),
    /// What the user sets has no place in the data.
    NotSet(String),
    /// Each document in which something was found, and in one of them an error.
    Invalid(Vec<Review>),
}

/// Something made from documents, and the warnings about them.
pub(crate) struct Loaded<T> {
    pub(crate) value: T,
    pub(crate) warnings: Vec<Review>,
}

impl<T> Loaded<T> {
    /// Returns the value with what was found on the way to it, unless an error is among that.
    fn of(value: Option<T>, reviews: impl IntoIterator<Item = Review>) -> Result<Self, LoadError> {
        let reviews: Vec<_> = reviews.into_iter().collect();
        match value.filter(|_| !reviews.iter().any(|review| review.diagnostics.has_errors())) {
            Some(value) => Ok(Self { value, warnings: reviews }),
            None => Err(LoadError::Invalid(reviews)),
        }
    }
}

impl<T> Loaded<T> {
    /// Returns the value only if there is no warning about it: each becomes an error.
    pub(crate) fn strictly(self) -> Result<Self, LoadError> {
        if self.warnings.is_empty() {
            return Ok(self);
        }
        Err(LoadError::Invalid(self.warnings).strictly())
    }
}

impl LoadError {
    /// Returns the error with each warning beside it as an error.
    pub(crate) fn strictly(self) -> Self {
        let Self::Invalid(mut reviews) = self else { return self };
        for diagnostic in reviews.iter_mut().flat_map(|review| review.diagnostics.iter_mut()) {
            diagnostic.severity = Severity::Error;
        }
        Self::Invalid(reviews)
    }
}

/// What surrounds a manifest: the machine it is read on, and what the user adds to its data.
pub(crate) struct LoadInputs {
    pub(crate) facts: Arc<Facts>,
    pub(crate) environ: ccm_expr::Value,
    /// Data that goes over the manifest's own, one after the other.
    pub(crate) hiera: Vec<Location>,
    /// Data that goes over everything, one after the other.
    pub(crate) data: Vec<Pair>,
    /// How large documents may be.
    pub(crate) limits: Limits,
    /// What all expressions of the run may hold together.
    pub(crate) expression_memory: ccm_expr::Memory,
    /// What `kvGet` and `registrations` ask.
    pub(crate) nats: Arc<Nats>,
    /// Opens encrypted data.
    pub(crate) keyring: Arc<Keyring>,
}

/// Reads a manifest and finds everything that is wrong with it.
pub(crate) fn load(
    location: &Location,
    load_inputs: &LoadInputs,
    host: &Host,
    state: &LocalState,
) -> Result<Loaded<Manifest>, LoadError> {
    let origin = location
        .read(host, state, &load_inputs.nats, load_inputs.limits.document)
        .map_err(LoadError::Unreadable)?;
    let external = load_inputs.external_data(&load_inputs.scope(&origin.folder), host, state)?;
    let way = Way::first(&origin.source);
    let mut reading = Reading {
        load_inputs,
        host,
        state,
        external: &external,
        learned: Learned::default(),
        files: Vec::new(),
    };
    let first = reading.file(origin, &way)?;
    reading.check_references();
    let resources = reading.resolve(first);
    let scope = reading.files[first].content.as_ref().map(|content: &Content| &content.scope);
    let broken: Vec<Review> =
        scope.into_iter().flat_map(|scope| external.iter().flat_map(move |one| one.reviews(scope))).collect();
    let manifest = reading.files[first].manifest(resources);
    reading.check_groups(manifest.as_ref());
    let mut reviews: Vec<Review> = reading.files.iter_mut().flat_map(File::reviews).collect();
    reviews.extend(broken);
    reviews.extend(load_inputs.facts.take_reviews());
    Loaded::of(manifest, reviews)
}

impl LoadInputs {
    /// What expressions can see before there is any data.
    fn scope(&self, working_directory: &Path) -> Scope {
        Scope::new(
            ccm_expr::Value::Object(Arc::clone(&self.facts) as Arc<_>),
            self.environ.clone(),
            working_directory.to_owned(),
        )
        .with_memory(self.expression_memory.clone())
        .with_nats(Arc::clone(&self.nats))
    }

    /// What expressions can see where there is no manifest.
    pub(crate) fn without_manifest(
        &self,
        working_directory: &Path,
        host: &Host,
        state: &LocalState,
    ) -> Result<Loaded<Scope>, LoadError> {
        let scope = self.scope(working_directory);
        let external = self.external_data(&scope, host, state)?;
        let scope = scope.with_data(self.over(ccm_expr::Map::new().into(), &external)?);
        let reviews: Vec<_> = external.iter().flat_map(|external| external.reviews(&scope)).collect();
        Loaded::of(Some(scope.for_turns()), reviews.into_iter().chain(self.facts.take_reviews()))
    }

    /// The data of a document that holds only data, with the user's over it.
    pub(crate) fn data_of(
        &self,
        location: &Location,
        working_directory: &Path,
        host: &Host,
        state: &LocalState,
    ) -> Result<Loaded<ccm_expr::Value>, LoadError> {
        let scope = self.scope(working_directory);
        let own = External::read(location, &scope, host, state, self)?;
        let external = self.external_data(&scope, host, state)?;
        let data = self.over(own.data.clone(), &external)?;
        let scope = scope.with_data(data.clone());
        let documents = std::iter::once(&own).chain(&external);
        let reviews: Vec<_> = documents.flat_map(|document| document.reviews(&scope)).collect();
        Loaded::of(Some(data), reviews.into_iter().chain(self.facts.take_reviews()))
    }

    /// Other data with the user's over it.
    fn over(&self, data: ccm_expr::Value, external: &[External]) -> Result<ccm_expr::Value, LoadError> {
        let data = external.iter().try_fold(data, |data, external| {
            deep(data, &external.data).map_err(|conflict| {
                let place = format!("`{}`", external.source.name);
                LoadError::NotSet(format!(
                    "{} ({MERGE_ADVICE})",
                    conflict.message("the data below it", &place)
                ))
            })
        })?;
        self.with_set_data(data)
    }

    /// Returns data with the values that the user sets, which override every other value.
    fn with_set_data(&self, data: ccm_expr::Value) -> Result<ccm_expr::Value, LoadError> {
        self.data.iter().try_fold(data, set).map_err(LoadError::NotSet)
    }

    fn external_data(
        &self,
        scope: &Scope,
        host: &Host,
        state: &LocalState,
    ) -> Result<Vec<External>, LoadError> {
        self.hiera.iter().map(|location| External::read(location, scope, host, state, self)).collect()
    }
}

/// A document that holds only data, whose rules are still to be checked: they are about what it is merged with, too.
struct External {
    source: Source,
    root: Node,
    provenance: Provenance,
    data: ccm_expr::Value,
    /// Warnings about the document itself.
    diagnostics: Diagnostics,
    /// Warnings about the files of its hierarchy.
    files: Vec<Review>,
}

impl External {
    fn read(
        location: &Location,
        scope: &Scope,
        host: &Host,
        state: &LocalState,
        load_inputs: &LoadInputs,
    ) -> Result<Self, LoadError> {
        let (limit, keyring) = (load_inputs.limits.data, &*load_inputs.keyring);
        let Origin { source, provenance, folder, bundle: _bundle, stands_alone } =
            location.read(host, state, &load_inputs.nats, limit).map_err(LoadError::Unreadable)?;
        let format = Format::of(&source.name);
        let parsed = match secrets::read(&source, format, keyring) {
            Ok(parsed) => parsed,
            Err(mut diagnostics) => {
                secret::hide_all(&mut diagnostics, &source.text);
                return Err(LoadError::Invalid(vec![Review { source, diagnostics }]));
            }
        };
        let root = &parsed.root;
        let mut diagnostics = Diagnostics::default();
        let mut files = Vec::new();
        let data = if root.is_null() && provenance == Provenance::Remote {
            // A server that answers with nothing most probably does not have what was asked for.
            diagnostics.push(Diagnostic::error("no-data", "the address answers without any data"));
            ccm_expr::Value::Null
        } else if root.is_null() {
            ccm_expr::Map::new().into()
        } else if format.is_all_data() {
            to_value(root)
        } else if let Some(entries) = root.as_map() {
            check_sections(entries, &mut diagnostics);
            let folder = Some(folder.as_path()).filter(|_| !stands_alone);
            let origin = hiera::Origin { source: &source, folder, provenance, limit, keyring };
            let scope = scope.for_data(provenance);
            let Resolved { data, files: read } = hiera::resolve(entries, &scope, &origin, &mut diagnostics);
            files = read.into_iter().filter_map(review_of).collect();
            data
        } else {
            let message = format!("data is a map with a section `data`, not {}", root.kind());
            diagnostics.push(Diagnostic::error("data-not-a-map", message).at(root.span));
            ccm_expr::Value::Null
        };
        combine(&mut diagnostics, &parsed, &source);
        if diagnostics.has_errors() || files.iter().any(|file| file.diagnostics.has_errors()) {
            return Err(LoadError::Invalid(diagnostics.review(&source).into_iter().chain(files).collect()));
        }
        Ok(Self { source, root: parsed.root, provenance, data, diagnostics, files })
    }

    /// Returns what was found in the document and in the files of its hierarchy, and the rules of it that the merged data
    /// breaks.
    fn reviews(&self, scope: &Scope) -> Vec<Review> {
        let mut diagnostics = self.diagnostics.clone();
        let entries = self.root.as_map().unwrap_or_default();
        let scope = scope.for_data(self.provenance);
        hiera::check(entries, scope.data(), &scope, &self.source, &mut diagnostics);
        secret::hide(&mut diagnostics, &self.root, &self.source.text);
        diagnostics.review(&self.source).into_iter().chain(self.files.iter().cloned()).collect()
    }
}

/// Returns what was found in a file of a hierarchy.
fn review_of(LayerFile { source, parsed, mut diagnostics, .. }: LayerFile) -> Option<Review> {
    match parsed {
        Ok(parsed) => combine(&mut diagnostics, &parsed, &source),
        Err(found) => {
            diagnostics = found;
            secret::hide_all(&mut diagnostics, &source.text);
        }
    }
    diagnostics.review(&source)
}

/// Joins what is wrong with a document as such and what is wrong with what it says, in the written order.
fn combine(
    diagnostics: &mut Diagnostics,
    Parsed { root, diagnostics: found, gaps }: &Parsed,
    source: &Source,
) {
    let follows =
        |problem: &Diagnostic| problem.span.is_some_and(|span| gaps.iter().any(|gap| span.contains(*gap)));
    diagnostics.retain(|problem| !follows(problem));
    diagnostics.extend(found.iter().cloned());
    diagnostics.sort();
    if found.is_empty() {
        secret::hide(diagnostics, root, &source.text);
    } else {
        secret::hide_all(diagnostics, &source.text);
    }
}

/// The declarations in a manifest that is part of the program.
pub(crate) fn declarations(text: &str) -> Result<Vec<Declaration>, Diagnostics> {
    let source = Source { name: "example".to_owned(), text: text.to_owned() };
    let root = document::parse(&source)?;
    let mut diagnostics = Diagnostics::default();
    let declarations = entries::declarations(root, &source, &mut diagnostics);
    if diagnostics.is_empty() { Ok(declarations) } else { Err(diagnostics) }
}

const SECTIONS: [&str; 4] = ["data", "hierarchy", "overrides", "ccm"];

/// Whether a key at the top is for editors, or holds what anchors share.
fn is_for_others(key: &str) -> bool {
    key == "$schema" || key.starts_with("x-")
}

fn check_sections(entries: &[Entry], diagnostics: &mut Diagnostics) {
    for Entry { key, key_span, value } in entries.iter().filter(|entry| !is_for_others(&entry.key)) {
        if !SECTIONS.contains(&key.as_str()) {
            let near = closest(key, SECTIONS);
            let help = near.map_or_else(
                || format!("a manifest has {}; resources stand below ccm.resources", SECTIONS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            diagnostics.push(
                Diagnostic::error("unknown-section", format!("unknown section `{key}`"))
                    .at(*key_span)
                    .with_help(help),
            );
        } else if value.as_map().is_none() && !value.is_null() && matches!(key.as_str(), "data" | "ccm") {
            diagnostics.push(
                Diagnostic::error(
                    "section-not-a-map",
                    format!("`{key}` must be a map, not {}", value.kind()),
                )
                .at(value.span),
            );
        }
    }
}

/// The list of resources and the settings of a manifest with sections.
fn ccm_section(
    entries: &mut [Entry],
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> (Option<Node>, ManifestSettings) {
    let ccm = entries.iter_mut().find(|entry| entry.key == "ccm").map(|entry| &mut entry.value.value);
    let Some(Value::Map(ccm)) = ccm else { return (None, ManifestSettings::default()) };
    let mut rest = Vec::new();
    for entry in ccm.iter_mut().filter(|entry| entry.key != "resources") {
        if entry.key.ends_with("_message") {
            template::join(&mut entry.value);
        }
        template::expand_properties(&mut entry.value, scope, source, diagnostics);
        rest.push(entry.clone());
    }
    let resources = ccm.iter().position(|entry| entry.key == "resources").map(|at| ccm.remove(at).value);
    (resources, settings(rest, diagnostics))
}

fn settings(entries: Vec<Entry>, diagnostics: &mut Diagnostics) -> ManifestSettings {
    let known = crate::vocabulary::schema::keys::<ManifestSettings>();
    let mut map = Vec::new();
    for entry in entries {
        if known.contains(&entry.key.as_str()) {
            // What could not be expanded is told already.
            map.extend(Some(entry).filter(|entry| !template::holds_template(&entry.value)));
            continue;
        }
        let all = known.iter().copied().chain(["resources"]);
        if entry.key == "resources_jet_file" {
            let message = "`ccm.resources_jet_file` names a template in the language Jet, which is not read";
            let help = "list the resources below `ccm.resources` and repeat them with `for_each`: \
                        docs/guide/coming-from-go.md shows how";
            let problem = Diagnostic::error("unknown-setting", message).at(entry.key_span);
            diagnostics.push(problem.with_help(help));
            continue;
        }
        let help = closest(&entry.key, all.clone()).map_or_else(
            || format!("ccm has {}", all.collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        diagnostics.push(
            Diagnostic::error("unknown-setting", format!("unknown key `ccm.{}`", entry.key))
                .at(entry.key_span)
                .with_help(help),
        );
    }
    // One by one, so that each faulty setting is reported.
    for entry in &map {
        let span = entry.value.span;
        let alone = Node { value: Value::Map(vec![entry.clone()]), span };
        if let Err(error) = from_node::<ManifestSettings>(&alone) {
            let message = format!("ccm.{}: {}", entry.key, error.message);
            diagnostics.push(Diagnostic::error("invalid-setting", message).at(error.span.unwrap_or(span)));
        }
    }
    from_node(&Node { value: Value::Map(map), span: document::Span::default() }).unwrap_or_default()
}

/// A document that declares nothing at all is most probably not the one that was meant.
fn no_resources(place: Span) -> Diagnostic {
    Diagnostic::error("no-resources", "the manifest has no resources")
        .at(place)
        .with_help("write them below ccm.resources; `resources: []` is a manifest without any")
}

fn not_a_manifest(root: &Node) -> Diagnostic {
    if root.is_null() {
        return no_resources(root.span);
    }
    Diagnostic::error(
        "not-a-manifest",
        format!("a manifest is a map of sections or a list of resources, not {}", root.kind()),
    )
    .at(root.span)
}
