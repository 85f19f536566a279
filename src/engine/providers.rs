//! The providers of a run: each is made when first needed and keeps what it learns.

use std::collections::HashMap;

use crate::{
    host::Host,
    resource::{Error, Provider, Resource},
};

/// What serves a resource: its type, and the provider that it asks for. Who asks for none is not served by whichever is
/// there.
type Choice = (&'static str, Option<String>);

/// The providers of a run.
pub(super) struct Providers<'a> {
    resources: Vec<&'a Resource>,
    made: Vec<(&'static str, Provider)>,
    /// Which of them a choice leads to.
    chosen: HashMap<Choice, usize>,
}

impl<'a> Providers<'a> {
    pub(super) fn new(resources: Vec<&'a Resource>) -> Self {
        Self { resources, made: Vec::new(), chosen: HashMap::new() }
    }

    /// Returns the provider of a resource, or why there is none.
    pub(super) fn provide(&mut self, resource: &Resource, host: &Host) -> Result<&Provider, Error> {
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
