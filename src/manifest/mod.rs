//! From a manifest to resources: every problem of the whole file, or none.

mod bundle;
mod entries;
mod references;
mod schema;
mod secret;
mod source;

pub(crate) use schema::manifest_schema;
pub(crate) use source::{Location, Unreadable};

use bundle::Bundle;
use source::Origin;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    document::{self, Entry, Node, Pair, Parsed, Problem, Source, Value, closest, from_node},
    hiera::{self, deep, set},
    host::Host,
    resource::{Declaration, Expansion, Resource},
    state::Memory,
    template::{self, Scope},
};

/// A manifest that is valid as a whole.
pub(crate) struct Manifest {
    /// The text, for messages about what is found later.
    pub(crate) source: Source,
    /// Where its relative paths start.
    pub(crate) working_directory: PathBuf,
    pub(crate) resources: Vec<Resource>,
    pub(crate) settings: Settings,
    /// What its late templates and conditions can see.
    pub(crate) scope: Scope,
    /// Keeps the files of a bundle until the run is over.
    _bundle: Option<Bundle>,
}

/// What a manifest says about the run as a whole.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Settings {
    /// Stop at the first failed resource.
    pub(crate) fail_on_error: bool,
    /// Printed before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pre_message: Option<String>,
    /// Printed after the run when nothing failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) post_message: Option<String>,
}

/// Why there is no manifest.
pub(crate) enum LoadError {
    Unreadable(Unreadable),
    /// What the user sets has no place in the data.
    NotSet(String),
    /// Each document that has problems, with them.
    Invalid(Vec<(Source, Vec<Problem>)>),
}

/// What surrounds a manifest: the machine it is read on, and what the user adds to its data.
pub(crate) struct LoadInputs {
    pub(crate) facts: ccm_expr::Value,
    pub(crate) environ: ccm_expr::Value,
    /// Data that goes over the manifest's own.
    pub(crate) hiera: Option<Location>,
    /// Data that goes over everything, one after the other.
    pub(crate) data: Vec<Pair>,
    /// Told what the user should know although nothing is wrong.
    pub(crate) warn: fn(&str),
}

/// Reads a manifest and finds everything that is wrong with it.
pub(crate) fn load(
    location: &Location,
    load_inputs: &LoadInputs,
    host: &Host,
    memory: &Memory,
) -> Result<Manifest, LoadError> {
    let Origin { source, folder: working_directory, bundle } =
        location.read(host, memory).map_err(LoadError::Unreadable)?;
    let scope = load_inputs.scope(&working_directory);
    let external = load_inputs.external_data(&scope, host, memory)?;
    let mut problems = Vec::new();
    let read = read(&source, &scope, load_inputs, external.as_ref(), &mut problems)?;
    let broken =
        |scope: &Scope| external.as_ref().and_then(|external| external.broken(scope, load_inputs.warn));
    let mut invalid: Vec<_> = read.as_ref().and_then(|(_, _, scope)| broken(scope)).into_iter().collect();
    match read {
        Some((resources, settings, scope)) if problems.is_empty() && invalid.is_empty() => {
            Ok(Manifest { source, working_directory, resources, settings, scope, _bundle: bundle })
        }
        _ if problems.is_empty() => Err(LoadError::Invalid(invalid)),
        _ => {
            invalid.insert(0, (source, problems));
            Err(LoadError::Invalid(invalid))
        }
    }
}

impl LoadInputs {
    /// What expressions can see before there is any data.
    fn scope(&self, working_directory: &Path) -> Scope {
        Scope::new(self.facts.clone(), self.environ.clone(), working_directory.to_owned())
    }

    /// What expressions can see where there is no manifest.
    pub(crate) fn without_manifest(
        &self,
        working_directory: &Path,
        host: &Host,
        memory: &Memory,
    ) -> Result<Scope, LoadError> {
        let scope = self.scope(working_directory);
        let external = self.external_data(&scope, host, memory)?;
        let scope = scope.with_data(self.over(ccm_expr::Map::new().into(), external.as_ref())?);
        match external.and_then(|external| external.broken(&scope, self.warn)) {
            Some(broken) => Err(LoadError::Invalid(vec![broken])),
            None => Ok(scope),
        }
    }

