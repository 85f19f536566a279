//! Values from and to Rust's own types, `serde_json` and serde.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error, Serialize, SerializeMap, Serializer};
use serde_json::Number;

use super::{Map, Value, text::shown, truncated};

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

/// A number beyond the largest whole number becomes text where the nearest fraction would lose digits without a word.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or_else(|_| beyond_whole(number), Self::Int)
    }
}

#[expect(clippy::cast_precision_loss, reason = "whether any is lost is looked at")]
fn beyond_whole(number: u64) -> Value {
    let (text, nearest) = (number.to_string(), number as f64);
    if nearest.to_string() == text { Value::Float(nearest) } else { text.into() }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::List(Arc::new(items))
    }
}

impl From<Map> for Value {
    fn from(entries: Map) -> Self {
        Self::Map(Arc::new(entries))
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(truth),
            serde_json::Value::Number(number) => from_number(&number),
            serde_json::Value::String(text) => Self::from(text),
            serde_json::Value::Array(items) => items.into_iter().map(Self::from).collect(),
            serde_json::Value::Object(entries) => Self::from(
                entries.into_iter().map(|(name, value)| (name.into(), value.into())).collect::<Map>(),
            ),
        }
    }
}

fn from_number(number: &Number) -> Value {
    let whole = number.as_i64().map(Value::Int).or_else(|| number.as_u64().map(Value::from));
    let value = whole.or_else(|| number.as_f64().map(Value::Float));
    value.unwrap_or_else(|| number.to_string().into())
}

/// Moments and time zones become text, durations nanoseconds, and numbers that JSON lacks `null`. Secrets are masked.
impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Int(number) | Value::Duration(number) => Self::Number((*number).into()),
            Value::Named(named) => Self::Number(named.number().into()),
            Value::Written(written) => Self::from(&written.number),
            Value::Float(number) => Number::from_f64(*number).map_or(Self::Null, Self::Number),
            Value::Str(text) => Self::String(text.as_ref().to_owned()),
            Value::List(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Map(entries) => from_entries(entries),
            Value::Object(object) => from_entries(&object.contents()),
            Value::Time(_) | Value::Zone(_) | Value::Secret(_) => Self::String(value.to_text()),
        }
    }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

fn from_entries(entries: &Map) -> serde_json::Value {
    entries.iter().map(|(name, value)| (name.as_ref().to_owned(), serde_json::Value::from(value))).collect()
}

/// The value as compact JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self))
    }
}

/// Fractions without a fractional part are written as whole numbers, as in text. Secrets are masked.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Int(number) | Self::Duration(number) => serializer.serialize_i64(*number),
            Self::Named(named) => serializer.serialize_i64(named.number()),
            Self::Written(written) => written.number.serialize(serializer),
            Self::Float(number) if !number.is_finite() => {
                Err(S::Error::custom(format!("{self} is not a finite number")))
            }
            Self::Float(number) => match truncated(*number).filter(|_| number.fract() == 0.0) {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(*number),
            },
            Self::Str(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items.iter()),
            Self::Map(entries) => serialize_entries(entries, serializer),
            Self::Object(object) => serialize_entries(&object.contents(), serializer),
            Self::Time(_) | Self::Zone(_) | Self::Secret(_) => serializer.serialize_str(&self.to_text()),
        }
    }
}

fn serialize_entries<S: Serializer>(entries: &Map, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(entries.len()))?;
    for (name, value) in entries {
        map.serialize_entry(name.as_ref(), value)?;
    }
    map.end()
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((name, value)) = entries.next_entry::<String, Value>()? {
            map.insert(name.into(), value);
        }
        Ok(map.into())
    }
}
