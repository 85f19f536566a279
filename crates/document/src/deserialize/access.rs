//! Access to the parts of a node for serde: items, entries with their keys, enum variants.

use super::{NodeError, Reader};
use crate::{Entry, Node, Span};
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

pub(super) struct Items<'de> {
    rest: std::slice::Iter<'de, Node>,
}

impl<'de> Items<'de> {
    pub(super) fn new(items: &'de [Node]) -> Self {
        Items { rest: items.iter() }
    }

    /// Rejects a list with more items than a tuple takes, which serde would drop silently.
    pub(super) fn finish(self, list: Span) -> Result<(), NodeError> {
        match self.rest.as_slice() {
            [] => Ok(()),
            [extra, ..] => {
                Err(NodeError::custom("the list has more items than expected").at(extra.span).at(list))
            }
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = NodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, NodeError> {
        let Some(node) = self.rest.next() else { return Ok(None) };
        seed.deserialize(Reader { node }).map(Some).map_err(|error| error.at(node.span))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

pub(super) struct Entries<'de> {
    rest: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
}

impl<'de> Entries<'de> {
    pub(super) fn new(entries: &'de [Entry]) -> Self {
        Entries { rest: entries.iter(), current: None }
    }

    /// Assigns an error between two entries to the last key, and an error after the last entry to the map.
    pub(super) fn locate(&self, error: NodeError) -> NodeError {
        match self.current {
            Some(entry) => error.at(entry.key_span).below(&entry.key),
            None => error,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = NodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, NodeError> {
        self.current = self.rest.next();
        let Some(entry) = self.current else { return Ok(None) };
        seed.deserialize(Key { text: &entry.key }).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, NodeError> {
        let Some(entry) = self.current else { return Err(NodeError::custom("a value without a key")) };
        seed.deserialize(Reader { node: &entry.value }).map_err(|error| error.at(entry.value.span))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A key, which is always a string.
struct Key<'de> {
    text: &'de str,
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = NodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_borrowed_str(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        BorrowedStrDeserializer::new(self.text).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// `name` alone, or `name: value`.
pub(super) struct Variant<'de> {
    pub(super) name: &'de str,
    pub(super) name_span: Span,
    pub(super) value: Option<&'de Node>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = NodeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), NodeError> {
        let variant = seed.deserialize(Key { text: self.name }).map_err(|error| error.at(self.name_span))?;
        Ok((variant, self))
    }
}

impl<'de> Variant<'de> {
    fn content(&self, expected: &'static str) -> Result<Reader<'de>, NodeError> {
        self.value.map(|node| Reader { node }).ok_or_else(|| {
            let message = format!("`{}` needs {expected}: write `{}: ...`", self.name, self.name);
            NodeError::custom(message).at(self.name_span)
        })
    }

    fn inside<T>(&self, read: Result<T, NodeError>) -> Result<T, NodeError> {
        read.map_err(|error| if self.value.is_some() { error.below(self.name) } else { error })
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = NodeError;

    fn unit_variant(self) -> Result<(), NodeError> {
        match self.value {
            Some(node) if !node.is_null() => {
                Err(NodeError::custom(format!("`{}` takes no value", self.name))
                    .at(node.span)
                    .below(self.name))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, NodeError> {
        self.inside(self.content("a value").and_then(|reader| seed.deserialize(reader)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, NodeError> {
        self.inside(self.content("a list").and_then(|reader| reader.items(visitor)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        self.inside(self.content("a map").and_then(|reader| reader.entries(visitor)))
    }
}

/// Describes an unexpected value in the words of messages.
pub(super) fn unexpected(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("the boolean {value}"),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Char(value) => format!("`{value}`"),
        Unexpected::Str(text) => super::error::quoted(text),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        Unexpected::Other(text) => text.to_owned(),
        _ => "something else".to_owned(),
    }
}
