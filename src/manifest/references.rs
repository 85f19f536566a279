//! Names that resources are known by, and whether they fit together.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt::Write,
};

use super::{entries::Declared, reading::APPLY, repetition};
use crate::{
    declare::{Completeness, Declaration, Management},
    document::{Diagnostic, Entry, Node, Scalar, Source, Span, Style, Value, closest},
    template::holds_template,
    types::canonical,
    vocabulary::Reference,
};

/// A resource of one of the manifests that are read together.
pub(super) struct Stated<'a> {
    pub(super) declared: &'a Declared,
    /// Which of the manifests it stands in.
    pub(super) file: usize,
    pub(super) source: &'a Source,
    /// The places of the resources that it is part of.
    pub(super) within: Vec<usize>,
}

/// A name somebody can refer to: which resource it is of, and where it was written.
struct Known {
    index: usize,
    span: Span,
    /// Whether it is the alias of a sensitive resource, which nobody may be told.
    hidden: bool,
}

/// What [`check`] finds.
#[derive(Default)]
pub(super) struct Checked {
    /// Problems, each with the index of the resource that has it.
    pub(super) problems: Vec<(usize, Diagnostic)>,
    /// What to replace references with: patterns with the resources that they match, and references to resources that are
    /// assumed to be in a manifest that is not loaded with nothing.
    pub(super) replaced: Vec<Replaced>,
}

/// A reference, the index of the resource that has it, and the references to use instead.
pub(super) struct Replaced {
    pub(super) index: usize,
    pub(super) reference: Reference,
    pub(super) by: Vec<Reference>,
}

/// Finds names that are taken twice, and references to nothing or to something that comes later. Skips names and references
/// that could not be expanded.
pub(super) fn check(stated: &[Stated]) -> Checked {
    let mut known: HashMap<Reference, Known> = HashMap::with_capacity(stated.len());
    let mut nameless: Vec<&str> = Vec::new();
    let Checked { mut problems, mut replaced } = Checked::default();
    let unloaded: Vec<&Stated> = stated.iter().filter(|one| is_unloaded(one.declared)).collect();
    for (index, one) in stated.iter().enumerate() {
        let Declared { declaration, completeness, .. } = one.declared;
        let kind = declaration.kind.name();
        let mut names = Vec::new();
        match completeness {
            Completeness::Nameless => nameless.push(kind),
            _ => names.push((declaration.name.as_str(), declaration.name_span)),
        }
        match alias(declaration) {
            Some(alias) if holds_template(alias) => nameless.push(kind),
            alias => names.extend(alias.and_then(|alias| Some((alias.as_str()?, alias.span)))),
        }
        names.dedup_by_key(|(name, _)| *name);
        for (name, span) in names {
            let reference = canonical(Reference { kind: kind.to_owned(), name: name.to_owned() });
            match known.get(&reference) {
                Some(first) => {
                    problems.push((index, declared_twice(one, &reference, span, first, stated)));
                }
                None => {
                    let hidden = is_hidden(declaration, name);
                    known.insert(reference, Known { index, span, hidden });
                }
            }
        }
    }
    for (index, one) in stated.iter().enumerate() {
        for (reference, span) in references(&one.declared.declaration) {
            let is_declared = known.contains_key(&reference);
            let by = if is_declared { Vec::new() } else { matching(&reference, index, &known, stated) };
            if !by.is_empty() {
                replaced.push(Replaced { index, reference, by });
            } else if !is_declared && !unloaded.is_empty() {
                problems.push((index, assumption(one, &reference, span, &unloaded)));
                replaced.push(Replaced { index, reference, by });
            } else if is_declared || !nameless.contains(&reference.kind.as_str()) {
                let found = problem(index, &reference, span, &known, stated);
                problems.extend(found.map(|problem| (index, problem)));
            }
        }
    }
    Checked { problems, replaced }
}

/// Returns the resources before a resource that a pattern matches by name or alias, without the ones that it is a part of.
fn matching(
    pattern: &Reference,
    index: usize,
    known: &HashMap<Reference, Known>,
    stated: &[Stated],
) -> Vec<Reference> {
    if !pattern.is_pattern() {
        return Vec::new();
    }
    let matches = pattern.matcher();
    let is_before = |other: &usize| *other < index && !stated[index].within.contains(other);
    let found = known.iter().filter(|(name, _)| matches(name)).map(|(_, other)| other.index);
    let places: BTreeSet<usize> = found.filter(is_before).collect();
    let reference = |declaration: &Declaration| Reference {
        kind: declaration.kind.name().to_owned(),
        name: declaration.name.clone(),
    };
    places.into_iter().map(|place| reference(&stated[place].declared.declaration)).collect()
}

