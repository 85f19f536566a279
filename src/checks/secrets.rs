//! The parts of written health checks that are never shown.

use crate::document::{Node, Value};

/// Keys whose values are secret in every check.
pub(crate) const SECRET: [&str; 3] = ["environment", "password", "request-headers"];

/// Returns whether checks have a secret value.
pub(crate) fn hold_secrets(checks: &Node) -> bool {
    match &checks.value {
        Value::Scalar(scalar) => scalar.is_secret,
        Value::Seq(items) => items.iter().any(hold_secrets),
        Value::Map(entries) => {
            entries.iter().any(|entry| SECRET.contains(&entry.key.as_str()) || hold_secrets(&entry.value))
        }
    }
}
