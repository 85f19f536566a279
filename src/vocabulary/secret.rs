//! Strings that are used but never shown.

use std::{cell::Cell, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::redaction::MASK;

/// Value that no event, diff, log or message shows.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct Secret(String);

thread_local! {
    /// Whether serialization shows secrets: only while [`Secret::revealed`] serializes values that are encrypted afterwards.
    static REVEALED: Cell<bool> = const { Cell::new(false) };
}

impl Secret {
    /// Serializes something with the values of its secrets, for a copy that is encrypted.
    pub(crate) fn revealed<T>(serialize: impl FnOnce() -> T) -> T {
        let before = REVEALED.replace(true);
        let serialized = serialize();
        REVEALED.set(before);
        serialized
    }

    /// Returns whether [`Secret::revealed`] is serializing.
    pub(crate) fn are_revealed() -> bool {
        REVEALED.get()
    }

    /// Returns the text to serialize for a secret.
    pub(crate) fn serialized(text: &str) -> &str {
        if Self::are_revealed() { text } else { MASK }
    }

    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the value, for the one place that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::serialized(&self.0))
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(MASK)
    }
}
