//! What must not be seen of a resource, and the redactor that hides it.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::Value as Json;

use super::{AnyProperties, Error, ErrorKind, Resource, schema};
use crate::{
    checks::{self, HealthCheck},
    redaction::Redactor,
    vocabulary::schema::object,
};

/// Everybody sees these two, also of a sensitive resource.
pub(crate) const OPEN: [&str; 2] = ["name", "ensure"];
/// Properties of a sensitive resource that events show.
pub(crate) const OF_SENSITIVE: [&str; 3] = ["name", "ensure", "sensitive"];
/// What every resource has and nobody may see of a sensitive one. The rest are numbers and times, which turn up everywhere.
const COMMON: [&str; 6] = ["alias", "provider", "require", "subscribe", "control", "health_checks"];

/// Whether a secret value is part of a resource. Some templates are expanded only at run time.
#[derive(Debug, Default)]
pub(crate) struct SecretMark(AtomicBool);

impl From<bool> for SecretMark {
    fn from(is_secret: bool) -> Self {
        Self(is_secret.into())
    }
}

impl Resource {
    /// Returns whether nothing but the name and desired state of the resource is shown or stored.
    pub(crate) fn is_sensitive(&self) -> bool {
        self.common.sensitive || self.is_secret()
    }

    /// Returns whether a secret value is part of the resource.
    pub(crate) fn is_secret(&self) -> bool {
        self.secret.0.load(Ordering::Relaxed)
    }

    /// Treats the resource as sensitive from now on: a secret value is part of it.
    pub(crate) fn mark_secret(&self) {
        self.secret.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the resource, or a resource of its included manifest, has anything that is not shown.
    pub(crate) fn hides_anything(&self) -> bool {
        let is_given = |key: &String| {
            let late = self.late.iter().flatten().any(|entry| entry.key == *key);
            late || self.wanted.to_json().contains_key(key)
        };
        self.is_sensitive()
            || schema::secret(self.kind).iter().any(is_given)
            || !self.wanted.secrets().is_empty()
            || self.common.health_checks.iter().any(|check| !check.secrets().is_empty())
            || self.late_checks.as_deref().is_some_and(checks::hold_secrets)
            || self.included.iter().flat_map(|included| &included.resources).any(Self::hides_anything)
    }

    /// Returns what hides the secrets of this resource: the values of its secret properties and, if it is sensitive, of
    /// all others.
    pub(crate) fn redactor(&self, wanted: &dyn AnyProperties) -> Redactor {
        let mut shown = Vec::new();
        if self.is_sensitive() {
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

/// Reason why no argument of a program can contain a secret value, and what to do instead.
pub(crate) const SECRET_ARGUMENT: [&str; 2] = [
    "a secret value cannot be an argument of a program: all users can read the arguments of processes",
    "use `environment` or `stdin`",
];

/// Returns the error about a secret value in a property that becomes arguments of a program.
pub(crate) fn secret_argument(property: &str) -> Error {
    let [message, help] = SECRET_ARGUMENT;
    Error::new(format!("{property}: {message}")).of_kind(ErrorKind::Expression).with_help(help)
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
