//! A value that is looked at where it is, or one that was made.

use super::Value;

/// Reading members of a borrowed value borrows again, so that a row of members copies nothing.
pub(crate) enum Place<'a> {
    Borrowed(&'a Value),
    Owned(Value),
}

impl<'a> Place<'a> {
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Borrowed(value) => value.clone(),
            Self::Owned(value) => value,
        }
    }

    /// The member with this name, if this is a map or object that has it.
    pub(crate) fn member(self, name: &str) -> Option<Place<'a>> {
        match self {
            Self::Borrowed(Value::Map(entries)) => entries.get(name).map(Self::Borrowed),
            Self::Borrowed(value) => value.member(name).map(Self::Owned),
            Self::Owned(value) => value.member(name).map(Self::Owned),
        }
    }

    /// The element at this place, if this is a list that has it.
    pub(crate) fn element(self, place: usize) -> Option<Place<'a>> {
        match self {
            Self::Borrowed(value) => value.as_list()?.get(place).map(Self::Borrowed),
            Self::Owned(value) => value.as_list()?.get(place).cloned().map(Self::Owned),
        }
    }
}

impl std::ops::Deref for Place<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Borrowed(value) => value,
            Self::Owned(value) => value,
        }
    }
}
