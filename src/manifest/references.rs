//! Names that resources are known by, and whether they fit together.

use std::collections::HashMap;

use super::entries::Declared;
use crate::{
    document::{Entry, Problem, Span, closest},
    resource::Declaration,
    vocabulary::Reference,
};

/// A name somebody can refer to: which resource it is of, and where it was written.
struct Known {
    index: usize,
    span: Span,
}

/// Finds names that are taken twice, and references to nothing or to something that comes later.
pub(super) fn check(declared: &[Declared], problems: &mut Vec<Problem>) {
    let mut known: HashMap<Reference, Known> = HashMap::with_capacity(declared.len());
    for (index, Declared { declaration, .. }) in declared.iter().enumerate() {
        let mut names = vec![(declaration.name.clone(), declaration.name_span)];
        names.extend(alias(declaration));
        for (name, span) in names {
            let reference = Reference { kind: declaration.kind.name().to_owned(), name };
            match known.get(&reference) {
                Some(first) => problems.push(
                    Problem::new(format!("{reference} is declared twice"))
                        .at(span)
                        .with_also(first.span, "first declared here"),
                ),
                None => drop(known.insert(reference, Known { index, span })),
            }
        }
    }
    for (index, Declared { declaration, .. }) in declared.iter().enumerate() {
        for (reference, span) in references(declaration) {
            problems.extend(problem(index, declaration, &reference, span, &known));
        }
    }
}

fn problem(
    index: usize,
    declaration: &Declaration,
    reference: &Reference,
    span: Span,
    known: &HashMap<Reference, Known>,
) -> Option<Problem> {
    let who = format!("{}#{}", declaration.kind.name(), declaration.name);
    match known.get(reference) {
        None => {
            let others = known.iter().filter(|(_, other)| other.index != index);
            let names: Vec<String> = others.map(|(name, _)| name.to_string()).collect();
            let problem = Problem::new(format!("{who}: {reference} is not declared")).at(span);
            Some(match closest(&reference.to_string(), names.iter().map(String::as_str)) {
                Some(near) => problem.with_help(format!("did you mean `{near}`?")),
                None => problem.with_also(declaration.name_span, "needed by this resource"),
            })
        }
        Some(other) if other.index == index => Some(Problem::new(format!("{who} refers to itself")).at(span)),
        Some(other) if other.index > index => Some(
            Problem::new(format!("{who}: {reference} is declared only later"))
                .at(span)
                .with_also(other.span, "declared here")
                .with_help("resources run in the written order: move it up"),
        ),
        Some(_) => None,
    }
}

fn alias(declaration: &Declaration) -> Option<(String, Span)> {
    let entry = declaration.properties.iter().find(|entry| entry.key == "alias")?;
    let alias = entry.value.as_str().filter(|alias| *alias != declaration.name)?;
    Some((alias.to_owned(), entry.value.span))
}

/// What the declaration refers to. What is no reference at all is found when the resource is read.
fn references(declaration: &Declaration) -> impl Iterator<Item = (Reference, Span)> {
    let refers = |entry: &&Entry| matches!(entry.key.as_str(), "require" | "subscribe");
    let items =
        declaration.properties.iter().filter(refers).filter_map(|entry| entry.value.as_seq()).flatten();
    items.filter_map(|item| Some((item.as_str()?.parse().ok()?, item.span)))
}
