//! The forms in which resources are written.
//!
//! A resource entry is one key, the type, over a list of single-key maps (one of which may be `defaults`), over one map
//! with a `name` key, or over a map from names to properties.

use std::sync::LazyLock;

use super::references;
use crate::{
    document::{Diagnostic, Diagnostics, Entry, Node, Span, Value, closest, from_node},
    resource::{AnyType, Completeness, Declaration, Expansion, Resource, spellings},
    types,
};

/// The resources of a list of entries, in their written order.
pub(super) fn resources(
    list: &Node,
    expansion: &mut Expansion,
    diagnostics: &mut Diagnostics,
) -> Vec<Resource> {
    let Found { mut declarations, defaults, .. } = Found::of(list, diagnostics);
    let told = check_defaults(defaults, expansion, diagnostics);
    for Declared { declaration, completeness, defaults } in &mut declarations {
        let mut found = Diagnostics::default();
        *completeness = expansion.expand(declaration, &mut found);
        diagnostics.extend(found.into_iter().filter(|problem| !repeats(problem, *defaults, &told)));
    }
    references::check(&declarations, diagnostics);
    resolve(declarations, &told, diagnostics)
}

/// The declarations of a list of entries.
pub(super) fn declarations(list: &Node, diagnostics: &mut Diagnostics) -> Vec<Declaration> {
    Found::of(list, diagnostics).declarations.into_iter().map(|declared| declared.declaration).collect()
}

/// A declaration, and where the defaults stand that some of its properties come from.
pub(super) struct Declared {
    pub(super) declaration: Declaration,
    pub(super) completeness: Completeness,
    defaults: Option<Span>,
}

/// What is wrong in `defaults` is wrong for every item that takes them, and also when none does: it is said once. Gives
/// the places of what was said.
fn check_defaults(
    defaults: Vec<Declared>,
    expansion: &mut Expansion,
    diagnostics: &mut Diagnostics,
) -> Vec<Option<Span>> {
    let mut told = Vec::new();
    for Declared { mut declaration, defaults, completeness } in defaults {
        let mut found = Diagnostics::default();
        expansion.expand(&mut declaration, &mut found);
        declaration.resolve(completeness, &mut found);
        found.retain(|problem| is_within(problem, defaults));
        told.extend(found.iter().map(|problem| problem.span));
        diagnostics.extend(found);
    }
    told
}

fn resolve(
    declarations: Vec<Declared>,
    told: &[Option<Span>],
    diagnostics: &mut Diagnostics,
) -> Vec<Resource> {
    let mut resources = Vec::with_capacity(declarations.len());
    for Declared { declaration, completeness, defaults } in declarations {
        let mut found = Diagnostics::default();
        resources.extend(declaration.resolve(completeness, &mut found));
        diagnostics.extend(found.into_iter().filter(|problem| !repeats(problem, defaults, told)));
    }
    resources
}

/// Whether the defaults alone were found to have the problem.
fn repeats(problem: &Diagnostic, defaults: Option<Span>, told: &[Option<Span>]) -> bool {
    is_within(problem, defaults) && told.contains(&problem.span)
}

fn is_within(problem: &Diagnostic, place: Option<Span>) -> bool {
    problem.span.zip(place).is_some_and(|(span, place)| place.contains(span))
}

struct Found<'a> {
    declarations: Vec<Declared>,
    /// What items share, as declarations that nobody is named by.
    defaults: Vec<Declared>,
    diagnostics: &'a mut Diagnostics,
}

impl<'p> Found<'p> {
    fn of(list: &Node, diagnostics: &'p mut Diagnostics) -> Self {
        let mut found = Self { declarations: Vec::new(), defaults: Vec::new(), diagnostics };
        match list.as_seq() {
            Some(items) => items.iter().for_each(|item| found.entry(item)),
            None => {
                let message = format!("resources must be a list, not {}", list.kind());
                found.problem(
                    Diagnostic::error("resources-not-a-list", message)
                        .at(list.span)
                        .with_help("write each entry as `- TYPE:`"),
                );
            }
        }
        found
    }

