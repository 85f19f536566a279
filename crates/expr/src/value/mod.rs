//! The values that expressions are about.
//!
//! A value is cheap to clone: text, lists and maps are shared, and a clone counts one more owner.

mod compare;
mod convert;
mod named;
mod object;
mod place;
mod secret;
mod text;
mod written;

use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Zoned;
use jiff::tz::TimeZone;

pub(crate) use compare::{compare, equal, number, truncated};
pub use named::Named;
pub use object::Object;
pub(crate) use place::Place;
pub use secret::{MASK, Secret};
pub(crate) use text::{Json, JsonStyle, NoJson, json, key_text};
pub use written::Written;

/// A map in the order it was written.
pub type Map = IndexMap<Arc<str>, Value>;

/// Anything an expression can work with or result in.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// No value: `nil` in expressions.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number with a name: a month or a day of the week.
    Named(Named),
    /// A number with a fraction.
    Float(f64),
    /// A number that was written otherwise than it would be printed.
    Written(Arc<Written>),
    /// Text.
    Str(Arc<str>),
    /// Values in order.
    List(Arc<Vec<Value>>),
    /// Values by name.
    Map(Arc<Map>),
    /// A moment, with the time zone it is read in.
    Time(Arc<Zoned>),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A time zone.
    Zone(TimeZone),
    /// A map that the host fills in when it is read.
    Object(Arc<dyn Object>),
    /// A value that must not be shown.
    Secret(Secret),
}

impl Value {
    /// The word for this kind of value, as `type()` gives it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "nil",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Named(named) => named.type_name(),
            Self::Float(_) => "float",
            Self::Written(written) => written.number.type_name(),
            Self::Str(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) | Self::Object(_) => "map",
            Self::Time(_) => "time.Time",
            Self::Duration(_) => "time.Duration",
            Self::Zone(_) => "time.Location",
            Self::Secret(secret) => secret.reveal().type_name(),
        }
    }

    /// Whether this is `nil`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The truth, if this is a boolean. A secret boolean is read like any other: conditions depend on it.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self.reveal() { Some(*truth) } else { None }
    }

    /// The text, if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self { Some(text) } else { None }
    }

    /// The elements, if this is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The entries, if this is a map that is already filled in.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        if let Self::Map(entries) = self { Some(entries) } else { None }
    }

    /// The member with this name, if this is a map or object that has it.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Value> {
        match self {
            Self::Map(entries) => entries.get(name).cloned(),
            Self::Object(object) => object.member(name),
            Self::Secret(secret) => secret.reveal().member(name).map(Self::secret),
            _ => None,
        }
    }

    /// The names of all members; none for anything but maps and objects.
    #[must_use]
    pub fn member_names(&self) -> Vec<Arc<str>> {
        match self {
            Self::Map(entries) => entries.keys().cloned().collect(),
            Self::Object(object) => object.names(),
            // The names are as secret as the values.
            _ => Vec::new(),
        }
    }

    /// The same value with objects at its top filled in, so that a map is a [`Value::Map`].
    #[must_use]
    pub fn filled(self) -> Value {
        match self {
            Self::Object(object) => Self::Map(object.contents()),
            other => other,
        }
    }

    /// The text of this value: lists and maps as JSON, `nil` as `null`. Secrets are masked.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::text(self)
    }
}
