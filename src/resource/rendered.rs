//! A resource as a manifest could declare it.

use serde_json::{Map, Value};

use super::{Resource, schema};
use crate::{document::to_value, template};

impl Resource {
    /// The name and the properties for a manifest that means the same. What came out of a template is written so that it
    /// comes to itself; templates whose turn has not come stand as they were written, unless they may hold a secret.
    pub(crate) fn rendered(&self) -> (String, Map<String, Value>) {
        let mut properties = self.to_json(self.wanted.as_ref());
        properties.shift_remove("name");
        for (key, value) in &mut properties {
            // Conditions are expressions: nothing was expanded in them.
            if key != "control" {
                escape(value);
            }
        }
        let secrets = schema::secret(self.kind);
        let late = self.late.iter().flatten().filter(|entry| template::holds_template(&entry.value));
        for entry in late.filter(|entry| !self.common.sensitive && !secrets.contains(&entry.key)) {
            properties.insert(entry.key.clone(), to_value(&entry.value).into());
        }
        (ccm_expr::escape(&self.name), properties)
    }
}

/// Writes the texts in a value so that they come to themselves.
pub(crate) fn escape(value: &mut Value) {
    match value {
        Value::String(text) => *text = ccm_expr::escape(text),
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(entries) => entries.values_mut().for_each(escape),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
