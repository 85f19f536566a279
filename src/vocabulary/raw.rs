//! A scalar exactly as it was written.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use crate::document::{RAW_SCALAR, WRITTEN_SCALAR};

/// The text of a scalar, whether YAML would call it a number or a string: of `mode: 0o644` and `owner: 0` the
/// digits matter, not their value.
pub(crate) struct Raw(pub(crate) String);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW_SCALAR, Text)
    }
}

/// As [`Raw`], but a number counts only as somebody wrote it in YAML. `0o644` in a program that prints JSON is `420`
/// there, and a template that gives a number gives a value and no digits.
pub(super) struct Digits(pub(super) String);

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(WRITTEN_SCALAR, Text).map(|raw| Self(raw.0))
    }
}

struct Text;

impl<'de> de::Visitor<'de> for Text {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw(text.to_owned()))
    }
}

impl JsonSchema for Raw {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Raw".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"] })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A schema cannot tell YAML's digits from a number in JSON, so it asks for text.
impl JsonSchema for Digits {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digits".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-digits": true })
    }

    fn inline_schema() -> bool {
        true
    }
}
