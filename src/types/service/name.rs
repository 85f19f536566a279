//! The name of a service.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::vocabulary::PlainName;

/// A name that can be handed to `systemctl`, and a refusal that says what is wrong with any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ServiceName(PlainName);

impl ServiceName {
    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl TryFrom<String> for ServiceName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error| match text.as_str() {
            "" => error.to_string(),
            _ => format!("service name contains dangerous characters: {text:?}; {error}"),
        })
    }
}

impl From<ServiceName> for String {
    fn from(name: ServiceName) -> Self {
        name.0.into()
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}
