//! Numbers that keep the text they were written as.

use std::sync::Arc;

use super::Value;

/// A number and its text: `1.10` is the number 1.1, and the version `1.10`.
#[derive(Debug)]
pub struct Written {
    pub(super) number: Value,
    pub(super) text: Box<str>,
}

impl Value {
    /// Returns a number that stays the text it was written as until somebody calculates with it.
    #[must_use]
    pub fn written(number: impl Into<Self>, text: &str) -> Self {
        let number = number.into();
        let is_number = match number {
            Self::Int(_) => true,
            Self::Float(number) => number.is_finite(),
            _ => false,
        };
        if !is_number || number.to_text() == text {
            return number;
        }
        Self::Written(Arc::new(Written { number, text: text.into() }))
    }

    /// Returns the value to calculate with: a number without the text it was written as, a secret without its mark. A result
    /// that is not a boolean has to be marked again.
    #[must_use]
    pub fn settled(&self) -> &Self {
        match self.reveal() {
            Self::Written(written) => &written.number,
            other => other,
        }
    }
}

impl Written {
    /// Returns the text, if JSON has the same number under it.
    pub(super) fn json(&self) -> Option<&str> {
        serde_json::from_str::<serde_json::Number>(&self.text).is_ok().then_some(&*self.text)
    }
}
