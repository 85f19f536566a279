//! The platform-specific half of a type, and the choice between several.

use std::{any::Any, collections::HashMap};

use super::{AnyType, Error, ErrorKind, Resource, ResourceType};
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

/// A provider that this machine might support, of any type.
pub(crate) struct AnyCandidate {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    make: Box<Make>,
}

type Make = dyn Fn(&Host) -> Result<Box<dyn Any + Send + Sync>, String>;

impl AnyCandidate {
    pub(super) fn of<T: ResourceType>(candidate: &'static Candidate<T>) -> Self {
        let Candidate { name, summary, make } = candidate;
        Self { name, summary, make: Box::new(move |host| Ok(Box::new(make(host)?))) }
    }
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

/// Returns the name of a provider, which can be a name of the Go original.
pub(crate) fn known_name<'n>(kind: &str, name: &'n str) -> &'n str {
    match (kind, name) {
        ("apply", "ccmmanifest") => "manifest",
        ("scaffold", "choria") => "posix",
        _ => name,
    }
}

impl dyn AnyType {
    /// Makes the provider that was asked for, or the first one that suits the machine.
    pub(crate) fn provider(&self, asked: Option<&str>, host: &Host) -> Result<Provider, Error> {
        let mut candidates = self.providers();
        let known = candidates.iter().map(|candidate| candidate.name).collect::<Vec<_>>().join(", ");
        if let Some(name) = asked.map(|asked| known_name(self.name(), asked)) {
            candidates.retain(|candidate| candidate.name == name);
        } else {
            let native = self.behavior().native.map(|native| native());
            candidates.sort_by_key(|candidate| Some(candidate.name) != native);
        }
        let mut reasons = Vec::new();
        for candidate in candidates {
            match (candidate.make)(host) {
                Ok(instance) => return Ok(Provider { name: candidate.name, instance }),
                Err(reason) => reasons.push(format!("{}: {reason}", candidate.name)),
            }
        }
        let asked = asked.map(str::to_owned);
        let property = asked.as_ref().map(|_| "provider");
        Err(Error { property, ..ErrorKind::NoProvider { of: self.name(), asked, reasons, known }.into() })
    }
}

/// Type of a resource and its `provider` property, by which a provider is chosen.
type Choice = (&'static str, Option<String>);

/// Providers of a run. Each is made when first needed, and keeps what it learns.
pub(crate) struct Providers<'a> {
    resources: Vec<&'a Resource>,
    made: Vec<(&'static str, Provider)>,
    /// Index of the chosen provider.
    chosen: HashMap<Choice, usize>,
}

impl<'a> Providers<'a> {
    pub(crate) fn new(resources: Vec<&'a Resource>) -> Self {
        Self { resources, made: Vec::new(), chosen: HashMap::new() }
    }

    /// Returns the provider of a resource.
    pub(crate) fn provide(&mut self, resource: &Resource, host: &Host) -> Result<&Provider, Error> {
        let choice = choice(resource);
        let at = match self.chosen.get(&choice) {
            Some(at) => *at,
            None => self.choose(choice, resource, host)?,
        };
        Ok(&self.made[at].1)
    }

    fn choose(&mut self, choice: Choice, resource: &Resource, host: &Host) -> Result<usize, Error> {
        let kind = resource.kind;
        let provider = kind.provider(choice.1.as_deref(), host)?;
        let same = |(of, made): &(&str, Provider)| *of == kind.name() && made.name == provider.name;
        let at = self.made.iter().position(same).unwrap_or_else(|| {
            self.made.push((kind.name(), provider));
            self.made.len() - 1
        });
        self.chosen.insert(choice, at);
        let is_served = |other: &&&Resource| self.chosen.get(&self::choice(other)) == Some(&at);
        let served = self.resources.iter().filter(|other| other.kind.name() == kind.name()).filter(is_served);
        if let Some(survey) = resource.wanted.survey() {
            survey.expect(&served.map(|other| &**other.wanted).collect::<Vec<_>>(), &self.made[at].1);
        }
        Ok(at)
    }
}

fn choice(resource: &Resource) -> Choice {
    (resource.kind.name(), resource.common.provider.clone())
}
