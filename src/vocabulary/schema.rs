//! Schemas and keys, derived from the structs that are read and written.

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde::{
    Deserialize, Serialize,
    de::{self, Deserializer, Visitor},
};
use serde_json::{Map, Value, json};

/// A schema that refers to nothing outside itself. Each is made once: that takes longer than most runs.
pub(crate) fn inlined<T: JsonSchema + 'static>() -> &'static Schema {
    static MADE: Mutex<Option<HashMap<TypeId, &'static Schema>>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.get_or_insert_default()
        .entry(TypeId::of::<T>())
        .or_insert_with(|| Box::leak(Box::new(inlining().into_generator().into_root_schema_for::<T>())))
}

/// As [`inlined`], of a part of what the program writes: what it leaves out when it is empty is not required, and there
/// is nothing in it that is not described.
pub(crate) fn written<T: JsonSchema>() -> Schema {
    let mut settings = inlining().for_serialize().with_transform(RecursiveTransform(close));
    settings.meta_schema = None;
    settings.into_generator().into_root_schema_for::<T>()
}

fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

fn inlining() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true)
}

/// A schema that stands alone.
pub(crate) fn document(title: &str, schema: &Value) -> Value {
    let mut document = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title });
    for (key, value) in schema.as_object().into_iter().flatten().filter(|(key, _)| *key != "title") {
        document[key] = value.clone();
    }
    document
}

/// A serialized value without the parts that were not given.
pub(crate) fn object<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

/// The keys that a struct can be read from, other spellings included.
pub(crate) fn keys<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // The struct tells its fields to the deserializer, which takes them down and gives up.
    let _ = T::deserialize(TakeDown(&mut keys));
    keys
}

struct TakeDown<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for TakeDown<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        Err(de::Error::custom("only the fields were wanted"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
