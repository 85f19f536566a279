//! What a manifest is loaded with, and documents that contain only data.

use std::{path::Path, sync::Arc};

use super::{
    loaded::{LoadError, Loaded, Strictness, combine, review_of},
    secret,
    sections::check_sections,
    source::{Location, Origin},
};
use crate::{
    document::{Diagnostic, Diagnostics, Node, Pair, Review, Source, to_value},
    facts::Facts,
    hiera::{self, Resolved},
    host::{Host, input::Limits},
    nats::Nats,
    secrets::{self, Format, Keyring},
    state::LocalState,
    template::{Provenance, Scope},
};

/// What a manifest is loaded with: facts, environment, and data of the user.
pub(crate) struct LoadInputs {
    pub(crate) facts: Arc<Facts>,
    pub(crate) environ: ccm_expr::Value,
    /// Data that overrides the manifest's own; later data overrides earlier data.
    pub(crate) hiera: Vec<Location>,
    /// Data that overrides all other data.
    pub(crate) data: Vec<Pair>,
    pub(crate) strictness: Strictness,
    /// Maximum sizes of documents.
    pub(crate) limits: Limits,
    /// Limits the memory that all expressions of the run use together.
    pub(crate) expression_memory: ccm_expr::Memory,
    /// Connection for objects, keys, `kvGet` and `registrations`.
    pub(crate) nats: Arc<Nats>,
    /// Opens encrypted data.
    pub(crate) keyring: Arc<Keyring>,
}

impl LoadInputs {
    /// Returns the scope of expressions before there is data.
    pub(super) fn scope(&self, working_directory: &Path) -> Scope {
        Scope::new(
            ccm_expr::Value::Object(Arc::clone(&self.facts) as Arc<_>),
            self.environ.clone(),
            working_directory.to_owned(),
        )
        .with_memory(self.expression_memory.clone())
        .with_nats(Arc::clone(&self.nats))
        .with_keyring(Arc::clone(&self.keyring))
    }

    /// Returns the scope of expressions outside of a manifest.
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

    /// Returns the data of a document that contains only data, overridden by the user's.
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

    /// Returns data overridden by the user's.
    fn over(&self, data: ccm_expr::Value, external: &[External]) -> Result<ccm_expr::Value, LoadError> {
        hiera::over(data, external.iter().map(External::layer), &self.data).map_err(LoadError::NotSet)
    }

    pub(super) fn external_data(
        &self,
        scope: &Scope,
        host: &Host,
        state: &LocalState,
    ) -> Result<Vec<External>, LoadError> {
        self.hiera.iter().map(|location| External::read(location, scope, host, state, self)).collect()
    }
}

/// A document that holds only data, whose rules are still to be checked: they are about what it is merged with, too.
pub(super) struct External {
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
            let Resolved { data, files: read, .. } =
                hiera::resolve(entries, &scope, &origin, &mut diagnostics);
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

    /// Returns the name and the data of the document.
    pub(super) fn layer(&self) -> (&str, &ccm_expr::Value) {
        (&self.source.name, &self.data)
    }

    /// Returns what was found in the document and in the files of its hierarchy, and the rules of it that the merged data
    /// breaks.
    pub(super) fn reviews(&self, scope: &Scope) -> Vec<Review> {
        let mut diagnostics = self.diagnostics.clone();
        let entries = self.root.as_map().unwrap_or_default();
        let scope = scope.for_data(self.provenance);
        hiera::check(entries, scope.data(), &scope, &self.source, &mut diagnostics);
        secret::hide(&mut diagnostics, &self.root, &self.source.text);
        diagnostics.review(&self.source).into_iter().chain(self.files.iter().cloned()).collect()
    }
}