    /// The data of a document that holds only data.
    pub(crate) fn data_of(
        &self,
        location: &Location,
        working_directory: &Path,
        host: &Host,
        memory: &Memory,
    ) -> Result<ccm_expr::Value, LoadError> {
        let scope = self.scope(working_directory);
        let external = External::read(location, &scope, host, memory)?;
        let scope = scope.with_data(external.data.clone());
        match external.broken(&scope, self.warn) {
            Some(broken) => Err(LoadError::Invalid(vec![broken])),
            None => Ok(external.data),
        }
    }

    /// Other data with the user's over it.
    fn over(&self, data: ccm_expr::Value, external: Option<&External>) -> Result<ccm_expr::Value, LoadError> {
        let data = match external {
            Some(external) => deep(data, &external.data),
            None => data,
        };
        self.data.iter().try_fold(data, set).map_err(LoadError::NotSet)
    }

    fn external_data(
        &self,
        scope: &Scope,
        host: &Host,
        memory: &Memory,
    ) -> Result<Option<External>, LoadError> {
        self.hiera.as_ref().map(|location| External::read(location, scope, host, memory)).transpose()
    }
}

/// A document that holds only data, whose rules are still to be checked: they are about what it is merged with, too.
struct External {
    source: Source,
    root: Node,
    data: ccm_expr::Value,
}

impl External {
    fn read(location: &Location, scope: &Scope, host: &Host, memory: &Memory) -> Result<Self, LoadError> {
        let Origin { source, folder, bundle: _bundle } =
            location.read(host, memory).map_err(LoadError::Unreadable)?;
        let parsed = match document::read(&source) {
            Ok(parsed) => parsed,
            Err(mut problems) => {
                secret::hide_all(&mut problems, &source.text);
                return Err(LoadError::Invalid(vec![(source, problems)]));
            }
        };
        let root = &parsed.root;
        let mut problems = Vec::new();
        let data = if root.is_null() {
            ccm_expr::Map::new().into()
        } else if let Some(entries) = root.as_map() {
            check_sections(entries, &mut problems);
            hiera::resolve(entries, &scope.at(&folder), &source, &mut problems)
        } else {
            let message = format!("data is a map with a section `data`, not {}", root.kind());
            problems.push(Problem::new(message).at(root.span));
            ccm_expr::Value::Null
        };
        combine(&mut problems, &parsed, &source);
        if problems.is_empty() {
            return Ok(Self { source, root: parsed.root, data });
        }
        Err(LoadError::Invalid(vec![(source, problems)]))
    }

    /// The rules that the merged data breaks.
    fn broken(&self, scope: &Scope, warn: fn(&str)) -> Option<(Source, Vec<Problem>)> {
        let mut problems = Vec::new();
        let entries = self.root.as_map().unwrap_or_default();
        let warnings = hiera::check(entries, scope.data(), scope, &self.source, &mut problems);
        for warning in &warnings {
            warn(warning);
        }
        secret::hide(&mut problems, &self.root, &self.source.text);
        (!problems.is_empty()).then(|| (self.source.clone(), problems))
    }
}

type Read = (Vec<Resource>, Settings, Scope);

/// What a manifest says, as far as it can be told in spite of its problems.
fn read(
    source: &Source,
    scope: &Scope,
    load_inputs: &LoadInputs,
    external: Option<&External>,
    problems: &mut Vec<Problem>,
) -> Result<Option<Read>, LoadError> {
    let mut parsed = match document::read(source) {
        Ok(parsed) => parsed,
        Err(found) => {
            *problems = found;
            secret::hide_all(problems, &source.text);
            return Ok(None);
        }
    };
    let read = read_tree(&mut parsed.root, source, scope, load_inputs, external, problems)?;
    combine(problems, &parsed, source);
    Ok(read)
}

/// Joins what is wrong with a document as such and what is wrong with what it says, in the written order.
fn combine(problems: &mut Vec<Problem>, Parsed { root, problems: found, gaps }: &Parsed, source: &Source) {
    let follows =
        |problem: &Problem| problem.span.is_some_and(|span| gaps.iter().any(|gap| span.contains(*gap)));
    problems.retain(|problem| !follows(problem));
    problems.extend(found.iter().cloned());
    problems.sort_by_key(Problem::start);
    if found.is_empty() {
        secret::hide(problems, root, &source.text);
    } else {
        secret::hide_all(problems, &source.text);
    }
}

