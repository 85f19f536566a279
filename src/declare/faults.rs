//! Everything that is wrong with a declaration, and nothing that only follows from it.

use std::borrow::Cow;

use super::{
    elsewhere, health_checks,
    secrecy::{self, Secrecy},
};
use crate::{
    checks,
    document::{
        Diagnostic, Diagnostics, Entry, Excerpt, Fault, Node, NodeError, Scalar, Span, Style, Value, closest,
    },
    resource::{
        AnyProperties, AnyType, Common, Error, FieldKind, Places, REGISTRATIONS, Warning, fields, known_name,
        meant_for_a_shell, schema,
    },
    template,
    vocabulary::schema::keys,
};

/// The name as a property.
pub(super) fn named(name: &str, span: Span) -> Entry {
    let scalar = Scalar::new(name.to_owned(), Style::Literal);
    Entry { key: "name".to_owned(), key_span: span, value: Node { value: Value::Scalar(scalar), span } }
}

/// With one of these in place of a name at fault, the rest of a declaration can be judged, whatever its type.
const STAND_INS: [&str; 2] = ["/name", "name"];

/// What is wrong with a declaration.
pub(super) struct Faults {
    kind: &'static dyn AnyType,
    secrecy: Secrecy,
    pub(super) diagnostics: Diagnostics,
    /// The properties that could not be read.
    pub(super) properties: Vec<String>,
    /// The properties whose values are not known yet: what they look like now says nothing.
    pub(super) late: Vec<String>,
    /// Registrations that are not known yet.
    pub(super) registrations: Option<Entry>,
    /// What was taken out because it is at fault: messages must not quote the secrets in it.
    removed: Vec<Entry>,
}

