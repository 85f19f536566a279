//! How one tree of data goes over another.

use std::sync::Arc;

use ccm_expr::{Map, Value};

/// Maps merge, lists append, anything else is replaced.
pub(crate) fn deep(base: Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Map(base), Value::Map(over)) => {
            let mut merged = Arc::unwrap_or_clone(base);
            for (key, value) in over.iter() {
                let new = match merged.get_mut(key) {
                    Some(old) => deep(std::mem::take(old), value),
                    None => value.clone(),
                };
                merged.insert(Arc::clone(key), new);
            }
            merged.into()
        }
        (Value::List(base), Value::List(over)) => base.iter().chain(over.iter()).cloned().collect(),
        (_, over) => over.clone(),
    }
}

/// Maps merge, anything else is replaced: what the command line says goes over lists, too.
pub(crate) fn over(base: Value, over_it: &Value) -> Value {
    match (base, over_it) {
        (Value::Map(base), Value::Map(over_it)) => {
            let mut merged = Arc::unwrap_or_clone(base);
            for (key, value) in over_it.iter() {
                let old = merged.get_mut(key).map(std::mem::take).unwrap_or_default();
                merged.insert(Arc::clone(key), over(old, value));
            }
            merged.into()
        }
        (_, value) => value.clone(),
    }
}

/// Keys of the top level are replaced whole.
pub(super) fn shallow(base: Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Map(base), Value::Map(over)) => {
            let mut merged: Map = Arc::unwrap_or_clone(base);
            merged.extend(over.iter().map(|(key, value)| (Arc::clone(key), value.clone())));
            merged.into()
        }
        (base, _) => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn deep_merges_maps_appends_lists_and_replaces_the_rest() {
        let base = value(r#"{"a":{"x":1,"y":[1]},"b":1,"c":[1]}"#);
        let merged = deep(base, &value(r#"{"a":{"y":[2],"z":3},"b":{"n":1},"c":null}"#));
        assert_eq!(
            merged.to_text(),
            value(r#"{"a":{"x":1,"y":[1,2],"z":3},"b":{"n":1},"c":null}"#).to_text()
        );
    }

    #[test]
    fn shallow_replaces_keys_of_the_top_level_whole() {
        let merged = shallow(value(r#"{"a":{"x":1},"b":1}"#), &value(r#"{"a":{"y":2}}"#));
        assert_eq!(merged.to_text(), value(r#"{"a":{"y":2},"b":1}"#).to_text());
    }
}
