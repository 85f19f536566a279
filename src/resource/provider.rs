//! The platform-specific half of a type, and the choice between several.

use std::any::Any;

use super::{Error, ErrorKind, ResourceType};
use crate::host::Host;

/// A provider that may suit this machine.
pub(crate) struct Candidate<T: ResourceType> {
    /// Its name in the `provider` property and in events.
    pub(crate) name: &'static str,
    /// What it works with, for the manual.
    pub(crate) summary: &'static str,
    /// The provider, or why this machine cannot have it.
    pub(crate) make: fn(&Host) -> Result<Box<T::Provider>, String>,
}

/// A provider, whatever its type.
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    instance: Box<dyn Any + Send + Sync>,
}

impl Provider {
    /// Returns the provider of the type that made it.
    pub(crate) fn of<T: ResourceType>(&self) -> &T::Provider {
        let instance: Option<&Box<T::Provider>> = self.instance.downcast_ref();
        instance.expect("a provider is used only by the type that made it")
    }
}

/// Makes the provider that was asked for, or the first one that suits the machine.
pub(super) fn choose<T: ResourceType>(asked: Option<&str>, host: &Host) -> Result<Provider, Error> {
    let mut reasons = Vec::new();
    let is_asked_for = |candidate: &&Candidate<T>| asked.is_none_or(|asked| asked == candidate.name);
    let mut candidates: Vec<&Candidate<T>> = T::PROVIDERS.iter().filter(is_asked_for).collect();
    if candidates.len() > 1 {
        let native = T::BEHAVIOR.native.map(|native| native());
        candidates.sort_by_key(|candidate| Some(candidate.name) != native);
    }
    for candidate in candidates {
        match (candidate.make)(host) {
            Ok(instance) => return Ok(Provider { name: candidate.name, instance: Box::new(instance) }),
            Err(reason) => reasons.push(format!("{}: {reason}", candidate.name)),
        }
    }
    let asked = asked.map(str::to_owned);
    let property = asked.as_ref().map(|_| "provider");
    let known = T::PROVIDERS.iter().map(|candidate| candidate.name).collect::<Vec<_>>().join(", ");
    Err(Error { property, ..ErrorKind::NoProvider { of: T::NAME, asked, reasons, known }.into() })
}
