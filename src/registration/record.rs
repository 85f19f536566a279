//! Entries as values of expressions.

use std::sync::Arc;

use ccm_expr::{Map, Object, Value};

use super::Registration;

/// Entry whose members have the names of Go and of YAML.
struct Record(Map);

impl Object for Record {
    fn member(&self, name: &str) -> Option<Value> {
        self.0.get(name).or_else(|| self.0.get(written_small(name)?)).cloned()
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.0.keys().cloned().collect()
    }
}

/// Returns the YAML name of a Go name.
fn written_small(name: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 8] = [
        ("Cluster", "cluster"),
        ("Service", "service"),
        ("Protocol", "protocol"),
        ("Address", "address"),
        ("Port", "port"),
        ("Priority", "priority"),
        ("TTL", "ttl"),
        ("Annotations", "annotations"),
    ];
    NAMES.iter().find(|(go, _)| *go == name).map(|(_, small)| *small)
}

/// Returns the entries as a list of records.
pub(crate) fn records(entries: &[Registration]) -> Value {
    entries.iter().map(record).collect::<Vec<_>>().into()
}

fn record(entry: &Registration) -> Value {
    let text = |text: &str| Value::from(text);
    let annotations: Map =
        entry.annotations.iter().map(|(name, value)| (name.as_str().into(), text(value))).collect();
    let members: Map = [
        ("cluster", text(entry.cluster.as_str())),
        ("service", text(entry.service.as_str())),
        ("protocol", text(entry.protocol.as_str())),
        ("address", text(entry.address.as_str())),
        ("port", entry.port.map_or(Value::Null, |port| Value::from(i64::from(port.number())))),
        ("priority", Value::from(i64::from(entry.priority.number()))),
        ("annotations", annotations.into()),
        ("ttl", entry.ttl.map_or(Value::Null, |ttl| Value::from(ttl.to_string()))),
    ]
    .into_iter()
    .map(|(name, value)| (name.into(), value))
    .collect();
    Value::Object(Arc::new(Record(members)))
}

/// Returns the entries of a list of records; `None` for other values.
pub(crate) fn from_value(value: &Value) -> Option<Vec<Registration>> {
    let Value::List(items) = value else { return None };
    let entry = |item: &Value| super::wire::entry(&serde_json::to_vec(item).ok()?);
    items.iter().map(entry).collect()
}
