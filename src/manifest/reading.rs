//! A manifest and those that it includes, read together: all problems of all of them are told at once, each in its file.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{
    bundle::Bundle,
    entries::{self, Declared, Read, Told, is_within, repeats},
    load_inputs::{External, LoadInputs},
    loaded::{LoadError, Loaded, Strictness, combine, review_of},
    references::{self, Checked, Stated},
    repetition::Findings,
    rule_files::RuleFiles,
    secret,
    sections::{self, no_resources, not_a_manifest},
    source::{IN_A_FOLDER, Location, Origin},
};
use crate::{
    declare::{Completeness, Declaration, Management},
    document::{self, Diagnostic, Diagnostics, Node, Review, Source, from_node, to_value},
    hiera::{self, Resolved, deep},
    host::{
        Host,
        input::{self, InputError},
        look,
    },
    resource::{
        FailureResponse, Manifest, ManifestSettings, OnFailure, Resource, Task, misplaced_references,
    },
    secrets::{self, Format},
    state::LocalState,
    template::{self, Learned, Provenance, Scope},
    vocabulary::{RunMode, has_scheme},
};

/// The type whose resources are manifests.
pub(super) const APPLY: &str = "apply";

/// How deep manifests may be inside each other.
const DEEPEST: usize = 10;

/// Loads a manifest with its included manifests, or returns all of their errors.
pub(crate) fn load(
    location: &Location,
    load_inputs: &LoadInputs,
    host: &Host,
    state: &LocalState,
) -> Result<Loaded<Manifest>, LoadError> {
    let loaded = load_leniently(location, load_inputs, host, state);
    match load_inputs.strictness {
        Strictness::Lenient => loaded,
        Strictness::Strict => loaded.map_err(LoadError::strictly).and_then(Loaded::strictly),
    }
}

fn load_leniently(
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

/// Manifests that are being read, and what they are read with.
struct Reading<'a> {
    load_inputs: &'a LoadInputs,
    host: &'a Host,
    state: &'a LocalState,
    external: &'a [External],
    /// What resources of all of them learn in the run.
    learned: Learned,
    files: Vec<File>,
}

/// One of the manifests.
struct File {
    source: Rc<Source>,
    folder: PathBuf,
    diagnostics: Diagnostics,
    bundle: Option<Bundle>,
    syntax: Syntax,
    content: Option<Content>,
    /// What was found in the files of its hierarchy, and in those with rules of health checks.
    reviews: Vec<Review>,
}

/// What came of a text when it was parsed. The tree itself is taken apart: it would be as large as all resources together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// It is no document, or was not read yet.
    Broken,
    Clean,
    /// It is a document about which something is to be said.
    Doubtful,
}

/// What a manifest says, as far as it can be told in spite of its problems.
struct Content {
    scope: Scope,
    settings: ManifestSettings,
    items: Vec<Item>,
    told: Vec<Told>,
    findings: Findings,
}

/// A resource, and the manifest that it includes.
struct Item {
    declared: Declared,
    included: Option<usize>,
}

/// How a manifest comes to be read.
struct Way {
    /// The files that lead to it, itself included.
    chain: Vec<PathBuf>,
    /// Data that goes over its own; that of the user for the first.
    data: Option<ccm_expr::Value>,
    /// Whether it may have children.
    children: Children,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    Allowed,
    Forbidden,
}

impl Way {
    /// The way to the manifest that the user named.
    fn first(source: &Source) -> Self {
        let chain = input::real_path(Path::new(&source.name)).into_iter().collect();
        Self { chain, data: None, children: Children::Allowed }
    }
}

