//! Merges facts: maps are merged, other values are replaced.

use std::sync::Arc;

use ccm_expr::{Map, Object, Value};

/// Returns `above` merged over `below`. Reads facts of `below` only when they are requested.
pub(super) fn overlay(below: Value, above: &Value) -> Value {
    match (&below, above) {
        (Value::Map(_) | Value::Object(_), Value::Map(entries)) if entries.is_empty() => below,
        (Value::Map(_) | Value::Object(_), Value::Map(entries)) => {
            Value::Object(Arc::new(Overlay { below, above: Arc::clone(entries) }))
        }
        _ => above.clone(),
    }
}

/// Merges one map into another; later values win.
pub(super) fn merge(into: &mut Map, from: Map) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Map(old)), Value::Map(new)) => {
                merge(Arc::make_mut(old), Arc::unwrap_or_clone(new));
            }
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

struct Overlay {
    below: Value,
    above: Arc<Map>,
}

impl Object for Overlay {
    fn member(&self, name: &str) -> Option<Value> {
        match (self.below.member(name), self.above.get(name)) {
            (Some(below), Some(above)) => Some(overlay(below, above)),
            (below, above) => above.cloned().or(below),
        }
    }

    fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.below.member_names();
        let new = self.above.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>();
        names.extend(new);
        names
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn value(json: &str) -> Value {
        serde_json::from_str::<serde_json::Value>(json).unwrap().into()
    }

    #[test]
    fn maps_merge_and_everything_else_replaces() {
        for (below, above, expected) in [
            (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":3,"z":4},"b":5}"#, r#"{"a":{"x":1,"y":3,"z":4},"b":5}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[3]}"#, r#"{"a":[3]}"#),
            (r#"{"a":{"x":1}}"#, r#"{"a":"text"}"#, r#"{"a":"text"}"#),
            (r#"{"a":"text"}"#, r#"{"a":{"x":1}}"#, r#"{"a":{"x":1}}"#),
            (r#"{"a":{"x":1}}"#, r#"{"a":null}"#, r#"{"a":null}"#),
            (r#"{"a":{"x":1}}"#, r#"{"a":{}}"#, r#"{"a":{"x":1}}"#),
        ] {
            assert_eq!(overlay(value(below), &value(above)).to_string(), expected);
            let mut merged = value(below).as_map().unwrap().clone();
            merge(&mut merged, value(above).as_map().unwrap().clone());
            assert_eq!(Value::from(merged).to_string(), expected);
        }
    }

    #[test]
    fn what_is_below_is_read_only_when_asked_for() {
        struct Counted(Arc<AtomicUsize>);
        impl Object for Counted {
            fn member(&self, name: &str) -> Option<Value> {
                self.0.fetch_add(1, Ordering::Relaxed);
                (name == "cpu").then(|| value(r#"{"cores":2}"#))
            }
            fn names(&self) -> Vec<Arc<str>> {
                vec!["cpu".into()]
            }
        }
        let reads = Arc::new(AtomicUsize::new(0));
        let below = Value::Object(Arc::new(Counted(Arc::clone(&reads))));
        let seen = overlay(below, &value(r#"{"cpu":{"owner":"me"},"role":"web"}"#));
        assert_eq!(seen.member_names().len(), 2);
        assert_eq!(reads.load(Ordering::Relaxed), 0);
        assert_eq!(seen.member("cpu").unwrap().to_string(), r#"{"cores":2,"owner":"me"}"#);
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }
}
