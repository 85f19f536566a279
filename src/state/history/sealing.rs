//! Properties that contain secrets are encrypted for `STATE/identity`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::super::{StateDirectory, StateError};

/// The only key of encrypted properties.
const SEALED: &str = "$encrypted";

impl StateDirectory {
    /// Encrypts properties.
    pub(crate) fn seal(&self, properties: &Map<String, Value>) -> Result<Map<String, Value>, StateError> {
        let text = serde_json::to_vec(properties).map_err(|error| self.unusable(&error))?;
        let encrypted = self.make_identity()?.encrypt(&text).map_err(|error| self.unusable(&error))?;
        Ok(Map::from_iter([(SEALED.to_owned(), STANDARD.encode(encrypted).into())]))
    }

    /// Decrypts properties that [`StateDirectory::seal`] encrypted; returns others as they are.
    pub(crate) fn unseal(&self, properties: &Map<String, Value>) -> Result<Map<String, Value>, StateError> {
        let Some(text) = properties.get(SEALED).and_then(Value::as_str) else {
            return Ok(properties.clone());
        };
        let encrypted = STANDARD.decode(text).map_err(|error| self.unusable(&error))?;
        let identity = self.identity()?.ok_or_else(|| self.unusable(&"`identity` does not exist"))?;
        let plain = identity.decrypt(&encrypted).map_err(|error| self.unusable(&error))?;
        serde_json::from_slice(&plain).map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, reason: &dyn std::fmt::Display) -> StateError {
        StateError::Damaged {
            path: self.0.clone().unwrap_or_default().join(super::FOLDER),
            reason: format!("encrypted properties: {reason}"),
        }
    }
}