    fn problem(&mut self, problem: Diagnostic) {
        self.diagnostics.push(problem);
    }

    /// One item of the list of resources.
    fn entry(&mut self, item: &Node) {
        let Some([Entry { key, key_span, value }]) = item.as_map() else {
            let message = match item.as_map() {
                Some(_) => "a resource entry has one key, its type".to_owned(),
                None => format!("a resource entry is a map with one key, its type, not {}", item.kind()),
            };
            let help = format!("known types: {}", types::names().collect::<Vec<_>>().join(", "));
            return self.problem(Diagnostic::error("malformed-entry", message).at(item.span).with_help(help));
        };
        let Some(kind) = types::find(key) else {
            let help = closest(key, types::names()).map_or_else(
                || format!("known types: {}", types::names().collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return self.problem(
                Diagnostic::error("unknown-type", format!("unknown type `{key}`"))
                    .at(*key_span)
                    .with_help(help),
            );
        };
        match &value.value {
            Value::Seq(items) => self.list(kind, items),
            Value::Map(entries) => match value.lookup("name") {
                Some(name) if matches!(name.value, Value::Scalar(_)) && !name.is_null() => {
                    self.named(kind, entries);
                }
                Some(name) if name.is_null() => {
                    self.problem(
                        Diagnostic::error("missing-name", format!("a {} without a name", kind.name()))
                            .at(name.span),
                    );
                }
                _ => self.map(kind, entries),
            },
            Value::Scalar(_) => {
                let message =
                    format!("no resources under `{key}`: expected a list or a map, found {}", value.kind());
                self.problem(Diagnostic::error("malformed-entry", message).at(*key_span));
            }
        }
    }

    /// `- TYPE: [{NAME: {...}}, {defaults: {...}}]`
    fn list(&mut self, kind: &'static dyn AnyType, items: &[Node]) {
        let mut defaults: Option<&Entry> = None;
        let mut named = Vec::new();
        for item in items {
            match item.as_map() {
                Some([entry]) if entry.key == "defaults" => match defaults {
                    Some(first) => self.problem(
                        Diagnostic::error(
                            "duplicate-defaults",
                            format!("more than one `defaults` for {}", kind.name()),
                        )
                        .at(entry.key_span)
                        .with_also(first.key_span, "the first one"),
                    ),
                    None => defaults = Some(entry),
                },
                Some([entry]) => named.push(entry),
                _ => self.problem(not_an_item(kind, item)),
            }
        }
        let inherited = defaults.and_then(|defaults| self.properties(defaults)).unwrap_or_default();
        if let Some(name) = inherited.iter().find(|entry| entry.key == "name") {
            let problem = Diagnostic::error(
                "name-in-defaults",
                format!("the `defaults` of {} cannot hold a name", kind.name()),
            );
            self.problem(problem.at(name.key_span).with_help("each resource has a name of its own"));
        }
        let place = defaults.map(|defaults| defaults.value.span);
        if let Some(defaults) = defaults {
            let declaration = shared(kind, defaults, inherited, &named);
            self.defaults.push(Declared { declaration, completeness: Completeness::Shared, defaults: place });
        }
        for entry in named {
            self.declare(kind, entry, inherited, place);
        }
    }

    /// `- TYPE: {NAME: {...}, ...}`
    fn map(&mut self, kind: &'static dyn AnyType, entries: &[Entry]) {
        for entry in entries {
            if entry.key == "defaults" {
                let help = format!("write `- {}:` over a list with one item per resource", kind.name());
                let problem =
                    Diagnostic::error("misplaced-defaults", "`defaults` belongs into a list of resources")
                        .at(entry.key_span);
                self.problem(problem.with_help(help));
            } else {
                self.declare(kind, entry, &[], None);
            }
        }
    }

    /// `- TYPE: {name: NAME, ...}`
    fn named(&mut self, kind: &'static dyn AnyType, entries: &[Entry]) {
        let (name, properties): (Vec<_>, Vec<_>) =
            entries.iter().cloned().partition(|entry| entry.key == "name");
        let Some(Entry { value, .. }) = name.first() else { return };
        let Value::Scalar(scalar) = &value.value else { return };
        let declaration = Declaration { kind, name: scalar.text.clone(), name_span: value.span, properties };
        self.push(declaration, None);
    }

    fn declare(
        &mut self,
        kind: &'static dyn AnyType,
        entry: &Entry,
        inherited: &[Entry],
        defaults: Option<Span>,
    ) {
        let Some(own) = self.properties(entry) else { return };
        let mut properties = own.to_vec();
        if let Some(name) = own.iter().find(|property| property.key == "name") {
            let message = format!("{}#{}: the name is given twice", kind.name(), entry.key);
            let problem = Diagnostic::error("duplicate-name", message)
                .at(name.key_span)
                .with_help("the key above is the name");
            return self.problem(problem);
        }
        let is_own =
            |default: &&Entry| own.iter().any(|own| property(kind, &own.key) == property(kind, &default.key));
        let is_missing = |default: &&Entry| default.key != "name" && !is_own(default);
        properties.extend(inherited.iter().filter(is_missing).cloned());
        let declaration =
            Declaration { kind, name: entry.key.clone(), name_span: entry.key_span, properties };
        self.push(declaration, defaults);
    }

    fn push(&mut self, declaration: Declaration, defaults: Option<Span>) {
        self.declarations.push(Declared { declaration, completeness: Completeness::Whole, defaults });
    }

    /// The properties below a name; none at all is fine.
    fn properties<'a>(&mut self, entry: &'a Entry) -> Option<&'a [Entry]> {
        match &entry.value.value {
            Value::Map(entries) => Some(entries),
            Value::Scalar(_) if entry.value.is_null() => Some(&[]),
            _ => {
                let message =
                    format!("`{}` needs a map of properties, not {}", entry.key, entry.value.kind());
                self.problem(Diagnostic::error("properties-not-a-map", message).at(entry.value.span));
                None
            }
        }
    }
}

