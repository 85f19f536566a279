//! A resource as a manifest says it once its templates are expanded.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};

use crate::{
    checks::HealthCheck,
    document::{Diagnostics, Entry, Node, Source, Value, to_value},
    redaction::{MASK, Redactor},
    resource::{AnyProperties, Resource, schema},
    template::{self, Element, Scope, escape},
    vocabulary::schema::object,
};

/// Stands for what must not be seen. It names nothing that exists, so that nobody applies it by mistake.
pub(crate) const HIDDEN: &str = "${ hidden }";

/// Whether the elements of a `for_each` may be seen: what is hidden may come from one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elements {
    Shown,
    Hidden,
}

/// The expanded properties of a resource, with secrets in them.
struct Expanded {
    properties: Map<String, Json>,
    common: Map<String, Json>,
    /// Hides the secrets.
    redactor: Redactor,
    secrets: Vec<String>,
}

/// The properties of a resource, to compare them with those of another manifest.
pub(crate) struct Comparable {
    /// The properties as they may be shown. Hidden ones are [`HIDDEN`].
    pub(crate) shown: Map<String, Json>,
    /// Their values, except those of secrets.
    values: Map<String, Json>,
    /// The values of secrets, in the order of the properties.
    secrets: Vec<String>,
}

impl Comparable {
    /// Returns the names of properties that differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let is_hidden = |name: &str| {
            [self, other].iter().any(|one| one.shown.get(name).is_some_and(|value| value == HIDDEN))
        };
        let names =
            self.values.keys().chain(other.values.keys().filter(|name| !self.values.contains_key(*name)));
        let mut differ: Vec<String> =
            names.clone().filter(|name| self.values.get(*name) != other.values.get(*name)).cloned().collect();
        // Which of the hidden properties has the secret that differs is not known.
        if self.secrets != other.secrets && !differ.iter().any(|name| is_hidden(name)) {
            differ.extend(names.filter(|name| is_hidden(name)).cloned());
        }
        differ
    }
}

impl Resource {
    /// Returns the properties for a comparison.
    pub(crate) fn comparable(&self, scope: &Scope, source: &Source) -> Comparable {
        let Expanded { properties, common, redactor, secrets } =
            self.expanded(scope, source, Elements::Shown);
        let mut values = properties.clone();
        values.extend(common.clone());
        let mut shown = self.hidden(properties, common, &redactor);
        if shown.values().any(|value| value == HIDDEN) {
            shown = self.rendered(scope, source, Elements::Hidden);
        }
        Comparable { shown, values, secrets }
    }

    /// Its properties without the name. A template stays where it cannot be expanded before the run.
    pub(crate) fn rendered(&self, scope: &Scope, source: &Source, elements: Elements) -> Map<String, Json> {
        let Expanded { properties, common, redactor, .. } = self.expanded(scope, source, elements);
        self.hidden(properties, common, &redactor)
    }

    fn expanded(&self, scope: &Scope, source: &Source, elements: Elements) -> Expanded {
        let own = self.own_scope(scope);
        let (mut properties, left, redactor, secrets) =
            self.settled(&own.as_ref().unwrap_or(scope).before_run(), source);
        properties.shift_remove("name");
        properties.values_mut().for_each(escape);
        properties.extend(left.into_iter().map(|entry| {
            let mut value = json(&entry.value);
            self.bind(&mut value, elements, Element::bind_text);
            (entry.key, value)
        }));
        let mut common = object(&*self.common);
        if let Some(control) = common.get_mut("control") {
            self.bind(control, elements, Element::bind_condition);
        }
        common.iter_mut().filter(|(key, _)| *key != "control").for_each(|(_, value)| escape(value));
        if let Some(late) = &self.late_checks {
            let mut checks = json(late);
            self.bind(&mut checks, elements, Element::bind_text);
            common.insert("health_checks".to_owned(), checks);
        }
        if let Some(entry) =
            self.late_registrations.as_ref().filter(|_| self.common.register_when_stable.is_empty())
        {
            let mut value = json(&entry.value);
            self.bind(&mut value, elements, Element::bind_text);
            common.shift_insert(0, entry.key.clone(), value);
        }
        Expanded { properties, common, redactor, secrets }
    }

