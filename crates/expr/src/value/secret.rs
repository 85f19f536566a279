//! Secret values: masked wherever they are shown, and so is every result that is computed from them.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroize;

use super::Value;

/// Replaces a secret value in text, JSON and debug output.
pub const MASK: &str = "[secret]";

/// A value that must not be shown. Its memory is zeroed when the last owner drops it.
#[derive(Clone)]
pub struct Secret(Arc<Bare>);

struct Bare(Value);

impl Secret {
    /// Returns the value itself, for output that is allowed to contain it.
    #[must_use]
    pub fn reveal(&self) -> &Value {
        &self.0.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        match &mut self.0 {
            Value::Str(text) => {
                if let Some(text) = Arc::get_mut(text) {
                    text.zeroize();
                }
            }
            Value::Int(number) | Value::Duration(number) => number.zeroize(),
            Value::Float(number) => number.zeroize(),
            _ => {}
        }
    }
}

impl Value {
    /// Marks a value as secret. Nil stays nil.
    #[must_use]
    pub fn secret(value: impl Into<Self>) -> Self {
        match value.into() {
            value @ (Self::Null | Self::Secret(_)) => value,
            value => Self::Secret(Secret(Arc::new(Bare(value)))),
        }
    }

    /// Returns whether this value is secret. Elements and members of a value that is not can be secret.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Secret(_))
    }

    /// Returns the value without its mark, for output that is allowed to contain it.
    #[must_use]
    pub fn reveal(&self) -> &Self {
        if let Self::Secret(secret) = self { secret.reveal() } else { self }
    }

    /// Marks the result of a computation with a secret. A boolean stays readable: conditions on secrets are allowed.
    #[must_use]
    pub fn derived(self) -> Self {
        if let Self::Bool(_) = self { self } else { Self::secret(self) }
    }

    /// Marks the result of a computation if it used a secret.
    pub(crate) fn derived_if(self, is_secret: bool) -> Self {
        if is_secret { self.derived() } else { self }
    }
}
