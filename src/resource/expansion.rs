//! Templates in declarations: early properties are expanded when a resource is read, late ones when its turn comes.

use std::collections::HashMap;

use super::{
    AnyProperties, AnyType, Completeness, Declaration, Error, ErrorKind, FieldKind, Resource, schema,
};
use crate::{
    document::{
        Diagnostic, Diagnostics, Entry, Excerpt, Node, NodeError, Scalar, Source, Span, Style, Value,
        closest, from_node,
    },
    template::{self, Scope, template_problem},
};

/// Expands declarations of one source.
pub(crate) struct Expansion<'a> {
    scope: &'a Scope,
    source: &'a Source,
    /// The properties of each type that was met with a template.
    known: HashMap<&'static str, Vec<schema::Expandable>>,
}

impl<'a> Expansion<'a> {
    pub(crate) fn new(scope: &'a Scope, source: &'a Source) -> Self {
        Self { scope, source, known: HashMap::new() }
    }

    /// Expands the templates in the name and in early properties; those in late ones are only checked. Says how much of
    /// the declaration there is now.
    pub(crate) fn expand(
        &mut self,
        declaration: &mut Declaration,
        diagnostics: &mut Diagnostics,
    ) -> Completeness {
        let own = declaration.element.as_ref().map(|element| self.scope.within(element));
        let scope = own.as_ref().unwrap_or(self.scope);
        let mut of_name = Diagnostics::default();
        self.name(declaration, scope, &mut of_name);
        let completeness = if of_name.is_empty() { Completeness::Whole } else { Completeness::Nameless };
        let kind = declaration.kind;
        let mut of_properties = Vec::new();
        for (at, entry) in declaration.properties.iter_mut().enumerate() {
            let mut found = Diagnostics::default();
            self.property(kind, entry, scope, &mut found);
            if !found.is_empty() {
                of_properties.push((at, found));
            }
        }
        // Only now it is known whether it is sensitive.
        let secrecy = Secrecy::of(&declaration.properties);
        let mut found = secrecy.uncovered(of_name, |_| {});
        for (at, faults) in of_properties {
            let Entry { key, value, .. } = &declaration.properties[at];
            let of_text = |known: &mut Diagnostics| template::check(value, scope, self.source, known);
            found.extend(secrecy.of_property(kind, key).uncovered(faults, of_text));
        }
        for problem in found.iter_mut() {
            secrecy.cover(problem, kind, &declaration.name);
        }
        diagnostics.extend(found);
        completeness
    }

    fn property(
        &mut self,
        kind: &dyn AnyType,
        Entry { key, value, .. }: &mut Entry,
        scope: &Scope,
        diagnostics: &mut Diagnostics,
    ) {
        if key == "control" {
            return self.check_control(value, scope, diagnostics);
        }
        if !template::holds_template(value) && !template::keys_hold_template(value) {
            return;
        }
        let property = self.expandable(kind, key);
        if property.is_some_and(|property| property.kind == FieldKind::Data) {
            template::expand_keys(value, scope, self.source, diagnostics);
        }
        let property = self.expandable(kind, key);
        if let Some(property) = property {
            join(value, &property.kind);
        }
        if property.is_some_and(|property| property.late) {
            template::check(value, scope, self.source, diagnostics);
        } else {
            template::expand_properties(value, scope, self.source, diagnostics);
        }
    }

    fn name(&self, declaration: &mut Declaration, scope: &Scope, diagnostics: &mut Diagnostics) {
        let scalar = Scalar { text: std::mem::take(&mut declaration.name), style: Style::Joined };
        let mut name = Node { value: Value::Scalar(scalar), span: declaration.name_span };
        template::expand(&mut name, scope, self.source, diagnostics);
        if let Value::Scalar(scalar) = name.value {
            declaration.name = scalar.text;
        }
    }

    fn expandable(&mut self, kind: &dyn AnyType, key: &str) -> Option<&schema::Expandable> {
        let known = self.known.entry(kind.name()).or_insert_with(|| schema::expandables(kind));
        known.iter().find(|property| property.key == key)
    }

    /// Conditions are expressions as they are: nothing in them is expanded first.
    fn check_control(&self, control: &Node, scope: &Scope, diagnostics: &mut Diagnostics) {
        for entry in control.as_map().unwrap_or_default() {
            let Value::Scalar(scalar) = &entry.value.value else { continue };
            if from_node::<bool>(&entry.value).is_ok() {
                continue;
            }
            let errors = match template::Condition::parse(&scalar.text) {
                Ok(condition) => condition.check(scope),
                Err(error) => vec![error],
            };
            let place = |error| template_problem(error, scalar, entry.value.span, self.source);
            diagnostics.extend(errors.into_iter().map(place));
        }
    }
}

/// A value keeps its type where the property takes one, and is joined as text where it takes nothing but text.
fn join(value: &mut Node, kind: &FieldKind) {
    let is_text = |kind: &FieldKind| matches!(kind, FieldKind::Text | FieldKind::Choice(_));
    match (&mut value.value, kind) {
        (_, kind) if is_text(kind) => template::join(value),
        (Value::Seq(items), FieldKind::List(of)) if is_text(of) => items.iter_mut().for_each(template::join),
        (Value::Map(entries), FieldKind::Map) => {
            for entry in entries {
                template::join(&mut entry.value);
            }
        }
        _ => {}
    }
}

/// Whether messages about a declaration may quote it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    Open,
    Secret,
}

