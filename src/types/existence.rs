//! The property `ensure` of types that only exist or do not exist.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the resource exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Existence {
    /// The resource exists.
    #[default]
    Present,
    /// The resource does not exist.
    Absent,
}

impl Existence {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
        }
    }
}
