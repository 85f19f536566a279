//! The forms in which resources are written.
//!
//! A resource entry is one key, the type, over a list of single-key maps (one of which may be `defaults`), over one map
//! with a `name` key, or over a map from names to properties. In a list, and beside a `name` key, `for_each` repeats a
//! resource.

use std::{rc::Rc, sync::LazyLock};

use super::{
    ansible,
    repetition::{self, Findings, KEY as FOR_EACH},
};
use crate::{
    declare::{Completeness, Declaration, Expansion},
    document::{self, Diagnostic, Diagnostics, Entry, Node, Source, Span, Value, from_node},
    resource::{AnyType, spellings},
    template::{self, Scope},
    types,
};

const TAGS: &str = "tags";

/// What a list of entries says.
#[derive(Default)]
pub(super) struct Read {
    /// In their written order, repeated and expanded.
    pub(super) declared: Vec<Declared>,
    /// The places of what was said of `defaults`.
    pub(super) told: Vec<Told>,
    pub(super) findings: Findings,
}

/// Reads a list of entries.
pub(super) fn read(list: Node, scope: &Scope, source: &Source, diagnostics: &mut Diagnostics) -> Read {
    let mut expansion = Expansion::new(scope, source);
    let Found { declarations, defaults, .. } = Found::of(list, source, diagnostics);
    let told = check_defaults(defaults, &mut expansion, diagnostics);
    let mut declared = Vec::with_capacity(declarations.len());
    let mut findings = Findings::default();
    // One after the other: what a `for_each` may use depends on the resources above it.
    for written in declarations {
        let start = declared.len();
        repetition::repeat(written, scope, source, &mut declared, diagnostics);
        for one in &mut declared[start..] {
            let mut found = Diagnostics::default();
            one.completeness = expansion.expand(&mut one.declaration, &mut found);
            join_tags(&mut one.declaration.properties);
            found.retain(|problem| !repeats(problem, one.defaults, &told));
            findings.extend(one, found);
        }
    }
    Read { declared, told, findings }
}

/// The declarations of a list of entries.
pub(super) fn declarations(list: Node, source: &Source, diagnostics: &mut Diagnostics) -> Vec<Declaration> {
    let found = Found::of(list, source, diagnostics);
    found.declarations.into_iter().map(|declared| declared.declaration).collect()
}

/// A declaration, and where the defaults stand that some of its properties come from.
#[derive(Clone)]
pub(super) struct Declared {
    pub(super) declaration: Declaration,
    pub(super) completeness: Completeness,
    pub(super) defaults: Option<Span>,
    /// What it is repeated for.
    pub(super) for_each: Option<Rc<Node>>,
}

/// What was said of `defaults`, and where.
pub(super) type Told = (&'static str, Option<Span>);

/// What is wrong in `defaults` is wrong for every item that takes them, and also when none does: it is said once. Gives
/// the places of what was said.
fn check_defaults(
    defaults: Vec<Declared>,
    expansion: &mut Expansion,
    diagnostics: &mut Diagnostics,
) -> Vec<Told> {
    let mut told = Vec::new();
    for Declared { mut declaration, defaults, completeness, .. } in defaults {
        let mut found = Diagnostics::default();
        expansion.expand_shared(&mut declaration, &mut found);
        declaration.resolve(completeness, &mut found);
        found.retain(|problem| is_within(problem, defaults));
        told.extend(found.iter().map(|problem| (problem.id, problem.span)));
        diagnostics.extend(found);
    }
    told
}

/// Returns whether the defaults were reported for the same problem.
pub(super) fn repeats(problem: &Diagnostic, defaults: Option<Span>, told: &[Told]) -> bool {
    is_within(problem, defaults) && told.contains(&(problem.id, problem.span))
}

pub(super) fn is_within(problem: &Diagnostic, place: Option<Span>) -> bool {
    problem.span.zip(place).is_some_and(|(span, place)| place.contains(span))
}

struct Found<'a> {
    declarations: Vec<Declared>,
    /// What items share, as declarations that nobody is named by.
    defaults: Vec<Declared>,
    source: &'a Source,
    diagnostics: &'a mut Diagnostics,
}

impl<'p> Found<'p> {
    /// Takes the list apart: what is in a large one is not copied.
    fn of(list: Node, source: &'p Source, diagnostics: &'p mut Diagnostics) -> Self {
        let mut found = Self { declarations: Vec::new(), defaults: Vec::new(), source, diagnostics };
        let kind = list.kind();
        if let Value::Seq(items) = list.value {
            for item in items {
                found.entry(item);
            }
        } else {
            let message = format!("resources must be a list, not {kind}");
            found.problem(
                Diagnostic::error("resources-not-a-list", message)
                    .at(list.span)
                    .with_help("write each entry as `- TYPE:`"),
            );
        }
        found
    }