fn read_tree(
    root: &mut Node,
    source: &Source,
    scope: &Scope,
    load_inputs: &LoadInputs,
    external: Option<&External>,
    problems: &mut Vec<Problem>,
) -> Result<Option<Read>, LoadError> {
    let own = match root.as_map() {
        Some(entries) => {
            check_sections(entries, problems);
            hiera::resolve(entries, scope, source, problems)
        }
        None if root.is_null() || root.as_seq().is_some() => ccm_expr::Map::new().into(),
        None => {
            problems.push(not_a_manifest(root));
            return Ok(None);
        }
    };
    let merged = load_inputs.over(own, external)?;
    let warnings = hiera::check(root.as_map().unwrap_or_default(), &merged, scope, source, problems);
    for warning in &warnings {
        (load_inputs.warn)(warning);
    }
    let scope = scope.with_data(merged);
    let (list, settings) = match &mut root.value {
        Value::Map(entries) => ccm_section(entries, &scope, source, problems),
        _ => (Some(&*root), Settings::default()),
    };
    let mut expansion = Expansion::new(&scope, source);
    let resources = list.map(|list| entries::resources(list, &mut expansion, problems)).unwrap_or_default();
    Ok(Some((resources, settings, scope)))
}

/// The declarations in a manifest that is part of the program.
pub(crate) fn declarations(text: &str) -> Result<Vec<Declaration>, Vec<Problem>> {
    let root = document::parse(&Source { name: "example".to_owned(), text: text.to_owned() })?;
    let mut problems = Vec::new();
    let declarations = entries::declarations(&root, &mut problems);
    if problems.is_empty() { Ok(declarations) } else { Err(problems) }
}

const SECTIONS: [&str; 4] = ["data", "hierarchy", "overrides", "ccm"];

fn check_sections(entries: &[Entry], problems: &mut Vec<Problem>) {
    for Entry { key, key_span, value } in entries {
        if !SECTIONS.contains(&key.as_str()) {
            let near = closest(key, SECTIONS);
            let help = near.map_or_else(
                || format!("a manifest has {}; resources stand below ccm.resources", SECTIONS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            problems.push(Problem::new(format!("unknown section `{key}`")).at(*key_span).with_help(help));
        } else if value.as_map().is_none() && !value.is_null() && matches!(key.as_str(), "data" | "ccm") {
            problems
                .push(Problem::new(format!("`{key}` must be a map, not {}", value.kind())).at(value.span));
        }
    }
}

/// The list of resources and the settings of a manifest with sections.
fn ccm_section<'a>(
    entries: &'a mut [Entry],
    scope: &Scope,
    source: &Source,
    problems: &mut Vec<Problem>,
) -> (Option<&'a Node>, Settings) {
    let ccm = entries.iter_mut().find(|entry| entry.key == "ccm").map(|entry| &mut entry.value.value);
    let Some(Value::Map(ccm)) = ccm else { return (None, Settings::default()) };
    let mut rest = Vec::new();
    for entry in ccm.iter_mut().filter(|entry| entry.key != "resources") {
        if entry.key.ends_with("_message") {
            template::join(&mut entry.value);
        }
        template::expand_properties(&mut entry.value, scope, source, problems);
        rest.push(entry.clone());
    }
    let resources = ccm.iter().find(|entry| entry.key == "resources").map(|entry| &entry.value);
    (resources, settings(rest, problems))
}

fn settings(entries: Vec<Entry>, problems: &mut Vec<Problem>) -> Settings {
    let known = crate::resource::keys::<Settings>();
    let mut map = Vec::new();
    for entry in entries {
        if known.contains(&entry.key.as_str()) {
            // What could not be expanded is told already.
            map.extend(Some(entry).filter(|entry| !template::holds_template(&entry.value)));
            continue;
        }
        let all = known.iter().copied().chain(["resources"]);
        let help = closest(&entry.key, all.clone()).map_or_else(
            || format!("ccm has {}", all.collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        problems.push(
            Problem::new(format!("unknown key `ccm.{}`", entry.key)).at(entry.key_span).with_help(help),
        );
    }
    // One by one, so that each faulty setting is reported.
    for entry in &map {
        let span = entry.value.span;
        let alone = Node { value: Value::Map(vec![entry.clone()]), span };
        if let Err(error) = from_node::<Settings>(&alone) {
            let message = format!("ccm.{}: {}", entry.key, error.message);
            problems.push(Problem::new(message).at(error.span.unwrap_or(span)));
        }
    }
    from_node(&Node { value: Value::Map(map), span: document::Span::default() }).unwrap_or_default()
}

fn not_a_manifest(root: &Node) -> Problem {
    Problem::new(format!("a manifest is a map of sections or a list of resources, not {}", root.kind()))
        .at(root.span)
}
