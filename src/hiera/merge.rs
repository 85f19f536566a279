//! How one tree of data goes over another.

use std::sync::Arc;

use ccm_expr::{Map, Value};

use crate::document::Pair;

/// What becomes of two lists where trees merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    /// One after the other.
    Append,
    /// The later one counts.
    Replace,
    /// One after the other, each item once.
    Unique,
}

/// What to do about values that do not merge.
pub(crate) const ADVICE: &str = "use the same kind of value in both; null replaces anything";

/// Two values of different kinds at the same position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(super) path: Vec<String>,
    below: &'static str,
    above: &'static str,
}

impl Conflict {
    /// Describes the conflict between two places.
    pub(crate) fn message(&self, below: &str, above: &str) -> String {
        let path = self.path.join(".");
        format!(
            "data `{path}` is {} in {below} and {} in {above}: they cannot be merged",
            self.below, self.above
        )
    }

    /// Returns the value at the position of the conflict.
    pub(super) fn find(&self, value: &Value) -> Option<Value> {
        self.path.iter().try_fold(value.clone(), |value, key| value.member(key))
    }
}

/// Merges maps, appends lists, and replaces scalars; null replaces anything.
pub(crate) fn deep(base: Value, over: &Value) -> Result<Value, Conflict> {
    deep_with(base, over, Lists::Append)
}

/// As [`deep`], with another way for lists.
pub(super) fn deep_with(base: Value, over: &Value, lists: Lists) -> Result<Value, Conflict> {
    Ok(match (base, over) {
        (Value::Map(base), Value::Map(over)) => {
            let mut merged = Arc::unwrap_or_clone(base);
            for (key, value) in over.iter() {
                let new = match merged.get_mut(key) {
                    Some(old) => deep_with(std::mem::take(old), value, lists).map_err(|mut conflict| {
                        conflict.path.insert(0, key.to_string());
                        conflict
                    })?,
                    None => value.clone(),
                };
                merged.insert(Arc::clone(key), new);
            }
            merged.into()
        }
        (Value::List(base), Value::List(over)) if lists == Lists::Append => {
            base.iter().chain(over.iter()).cloned().collect()
        }
        (Value::List(base), Value::List(over)) if lists == Lists::Unique => {
            let mut all: Vec<Value> = Vec::new();
            for item in base.iter().chain(over.iter()) {
                if !all.contains(item) {
                    all.push(item.clone());
                }
            }
            all.into()
        }
        (base, over) => match (kind_of(&base), kind_of(over)) {
            (Some(below), Some(above)) if below != above => {
                return Err(Conflict { path: Vec::new(), below, above });
            }
            _ => over.clone(),
        },
    })
}

/// Returns how a value merges; null merges with everything.
fn kind_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Map(_) | Value::Object(_) => Some("a map"),
        Value::List(_) => Some("a list"),
        _ => Some("a single value"),
    }
}

/// Maps merge, anything else is replaced: what the command line says goes over lists, too.
fn over(base: Value, over_it: &Value) -> Value {
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

/// Data with a value set where names lead. In a list a name is the number of an item that is there; what is neither list
/// nor map makes room for a map.
pub(crate) fn set(data: Value, Pair { names, value }: &Pair) -> Result<Value, String> {
    set_from(data, names, 0, value)
}

fn set_from(data: Value, names: &[String], at: usize, value: &Value) -> Result<Value, String> {
    let Some(name) = names.get(at) else { return Ok(over(data, value)) };
    match data {
        Value::List(items) => {
            let Some(place) = name.parse().ok().filter(|place: &usize| *place < items.len()) else {
                let (list, count) = (names[..at].join("."), items.len());
                return Err(format!(
                    "`{list}` is a list of {count}, and \"{name}\" is not the number of an item: they count from 0"
                ));
            };
            let mut items = Arc::unwrap_or_clone(items);
            items[place] = set_from(std::mem::take(&mut items[place]), names, at + 1, value)?;
            Ok(items.into())
        }
        other => {
            let mut map = if let Value::Map(map) = other { Arc::unwrap_or_clone(map) } else { Map::new() };
            let old = map.get_mut(name.as_str()).map(std::mem::take).unwrap_or_default();
            map.insert(name.as_str().into(), set_from(old, names, at + 1, value)?);
            Ok(map.into())
        }
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
        let base = value(r#"{"a":{"x":1,"y":[1]},"b":1,"c":[1],"d":null}"#);
        let merged = deep(base, &value(r#"{"a":{"y":[2],"z":3},"b":"n","c":null,"d":{"e":1}}"#)).unwrap();
        assert_eq!(
            merged.to_text(),
            value(r#"{"a":{"x":1,"y":[1,2],"z":3},"b":"n","c":null,"d":{"e":1}}"#).to_text()
        );
    }

    #[test]
    fn values_of_different_kinds_do_not_merge() {
        for (base, over, below, above) in [
            (r#"{"a":{"b":{}}}"#, r#"{"a":{"b":[1]}}"#, "a map", "a list"),
            (r#"{"a":{"b":[1]}}"#, r#"{"a":{"b":{}}}"#, "a list", "a map"),
            (r#"{"a":{"b":{}}}"#, r#"{"a":{"b":1}}"#, "a map", "a single value"),
            (r#"{"a":{"b":"x"}}"#, r#"{"a":{"b":[1]}}"#, "a single value", "a list"),
        ] {
            for lists in [Lists::Append, Lists::Replace, Lists::Unique] {
                let path = ["a", "b"].map(str::to_owned).to_vec();
                let conflict = deep_with(value(base), &value(over), lists).unwrap_err();
                assert_eq!(conflict, Conflict { path, below, above });
            }
        }
    }

    #[test]
    fn shallow_replaces_keys_of_the_top_level_whole() {
        let merged = shallow(value(r#"{"a":{"x":1},"b":1}"#), &value(r#"{"a":{"y":2}}"#));
        assert_eq!(merged.to_text(), value(r#"{"a":{"y":2},"b":1}"#).to_text());
    }
}
