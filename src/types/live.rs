//! The property `live`: whether a resource manages the running system, or only what is stored for the next boot.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Which of the two states a resource manages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Live {
    /// The live state and the stored state.
    #[default]
    Yes,
    /// Only the stored state.
    No,
    /// Only the live state: undo has restored the files before.
    Only,
}

/// Word for [`Live::Only`], which only undo uses.
pub(super) const ONLY: &str = "only";

impl Live {
    pub(super) fn manages_live(self) -> bool {
        self != Self::No
    }

    pub(super) fn manages_stored(self) -> bool {
        self != Self::Only
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::Yes
    }
}

impl<'de> Deserialize<'de> for Live {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl de::Visitor<'_> for Written {
            type Value = Live;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("true or false")
            }

            fn visit_bool<E: de::Error>(self, is_live: bool) -> Result<Live, E> {
                Ok(if is_live { Live::Yes } else { Live::No })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Live, E> {
                match text {
                    "true" => Ok(Live::Yes),
                    "false" => Ok(Live::No),
                    ONLY => Ok(Live::Only),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl Serialize for Live {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Yes => true.serialize(serializer),
            Self::No => false.serialize(serializer),
            Self::Only => ONLY.serialize(serializer),
        }
    }
}

impl JsonSchema for Live {
    fn schema_name() -> Cow<'static, str> {
        "Live".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }

    fn inline_schema() -> bool {
        true
    }
}