/// The property that a key of a type means, whichever way it is spelled.
fn property<'k>(kind: &dyn AnyType, key: &'k str) -> &'k str {
    static SPELLINGS: LazyLock<Vec<(&str, &str, &str)>> = LazyLock::new(|| {
        let of = |kind: &&'static dyn AnyType| {
            let name = kind.name();
            spellings(*kind).into_iter().map(move |(other, key)| (name, other, key))
        };
        types::TYPES.iter().flat_map(of).collect()
    });
    let found = SPELLINGS.iter().find(|(name, other, _)| *name == kind.name() && *other == key);
    found.map_or(key, |(.., property)| property)
}

/// What items share. It is as secret as the most secret of them.
fn shared(
    kind: &'static dyn AnyType,
    defaults: &Entry,
    inherited: &[Entry],
    items: &[&Entry],
) -> Declaration {
    let is_mark = |entry: &&Entry| entry.key == "sensitive" && !matches!(from_node(&entry.value), Ok(false));
    let marks = || items.iter().filter_map(|item| item.value.as_map()).flatten().filter(is_mark);
    let mut properties = inherited.to_vec();
    if let Some(mark) = marks().next() {
        properties.retain(|entry| entry.key != mark.key);
        properties.push(mark.clone());
    }
    Declaration { kind, name: defaults.key.clone(), name_span: defaults.key_span, properties }
}

fn not_an_item(kind: &dyn AnyType, item: &Node) -> Diagnostic {
    let problem = Diagnostic::error(
        "malformed-entry",
        format!("each {} in a list is a map with one key, its name", kind.name()),
    );
    let help = match item.as_map() {
        Some([]) => return problem.at(item.span),
        Some([first, ..]) if first.value.is_null() => {
            "are its properties indented deeper than its name?".to_owned()
        }
        Some(_) => {
            "start each resource with its own `-`, and indent its properties below its name".to_owned()
        }
        None => match item.as_str() {
            Some(name) => format!("write `- {name}:`"),
            None => return problem.at(item.span),
        },
    };
    problem.at(item.span).with_help(help)
}
