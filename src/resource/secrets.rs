//! What must not be seen of a resource, and the redactor that hides it.

use std::borrow::Cow;

use serde_json::Value as Json;

use super::{AnyProperties, AnyType, Error, Resource, expansion::Secrecy};
use crate::{
    checks::HealthCheck,
    document::{Entry, Node, Value},
    redaction::Redactor,
    vocabulary::schema::object,
};

/// Everybody sees these two, also of a sensitive resource.
const OPEN: [&str; 2] = ["name", "ensure"];
/// What every resource has and nobody may see of a sensitive one. The rest are numbers and times, which turn up everywhere.
const COMMON: [&str; 6] = ["alias", "provider", "require", "subscribe", "control", "health_checks"];

impl Resource {
    /// Returns what hides the secrets of this resource: the values of its secret properties and, if it is sensitive, of
    /// all others.
    pub(crate) fn redactor(&self, wanted: &dyn AnyProperties) -> Redactor {
        let mut shown = Vec::new();
        if self.common.sensitive {
            let own = wanted.to_json().into_iter().filter(|(key, _)| !OPEN.contains(&key.as_str()));
            let common = object(&*self.common);
            let common = common.into_iter().filter(|(key, _)| COMMON.contains(&key.as_str()));
            own.chain(common).for_each(|(_, value)| texts(value, &mut shown));
        }
        let of_checks = self.common.health_checks.iter().flat_map(HealthCheck::secrets);
        let values = wanted.secrets().into_iter().chain(of_checks).chain(shown.into_iter().map(Cow::Owned));
        // What is in the name is no secret.
        Redactor::new(values.filter(|value| !self.name.contains(value.trim())))
    }
}

/// Returns what hides the secrets of a declaration that was not read yet.
pub(super) fn of_declaration(kind: &dyn AnyType, secrecy: Secrecy, properties: &[Entry]) -> Redactor {
    let mut values = Vec::new();
    for entry in properties.iter().filter(|entry| !OPEN.contains(&entry.key.as_str())) {
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

impl Error {
    /// Returns the error with the secrets in its words masked.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        redactor.mask(&mut self.message);
        self.help.iter_mut().for_each(|help| redactor.mask(help));
        self
    }
}

fn texts(value: Json, values: &mut Vec<String>) {
    match value {
        Json::String(text) => values.push(text),
        Json::Array(items) => items.into_iter().for_each(|item| texts(item, values)),
        Json::Object(entries) => entries.into_iter().for_each(|(_, value)| texts(value, values)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn scalars<'n>(node: &'n Node, values: &mut Vec<&'n str>) {
    match &node.value {
        Value::Scalar(scalar) => values.push(&scalar.text),
        Value::Seq(items) => items.iter().for_each(|item| scalars(item, values)),
        Value::Map(entries) => entries.iter().for_each(|entry| scalars(&entry.value, values)),
    }
}