impl Faults {
    pub(super) fn new(kind: &'static dyn AnyType, secrecy: Secrecy) -> Self {
        let diagnostics = Diagnostics::default();
        let (properties, late, removed) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, secrecy, diagnostics, properties, late, registrations: None, removed }
    }

    /// The properties that every resource has, and those of the type.
    pub(super) fn sort(&mut self, properties: Vec<Entry>) -> (Vec<Entry>, Vec<Entry>) {
        let (mut common, mut own) = (Vec::new(), Vec::new());
        for entry in properties {
            if self.kind.keys().contains(&entry.key.as_str()) {
                if template::holds_template(&entry.value) {
                    self.late.push(entry.key.clone());
                }
                own.push(entry);
            } else if is_common(self.kind, &entry.key) {
                if entry.key == REGISTRATIONS && template::holds_template(&entry.value) {
                    self.registrations = Some(entry);
                } else if entry.key != "control" && template::holds_template(&entry.value) {
                    // It could not be expanded, which is said already.
                    self.properties.push(entry.key.clone());
                    self.removed.push(entry);
                } else {
                    common.push(listed(entry));
                }
            } else {
                self.diagnostics.push(unknown_key(self.kind, &entry));
                self.removed.push(entry);
            }
        }
        (common, own)
    }

    /// Makes the collector for properties of which some are not known yet, and all others are right.
    pub(super) fn later(kind: &'static dyn AnyType, secrecy: Secrecy, late: Vec<String>) -> Self {
        Self { late, ..Self::new(kind, secrecy) }
    }

    /// Puts what late properties will be in the place of their templates: from now on they are judged as any others.
    pub(super) fn insert_foreseen(&mut self, own: &mut [Entry], foreseen: Vec<Entry>) {
        for known in foreseen {
            if let Some(entry) = own.iter_mut().find(|entry| entry.key == known.key) {
                self.late.retain(|key| *key != entry.key);
                *entry = known;
            }
        }
    }

    /// Whether nothing more needs to be said of a property.
    pub(super) fn is_known(&self, property: Option<&str>) -> bool {
        self.properties.iter().any(|known| Some(known.as_str()) == property)
    }

    /// Of what is wrong with a combination and with values, what is not known already and can be known now.
    pub(super) fn new_in(&self, combination: Vec<Error>, values: Vec<Error>) -> Vec<Error> {
        let is_late = |error: &Error| self.late.iter().any(|late| Some(late.as_str()) == error.property);
        let known_now = values.into_iter().filter(|error| !is_late(error));
        let is_told = |error: &Error| {
            let mut blamed = error.property.iter().chain(error.unless);
            blamed.any(|property| self.is_known(Some(property)))
        };
        combination.into_iter().chain(known_now).filter(|error| !is_told(error)).collect()
    }

    /// Returns the warnings about properties whose values are known now.
    pub(super) fn settled(&self, mut warnings: Vec<Warning>) -> Vec<Warning> {
        let is_late = |property: &str| self.late.iter().any(|late| late == property);
        warnings.retain(|warning| !warning.property.is_some_and(is_late) && !self.is_known(warning.property));
        warnings
    }

    /// What is wrong with the combination of properties; if the desired state is at fault, with any that could be meant.
    pub(super) fn combination(&self, wanted: &dyn AnyProperties, own: &Node) -> Vec<Error> {
        if !self.is_known(Some("ensure")) {
            return wanted.problems();
        }
        let states =
            fields(self.kind).into_iter().find(|field| field.name == "ensure").map(|field| field.kind);
        let Some(FieldKind::Choice(states)) = states else { return Vec::new() };
        let problems = |state: &String| {
            let ensure = Entry { key: "ensure".to_owned(), ..named(state, own.span) };
            let map = Value::Map([own.as_map()?, &[ensure]].concat());
            Some(self.kind.read(&Node { value: map, span: own.span }).ok()?.problems())
        };
        let mut each = states.iter().filter_map(problems);
        let mut all = each.next().unwrap_or_default();
        each.for_each(|other| all.retain(|error| other.contains(error)));
        all
    }

    /// Reads a map, leaving out the entries at fault, and of lists the items at fault, so that every fault is reported and
    /// not only the first.
    pub(super) fn read<T>(
        &mut self,
        map: &mut Node,
        read: impl Fn(&Node) -> Result<T, NodeError>,
    ) -> Option<T> {
        let mut stand_ins = STAND_INS.into_iter();
        // Properties that are lists and lost items that were told of.
        let mut shortened: Vec<String> = Vec::new();
        loop {
            let mut error = match read(map) {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            let Value::Map(entries) = &mut map.value else { return None };
            let key = error.key.as_ref();
            let at = key.and_then(|key| entries.iter().position(|entry| entry.key == *key));
            let may_go_on = shortened.len() < MOST_FAULTS;
            let item = at.filter(|_| may_go_on).and_then(|at| without_item(&mut entries[at], &error));
            let is_shortened = item.is_some();
            let entry = item.or_else(|| at.map(|at| entries.remove(at)));
            let Some(entry) = entry else {
                if !self.is_known(Some("name")) {
                    self.diagnostics.push(error.into());
                }
                return None;
            };
            if entry.key == "name" {
                entries.extend(stand_ins.next().map(|name| named(name, entry.key_span)));
            }
            if self.is_known(Some(&entry.key)) && !shortened.contains(&entry.key) {
                continue;
            }
            if error.fault == Fault::Key || !self.late.contains(&entry.key) {
                if entry.key != "name" {
                    error = self.secrecy.of_value(self.kind, &entry, error);
                    error.message = format!("{}: {}", entry.key, error.message);
                }
                error.help = self.advice(&entry, &error).or(error.help);
                self.diagnostics.push(error.into());
            }
            self.properties.push(entry.key.clone());
            if is_shortened {
                shortened.push(entry.key.clone());
            }
            self.removed.push(entry);
        }
    }

    /// Returns what to write instead of a value that is not one of its property, where it is known what was meant.
    fn advice(&self, Entry { key, value, .. }: &Entry, error: &NodeError) -> Option<String> {
        let wants_text = || matches!(error.wanted.as_deref(), Some("a string" | "text"));
        match key.as_str() {
            "name" if let Some(advice) = elsewhere::name(value.as_str().unwrap_or_default(), self.kind) => {
                Some(advice)
            }
            "control" if matches!(value.value, Value::Scalar(_)) => {
                Some("write `control: { if: EXPRESSION }`".to_owned())
            }
            "environment" if let Some([first, ..]) = value.as_map() => {
                Some(format!("write a list: `- {}=value`", first.key))
            }
            "engine" if value.as_str() == Some("jet") => {
                Some(format!("`engine: jinja` replaces it; {}", template::jet::HELP))
            }
            _ if wants_text() && !matches!(value.value, Value::Scalar(_)) => {
                Some("put the value in quotes if it is meant as text".to_owned())
            }
            "ensure" if let Value::Scalar(scalar) = &value.value => elsewhere::state(&scalar.text, self.kind),
            _ if self.secrecy.of_property(self.kind, key) == Secrecy::Secret => None,
            _ => {
                let path = value.as_str().filter(|path| path.starts_with(['~', '$']))?;
                meant_for_a_shell("path", path)?.help
            }
        }
    }

    /// The problems, each naming the resource, and none showing what must not be seen. `rest` is what is not at fault.
    pub(super) fn about(mut self, name: &str, places: &Places, rest: [&Node; 2]) -> Diagnostics {
        if self.diagnostics.is_empty() {
            return self.diagnostics;
        }
        let given = self.given(rest);
        let redactor = secrecy::redactor(self.kind, self.secrecy, &given);
        let mut secrets = schema::secret(self.kind);
        if given
            .iter()
            .any(|entry| entry.key == health_checks::PROPERTY && checks::hold_secrets(&entry.value))
        {
            secrets.push(health_checks::PROPERTY.to_owned());
        }
        let secret = |span: Span| {
            places.properties.iter().any(|(key, place)| secrets.contains(key) && place.contains(span))
        };
        for problem in self.diagnostics.iter_mut() {
            // What a message quotes stands at its place.
            let quotes_secret = matches!(redactor.redact(&problem.message), Cow::Owned(_));
            redactor.mask(&mut problem.message);
            problem.help.iter_mut().for_each(|help| redactor.mask(help));
            self.secrecy.cover(problem, self.kind, name);
            if quotes_secret || problem.span.is_some_and(secret) {
                problem.excerpt = Excerpt::Hidden;
            }
        }
        self.diagnostics
    }

    /// All that was given, at fault or not.
    fn given(&mut self, rest: [&Node; 2]) -> Vec<Entry> {
        let rest = rest.into_iter().flat_map(|map| map.as_map().unwrap_or_default());
        self.removed.extend(rest.cloned());
        std::mem::take(&mut self.removed)
    }
}

