//! Names of services and units.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::vocabulary::PlainName;

/// Name that is safe as an argument of `systemctl`.
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

/// Name of a unit, including instances: as the name of a service, with `@` and `\\`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct UnitWord(String);

impl UnitWord {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for UnitWord {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        // The name of an instance follows the `@` of its template, and can be any string except the empty one.
        let plain = text.replacen('@', "_", 1).replace('\\', "_");
        ServiceName::try_from(plain).map_err(|_| {
            format!(
                "{text:?} is not the name of a unit: it has letters, digits and . _ + : ~ - and may have one @, as in \
                 wg-quick@wg0"
            )
        })?;
        match text.split_once('@') {
            Some(("", _)) => Err(format!("{text:?} is an instance of no template")),
            _ => Ok(Self(text)),
        }
    }
}

impl From<UnitWord> for String {
    fn from(word: UnitWord) -> Self {
        word.0
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}