impl Reading<'_> {
    /// Reads a manifest and those inside it, and returns its place among the files.
    fn file(&mut self, origin: Origin, way: &Way) -> Result<usize, LoadError> {
        let Origin { source, folder, provenance, bundle, stands_alone } = origin;
        let place = self.files.len();
        let (diagnostics, content, reviews) = (Diagnostics::default(), None, Vec::new());
        let (source, syntax) = (Rc::new(source), Syntax::Broken);
        self.files.push(File { source, folder, diagnostics, bundle, syntax, content, reviews });
        let file = &self.files[place];
        let mut diagnostics = Diagnostics::default();
        let mut parsed = match secrets::read(&file.source, Format::Yaml, &self.load_inputs.keyring) {
            Ok(parsed) => parsed,
            Err(mut found) => {
                secret::hide_all(&mut found, &file.source.text);
                self.files[place].diagnostics = found;
                return Ok(place);
            }
        };
        let source = Rc::clone(&file.source);
        let folder = file.folder.clone();
        let scope = self.load_inputs.scope(&folder).with_learned(&self.learned);
        let origin = hiera::Origin {
            source: &source,
            folder: Some(folder.as_path()).filter(|_| !stands_alone),
            provenance,
            limit: self.load_inputs.limits.data,
            keyring: &self.load_inputs.keyring,
        };
        let read = self.tree(place, &mut parsed.root, &origin, &scope, way, &mut diagnostics)?;
        let content = match read {
            Some((scope, settings, Read { declared, told, findings })) => {
                let mut content = Content { scope, settings, items: Vec::new(), told, findings };
                for declared in declared {
                    let included = self.included(&declared, place, &mut content, provenance, way)?;
                    content.items.push(Item { declared, included });
                }
                Some(content)
            }
            None => None,
        };
        let file = &mut self.files[place];
        (file.diagnostics, file.content) = (diagnostics, content);
        file.syntax = if parsed.diagnostics.is_empty() { Syntax::Clean } else { Syntax::Doubtful };
        Ok(place)
    }

    fn tree(
        &mut self,
        place: usize,
        root: &mut Node,
        origin: &hiera::Origin,
        scope: &Scope,
        way: &Way,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<(Scope, ManifestSettings, Read)>, LoadError> {
        let source = origin.source;
        let for_data = scope.for_data(origin.provenance);
        let mut absent_files = Vec::new();
        let own = match root.as_map() {
            Some(entries) => {
                let Resolved { data, files, absent } =
                    hiera::resolve(entries, &for_data, origin, diagnostics);
                absent_files = absent;
                self.files[place].reviews = files.into_iter().filter_map(review_of).collect();
                data
            }
            None if root.as_seq().is_some() => ccm_expr::Map::new().into(),
            None => {
                diagnostics.push(not_a_manifest(root));
                return Ok(None);
            }
        };
        let (merged, external) = match &way.data {
            Some(data) => {
                let merged = deep(own.clone(), data).unwrap_or_else(|conflict| {
                    let message = conflict.message("this manifest", "the data that it is given");
                    let problem = Diagnostic::error("mixed-merge", message).with_help(hiera::MERGE_ADVICE);
                    let data = root.lookup("data").map_or(root.span, |node| node.span);
                    diagnostics.push(problem.at(data));
                    own
                });
                (merged, [].as_slice())
            }
            None => (own, self.external),
        };
        let merged = hiera::over(merged, external.iter().map(External::layer), &self.load_inputs.data)
            .map_err(LoadError::NotSet)?;
        let for_data = for_data.without_files(absent_files.clone());
        hiera::check(root.as_map().unwrap_or_default(), &merged, &for_data, source, diagnostics);
        let scope = scope.with_data(merged).without_files(absent_files);
        let whole = root.span;
        let (list, settings) = sections::read(root, &scope, source, diagnostics);
        let read = match list {
            Some(list) => entries::read(list, &scope, source, diagnostics),
            None => {
                diagnostics.push(no_resources(whole));
                Read::default()
            }
        };
        Ok(Some((scope, settings, read)))
    }

    /// Reads the manifest that a resource includes, if it includes one.
    fn included(
        &mut self,
        declared: &Declared,
        parent: usize,
        content: &mut Content,
        provenance: Provenance,
        way: &Way,
    ) -> Result<Option<usize>, LoadError> {
        let declaration = &declared.declaration;
        if declaration.kind.name() != APPLY || declared.completeness != Completeness::Whole {
            return Ok(None);
        }
        if let Management::Off(_) = declaration.management {
            return Ok(None);
        }
        let (origin, chain) = match self.find(declaration, &self.files[parent], provenance, way) {
            Ok(found) => found,
            Err(problem) => {
                content.findings.extend(declared, [problem.at(declaration.name_span)]);
                return Ok(None);
            }
        };
        let given = property(declaration, "data").filter(|data| data.as_map().is_some());
        let data = Some(given.map_or_else(|| content.scope.data().clone(), to_value));
        let allows =
            property(declaration, "allow_apply").and_then(|node| from_node(node).ok()).unwrap_or(true);
        let children = if allows { way.children } else { Children::Forbidden };
        self.file(origin, &Way { chain, data, children }).map(Some)
    }

    /// Finds the manifest that a resource names, and the files that lead to it.
    fn find(
        &self,
        declaration: &Declaration,
        parent: &File,
        provenance: Provenance,
        way: &Way,
    ) -> Result<(Origin, Vec<PathBuf>), Diagnostic> {
        let name = declaration.name.as_str();
        let problem =
            |message: String| Diagnostic::error("invalid-child", format!("{APPLY}#{name}: {message}"));
        if has_scheme(name) {
            let help =
                "apply a bundle from an address with `ccm apply URL`, or let the agent fetch manifests";
            return Err(
                problem("a manifest inside another cannot come from an address".to_owned()).with_help(help)
            );
        }
        if way.children == Children::Forbidden {
            return Err(problem("manifests inside this one are not allowed".to_owned())
                .with_help("the manifest that applies this one says `allow_apply: false`"));
        }
        let path = parent.folder.join(name);
        let file = if look::is_directory(&path) { path.join(IN_A_FOLDER) } else { path.clone() };
        let file = input::real_path(&file).map_err(|error| {
            let problem = problem(format!("cannot read {}: {error}", file.display()));
            match template::nearest_file(&file).filter(|_| matches!(error, InputError::Missing)) {
                Some(near) => problem.with_help(format!("did you mean `{near}`?")),
                None => problem,
            }
        })?;
        let mut chain = way.chain.clone();
        chain.push(file.clone());
        let shown = || chain.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" -> ");
        if way.chain.contains(&file) {
            return Err(problem(format!("it applies itself: {}", shown())));
        }
        if chain.len() > DEEPEST {
            return Err(problem(format!(
                "manifests are more than {DEEPEST} deep inside each other: {}",
                shown()
            )));
        }
        let limit = self.load_inputs.limits.document;
        let mut origin = Location::Path(path.clone())
            .read(self.host, self.state, &self.load_inputs.nats, limit)
            .map_err(|error| problem(error.to_string()))?;
        let beside = Path::new(&parent.source.name).parent().unwrap_or(Path::new(""));
        let shown =
            if look::is_directory(&path) { beside.join(name).join(IN_A_FOLDER) } else { beside.join(name) };
        origin.source.name = shown.display().to_string();
        if provenance == Provenance::Remote {
            origin.provenance = provenance;
        }
        Ok((origin, chain))
    }

    /// Checks names and references across all files.
    fn check_references(&mut self) {
        let mut order = Vec::new();
        order_of(&self.files, 0, &[], &mut order);
        let Checked { problems, replaced } = {
            let stated: Vec<Stated> = order
                .iter()
                .filter_map(|(file, item, within)| {
                    let File { source, content, .. } = &self.files[*file];
                    let declared = &content.as_ref()?.items[*item].declared;
                    Some(Stated { declared, file: *file, source, within: within.clone() })
                })
                .collect();
            references::check(&stated)
        };
        for replaced in replaced {
            let (file, item, _) = &order[replaced.index];
            if let Some(content) = &mut self.files[*file].content {
                references::replace(&mut content.items[*item].declared.declaration, &replaced);
            }
        }
        for (at, problem) in problems {
            let (file, item, _) = &order[at];
            if let Some(Content { items, findings, .. }) = &mut self.files[*file].content {
                findings.extend(&items[*item].declared, [problem]);
            }
        }
    }

    /// Checks references to resources that are validated together. Every included manifest has to be known for that.
    pub(super) fn check_groups(&mut self, manifest: Option<&Manifest>) {
        if self.files.iter().any(|file| file.diagnostics.has_errors()) {
            return;
        }
        for (file, problem) in manifest.into_iter().flat_map(misplaced_references) {
            self.files[file].diagnostics.push(problem);
        }
    }

    /// Returns the resources of a file, as far as nothing is wrong with them.
    fn resolve(&mut self, file: usize) -> Vec<Resource> {
        let File { folder, content, .. } = &mut self.files[file];
        let Some(Content { items, told, findings, scope, .. }) = content else { return Vec::new() };
        let (folder, scope) = (folder.clone(), scope.before_run());
        let (items, told, mut findings) =
            (std::mem::take(items), std::mem::take(told), std::mem::take(findings));
        let mut resources = Vec::with_capacity(items.len());
        let mut rule_files = RuleFiles::default();
        for Item { declared, included } in items {
            let resource = resolve(&declared, &told, &mut findings);
            let included = included.and_then(|file| self.build(file, &declared.declaration));
            if let Some(mut resource) = resource {
                if let (APPLY, Management::Off(reason)) =
                    (resource.kind.name(), declared.declaration.management)
                {
                    resource.switched_off = Some(reason);
                }
                findings.extend(&declared, resource.problems_beside(&folder, &scope));
                let checks = property(&declared.declaration, "health_checks");
                findings.extend(&declared, rule_files.check(&resource, checks, &folder));
                resource.included = included.map(Box::new);
                resources.push(resource);
            }
        }
        let file = &mut self.files[file];
        file.diagnostics.extend(findings.finish());
        file.reviews.extend(rule_files.reviews);
        resources
    }

    /// Returns the manifest that a resource includes.
    fn build(&mut self, file: usize, declaration: &Declaration) -> Option<Manifest> {
        let resources = self.resolve(file);
        let is_set = |key| property(declaration, key).and_then(|node| from_node(node).ok()).unwrap_or(false);
        let mut manifest = self.files[file].manifest(resources)?;
        if is_set("noop") {
            manifest.mode = RunMode::Noop;
        }
        if is_set("health_check_only") {
            manifest.task = Task::Monitor;
        }
        let response = property(declaration, "on_failure").and_then(|node| from_node(node).ok());
        if response == Some(FailureResponse::Undo) {
            manifest.on_failure = OnFailure::Undo;
        }
        Some(manifest)
    }
}