/// After so many faults the rest of a list is not looked at: each costs another reading of all.
const MOST_FAULTS: usize = 50;

/// Takes the item at fault out of a property that is a list of several, and returns it under the property's key.
fn without_item(property: &mut Entry, error: &NodeError) -> Option<Entry> {
    let Entry { key, key_span, value: Node { value: Value::Seq(items), .. } } = property else { return None };
    let at = items.iter().position(|item| error.span.is_some_and(|span| item.span.contains(span)))?;
    (items.len() > 1).then(|| Entry { key: key.clone(), key_span: *key_span, value: items.remove(at) })
}

/// A reference alone is a list of one.
fn listed(mut entry: Entry) -> Entry {
    if matches!(entry.key.as_str(), "require" | "subscribe") && entry.value.as_str().is_some() {
        let span = entry.value.span;
        let alone = std::mem::replace(&mut entry.value, Node::null(span));
        entry.value.value = Value::Seq(vec![alone]);
    }
    entry
}

fn is_common(kind: &dyn AnyType, key: &str) -> bool {
    keys::<Common>().contains(&key) && (key != "subscribe" || kind.behavior().refreshes)
}

fn unknown_key(kind: &dyn AnyType, entry: &Entry) -> Diagnostic {
    let mut known: Vec<&str> = kind.keys().iter().copied().filter(|key| *key != "name").collect();
    known.extend(keys::<Common>().iter().copied().filter(|key| is_common(kind, key)));
    let help = match closest(&entry.key, known.iter().copied()) {
        _ if entry.key == "subscribe" => format!("a {} is not refreshed by others; use require", kind.name()),
        _ if let Some(advice) = elsewhere::property(&entry.key, &known) => advice,
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known properties: {}", known.join(", ")),
    };
    Diagnostic::error("unknown-property", format!("unknown property `{}`", entry.key))
        .at(entry.key_span)
        .with_help(help)
}

pub(super) fn unknown_provider(
    kind: &dyn AnyType,
    secrecy: Secrecy,
    common: &Common,
    places: &Places,
) -> Option<Diagnostic> {
    let asked = common.provider.as_deref()?;
    let known = kind.providers();
    let asked_name = known_name(kind.name(), asked);
    if known.iter().any(|candidate| candidate.name == asked_name) {
        return None;
    }
    let message = match secrecy {
        Secrecy::Open => format!("{} has no provider \"{asked}\"", kind.name()),
        Secrecy::Secret => format!("{} has no such provider", kind.name()),
    };
    let error = Error::new(message).on("provider");
    let known: Vec<&str> = known.iter().map(|candidate| candidate.name).collect();
    Some(places.problem(error.with_help(format!("known providers: {}", known.join(", ")))))
}
