//! Names that resources are known by, and whether they fit together.

use std::{collections::HashMap, fmt::Write};

use super::{
    entries::Declared,
    repetition::{self, Findings},
};
use crate::{
    document::{Diagnostic, Entry, Node, Span, closest},
    resource::{Completeness, Declaration},
    template::holds_template,
    vocabulary::Reference,
};

/// A name somebody can refer to: which resource it is of, and where it was written.
struct Known {
    index: usize,
    span: Span,
    /// Whether it is the alias of a sensitive resource, which nobody may be told.
    hidden: bool,
}

/// Finds names that are taken twice, and references to nothing or to something that comes later. Names and references
/// that could not be expanded are left out: what they would have been nobody knows.
pub(super) fn check(declared: &[Declared], findings: &mut Findings) {
    let mut known: HashMap<Reference, Known> = HashMap::with_capacity(declared.len());
    let mut nameless: Vec<&str> = Vec::new();
    for (index, one) in declared.iter().enumerate() {
        let Declared { declaration, completeness, .. } = one;
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
            let reference = Reference { kind: kind.to_owned(), name: name.to_owned() };
            match known.get(&reference) {
                Some(first) => {
                    let problem =
                        declared_twice(declaration, &reference, span, first, &declared[first.index]);
                    findings.extend(one, [problem]);
                }
                None => {
                    let hidden = is_hidden(declaration, name);
                    known.insert(reference, Known { index, span, hidden });
                }
            }
        }
    }
    for (index, one) in declared.iter().enumerate() {
        for (reference, span) in references(&one.declaration) {
            let is_known = known.contains_key(&reference) || !nameless.contains(&reference.kind.as_str());
            if is_known {
                findings.extend(one, problem(index, &one.declaration, &reference, span, &known));
            }
        }
    }
}

fn declared_twice(
    declaration: &Declaration,
    reference: &Reference,
    span: Span,
    first: &Known,
    first_declared: &Declared,
) -> Diagnostic {
    let mut message = if is_hidden(declaration, &reference.name) {
        format!("{}: its alias is the name of another", who(declaration))
    } else {
        format!("{reference} is declared twice")
    };
    if declaration.element.is_some() {
        let _ = write!(message, ", here for {}", repetition::who(declaration));
    }
    let problem = Diagnostic::error("duplicate-resource", message).at(span);
    match &first_declared.declaration.element {
        Some(element) if first.span == span => problem
            .with_help(format!("element {} gives the same name; `index` is another for each", element.index)),
        _ => problem.with_also(first.span, "first declared here"),
    }
}

fn problem(
    index: usize,
    declaration: &Declaration,
    reference: &Reference,
    span: Span,
    known: &HashMap<Reference, Known>,
) -> Option<Diagnostic> {
    let who = who(declaration);
    let is_sensitive = declaration.is_sensitive();
    let what = if is_sensitive { "a resource that it refers to".to_owned() } else { reference.to_string() };
    match known.get(reference) {
        None => {
            let others = known.iter().filter(|(_, other)| other.index != index && !other.hidden);
            let names: Vec<String> = others.map(|(name, _)| name.to_string()).collect();
            let message = format!("{who}: {what} is not declared");
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
        Some(other) if other.index > index => Some(
            Diagnostic::error("late-reference", format!("{who}: {what} is declared only later"))
                .at(span)
                .with_also(other.span, "declared here")
                .with_help("resources run in the written order: move it up"),
        ),
        Some(_) => None,
    }
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
    let refers = |entry: &&Entry| matches!(entry.key.as_str(), "require" | "subscribe");
    let items =
        declaration.properties.iter().filter(refers).filter_map(|entry| entry.value.as_seq()).flatten();
    let items = items.filter(|item| !holds_template(item));
    items.filter_map(|item| Some((item.as_str()?.parse().ok()?, item.span)))
}
