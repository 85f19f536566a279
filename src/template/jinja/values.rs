//! The values of expressions as values of templates, and back.

use std::sync::Arc;

use ccm_expr::Value;
use minijinja::value::{Enumerator, Object, Value as JinjaValue};

/// The value as templates see it. Maps are looked into only where a template does: a fact that nobody asks for is not
/// gathered.
pub(super) fn to_jinja(value: &Value) -> JinjaValue {
    match value {
        Value::Null => JinjaValue::from(()),
        Value::Bool(truth) => JinjaValue::from(*truth),
        Value::Int(number) => JinjaValue::from(*number),
        Value::Named(named) => JinjaValue::from(named.number()),
        Value::Float(number) => JinjaValue::from(*number),
        Value::Written(_) => to_jinja(value.settled()),
        Value::Str(text) => JinjaValue::from(text.as_ref()),
        Value::List(items) => items.iter().map(to_jinja).collect(),
        Value::Map(_) | Value::Object(_) => JinjaValue::from_object(Members(value.clone())),
        Value::Time(_) | Value::Duration(_) | Value::Zone(_) => JinjaValue::from(value.to_text()),
    }
}

/// The value as expressions see it.
pub(super) fn from_jinja(value: &JinjaValue) -> Value {
    let json = serde_json::to_value(value).unwrap_or_default();
    serde_json::from_value(json).unwrap_or_default()
}

/// A map.
#[derive(Debug)]
struct Members(Value);

impl Members {
    fn member(&self, name: &str) -> Option<Value> {
        match &self.0 {
            Value::Map(map) => map.get(name).cloned(),
            Value::Object(object) => object.member(name),
            _ => None,
        }
    }

    fn names(&self) -> Vec<Arc<str>> {
        match &self.0 {
            Value::Map(map) => map.iter().map(|(name, _)| name.clone()).collect(),
            Value::Object(object) => object.names(),
            _ => Vec::new(),
        }
    }
}

impl Object for Members {
    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        self.member(key.as_str()?).as_ref().map(to_jinja)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.names().iter().map(|name| JinjaValue::from(name.as_ref())).collect())
    }
}
