//! The values of expressions as values of templates, and back.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use ccm_expr::{Map, Value};
use minijinja::value::{Enumerator, Object, Value as JinjaValue};

/// How the numbers that a template has met are written.
///
/// The engine's numbers are only numbers, and `version: 1.10` is to print as it is written: so the texts are kept beside
/// them. Where the same number was met in two spellings, it prints as a number does.
#[derive(Clone, Debug, Default)]
pub(super) struct Spellings {
    known: Arc<Mutex<HashMap<u64, Option<String>>>>,
    /// Whether the template read a secret value. The engine's values have no mark, so that from then on everything is secret.
    is_secret: Arc<AtomicBool>,
}

impl Spellings {
    fn note(&self, number: f64, text: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let spelling = known.entry(number.to_bits()).or_insert_with(|| Some(text.to_owned()));
        if spelling.as_deref() != Some(text) {
            *spelling = None;
        }
    }

    fn of(&self, number: f64) -> Value {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&number.to_bits()) {
            Some(Some(text)) => Value::written(number, text),
            _ => Value::Float(number),
        }
    }

    /// Returns whether the template read a secret value.
    pub(super) fn have_secret(&self) -> bool {
        self.is_secret.load(Ordering::Relaxed)
    }

    /// The value as templates see it. Maps are looked into only where a template does: a fact that nobody asks for is not
    /// gathered.
    pub(super) fn to_jinja(&self, value: &Value) -> JinjaValue {
        match value {
            Value::Null => JinjaValue::from(()),
            Value::Bool(truth) => JinjaValue::from(*truth),
            Value::Int(number) => JinjaValue::from(*number),
            Value::Named(named) => JinjaValue::from(named.number()),
            Value::Float(_) | Value::Written(_) => match value.settled() {
                Value::Float(number) => {
                    self.note(*number, &value.to_text());
                    JinjaValue::from(*number)
                }
                number => self.to_jinja(number),
            },
            Value::Str(text) => JinjaValue::from(text.as_ref()),
            Value::List(items) => items.iter().map(|item| self.to_jinja(item)).collect(),
            Value::Map(_) | Value::Object(_) => {
                JinjaValue::from_object(Members { value: value.clone(), spellings: self.clone() })
            }
            Value::Time(_) | Value::Duration(_) | Value::Zone(_) => JinjaValue::from(value.to_text()),
            Value::Secret(secret) => {
                self.is_secret.store(true, Ordering::Relaxed);
                self.to_jinja(secret.reveal())
            }
        }
    }

    /// The value as expressions see it.
    pub(super) fn to_value(&self, value: &JinjaValue) -> Value {
        let json = serde_json::to_value(value).unwrap_or_default();
        self.spelled(serde_json::from_value(json).unwrap_or_default())
    }

    /// The same value with its numbers as they were written.
    fn spelled(&self, value: Value) -> Value {
        match value {
            Value::Float(number) => self.of(number),
            Value::List(items) => items.iter().map(|item| self.spelled(item.clone())).collect(),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(name, value)| (name.clone(), self.spelled(value.clone())));
                entries.collect::<Map>().into()
            }
            other => other,
        }
    }
}

/// Whether a value is a map of the scope, which is not a template's own and is read only where a template does.
pub(super) fn is_lazy(value: &JinjaValue) -> bool {
    value.downcast_object_ref::<Members>().is_some()
}

/// A map.
#[derive(Debug)]
struct Members {
    value: Value,
    spellings: Spellings,
}

impl Members {
    fn member(&self, name: &str) -> Option<Value> {
        match &self.value {
            Value::Map(map) => map.get(name).cloned(),
            Value::Object(object) => object.member(name),
            _ => None,
        }
    }

    fn names(&self) -> Vec<Arc<str>> {
        match &self.value {
            Value::Map(map) => map.iter().map(|(name, _)| name.clone()).collect(),
            Value::Object(object) => object.names(),
            _ => Vec::new(),
        }
    }
}

impl Object for Members {
    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        self.member(key.as_str()?).as_ref().map(|member| self.spellings.to_jinja(member))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.names().iter().map(|name| JinjaValue::from(name.as_ref())).collect())
    }
}
