//! What must not be seen of a resource, and the redactor that hides it.

use std::borrow::Cow;

use serde_json::Value as Json;

use super::{AnyProperties, Error, Resource};
use crate::{checks::HealthCheck, redaction::Redactor, vocabulary::schema::object};

/// Everybody sees these two, also of a sensitive resource.
pub(crate) const OPEN: [&str; 2] = ["name", "ensure"];
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