/// Returns whether a resource is an included manifest that ccm did not load.
fn is_unloaded(Declared { declaration, .. }: &Declared) -> bool {
    declaration.kind.name() == APPLY && matches!(declaration.management, Management::Off(_))
}

/// Warns about a reference to a resource that nothing declares, while a manifest is not loaded that might declare it.
fn assumption(one: &Stated, reference: &Reference, span: Span, unloaded: &[&Stated]) -> Diagnostic {
    let declaration = &one.declared.declaration;
    let what = if declaration.is_sensitive() {
        "a resource that it refers to".to_owned()
    } else {
        reference.to_string()
    };
    let (which, help) = match unloaded {
        [only] => {
            let only = who(&only.declared.declaration);
            (format!("`{only}`"), format!("refer to `{only}`, which is always declared"))
        }
        several => (
            format!("one of {} manifests", several.len()),
            format!("refer to the `{APPLY}` resource, which is always declared"),
        ),
    };
    let message = format!(
        "{}: {what} is not declared; assuming that {which} declares it, which `control` switches off",
        who(declaration)
    );
    Diagnostic::warning("undeclared-reference", message).at(span).with_help(help)
}

/// Shows another place that matters, which may be in another file.
fn with_place(problem: Diagnostic, of: &Stated, other: &Known, stated: &[Stated], label: &str) -> Diagnostic {
    let Stated { file, source, .. } = &stated[other.index];
    if *file == of.file {
        return problem.with_also(other.span, label);
    }
    let (line, column) = source.line_column(other.span.start);
    let message = format!("{} ({label}: {}:{line}:{column})", problem.message, source.name);
    Diagnostic { message, ..problem }
}

fn declared_twice(
    one: &Stated,
    reference: &Reference,
    span: Span,
    first: &Known,
    stated: &[Stated],
) -> Diagnostic {
    let declaration = &one.declared.declaration;
    let mut message = if is_hidden(declaration, &reference.name) {
        format!("{}: its alias is the name of another", who(declaration))
    } else {
        format!("{reference} is declared twice")
    };
    if declaration.element.is_some() {
        let _ = write!(message, ", here for {}", repetition::who(declaration));
    }
    let problem = Diagnostic::error("duplicate-resource", message).at(span);
    let other = &stated[first.index];
    match &other.declared.declaration.element {
        Some(element) if first.span == span && other.file == one.file => problem
            .with_help(format!("element {} gives the same name; `index` is another for each", element.index)),
        _ if declaration.kind.name() == "exec" => {
            with_place(problem, one, first, stated, "first declared here").with_help(
                "to run one command twice, give each a name of its own and the command as `command`",
            )
        }
        _ => with_place(problem, one, first, stated, "first declared here"),
    }
}

fn problem(
    index: usize,
    reference: &Reference,
    span: Span,
    known: &HashMap<Reference, Known>,
    stated: &[Stated],
) -> Option<Diagnostic> {
    let one = &stated[index];
    let declaration = &one.declared.declaration;
    let who = who(declaration);
    let is_sensitive = declaration.is_sensitive();
    let what = if is_sensitive { "a resource that it refers to".to_owned() } else { reference.to_string() };
    match known.get(reference) {
        None if let Some(other) = matching_later(reference, index, known) => {
            let what = if is_sensitive { what } else { format!("a resource that matches {reference}") };
            Some(declared_later(&who, &what, span, one, other, stated))
        }
        None => {
            let others = known.iter().filter(|(_, other)| other.index != index && !other.hidden);
            let names: Vec<String> = others.map(|(name, _)| name.to_string()).collect();
            let message = if reference.is_pattern() && !is_sensitive {
                format!("{who}: no resource before it matches {reference}")
            } else {
                format!("{who}: {what} is not declared")
            };
            let problem = Diagnostic::error("undeclared-reference", message).at(span);
            let near = closest(&reference.to_string(), names.iter().map(String::as_str));
            Some(match near {
                Some(near) if !is_sensitive => problem.with_help(format!("did you mean `{near}`?")),
                _ => problem.with_also(declaration.name_span, "needed by this resource"),
            })
        }
        Some(other) if other.index == index => {
            Some(Diagnostic::error("self-reference", format!("{who} refers to itself")).at(span))
        }
        Some(other) if one.within.contains(&other.index) => {
            let message = format!("{who} refers to {what}, which it is a part of");
            Some(Diagnostic::error("self-reference", message).at(span))
        }
        Some(other) if other.index > index && !is_sensitive => {
            if let Some(path) = path_back(other.index, index, known, stated) {
                // The first resource of a cycle reports it.
                if path.iter().any(|at| *at < index) {
                    return None;
                }
                let names = path.iter().map(|at| self::who(&stated[*at].declared.declaration));
                let cycle = [who.clone()].into_iter().chain(names).collect::<Vec<_>>().join(" -> ");
                let problem =
                    Diagnostic::error("reference-cycle", format!("{who}: requires itself: {cycle}"));
                let problem = with_place(problem.at(span), one, other, stated, "declared here");
                return Some(problem.with_help("remove one of these references"));
            }
            Some(declared_later(&who, &what, span, one, other, stated))
        }
        Some(other) if other.index > index => Some(declared_later(&who, &what, span, one, other, stated)),
        Some(_) => None,
    }
}

