//! Templates in declarations: early properties are expanded when a resource is read, late ones when its turn comes.

use std::collections::HashMap;

use ccm_expr::Program;

use super::{Declaration, Error, FieldKind, Kind, Resource, Wanted, schema};
use crate::{
    document::{
        Entry, Excerpt, Node, NodeError, Problem, Scalar, Source, Span, Style, Value, closest, from_node,
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

    /// Expands the templates in the name and in early properties; those in late ones are only checked.
    pub(crate) fn expand(&mut self, declaration: &mut Declaration, problems: &mut Vec<Problem>) {
        let known = problems.len();
        self.name(declaration, problems);
        for Entry { key, value, .. } in &mut declaration.properties {
            if key == "control" {
                self.check_control(value, problems);
            } else if template::holds_template(value) {
                let property = self.property(declaration.kind, key);
                if let Some(property) = property {
                    join(value, &property.kind);
                }
                if property.is_some_and(|property| property.late) {
                    template::check(value, self.scope, self.source, problems);
                } else {
                    template::expand(value, self.scope, self.source, problems);
                }
            }
        }
        if problems.len() == known {
            return;
        }
        let secrecy = Secrecy::of(&declaration.properties)
            .with(declaration.kind, declaration.properties.iter().map(|entry| &entry.key));
        for problem in &mut problems[known..] {
            if secrecy == Secrecy::Secret {
                // Messages of expressions quote what they were given.
                "a template in it cannot be expanded".clone_into(&mut problem.message);
                problem.help = None;
            }
            secrecy.cover(problem, declaration.kind, &declaration.name);
        }
    }

    fn name(&self, declaration: &mut Declaration, problems: &mut Vec<Problem>) {
        let scalar = Scalar { text: std::mem::take(&mut declaration.name), style: Style::Joined };
        let mut name = Node { value: Value::Scalar(scalar), span: declaration.name_span };
        template::expand(&mut name, self.scope, self.source, problems);
        if let Value::Scalar(scalar) = name.value {
            declaration.name = scalar.text;
        }
    }

    fn property(&mut self, kind: &dyn Kind, key: &str) -> Option<&schema::Expandable> {
        let known = self.known.entry(kind.name()).or_insert_with(|| schema::expandables(kind));
        known.iter().find(|property| property.key == key)
    }

    /// Conditions are expressions as they are: nothing in them is expanded first.
    fn check_control(&self, control: &Node, problems: &mut Vec<Problem>) {
        for entry in control.as_map().unwrap_or_default() {
            let Value::Scalar(scalar) = &entry.value.value else { continue };
            if from_node::<bool>(&entry.value).is_ok() {
                continue;
            }
            let errors = match Program::compile(&scalar.text) {
                Ok(program) => program.check(self.scope),
                Err(mut error) => {
                    if template::holds_template(&entry.value) {
                        error.help = Some(
                            "it is an expression already: write it without `${ }` or `{{ }}`".to_owned(),
                        );
                    }
                    vec![error]
                }
            };
            let place = |error| template_problem(error, scalar, entry.value.span, self.source);
            problems.extend(errors.into_iter().map(place));
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

    /// Also secret when there is a property among these that always is.
    pub(super) fn with<'k>(self, kind: &dyn Kind, mut keys: impl Iterator<Item = &'k String>) -> Self {
        let secrets = schema::secret(kind);
        // Also one that is misspelt holds what was meant for it.
        let is_secret = |key: &String| {
            secrets.contains(key) || closest(key, secrets.iter().map(String::as_str)).is_some()
        };
        if keys.any(is_secret) { Self::Secret } else { self }
    }

    /// What is wrong with the value of an entry, without quoting what must not be seen.
    pub(super) fn of_value(self, kind: &dyn Kind, entry: &Entry, error: NodeError) -> NodeError {
        if self == Self::Open && !schema::secret(kind).contains(&entry.key) {
            return error;
        }
        let message = match &error.wanted {
            Some(wanted) => format!("expected {wanted}, found something else"),
            None => "not a value it can have".to_owned(),
        };
        NodeError { message, help: None, ..error }
    }

    /// Names the resource in a problem, and hides the text at its place if that may be a secret.
    pub(super) fn cover(self, problem: &mut Problem, kind: &dyn Kind, name: &str) {
        problem.message = format!("{}#{name}: {}", kind.name(), problem.message);
        if self == Self::Secret {
            problem.excerpt = Excerpt::Hidden;
        }
    }
}

impl Resource {
    /// What is wanted now that the resource's turn has come, if that differs from what was known before.
    pub(crate) fn wanted_now(
        &self,
        scope: &Scope,
        source: &Source,
    ) -> Result<Option<Box<dyn Wanted>>, Vec<Error>> {
        let Some(late) = &self.late else { return Ok(None) };
        let mut map = Node { value: Value::Map(late.clone()), span: self.places.name };
        let mut problems = Vec::new();
        template::expand(&mut map, scope, source, &mut problems);
        if problems.is_empty() {
            match self.kind.read(&map) {
                Ok(wanted) => {
                    let mut errors = wanted.problems(self.common.provider.as_deref());
                    self.conceal(wanted.as_ref(), &mut errors, &mut []);
                    return if errors.is_empty() { Ok(Some(wanted)) } else { Err(errors) };
                }
                Err(error) => {
                    let mut entries = map.as_map().unwrap_or_default().iter();
                    let error = match entries.find(|entry| Some(&entry.key) == error.key.as_ref()) {
                        Some(entry) => Secrecy::Open.of_value(self.kind, entry, error),
                        None => error,
                    };
                    problems.push(error.into());
                }
            }
        }
        Err(problems.into_iter().map(|problem| self.late_error(problem)).collect())
    }

    fn late_error(&self, problem: Problem) -> Error {
        let key = |span: Span| {
            self.places.properties.iter().find(|(_, place)| place.contains(span)).map(|(key, _)| key)
        };
        let property = problem.span.and_then(key);
        let name = property.map(|key| format!("{key}: ")).unwrap_or_default();
        let is_secret = || property.is_some_and(|key| schema::secret(self.kind).contains(key));
        let secret = self.common.sensitive || is_secret();
        let message = if secret { "its value cannot be worked out".to_owned() } else { problem.message };
        let help = problem.help.filter(|_| !secret);
        Error { place: problem.span, help, ..Error::new(format!("{name}{message}")) }
    }
}
