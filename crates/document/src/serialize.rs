//! Serializes trees, to compare them with the results of other readers.

use super::{Node, Typed, Value};
use serde::ser::{Serialize, Serializer};

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Seq(items) => serializer.collect_seq(items),
            Value::Map(entries) => {
                serializer.collect_map(entries.iter().map(|entry| (&entry.key, &entry.value)))
            }
            Value::Scalar(scalar) => match scalar.typed() {
                Typed::Null => serializer.serialize_unit(),
                Typed::Bool(value) => serializer.serialize_bool(value),
                Typed::Int(value) => serializer.serialize_i64(value),
                Typed::UInt(value) => serializer.serialize_u64(value),
                Typed::Float(value) => serializer.serialize_f64(value),
                Typed::Str(text) => serializer.serialize_str(text),
            },
        }
    }
}
