//! Modifiers: `@reverse`, `@flatten` and the like.

use std::sync::Arc;

use crate::budget::{Budget, Exhausted};
use crate::value::{Json, JsonStyle, Map, Value, json};

#[derive(Debug)]
pub(super) enum Modifier {
    /// `@this`, and those that change only the white space of JSON text, which values do not have.
    This,
    Reverse,
    Flatten(Depth),
    Join,
    Keys,
    Values,
    ToText,
    FromText,
    Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    One,
    All,
}

impl Modifier {
    /// The modifier with this name, if there is one.
    pub(super) fn named(name: &str, argument: &str) -> Option<Self> {
        Some(match name {
            "this" | "valid" | "ugly" | "pretty" => Self::This,
            "reverse" => Self::Reverse,
            "flatten" => {
                let options: Value = serde_json::from_str(argument).unwrap_or_default();
                let deep = options.member("deep").and_then(|deep| deep.as_bool()) == Some(true);
                Self::Flatten(if deep { Depth::All } else { Depth::One })
            }
            "join" => Self::Join,
            "keys" => Self::Keys,
            "values" => Self::Values,
            "tostr" => Self::ToText,
            "fromstr" => Self::FromText,
            "group" => Self::Group,
            _ => return None,
        })
    }

    /// What it makes of a value; nothing where that has no sense.
    pub(super) fn apply(&self, value: Value, budget: &mut Budget) -> Result<Option<Value>, Exhausted> {
        let value = if matches!(self, Self::This) { value } else { value.filled() };
        charge(&value, budget)?;
        Ok(match (self, &value) {
            (Self::Reverse, Value::List(items)) => Some(items.iter().rev().cloned().collect()),
            (Self::Reverse, Value::Map(entries)) => {
                let reversed = entries.iter().rev().map(|(name, value)| (name.clone(), value.clone()));
                Some(Value::from(reversed.collect::<Map>()))
            }
            (Self::Flatten(depth), Value::List(items)) => {
                let mut flat = Vec::new();
                flatten(items, *depth, &mut flat, budget)?;
                Some(flat.into())
            }
            (Self::Join, Value::List(items)) => Some(joined(items, budget)?),
            (Self::Keys, Value::Map(entries)) => Some(entries.keys().cloned().map(Value::Str).collect()),
            (Self::Keys, Value::List(items)) => Some(items.iter().map(|_| Value::Null).collect()),
            (Self::Keys, _) => Some(vec![Value::Null].into()),
            (Self::Values, Value::Map(entries)) => Some(entries.values().cloned().collect()),
            (Self::Values, Value::List(_)) => Some(value),
            (Self::Values, _) => Some(vec![value].into()),
            (Self::ToText, _) => Some(to_text(&value, budget)?),
            (Self::FromText, Value::Str(text)) => {
                budget.steps(text.len())?;
                serde_json::from_str(text).ok()
            }
            (Self::Group, Value::Map(entries)) => grouped(entries, budget)?,
            (Self::FromText, Value::List(_) | Value::Map(_)) | (Self::Group, _) => None,
            _ => Some(value),
        })
    }
}

fn charge(value: &Value, budget: &mut Budget) -> Result<(), Exhausted> {
    match value {
        Value::List(items) => budget.elements(items.len()),
        Value::Map(entries) => budget.elements(entries.len()),
        _ => Ok(()),
    }
}

fn flatten(
    items: &[Value],
    depth: Depth,
    flat: &mut Vec<Value>,
    budget: &mut Budget,
) -> Result<(), Exhausted> {
    budget.elements(items.len())?;
    for item in items {
        match (item, depth) {
            (Value::List(inner), Depth::All) => flatten(inner, depth, flat, budget)?,
            (Value::List(inner), Depth::One) => {
                budget.elements(inner.len())?;
                flat.extend_from_slice(inner);
            }
            (other, _) => flat.push(other.clone()),
        }
    }
    Ok(())
}

fn joined(items: &[Value], budget: &mut Budget) -> Result<Value, Exhausted> {
    let mut all = Map::new();
    let mut any_secret = false;
    for item in items {
        let is_secret = item.is_secret();
        if let Value::Map(entries) = item.reveal().clone().filled() {
            budget.elements(entries.len())?;
            all.extend(entries.iter().map(|(name, value)| (name.clone(), value.clone())));
            any_secret |= is_secret;
        }
    }
    Ok(Value::from(all).derived_if(any_secret))
}

fn to_text(value: &Value, budget: &mut Budget) -> Result<Value, Exhausted> {
    let Json { text, is_secret } =
        json(value, JsonStyle::Spaced, budget.bytes_left()).map_err(|_| Exhausted::Bytes)?;
    budget.bytes(text.len())?;
    Ok(Value::from(text).derived_if(is_secret))
}

/// Turns a map of lists into a list of maps; nothing if there is not one element to group.
fn grouped(entries: &Map, budget: &mut Budget) -> Result<Option<Value>, Exhausted> {
    let mut groups: Vec<Map> = Vec::new();
    for (name, value) in entries {
        let Value::List(items) = value else { continue };
        budget.elements(items.len())?;
        for (place, item) in items.iter().enumerate() {
            if place == groups.len() {
                groups.push(Map::new());
            }
            groups[place].insert(Arc::clone(name), item.clone());
        }
    }
    Ok((!groups.is_empty()).then(|| groups.into_iter().map(Value::from).collect()))
}
