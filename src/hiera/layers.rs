//! The layers of a document: `data`, and the `overrides` and files that its `hierarchy` selects on this machine.

use std::path::{Path, PathBuf};

use ccm_expr::{Doubt, DoubtKind, ErrorKind, Map, Template, Value};

use super::{
    doubts,
    files::{Directory, LayerFile},
    merge::{self, Conflict, Lists},
    rules,
};
use crate::{
    document::{Diagnostic, Diagnostics, Entry, Node, Pair, Scalar, Source, Span, closest, to_value},
    secrets::Keyring,
    template::{self, Missing, Provenance, Scope, check_closed, expand, holds_template, template_problem},
};

/// How overrides go over the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The first that is found replaces keys of the top level.
    First,
    /// All that are found, later ones over earlier ones.
    Deep(Lists),
    /// Each key of the top level comes from the first that has it.
    Keys,
}

/// What a hierarchy says.
struct Hierarchy {
    /// The names to look for in `overrides`.
    order: Vec<String>,
    mode: Mode,
    /// Where files with the same names are.
    directory: Option<Directory>,
}

impl Default for Hierarchy {
    fn default() -> Self {
        Self { order: vec!["default".to_owned()], mode: Mode::First, directory: None }
    }
}

/// Where a document comes from.
pub(crate) struct Origin<'a> {
    pub(crate) source: &'a Source,
    /// The folder that its files lie in; `None` where it came alone, from an address.
    pub(crate) folder: Option<&'a Path>,
    pub(crate) provenance: Provenance,
    /// How large a file with data may be.
    pub(crate) limit: u64,
    /// Opens encrypted files.
    pub(crate) keyring: &'a Keyring,
}

/// The data of a document, and the files that went into it.
pub(crate) struct Resolved {
    pub(crate) data: Value,
    pub(crate) files: Vec<LayerFile>,
    /// Files that entries of the order select and that do not exist.
    pub(crate) absent: Vec<String>,
}

/// The data of a document on this machine.
pub(crate) fn resolve(
    root: &[Entry],
    scope: &Scope,
    origin: &Origin,
    diagnostics: &mut Diagnostics,
) -> Resolved {
    let source = origin.source;
    let section = |name: &str| root.iter().find(|entry| entry.key == name);
    let expanded = |mut node: Node, diagnostics: &mut Diagnostics| {
        expand(&mut node, scope, source, diagnostics);
        to_value(&node)
    };
    for entry in ["data", "hierarchy", "overrides"].into_iter().filter_map(section) {
        check_closed(&entry.value, source, diagnostics);
    }
    let data = section("data").map(|entry| &entry.value).filter(|node| !node.is_null());
    let merged = data.map_or_else(|| Map::new().into(), |data| expanded(data.clone(), diagnostics));
    let Hierarchy { order, mode, directory } = section("hierarchy")
        .map(|hierarchy| hierarchy_of(hierarchy, scope, origin, diagnostics))
        .unwrap_or_default();
    let overrides =
        section("overrides").and_then(|entry| overrides_of(entry, diagnostics)).unwrap_or_default();
    let chosen = |entry: &&Entry| order.contains(&entry.key);
    for other in overrides.iter().filter(|entry| !chosen(entry) && holds_template(&entry.value)) {
        // What this machine does not use, another one will.
        template::check(&other.value, scope, source, diagnostics);
    }
    let mut files = Vec::new();
    let mut without_data = Vec::new();
    let mut layers = Vec::new();
    for name in &order {
        let file = directory.as_ref().and_then(|directory| directory.find(name, origin, scope, diagnostics));
        let below = file.as_ref().map(|file| (file.source.name.clone(), file.data.clone()));
        files.extend(file);
        let inline = overrides.iter().find(|entry| entry.key == *name);
        let above = inline.map(|entry| {
            doubts::misspelt_keys(&entry.value, &merged, "", diagnostics);
            (format!("override `{name}`"), expanded(entry.value.clone(), diagnostics))
        });
        if below.is_none() && above.is_none() {
            without_data.push(name.clone());
        }
        let layer: Vec<_> = below.into_iter().chain(above).collect();
        let is_last = mode == Mode::First && !layer.is_empty();
        layers.extend((!layer.is_empty()).then_some(layer));
        if is_last {
            break;
        }
    }
    let parts = doubts::Parts {
        hierarchy: section("hierarchy"),
        overrides: section("overrides"),
        directory: directory.as_ref(),
        order: &order,
        without_data: &without_data,
    };
    parts.check(scope.facts(), diagnostics);
    let data = match mode {
        Mode::First => layers.concat().iter().fold(merged, |data, (_, over)| merge::shallow(data, over)),
        Mode::Keys => {
            let above = |data, layer: &Vec<(String, Value)>| {
                layer.iter().fold(data, |data, (_, over)| merge::shallow(data, over))
            };
            layers.iter().rev().fold(merged, above)
        }
        Mode::Deep(lists) => {
            let mut below = vec![("`data`".to_owned(), merged.clone())];
            let mut data = merged;
            for (place, over) in layers.concat() {
                data = merge::deep_with(data, &over, lists).unwrap_or_else(|conflict| {
                    diagnostics.push(mixed(&conflict, &below, &place, &section));
                    Map::new().into()
                });
                below.push((place, over));
            }
            data
        }
    };
    let absent = |directory: &Directory| {
        without_data.iter().filter_map(|name| directory.file_for(name, origin)).collect()
    };
    Resolved { data, files, absent: directory.as_ref().map(absent).unwrap_or_default() }
}