    fn problem(&mut self, problem: Diagnostic) {
        self.diagnostics.push(problem);
    }

    /// One item of the list of resources.
    fn entry(&mut self, item: Node) {
        if let Some(problem) = ansible::recognized(&item) {
            // One error describes the whole file.
            let is_known = self.diagnostics.iter().any(|known| known.id == problem.id);
            if !is_known {
                self.problem(problem);
            }
            return;
        }
        let message = match item.as_map() {
            Some([_]) => None,
            Some(_) => Some("a resource entry has one key, its type".to_owned()),
            None => Some(format!("a resource entry is a map with one key, its type, not {}", item.kind())),
        };
        if let Some(message) = message {
            let help = format!("known types: {}", types::names().collect::<Vec<_>>().join(", "));
            return self.problem(Diagnostic::error("malformed-entry", message).at(item.span).with_help(help));
        }
        let Some(Entry { key, key_span, value }) = entries_of(item).pop() else { return };
        let Some(kind) = types::find(&key) else {
            return self.problem(types::unknown(&key).at(key_span));
        };
        let found = value.kind();
        match value.value {
            Value::Seq(items) => self.list(kind, items),
            Value::Map(entries) => match entries.iter().find(|entry| entry.key == "name") {
                Some(Entry { value: name, .. })
                    if matches!(name.value, Value::Scalar(_)) && !name.is_null() =>
                {
                    self.named(kind, entries);
                }
                Some(Entry { value: name, .. }) if name.is_null() => {
                    self.problem(
                        Diagnostic::error("missing-name", format!("a {} without a name", kind.name()))
                            .at(name.span),
                    );
                }
                _ => self.map(kind, entries),
            },
            Value::Scalar(_) => {
                let message = format!("no resources under `{key}`: expected a list or a map, found {found}");
                self.problem(Diagnostic::error("malformed-entry", message).at(key_span));
            }
        }
    }

    /// `- TYPE: [{NAME: {...}}, {defaults: {...}}]`
    fn list(&mut self, kind: &'static dyn AnyType, items: Vec<Node>) {
        let mut defaults: Option<Entry> = None;
        let mut named = Vec::new();
        for item in items {
            let (beside, mut entries): (Vec<Entry>, Vec<Entry>) = match item.as_map() {
                Some([one, other]) if one.key == FOR_EACH || other.key == FOR_EACH => {
                    entries_of(item).into_iter().partition(|entry| entry.key == FOR_EACH)
                }
                Some([_]) => (Vec::new(), entries_of(item)),
                _ => {
                    let torn = match &item.value {
                        Value::Scalar(scalar) => template::torn(scalar, item.span, self.source),
                        _ => None,
                    };
                    self.problem(torn.unwrap_or_else(|| not_an_item(kind, &item)));
                    continue;
                }
            };
            let Some(entry) = entries.pop() else { continue };
            match beside.into_iter().next() {
                Some(for_each) if entry.key == "defaults" => {
                    let problem = Diagnostic::error("misplaced-for-each", "`defaults` cannot be repeated");
                    self.problem(problem.at(for_each.key_span).with_help(
                        "they hold for every item of the list, and are expanded for each element of its own `for_each`",
                    ));
                }
                Some(for_each) => named.push((entry, Some(for_each.value))),
                None if entry.key == FOR_EACH => self.problem(nothing_to_repeat(kind, &entry)),
                None if entry.key == "defaults" => match &defaults {
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
                None => named.push((entry, None)),
            }
        }
        let defaults = defaults.as_ref();
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
            let completeness = Completeness::Shared;
            self.defaults.push(Declared { declaration, completeness, defaults: place, for_each: None });
        }
        for (entry, for_each) in named {
            self.declare(kind, entry, for_each, inherited, place);
        }
    }

    /// `- TYPE: {NAME: {...}, ...}`
    fn map(&mut self, kind: &'static dyn AnyType, entries: Vec<Entry>) {
        for entry in entries {
            if entry.key == "defaults" {
                let help = format!("write `- {}:` over a list with one item per resource", kind.name());
                let problem =
                    Diagnostic::error("misplaced-defaults", "`defaults` belongs into a list of resources")
                        .at(entry.key_span);
                self.problem(problem.with_help(help));
            } else if entry.key == FOR_EACH {
                let problem =
                    Diagnostic::error("misplaced-for-each", "`for_each` belongs into an item of a list")
                        .at(entry.key_span);
                let help = format!(
                    "write `- {}:` over a list, and `- for_each:` with the name below it",
                    kind.name()
                );
                self.problem(problem.with_help(help));
            } else {
                self.declare(kind, entry, None, &[], None);
            }
        }
    }