impl File {
    /// Returns the manifest with these resources, unless the file is none.
    fn manifest(&mut self, resources: Vec<Resource>) -> Option<Manifest> {
        let content = self.content.take()?;
        let (source, scope) = (self.source.as_ref().clone(), content.scope.for_turns());
        let manifest = Manifest::of(resources, source, self.folder.clone(), scope);
        let bundles = self.bundle.take().map(Bundle::into_staging).into_iter().collect();
        Some(Manifest { _bundles: bundles, ..manifest.with_settings(content.settings) })
    }

    /// Returns what was found in it, in the written order, and in the files that it names.
    fn reviews(&mut self) -> Vec<Review> {
        let is_well = self.syntax == Syntax::Clean && self.diagnostics.is_empty();
        if self.syntax != Syntax::Broken
            && !is_well
            && let Ok(parsed) = document::read(&self.source)
        {
            combine(&mut self.diagnostics, &parsed, &self.source);
        }
        let own = std::mem::take(&mut self.diagnostics).review(&self.source);
        own.into_iter().chain(std::mem::take(&mut self.reviews)).collect()
    }
}

/// Returns the declared resource, unless it has errors.
fn resolve(declared: &Declared, told: &[Told], findings: &mut Findings) -> Option<Resource> {
    let mut found = Diagnostics::default();
    let resource = declared.declaration.clone().resolve(declared.completeness, &mut found);
    // Items that cannot have a shared property ignore it.
    let is_shared =
        |problem: &Diagnostic| problem.id == "no-effect-on-link" && is_within(problem, declared.defaults);
    found.retain(|problem| !repeats(problem, declared.defaults, told) && !is_shared(problem));
    findings.extend(declared, found);
    resource
}

fn property<'d>(declaration: &'d Declaration, key: &str) -> Option<&'d Node> {
    declaration.properties.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

/// The resources in the order of their turns: file and place in it, and the places of those that they are part of.
fn order_of(files: &[File], file: usize, within: &[usize], order: &mut Vec<(usize, usize, Vec<usize>)>) {
    let items = files[file].content.iter().flat_map(|content| &content.items);
    for (place, item) in items.enumerate() {
        let index = order.len();
        order.push((file, place, within.to_vec()));
        if let Some(included) = item.included {
            order_of(files, included, &[within, &[index]].concat(), order);
        }
    }
}