/// The files of `hierarchy.directory`.
pub(crate) struct Selection {
    pub(crate) all: Vec<PathBuf>,
    /// The files that this machine reads.
    pub(crate) read: Vec<PathBuf>,
}

/// Returns the files of the hierarchy of a document, if it has a directory. Reads none of them.
pub(crate) fn selection(
    root: &[Entry],
    scope: &Scope,
    origin: &Origin,
    diagnostics: &mut Diagnostics,
) -> Option<Selection> {
    let section = |name: &str| root.iter().find(|entry| entry.key == name);
    let Hierarchy { order, mode, directory } =
        hierarchy_of(section("hierarchy")?, scope, origin, diagnostics);
    let directory = directory?;
    let overrides = section("overrides").and_then(|entry| entry.value.as_map()).unwrap_or_default();
    let mut read = Vec::new();
    for name in &order {
        let files = directory.files_of(name);
        let is_found = !files.is_empty() || overrides.iter().any(|entry| entry.key == *name);
        read.extend(files);
        if mode == Mode::First && is_found {
            break;
        }
    }
    Some(Selection { all: directory.all(), read })
}

/// Reports values of different kinds that cannot be merged, with both of their places.
fn mixed<'a>(
    conflict: &Conflict,
    below: &[(String, Value)],
    place: &str,
    section: &impl Fn(&str) -> Option<&'a Entry>,
) -> Diagnostic {
    let has = |(_, value): &&(String, Value)| conflict.find(value).is_some_and(|value| !value.is_null());
    let first = below.iter().rev().find(has).map_or("`data`", |(name, _)| name.as_str());
    let message = conflict.message(first, place);
    let name = place.strip_prefix("override `").and_then(|rest| rest.strip_suffix('`'));
    let overrides = section("overrides").and_then(|entry| entry.value.as_map()).unwrap_or_default();
    let entry = overrides.iter().find(|entry| Some(entry.key.as_str()) == name);
    let node =
        entry.and_then(|entry| conflict.path.iter().try_fold(&entry.value, |node, key| node.lookup(key)));
    let at = node.map(|node| node.span).or_else(|| section("hierarchy").map(|entry| entry.key_span));
    let problem = Diagnostic::error("mixed-merge", message).with_help(merge::ADVICE);
    Diagnostic { span: at, ..problem }
}

/// Returns data overridden by named documents, and these by single values.
pub(crate) fn over<'d>(
    data: Value,
    documents: impl Iterator<Item = (&'d str, &'d Value)>,
    values: &[Pair],
) -> Result<Value, String> {
    let mut data = data;
    for (name, document) in documents {
        data = merge::deep(data, document).map_err(|conflict| {
            let message = conflict.message("the data below it", &format!("`{name}`"));
            format!("{message} ({})", merge::ADVICE)
        })?;
    }
    values.iter().try_fold(data, merge::set)
}

/// Checks data, merged from wherever it comes, against the rules of a document.
pub(crate) fn check(
    root: &[Entry],
    merged: &Value,
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) {
    if let Some(data) = root.iter().find(|entry| entry.key == "data") {
        rules::check(&data.value, merged, scope, source, diagnostics);
    }
}

fn overrides_of<'a>(entry: &'a Entry, diagnostics: &mut Diagnostics) -> Option<&'a [Entry]> {
    let Some(overrides) = entry.value.as_map() else {
        let message = format!("`overrides` must be a map, not {}", entry.value.kind());
        diagnostics.push(
            Diagnostic::error("overrides-not-a-map", message)
                .at(entry.key_span)
                .with_help("remove it, or name what it overrides"),
        );
        return None;
    };
    for entry in overrides.iter().filter(|entry| entry.value.as_map().is_none()) {
        let message = format!("override `{}` must be a map, not {}", entry.key, entry.value.kind());
        diagnostics.push(Diagnostic::error("overrides-not-a-map", message).at(entry.key_span));
    }
    Some(overrides)
}

