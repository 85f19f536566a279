//! Text that expansion gives back as it is.

use serde_json::Value;

/// Escapes every text of a value, so that nothing in it is taken for a template.
pub(crate) fn escape(value: &mut Value) {
    match value {
        Value::String(text) => *text = ccm_expr::escape(text),
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(entries) => entries.values_mut().for_each(escape),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
