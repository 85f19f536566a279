//! Properties whose templates are expanded when the run reaches the resource.

use super::secrecy::Secrecy;
use crate::{
    document::{Diagnostic, Diagnostics, Entry, Node, Severity, Source, Span, Value, from_node},
    registration::Registration,
    resource::{AnyProperties, Error, ErrorKind, Resource, schema, secret_argument},
    template::{self, Scope},
};

impl Resource {
    /// Whether some of its properties are known only when its turn comes.
    pub(crate) fn is_late(&self) -> bool {
        self.late.is_some()
    }

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
        // Warnings were given when the manifest was loaded.
        diagnostics.retain(|problem| problem.severity == Severity::Error);
        if diagnostics.is_empty() && map.holds_secret() {
            self.mark_secret();
            let mut entries = map.as_map().unwrap_or_default().iter();
            let is_argument =
                |entry: &&Entry| entry.value.holds_secret() && schema::is_argument(self.kind, &entry.key);
            if let Some(entry) = entries.find(is_argument) {
                return Err(vec![secret_argument(&entry.key)]);
            }
        }
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
                        Some(entry) if entry.value.holds_secret() => {
                            Secrecy::Secret.of_value(self.kind, entry, error)
                        }
                        Some(entry) => Secrecy::Open.of_value(self.kind, entry, error),
                        None => error,
                    };
                    diagnostics.push(error.into());
                }
            }
        }
        Err(diagnostics.into_iter().map(|problem| self.late_error(problem)).collect())
    }

    /// What is to be registered now that the resource is as it should be.
    pub(crate) fn registrations_now(
        &self,
        scope: &Scope,
        source: &Source,
    ) -> Result<Vec<Registration>, Vec<Error>> {
        let Some(late) = &self.late_registrations else {
            return Ok(self.common.register_when_stable.clone());
        };
        let own = self.own_scope(scope);
        let scope = own.as_ref().unwrap_or(scope);
        let mut value = late.value.clone();
        let mut diagnostics = Diagnostics::default();
        template::expand_properties(&mut value, scope, source, &mut diagnostics);
        diagnostics.retain(|problem| problem.severity == Severity::Error);
        // Everything in a registration is published.
        value.mask_secrets();
        if diagnostics.is_empty() {
            match from_node(&value) {
                Ok(registrations) => return Ok(registrations),
                Err(error) => diagnostics.push(error.into()),
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
        let secret = self.is_sensitive() || is_secret();
        let message = if secret { "its value cannot be worked out".to_owned() } else { problem.message };
        let help = problem.help.filter(|_| !secret);
        let error = Error::new(format!("{name}{message}")).of_kind(ErrorKind::Expression);
        Error { place: problem.span, help, ..error }
    }
}