/// Reads what the hierarchy says.
fn hierarchy_of(entry: &Entry, scope: &Scope, origin: &Origin, diagnostics: &mut Diagnostics) -> Hierarchy {
    let source = origin.source;
    let Hierarchy { mut order, mut mode, mut directory } = Hierarchy::default();
    let mut lists: Option<(Lists, Span)> = None;
    let Some(entries) = entry.value.as_map() else {
        let message = format!("`hierarchy` must be a map with order and merge, not {}", entry.value.kind());
        diagnostics.push(Diagnostic::error("invalid-hierarchy", message).at(entry.key_span));
        return Hierarchy { order, mode, directory };
    };
    for Entry { key, key_span, value } in entries {
        match (key.as_str(), value.as_seq(), value.as_str()) {
            ("order", Some(items), _) => {
                order.clear();
                for name in items.iter().filter_map(|item| name(item, scope, source, diagnostics)) {
                    // A name that comes again has had its say.
                    if !order.contains(&name) {
                        order.push(name);
                    }
                }
            }
            ("order", None, _) => {
                diagnostics.push(
                    Diagnostic::error(
                        "invalid-hierarchy",
                        format!("`order` must be a list, not {}", value.kind()),
                    )
                    .at(*key_span),
                );
            }
            ("merge", _, Some("first")) => mode = Mode::First,
            ("merge", _, Some("deep")) => mode = Mode::Deep(Lists::Append),
            ("merge", _, Some("keys")) => mode = Mode::Keys,
            ("merge", ..) => {
                let message = "`merge` must be `first`, `deep` or `keys`";
                diagnostics.push(Diagnostic::error("invalid-hierarchy", message).at(value.span));
            }
            ("lists", _, Some("append")) => lists = Some((Lists::Append, *key_span)),
            ("lists", _, Some("replace")) => lists = Some((Lists::Replace, *key_span)),
            ("lists", _, Some("unique")) => lists = Some((Lists::Unique, *key_span)),
            ("lists", ..) => {
                let message = "`lists` must be `append`, `replace` or `unique`";
                diagnostics.push(Diagnostic::error("invalid-hierarchy", message).at(value.span));
            }
            ("directory" | "folder", ..) => match Directory::of(key, value, origin) {
                Ok(found) => directory = Some(found),
                Err(problem) => diagnostics.push(problem),
            },
            _ => {
                let problem =
                    Diagnostic::error("unknown-hierarchy-key", format!("unknown key `hierarchy.{key}`"))
                        .at(*key_span);
                let near = closest(key, ["order", "merge", "lists", "directory"]);
                diagnostics.push(match near {
                    Some(near) => problem.with_help(format!("did you mean `{near}`?")),
                    None => problem.with_help("a hierarchy has order, merge, lists and directory"),
                });
            }
        }
    }
    match (lists, mode) {
        (Some((lists, _)), Mode::Deep(_)) => mode = Mode::Deep(lists),
        (Some((_, place)), _) => {
            let problem = Diagnostic::error("invalid-hierarchy", "`lists` is for `merge: deep`").at(place);
            diagnostics.push(problem.with_help("with `first` and `keys` lists are replaced"));
        }
        (None, _) => {}
    }
    Hierarchy { order, mode, directory }
}

/// One name of the order. It is passed over when it has expressions and all of them came out empty or missing; one that
/// did among others is the empty text.
fn name(item: &Node, scope: &Scope, source: &Source, diagnostics: &mut Diagnostics) -> Option<String> {
    let (Some(text), crate::document::Value::Scalar(scalar)) = (item.as_str(), &item.value) else {
        let message = format!("an entry of `order` must be a string, not {}", item.kind());
        diagnostics.push(Diagnostic::error("invalid-hierarchy", message).at(item.span));
        return None;
    };
    if !ccm_expr::has_template(text) {
        return Some(text.to_owned());
    }
    let scope = &scope.with_missing(Missing::Empty);
    let name = expanded_name(scalar, scope);
    let misspelt = scope.take_doubts().into_iter().filter(is_misspelt_fact);
    diagnostics.extend(misspelt.map(|doubt| template::doubtful(doubt, scalar, item.span, source)));
    match name {
        Ok(name) => name,
        Err(error) => {
            diagnostics.push(template_problem(scope.advise(error), scalar, item.span, source));
            None
        }
    }
}

/// Returns whether a fact is missing that has nearly the name of one that exists. Any other may be missing.
fn is_misspelt_fact(doubt: &Doubt) -> bool {
    matches!(&doubt.kind, DoubtKind::MissingMember { path, suggestion: Some(_) }
        if path.split('.').next().is_some_and(|root| root.eq_ignore_ascii_case("facts")))
}

fn expanded_name(scalar: &Scalar, scope: &Scope) -> Result<Option<String>, ccm_expr::Error> {
    let (mut some, mut found) = (false, false);
    let name = Template::parse(&scalar.text)?.render_with(scope, |value| {
        let value = match value {
            // What is missing on the way to it is missing, too.
            Err(error) if error.kind.is_about_nil() => Value::Null,
            value => value?,
        };
        let value = if value.is_null() { "".into() } else { value };
        some = true;
        found |= value.as_str() != Some("");
        Ok(value)
    })?;
    if name.is_secret {
        let message = "a secret value cannot be part of a name".to_owned();
        return Err(ccm_expr::Error {
            kind: Box::new(ErrorKind::Value(message)),
            span: 0..scalar.text.len(),
            help: None,
        });
    }
    Ok((found || !some).then_some(name.text))
}