    /// Returns the properties with secrets hidden.
    fn hidden(
        &self,
        mut properties: Map<String, Json>,
        mut common: Map<String, Json>,
        redactor: &Redactor,
    ) -> Map<String, Json> {
        let secret = schema::secret(self.kind);
        for (key, value) in &mut properties {
            let is_secret = secret.contains(key) || self.is_sensitive() && key != "ensure";
            if is_secret || is_masked(value) || redactor.finds(value) {
                *value = HIDDEN.into();
            }
        }
        if self.included.iter().flat_map(|included| &included.resources).any(Self::hides_anything)
            && let Some(data) = properties.get_mut("data")
        {
            *data = HIDDEN.into();
        }
        if self.common.health_checks.iter().any(|check| !check.secrets().is_empty()) {
            common.insert("health_checks".to_owned(), HIDDEN.into());
        }
        if self.is_sensitive() {
            common
                .iter_mut()
                .filter(|(key, _)| *key != "sensitive")
                .for_each(|(_, value)| *value = HIDDEN.into());
        }
        properties.extend(common);
        properties
    }

    /// Lets expressions that are left say themselves what `each` and `index` are: nothing repeats what is rendered.
    fn bind(&self, value: &mut Json, elements: Elements, bind: fn(&Element, &str) -> String) {
        let Some(element) = &self.element else { return };
        match value {
            Json::String(text) => {
                let bound = bind(element, text);
                *text = if bound == *text || elements == Elements::Shown { bound } else { HIDDEN.to_owned() };
            }
            Json::Array(items) => items.iter_mut().for_each(|item| self.bind(item, elements, bind)),
            Json::Object(entries) => entries.values_mut().for_each(|entry| self.bind(entry, elements, bind)),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// What is known before the run, what is left of the properties, what hides the secrets in both, and the secrets.
    fn settled(
        &self,
        scope: &Scope,
        source: &Source,
    ) -> (Map<String, Json>, Vec<Entry>, Redactor, Vec<String>) {
        let known = |wanted: &dyn AnyProperties| {
            let mut secrets: Vec<String> = wanted.secrets().into_iter().map(Cow::into_owned).collect();
            let of_checks = self.common.health_checks.iter().flat_map(HealthCheck::secrets);
            secrets.extend(of_checks.map(Cow::into_owned));
            (wanted.to_json(), self.redactor(wanted), secrets)
        };
        let Some(late) = &self.late else {
            let (properties, redactor, secrets) = known(self.wanted.as_ref());
            return (properties, Vec::new(), redactor, secrets);
        };
        let mut expanded = late.clone();
        let mut left = Vec::new();
        for (at, entry) in late.iter().enumerate().rev() {
            let mut problems = Diagnostics::default();
            template::expand_properties(&mut expanded[at].value, scope, source, &mut problems);
            if problems.has_errors() {
                expanded.remove(at);
                left.insert(0, entry.clone());
            } else if expanded[at].value.holds_secret() {
                self.mark_secret();
            }
        }
        let read = |entries| self.kind.read(&Node { value: Value::Map(entries), span: self.places.name });
        if let Ok(wanted) = read(expanded) {
            let (properties, redactor, secrets) = known(wanted.as_ref());
            return (properties, left, redactor, secrets);
        }
        // What comes out does not fit: that is for the run to tell.
        let is_unknown = |entry: &Entry| template::holds_template(&entry.value) || entry.value.holds_secret();
        let (left, plain) = late.iter().cloned().partition(is_unknown);
        let (properties, redactor, secrets) =
            read(plain).map(|wanted| known(wanted.as_ref())).unwrap_or_default();
        (properties, left, redactor, secrets)
    }
}

/// Whether it is an address of which a part is not shown.
fn is_masked(value: &Json) -> bool {
    let is_address = |text: &&str| text.starts_with("http://") || text.starts_with("https://");
    let is_masked = |text: &str| text.contains(&format!("://{MASK}@")) || text.ends_with("?…");
    value.as_str().filter(is_address).is_some_and(is_masked)
}

fn json(node: &Node) -> Json {
    serde_json::to_value(to_value(node)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_masked_when_its_login_or_its_query_is() {
        for (text, expected) in [
            ("https://[secret]@example.com/x", true),
            ("http://[secret]@example.com/x", true),
            ("http://example.com/x?…", true),
            ("https://example.com/x?y=z", false),
            ("see https://[secret]@example.com/x", false),
        ] {
            assert_eq!(is_masked(&text.into()), expected, "{text}");
        }
    }
}
