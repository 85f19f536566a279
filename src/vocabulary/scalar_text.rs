//! Strings that can look like a number or a boolean.

use std::{borrow::Cow, ops::Deref};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::Raw;

/// Text of a scalar, regardless of its YAML type: in configuration files, `1` and `true` are strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct ScalarText(String);

impl<'de> Deserialize<'de> for ScalarText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer).map(|Raw(text)| Self(text))
    }
}

impl From<&str> for ScalarText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Deref for ScalarText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for ScalarText {
    fn schema_name() -> Cow<'static, str> {
        "ScalarText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }

    fn inline_schema() -> bool {
        true
    }
}
