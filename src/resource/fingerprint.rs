//! The observed state of a resource, field by field, on which a plan relies.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AnyProperties, AnyState, Before, PlannedChange};
use crate::redaction::MASK;

/// The fields of an observed state by name. Secret values are keyed hashes.
pub(crate) type Fingerprint = Map<String, Value>;

/// Hashes a secret value with a key of this machine.
pub(crate) type Keyed<'a> = &'a dyn Fn(&str) -> String;

/// A field that differs from a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Discrepancy {
    pub(crate) field: String,
    pub(crate) planned: String,
    pub(crate) found: String,
}

/// Fields that no decision depends on, or that differ between two inspections of the same state.
const IRRELEVANT: [&str; 17] = [
    "protocol",
    "type",
    "name",
    "provider",
    "mtime",
    "size",
    "foreign",
    "members",
    "candidate",
    "hold",
    "active_state",
    "exitcode",
    "versions",
    "changed",
    "stable",
    "purged",
    "remaining",
];

/// Begins the value of a field that is a keyed hash.
const KEYED: &str = "keyed:";
/// Begins the name of a field that undo would restore.
const BEFORE: &str = "before.";

/// A resource that was inspected and decided on.
pub(crate) struct Observation<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) wanted: &'a dyn AnyProperties,
    pub(crate) have: &'a AnyState,
    pub(crate) change: Option<&'a PlannedChange>,
    /// Whether the values could reveal a secret.
    pub(crate) is_secret: bool,
}

impl Observation<'_> {
    /// Returns everything that the decision depended on.
    pub(crate) fn fingerprint(&self, keyed: Keyed) -> Fingerprint {
        let mut fields = Fingerprint::new();
        let mut state = self.have.to_json(self.kind, self.name);
        let ensure = state.remove("ensure");
        flatten(state, &mut fields);
        // A file has no other field for its kind.
        let summary = if self.kind == "file" { "kind" } else { "ensure" };
        fields.extend(ensure.map(|ensure| (summary.to_owned(), ensure)));
        if self.is_secret {
            fields.iter_mut().for_each(|(name, value)| hide(name, value, keyed));
        }
        // Undo restores values, such as a password, that no shown state contains.
        if let Some(change) = self.change
            && let Before::Resource { properties, .. } | Before::PathsAndResource { properties, .. } =
                self.wanted.before(self.have, change)
        {
            for (name, mut value) in properties {
                hide(&name, &mut value, keyed);
                fields.insert(format!("{BEFORE}{name}"), value);
            }
        }
        fields
    }
}

fn flatten(fields: Map<String, Value>, into: &mut Fingerprint) {
    for (name, value) in fields {
        match value {
            Value::Object(inner) if matches!(name.as_str(), "metadata" | "extended") => flatten(inner, into),
            value if !IRRELEVANT.contains(&name.as_str()) => {
                into.insert(name, value);
            }
            _ => {}
        }
    }
}

fn hide(name: &str, value: &mut Value, keyed: Keyed) {
    *value = format!("{KEYED}{}", keyed(&format!("{name}\n{value}"))).into();
}

/// Returns the fields in which two fingerprints differ.
pub(crate) fn discrepancies(planned: &Fingerprint, found: &Fingerprint) -> Vec<Discrepancy> {
    let mut differing: Vec<Discrepancy> = Vec::new();
    let names = planned.keys().chain(found.keys().filter(|name| !planned.contains_key(*name)));
    for name in names.filter(|name| planned.get(*name) != found.get(*name)) {
        let discrepancy = Discrepancy {
            field: field(name),
            planned: shown(planned.get(name)),
            found: shown(found.get(name)),
        };
        if !differing.iter().any(|known| known.field == discrepancy.field) {
            differing.push(discrepancy);
        }
    }
    // The state in one word follows from the other fields.
    let is_summary = |found: &Discrepancy| found.field == "ensure";
    if differing.iter().any(|found| !is_summary(found)) {
        differing.retain(|found| !is_summary(found));
    }
    differing
}

/// Returns the name of a field in reports.
fn field(name: &str) -> String {
    let name = name.strip_prefix(BEFORE).unwrap_or(name);
    match name {
        "checksum" => "content",
        "kind" => "type",
        "value" => "fact",
        _ if name.ends_with("_satisfied") => "guard",
        _ => name,
    }
    .to_owned()
}

/// Replaces a value by its keyed hash.
pub(crate) fn hidden(name: &str, value: &Value, keyed: Keyed) -> Value {
    let mut value = value.clone();
    hide(name, &mut value, keyed);
    value
}

/// Returns whether a value is a keyed hash.
pub(crate) fn is_hidden(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with(KEYED))
}

/// Returns a value for reports.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) if text.starts_with(KEYED) => MASK.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

impl PlannedChange {
    /// Returns the differences of a resource that was unchanged when the plan was made.
    pub(crate) fn discrepancies(&self, is_secret: bool) -> Vec<Discrepancy> {
        let masked = |text: &str| if is_secret { MASK.to_owned() } else { text.to_owned() };
        let mut differing: Vec<Discrepancy> = self
            .differences
            .iter()
            .map(|difference| {
                let values = difference.values.as_ref();
                Discrepancy {
                    field: difference.property.to_owned(),
                    planned: values.map_or("unchanged".to_owned(), |values| masked(&values.want)),
                    found: values.map_or("changed".to_owned(), |values| masked(&values.have)),
                }
            })
            .collect();
        if differing.is_empty() {
            differing.push(Discrepancy {
                field: "action".to_owned(),
                planned: "none".to_owned(),
                found: masked(&self.summary),
            });
        }
        differing
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fingerprint {
        let mut fields = Fingerprint::new();
        if let Value::Object(map) = value {
            flatten(map, &mut fields);
        }
        fields
    }

    #[test]
    fn fields_have_the_names_of_reports_and_volatile_fields_are_left_out() {
        let state = |mode: &str, sum: &str, mtime: &str| {
            fields(json!({
                "metadata": { "name": "/f", "mode": mode, "checksum": sum, "mtime": mtime },
                "creates_satisfied": mode == "0644",
            }))
        };
        assert!(discrepancies(&state("0644", "a", "now"), &state("0644", "a", "later")).is_empty());
        let found = discrepancies(&state("0644", "a", ""), &state("0600", "b", ""));
        let names: Vec<&str> = found.iter().map(|found| found.field.as_str()).collect();
        assert_eq!(names, ["mode", "content", "guard"]);
        assert_eq!((found[0].planned.as_str(), found[0].found.as_str()), ("0644", "0600"));
    }

    #[test]
    fn hashes_of_secrets_are_not_shown() {
        let mut value = json!("s3cret");
        hide("password", &mut value, &|text| text.len().to_string());
        assert_eq!(value, "keyed:17");
        let planned = Fingerprint::from_iter([("before.password".to_owned(), value)]);
        let found = discrepancies(&planned, &Fingerprint::new());
        assert_eq!((found[0].field.as_str(), found[0].planned.as_str()), ("password", MASK));
    }
}
