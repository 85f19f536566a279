//! Items of a list that `for_each` repeats.

use std::{collections::HashMap, fmt::Write};

use super::{entries::Declared, secret::secret_keys};
use crate::{
    declare::Declaration,
    document::{Diagnostic, Diagnostics, Entry, Excerpt, Source, Span},
    template::{Element, Scope, elements},
};

/// The key beside the name of an item that is repeated.
pub(super) const KEY: &str = "for_each";

/// Adds a declaration to the others; one that has a `for_each`, once for each of its elements, in order.
pub(super) fn repeat(
    written: Declared,
    scope: &Scope,
    source: &Source,
    declared: &mut Vec<Declared>,
    diagnostics: &mut Diagnostics,
) {
    let Some(for_each) = &written.for_each else {
        declared.push(written);
        return;
    };
    let mut found = Diagnostics::default();
    let elements = elements(for_each, scope, source, &mut found);
    cover(&mut found, &written.declaration);
    diagnostics.extend(found);
    declared.extend(elements.into_iter().flatten().map(|element| {
        let declaration = Declaration { element: Some(element), ..written.declaration.clone() };
        Declared { declaration, ..written.clone() }
    }));
}

/// Names the item in problems of its `for_each`, and of a sensitive one says nothing else.
fn cover(problems: &mut Diagnostics, declaration: &Declaration) {
    for problem in problems.iter_mut() {
        if declaration.is_sensitive() {
            "for_each cannot be worked out".clone_into(&mut problem.message);
            (problem.help, problem.excerpt) = (None, Excerpt::Hidden);
        }
        problem.message = format!("{}#{}: {}", declaration.kind.name(), declaration.name, problem.message);
    }
}

/// Collects what is wrong with resources. What several elements of one `for_each` have in common is said once.
#[derive(Default)]
pub(super) struct Findings {
    found: Vec<(Diagnostic, usize)>,
    /// Where in the list the first problem of a repeated item is that has this name and this place.
    first: HashMap<(Span, &'static str, Option<Span>), usize>,
}

impl Findings {
    pub(super) fn extend(&mut self, declared: &Declared, problems: impl IntoIterator<Item = Diagnostic>) {
        for problem in problems {
            let Some(for_each) = &declared.for_each else {
                self.found.push((problem, 0));
                continue;
            };
            match self.first.entry((for_each.span, problem.id, problem.span)) {
                std::collections::hash_map::Entry::Occupied(first) => self.found[*first.get()].1 += 1,
                std::collections::hash_map::Entry::Vacant(first) => {
                    first.insert(self.found.len());
                    self.found.push((of_element(problem, &declared.declaration), 0));
                }
            }
        }
    }

    /// Returns all of it.
    pub(super) fn finish(self) -> impl Iterator<Item = Diagnostic> {
        self.found.into_iter().map(|(mut problem, others)| {
            match others {
                0 => {}
                1 => problem.message.push_str("; the same is wrong for 1 other element"),
                _ => {
                    let _ = write!(problem.message, "; the same is wrong for {others} other elements");
                }
            }
            problem
        })
    }
}

/// Says of which element an expression could not be worked out.
fn of_element(mut problem: Diagnostic, declaration: &Declaration) -> Diagnostic {
    if problem.id == "invalid-expression" {
        let _ = write!(problem.message, " ({})", who(declaration));
    }
    problem
}

/// The element that a declaration is for, in words: `element 2, "bob"`. What may be a secret is not quoted.
pub(super) fn who(declaration: &Declaration) -> String {
    match &declaration.element {
        Some(element) if may_be_quoted(element, declaration) => {
            format!("element {}, {}", element.index, element.quoted())
        }
        Some(element) => format!("element {}", element.index),
        None => String::new(),
    }
}

fn may_be_quoted(element: &Element, declaration: &Declaration) -> bool {
    let is_secret = |key: &str| secret_keys().iter().any(|secret| secret == key);
    let holds_secret = declaration.properties.iter().any(|Entry { key, .. }| is_secret(key));
    !declaration.is_sensitive() && !holds_secret && !element.has_key(&is_secret)
}