    /// `- TYPE: {name: NAME, ...}`
    fn named(&mut self, kind: &'static dyn AnyType, mut entries: Vec<Entry>) {
        let mut take = |key: &str| {
            let at = entries.iter().position(|entry| entry.key == key)?;
            Some(entries.remove(at).value)
        };
        let (name, for_each) = (take("name"), take(FOR_EACH));
        let Some(Node { value: Value::Scalar(scalar), span }) = name else { return };
        self.push(Declaration::new(kind, scalar.text, span, entries), None, for_each);
    }

    fn declare(
        &mut self,
        kind: &'static dyn AnyType,
        entry: Entry,
        for_each: Option<Node>,
        inherited: &[Entry],
        defaults: Option<Span>,
    ) {
        let Some(own) = self.properties(&entry) else { return };
        if let Some(name) = own.iter().find(|property| property.key == "name") {
            let message = format!("{}#{}: the name is given twice", kind.name(), entry.key);
            let problem = Diagnostic::error("duplicate-name", message)
                .at(name.key_span)
                .with_help("the key above is the name");
            return self.problem(problem);
        }
        if let Some(inside) = own.iter().find(|property| property.key == FOR_EACH) {
            let message = format!("{}#{}: `for_each` is no property", kind.name(), entry.key);
            let problem = Diagnostic::error("misplaced-for-each", message).at(inside.key_span);
            return self.problem(
                problem.with_help("it stands beside the name: `- for_each: ...`, and the name below it"),
            );
        }
        let is_own =
            |default: &&Entry| own.iter().any(|own| property(kind, &own.key) == property(kind, &default.key));
        // Tags are added to those of the item, once both are expanded.
        let is_missing =
            |default: &&Entry| default.key != "name" && (default.key == TAGS || !is_own(default));
        let missing: Vec<Entry> = inherited.iter().filter(is_missing).cloned().collect();
        let mut properties = entries_of(entry.value);
        properties.extend(missing);
        self.push(Declaration::new(kind, entry.key, entry.key_span, properties), defaults, for_each);
    }

    fn push(&mut self, declaration: Declaration, defaults: Option<Span>, for_each: Option<Node>) {
        let for_each = for_each.map(Rc::new);
        self.declarations.push(Declared {
            declaration,
            completeness: Completeness::Whole,
            defaults,
            for_each,
        });
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

/// Takes a map apart; what is no map has no entries.
fn entries_of(node: Node) -> Vec<Entry> {
    match node.value {
        Value::Map(entries) => entries,
        _ => Vec::new(),
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
    items: &[(Entry, Option<Node>)],
) -> Declaration {
    let is_mark = |entry: &&Entry| entry.key == "sensitive" && !matches!(from_node(&entry.value), Ok(false));
    let marks = || items.iter().filter_map(|(item, _)| item.value.as_map()).flatten().filter(is_mark);
    let mut properties = inherited.to_vec();
    if let Some(mark) = marks().next() {
        properties.retain(|entry| entry.key != mark.key);
        properties.push(mark.clone());
    }
    Declaration::new(kind, defaults.key.clone(), defaults.key_span, properties)
}

/// Joins the tags of an item and those of its `defaults`.
fn join_tags(properties: &mut Vec<Entry>) {
    let is_tags = |entry: &Entry| entry.key == TAGS;
    let Some(own) = properties.iter().position(is_tags) else { return };
    let Some(shared) = properties.iter().rposition(is_tags).filter(|shared| *shared > own) else { return };
    let shared = properties.remove(shared);
    if let (Value::Seq(own), Value::Seq(shared)) = (&mut properties[own].value.value, shared.value.value) {
        own.extend(shared);
    }
}

fn nothing_to_repeat(kind: &dyn AnyType, for_each: &Entry) -> Diagnostic {
    Diagnostic::error("malformed-entry", format!("a `for_each` without a {} beside it", kind.name()))
        .at(for_each.key_span)
        .with_help("write the name that is repeated below it, with its properties")
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

/// Returns the declarations of a manifest that is part of the program.
pub(crate) fn declarations_in(text: &str) -> Result<Vec<Declaration>, Diagnostics> {
    let source = Source { name: "example".to_owned(), text: text.to_owned() };
    let root = document::parse(&source)?;
    let mut diagnostics = Diagnostics::default();
    let declarations = declarations(root, &source, &mut diagnostics);
    if diagnostics.is_empty() { Ok(declarations) } else { Err(diagnostics) }
}