impl Secrecy {
    pub(super) fn of(properties: &[Entry]) -> Self {
        let Some(entry) = properties.iter().find(|entry| entry.key == "sensitive") else { return Self::Open };
        // What is not plainly false may have been meant to be true.
        if matches!(from_node(&entry.value), Ok(false)) { Self::Open } else { Self::Secret }
    }

    /// Whether messages may quote this property: some are always secret, and whether the others are is none itself.
    pub(super) fn of_property(self, kind: &dyn AnyType, key: &String) -> Self {
        let secrets = schema::secret(kind);
        // Also one that is misspelt holds what was meant for it.
        let is_misspelt = || closest(key, secrets.iter().map(String::as_str)).is_some();
        match key.as_str() {
            "sensitive" => Self::Open,
            _ if secrets.contains(key) || is_misspelt() => Self::Secret,
            _ => self,
        }
    }

    /// What may be said of templates that cannot be expanded. Values and parts of the text stay out of it; of what the
    /// text itself shows to be wrong, without a value, there is something left to say.
    fn uncovered(self, found: Diagnostics, of_text: impl FnOnce(&mut Diagnostics)) -> Diagnostics {
        if self == Self::Open || found.is_empty() {
            return found;
        }
        let mut known = Diagnostics::default();
        of_text(&mut known);
        // Whatever is quoted, is quoted in these.
        let quotes = |problem: &Diagnostic| problem.message.contains('`');
        if known.is_empty() || known.iter().any(quotes) {
            known = found;
            for problem in known.iter_mut() {
                "a template in it cannot be expanded".clone_into(&mut problem.message);
            }
        }
        for problem in known.iter_mut() {
            problem.excerpt = Excerpt::Hidden;
            problem.help = Some(
                "its text may be secret and is not shown: try the expression with `ccm eval`".to_owned(),
            );
        }
        known
    }

    /// What is wrong with the value of an entry, without quoting what must not be seen.
    pub(super) fn of_value(self, kind: &dyn AnyType, entry: &Entry, error: NodeError) -> NodeError {
        if self == Self::Open && !schema::secret(kind).contains(&entry.key) {
            return error;
        }
        let message = match &error.wanted {
            Some(wanted) => format!("expected {wanted}, found something else"),
            None if self == Self::Open && !quotes(&error.message, &entry.value) => error.message,
            None => "not a value it can have".to_owned(),
        };
        NodeError { message, help: None, ..error }
    }

    /// Names the resource in a problem, and hides the text at its place if that may be a secret.
    pub(super) fn cover(self, problem: &mut Diagnostic, kind: &dyn AnyType, name: &str) {
        problem.message = format!("{}#{name}: {}", kind.name(), problem.message);
        if self == Self::Secret {
            problem.excerpt = Excerpt::Hidden;
        }
    }
}

/// Whether a message contains a text of the value.
fn quotes(message: &str, value: &Node) -> bool {
    match &value.value {
        Value::Scalar(scalar) => !scalar.text.is_empty() && message.contains(&scalar.text),
        Value::Seq(items) => items.iter().any(|item| quotes(message, item)),
        Value::Map(entries) => entries.iter().any(|entry| quotes(message, &entry.value)),
    }
}

impl Resource {
    /// What is wanted now that the resource's turn has come, if that differs from what was known before.
    pub(crate) fn wanted_now(
        &self,
        scope: &Scope,
        source: &Source,
    ) -> Result<Option<Box<dyn AnyProperties>>, Vec<Error>> {
        let Some(late) = &self.late else { return Ok(None) };
        let own = self.own_scope(scope);
        let scope = own.as_ref().unwrap_or(scope);
        let mut map = Node { value: Value::Map(late.clone()), span: self.places.name };
        let mut diagnostics = Diagnostics::default();
        template::expand_properties(&mut map, scope, source, &mut diagnostics);
        if diagnostics.is_empty() {
            match self.kind.read(&map) {
                Ok(wanted) => {
                    let provider = self.common.provider.as_deref();
                    let errors = [wanted.problems(), wanted.problems_with(provider)].concat();
                    if errors.is_empty() {
                        return Ok(Some(wanted));
                    }
                    let redactor = self.redactor(wanted.as_ref());
                    return Err(errors.into_iter().map(|error| error.redacted(&redactor)).collect());
                }
                Err(error) => {
                    let mut entries = map.as_map().unwrap_or_default().iter();
                    let error = match entries.find(|entry| Some(&entry.key) == error.key.as_ref()) {
                        Some(entry) => Secrecy::Open.of_value(self.kind, entry, error),
                        None => error,
                    };
                    diagnostics.push(error.into());
                }
            }
        }
        Err(diagnostics.into_iter().map(|problem| self.late_error(problem)).collect())
    }

    fn late_error(&self, problem: Diagnostic) -> Error {
        let key = |span: Span| {
            self.places.properties.iter().find(|(_, place)| place.contains(span)).map(|(key, _)| key)
        };
        let property = problem.span.and_then(key);
        let name = property.map(|key| format!("{key}: ")).unwrap_or_default();
        let is_secret = || property.is_some_and(|key| schema::secret(self.kind).contains(key));
        let secret = self.common.sensitive || is_secret();
        let message = if secret { "its value cannot be worked out".to_owned() } else { problem.message };
        let help = problem.help.filter(|_| !secret);
        let error = Error::new(format!("{name}{message}")).of_kind(ErrorKind::Expression);
        Error { place: problem.span, help, ..error }
    }
}
