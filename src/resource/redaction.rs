//! What is said about a sensitive resource must not hold the values that were asked for.

use serde_json::Value;

use super::{AnyProperties, Error, Resource};

/// Shorter values, such as a user's number, would be found everywhere, and are no secrets.
const SHORTEST: usize = 4;
const REDACTED: &str = "***";

impl Resource {
    /// Takes the values of a sensitive resource out of its errors and warnings.
    pub(crate) fn redact(&self, wanted: &dyn AnyProperties, errors: &mut [Error], warnings: &mut [String]) {
        if !self.common.sensitive {
            return;
        }
        let mut values = Vec::new();
        let own = wanted.to_json().into_iter().filter(|(key, _)| key != "name" && key != "ensure");
        own.for_each(|(_, value)| collect(value, &mut values));
        values.retain(|value| value.len() >= SHORTEST && !self.name.contains(value.as_str()));
        // A value that is part of another must not leave the rest of it behind.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let redacted = |text: &str| {
            values.iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), REDACTED))
        };
        for error in errors {
            error.message = redacted(&error.message);
            error.help = error.help.as_deref().map(redacted);
        }
        for warning in warnings {
            *warning = redacted(warning);
        }
    }
}

fn collect(value: Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) => values.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| collect(item, values)),
        Value::Object(entries) => entries.into_iter().for_each(|(_, value)| collect(value, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
