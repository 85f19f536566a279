//! Deserializes Rust values from nodes, with strict types and positions in errors.
//!
//! A number is not a string, and a string is not a number: the author decides with quotes.

mod access;
mod error;

pub use error::{Fault, NodeError};

use super::{Node, Scalar, Style, Typed, Value};
use access::{Entries, Items, Variant};
use error::{found, integer_range};
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Expected, Visitor};

/// Name of a newtype struct that requests the text of a scalar exactly as it was written, whatever its type:
/// `deserialize_newtype_struct(RAW_SCALAR, visitor)` gives the visitor a deserializer of a string.
pub const RAW_SCALAR: &str = "$document::raw_scalar";

/// As [`RAW_SCALAR`], but rejects a number without written digits: from JSON, or from a template.
pub const WRITTEN_SCALAR: &str = "$document::written_scalar";

/// Deserializes a `T` from a node.
pub fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, NodeError> {
    T::deserialize(Reader { node })
}

#[derive(Clone, Copy)]
struct Reader<'de> {
    node: &'de Node,
}

impl<'de> Reader<'de> {
    fn mismatch(self, expected: &dyn Expected, fallback: &str) -> NodeError {
        let mut error = NodeError::mismatch(&error::wanted(expected, fallback), &found(&self.node.value));
        if let Value::Scalar(scalar) = &self.node.value
            && fallback == A_STRING
            && !scalar.is_null()
        {
            error.help = Some(format!("quote it: \"{}\"", scalar.text));
        }
        error.at(self.node.span)
    }

    fn scalar(self) -> Option<&'de Scalar> {
        if let Value::Scalar(scalar) = &self.node.value { Some(scalar) } else { None }
    }

    fn typed(self) -> Option<Typed<'de>> {
        self.scalar().map(Scalar::typed)
    }

    fn integer<V: Visitor<'de>>(self, visitor: V, type_name: &str) -> Result<V::Value, NodeError> {
        if let Some(error) = self.scalar().and_then(error::leading_zero) {
            return Err(error.at(self.node.span));
        }
        match self.typed() {
            Some(Typed::Int(value)) => {
                visitor.visit_i64(value).map_err(|error: NodeError| error.at(self.node.span))
            }
            Some(Typed::UInt(value)) => {
                visitor.visit_u64(value).map_err(|error: NodeError| error.at(self.node.span))
            }
            typed => {
                let mut error = self.mismatch(&visitor, &integer_range(type_name));
                if let Some(number) = digits(typed) {
                    error.help = Some(format!("write {number}, without quotes"));
                }
                Err(error)
            }
        }
    }

    fn text<V: Visitor<'de>>(self, visitor: V, fallback: &str) -> Result<V::Value, NodeError> {
        match self.typed() {
            Some(Typed::Str(text)) => {
                visitor.visit_borrowed_str(text).map_err(|error: NodeError| error.at(self.node.span))
            }
            _ => Err(self.mismatch(&visitor, fallback)),
        }
    }

    fn items<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match &self.node.value {
            Value::Seq(items) => {
                let mut access = Items::new(items);
                let value = visitor.visit_seq(&mut access).map_err(|error| error.at(self.node.span))?;
                access.finish(self.node.span).map(|()| value)
            }
            Value::Scalar(scalar) if !scalar.is_null() => {
                let mut error = self.mismatch(&visitor, "a list");
                error.help = digits(Some(scalar.typed())).map(|number| format!("write a list: [{number}]"));
                Err(error)
            }
            _ => Err(self.mismatch(&visitor, "a list")),
        }
    }

    fn entries<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match &self.node.value {
            Value::Map(entries) => {
                let mut access = Entries::new(entries);
                visitor.visit_map(&mut access).map_err(|error| access.locate(error).at(self.node.span))
            }
            _ => Err(self.mismatch(&visitor, "a map")),
        }
    }
}

/// Returns the digits of a whole number, with or without quotes.
fn digits(typed: Option<Typed>) -> Option<String> {
    match typed? {
        Typed::Str(text) => text.parse::<i64>().ok().map(|_| text.to_owned()),
        Typed::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

const A_STRING: &str = "a string";

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = NodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        let typed = match &self.node.value {
            Value::Seq(_) => return self.items(visitor),
            Value::Map(_) => return self.entries(visitor),
            Value::Scalar(scalar) => scalar.typed(),
        };
        let value = match typed {
            Typed::Null => visitor.visit_unit(),
            Typed::Bool(value) => visitor.visit_bool(value),
            Typed::Int(value) => visitor.visit_i64(value),
            Typed::UInt(value) => visitor.visit_u64(value),
            Typed::Float(value) => visitor.visit_f64(value),
            Typed::Str(text) => visitor.visit_borrowed_str(text),
        };
        value.map_err(|error: NodeError| error.at(self.node.span))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.typed() {
            Some(Typed::Bool(value)) => {
                visitor.visit_bool(value).map_err(|error: NodeError| error.at(self.node.span))
            }
            typed => {
                let mut error = self.mismatch(&visitor, "true or false");
                error.help = match typed {
                    Some(Typed::Str(text)) => error::truth(text).map(|word| {
                        if text.eq_ignore_ascii_case(word) {
                            format!("write {word}, without quotes")
                        } else {
                            format!("`{text}` is a string in YAML 1.2; write `{word}`")
                        }
                    }),
                    Some(Typed::Int(1)) => Some("write true".to_owned()),
                    Some(Typed::Int(0)) => Some("write false".to_owned()),
                    _ => None,
                };
                Err(error)
            }
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "i8")
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "i16")
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "i32")
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "i64")
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "u8")
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "u16")
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "u32")
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.integer(visitor, "u64")
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.typed() {
            Some(Typed::Int(_) | Typed::UInt(_) | Typed::Float(_)) => self.deserialize_any(visitor),
            _ => Err(self.mismatch(&visitor, "a number")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.text(visitor, A_STRING)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.text(visitor, A_STRING)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.text(visitor, A_STRING)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.text(visitor, A_STRING)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.text(visitor, A_STRING)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        let value = if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) };
        value.map_err(|error| error.at(self.node.span))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        if self.node.is_null() { visitor.visit_unit() } else { Err(self.mismatch(&visitor, "nothing")) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        let value = match self.scalar() {
            _ if ![RAW_SCALAR, WRITTEN_SCALAR].contains(&name) => visitor.visit_newtype_struct(self),
            Some(scalar) if name == WRITTEN_SCALAR && scalar.style == Style::Computed => {
                Err(error::without_digits(scalar).at(self.node.span))
            }
            Some(scalar) if !scalar.is_null() => {
                visitor.visit_newtype_struct(BorrowedStrDeserializer::new(&scalar.text))
            }
            _ => Err(self.mismatch(&visitor, "a value")),
        };
        value.map_err(|error: NodeError| error.at(self.node.span))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.items(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, NodeError> {
        self.items(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        self.items(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.entries(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        self.entries(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        let span = self.node.span;
        let access = match &self.node.value {
            Value::Scalar(scalar) if !scalar.is_null() => {
                Variant { name: &scalar.text, name_span: span, value: None }
            }
            Value::Map(entries) if let [entry] = entries.as_slice() => {
                Variant { name: &entry.key, name_span: entry.key_span, value: Some(&entry.value) }
            }
            _ => return Err(self.mismatch(&visitor, &error::one_of(variants))),
        };
        visitor.visit_enum(access).map_err(|error: NodeError| error.at(span))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.text(visitor, A_STRING)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_unit()
    }
}