/// Returns the first resource after a resource that a pattern matches.
fn matching_later<'k>(
    pattern: &Reference,
    index: usize,
    known: &'k HashMap<Reference, Known>,
) -> Option<&'k Known> {
    let matches = Some(pattern).filter(|pattern| pattern.is_pattern())?.matcher();
    let later = known.iter().filter(|(name, other)| other.index > index && !other.hidden && matches(name));
    later.map(|(_, other)| other).min_by_key(|other| other.index)
}

/// Returns the resources through which `from` refers to `to`, both included; none if one of them is sensitive.
fn path_back(
    from: usize,
    to: usize,
    known: &HashMap<Reference, Known>,
    stated: &[Stated],
) -> Option<Vec<usize>> {
    let mut paths = vec![vec![from]];
    let mut seen = HashSet::from([from]);
    while let Some(path) = paths.pop() {
        let last = *path.last()?;
        if last == to {
            return Some(path);
        }
        let declaration = &stated[last].declared.declaration;
        if declaration.is_sensitive() {
            continue;
        }
        for (reference, _) in references(declaration) {
            if let Some(next) =
                known.get(&reference).map(|known| known.index).filter(|next| seen.insert(*next))
            {
                paths.push([path.as_slice(), &[next]].concat());
            }
        }
    }
    None
}

fn declared_later(
    who: &str,
    what: &str,
    span: Span,
    one: &Stated,
    other: &Known,
    stated: &[Stated],
) -> Diagnostic {
    let problem =
        Diagnostic::error("late-reference", format!("{who}: {what} is declared only later")).at(span);
    let problem = with_place(problem, one, other, stated, "declared here");
    problem.with_help("resources run in the written order: move it up")
}

fn who(declaration: &Declaration) -> String {
    format!("{}#{}", declaration.kind.name(), declaration.name)
}

/// Whether a name of the declaration is its alias, and no more to be shown than the rest of it.
fn is_hidden(declaration: &Declaration, name: &str) -> bool {
    declaration.name != name && declaration.is_sensitive()
}

fn alias(declaration: &Declaration) -> Option<&Node> {
    declaration.properties.iter().find(|entry| entry.key == "alias").map(|entry| &entry.value)
}

/// What the declaration refers to. What is no reference at all is found when the resource is read.
fn references(declaration: &Declaration) -> impl Iterator<Item = (Reference, Span)> {
    let refers = |entry: &&Entry| is_reference_list(entry);
    let items = declaration.properties.iter().filter(refers).flat_map(listed);
    let items = items.filter(|item| !holds_template(item));
    items.filter_map(|item| Some((canonical(item.as_str()?.parse().ok()?), item.span)))
}

/// Replaces a reference in `require` and `subscribe`. A reference that is listed twice then stays once.
pub(super) fn replace(declaration: &mut Declaration, Replaced { reference, by, .. }: &Replaced) {
    let is_it = |node: &Node| {
        node.as_str().and_then(|text| text.parse().ok()).map(canonical).as_ref() == Some(reference)
    };
    let named = |name: &Reference, node: &Node| Node {
        value: Value::Scalar(Scalar::new(name.to_string(), Style::Quoted)),
        span: node.span,
    };
    for entry in declaration.properties.iter_mut().filter(|entry| is_reference_list(entry)) {
        let written = listed(entry);
        if !written.iter().any(is_it) {
            continue;
        }
        let items = written.into_iter().flat_map(|node| {
            if is_it(&node) { by.iter().map(|name| named(name, &node)).collect() } else { vec![node] }
        });
        let mut seen = HashSet::new();
        let is_new = |node: &Node| node.as_str().is_none_or(|text| seen.insert(text.to_owned()));
        entry.value.value = Value::Seq(items.filter(is_new).collect());
    }
}

/// Returns the items of a list. A single item needs no list.
fn listed(entry: &Entry) -> Vec<Node> {
    entry.value.as_seq().map_or_else(|| vec![entry.value.clone()], <[Node]>::to_vec)
}

fn is_reference_list(entry: &Entry) -> bool {
    matches!(entry.key.as_str(), "require" | "subscribe")
}
