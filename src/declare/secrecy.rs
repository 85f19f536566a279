//! The parts of a declaration that messages must not quote.

use std::borrow::Cow;

use super::health_checks;
use crate::{
    document::{
        Diagnostic, Diagnostics, Entry, Excerpt, Node, NodeError, Severity, Span, Typed, Value, closest,
        from_node,
    },
    redaction::Redactor,
    resource::{ALWAYS_SHOWN, AnyType, SECRET_ARGUMENT, schema},
    template::{self, DOUBTS, UNCLOSED},
};

/// Property that keeps all others from being shown.
pub(super) const SENSITIVE: &str = "sensitive";

/// Properties that are shown in messages, events and records of every resource.
const NAMES: [&str; 6] = ["alias", "ensure", "provider", "require", "subscribe", "tags"];

/// Returns the error about a secret value in a property that cannot have any.
pub(super) fn misplaced(kind: &dyn AnyType, entry: &Entry) -> Option<Diagnostic> {
    if !entry.value.holds_secret() {
        return None;
    }
    if NAMES.contains(&entry.key.as_str()) {
        return Some(template::secret_name().at(entry.value.span));
    }
    let [message, help] = SECRET_ARGUMENT;
    let message = format!("{}: {message}", entry.key);
    schema::is_argument(kind, &entry.key)
        .then(|| Diagnostic::error("secret-argument", message).at(entry.value.span).with_help(help))
}

/// Ids of errors whose messages quote nothing.
const PLAIN: [&str; 3] = ["secret-name", "secret-argument", "secret-in-command"];

/// Roots of paths whose members have names that are no secrets.
const ROOTS: [&str; 3] = ["data", "facts", "environ"];

/// Returns whether a message is about a plain path, such as `Data.db.password`, that leads to no value.
fn names_missing_member(message: &str) -> bool {
    let path = message.strip_prefix('`').and_then(|rest| rest.strip_suffix("` has no value"));
    let Some((root, members)) = path.and_then(|path| path.split_once('.')) else { return false };
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    ROOTS.contains(&root.to_ascii_lowercase().as_str()) && members.split('.').all(is_name)
}

/// Whether messages about a declaration may quote it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    Open,
    Secret,
}

impl Secrecy {
    pub(super) fn of(properties: &[Entry]) -> Self {
        let Some(entry) = properties.iter().find(|entry| entry.key == SENSITIVE) else { return Self::Open };
        // What is not plainly false may have been meant to be true.
        if matches!(from_node(&entry.value), Ok(false)) { Self::Open } else { Self::Secret }
    }

    /// Whether messages may quote this property: some are always secret, and whether the others are is none itself.
    pub(super) fn of_property(self, kind: &dyn AnyType, key: &String) -> Self {
        let secrets = schema::secret(kind);
        // Also one that is misspelt holds what was meant for it.
        let is_misspelt = || closest(key, secrets.iter().map(String::as_str)).is_some();
        match key.as_str() {
            SENSITIVE => Self::Open,
            _ if secrets.contains(key) || is_misspelt() => Self::Secret,
            _ => self,
        }
    }

    /// What may be said of templates that cannot be expanded, or are not what was meant: of secrets neither values nor
    /// parts of the text.
    pub(super) fn uncovered(self, mut found: Diagnostics) -> Diagnostics {
        if self == Self::Open {
            return found;
        }
        let is_shown = |problem: &Diagnostic| {
            problem.severity == Severity::Error || is_doubt(problem.id) || PLAIN.contains(&problem.id)
        };
        found.retain(is_shown);
        for problem in found.iter_mut() {
            if PLAIN.contains(&problem.id) {
                continue;
            }
            if names_missing_member(&problem.message) {
                problem.excerpt = Excerpt::Hidden;
                continue;
            }
            let message = match problem.severity {
                Severity::Error => "a template in it cannot be expanded",
                Severity::Warning | Severity::Note => "an expression in it is probably not what was meant",
            };
            message.clone_into(&mut problem.message);
            problem.excerpt = Excerpt::Hidden;
            problem.help = Some(
                "its text may be secret and is not shown: try the expression with `ccm eval`".to_owned(),
            );
        }
        found
    }

    /// What is wrong with the value of an entry, without quoting what must not be seen.
    pub(super) fn of_value(self, kind: &dyn AnyType, entry: &Entry, error: NodeError) -> NodeError {
        let is_secret = schema::secret(kind).contains(&entry.key)
            || entry.key == health_checks::PROPERTY && health_checks::is_secret(&entry.value, error.span);
        if self == Self::Open && !is_secret {
            return error;
        }
        let message = match &error.wanted {
            Some(wanted) => format!("expected {wanted}, found {}", kind_of(&entry.value, error.span)),
            // Words that may be secret quote nothing of it, and the redactor sees to the rest.
            None if self == Self::Open => error.message,
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

/// Returns the kind of the value at a position, without quoting it.
fn kind_of(value: &Node, span: Option<Span>) -> &'static str {
    let inner = match &value.value {
        Value::Map(entries) => entries.iter().map(|entry| &entry.value).collect(),
        Value::Seq(items) => items.iter().collect(),
        Value::Scalar(_) => Vec::new(),
    };
    let within = |node: &&&Node| span.is_some_and(|span| node.span.contains(span) && value.span != span);
    if let Some(inner) = inner.iter().find(within) {
        return kind_of(inner, span);
    }
    match &value.value {
        Value::Map(_) => "a map",
        Value::Seq(_) => "a list",
        Value::Scalar(scalar) => match scalar.typed() {
            Typed::Null => "nothing",
            Typed::Bool(_) => "a boolean",
            Typed::Int(_) | Typed::UInt(_) | Typed::Float(_) => "a number",
            Typed::Str(_) => "a string",
        },
    }
}

/// Returns whether a warning is about an expression that was probably not meant.
fn is_doubt(id: &str) -> bool {
    id == UNCLOSED || DOUBTS.contains(&id)
}

/// Returns what hides the secrets of a declaration that was not read yet.
pub(super) fn redactor(kind: &dyn AnyType, secrecy: Secrecy, properties: &[Entry]) -> Redactor {
    let mut values = Vec::new();
    for entry in properties.iter().filter(|entry| !ALWAYS_SHOWN.contains(&entry.key.as_str())) {
        if secrecy.of_property(kind, &entry.key) == Secrecy::Secret {
            scalars(&entry.value, &mut values);
        }
    }
    // A message may quote a word of a text, or what a variable is set to.
    let settings = values.iter().filter_map(|text| Some(text.split_once('=')?.1));
    let words: Vec<&str> = values.iter().flat_map(|text| text.split_whitespace()).chain(settings).collect();
    values.extend(words);
    Redactor::new(values.into_iter().map(Cow::Borrowed))
}

fn scalars<'n>(node: &'n Node, values: &mut Vec<&'n str>) {
    match &node.value {
        Value::Scalar(scalar) => values.push(&scalar.text),
        Value::Seq(items) => items.iter().for_each(|item| scalars(item, values)),
        Value::Map(entries) => entries.iter().for_each(|entry| scalars(&entry.value, values)),
    }
}
