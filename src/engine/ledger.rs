//! Who has to be refreshed after whom, and what is still owed from earlier runs.

use std::collections::HashMap;

use crate::{
    resource::{Error, Resource},
    state::{Debts, StateError},
    vocabulary::Reference,
};

/// The subscribers of each resource of a run, and the debts to them.
pub(crate) struct Ledger {
    debts: Option<Debts>,
    /// Those whom earlier runs left unpaid: what this run changes, its own events tell.
    inherited: Vec<Reference>,
    subscribers: HashMap<Reference, Vec<Reference>>,
}

impl Ledger {
    /// The ledger of these resources. Without debts nothing outlives the run.
    pub(crate) fn of(resources: &[Resource], debts: Option<Debts>) -> Self {
        let mut subscribers: HashMap<Reference, Vec<Reference>> = HashMap::new();
        for resource in resources {
            for subscribed in &resource.common.subscribe {
                subscribers.entry(subscribed.clone()).or_default().push(resource.reference());
            }
        }
        let owed = |resource: &Resource| {
            debts.as_ref()?.owed_to(&resource.reference()).map(|_| resource.reference())
        };
        let inherited = resources.iter().filter_map(owed).collect();
        Self { debts, inherited, subscribers }
    }

    /// The change for which an earlier run owes this resource a refresh.
    pub(super) fn owed<'a>(&self, resource: &'a Resource) -> Option<&'a Reference> {
        let reference = resource.reference();
        let cause =
            self.debts.as_ref()?.owed_to(&reference).filter(|_| self.inherited.contains(&reference))?;
        // Another manifest may have a resource of the same name that never asked for it.
        resource.common.subscribe.iter().find(|other| other.to_string() == cause)
    }

    /// Writes down, before a resource is refreshed, that it has to be: if the refresh fails, the next run owes it.
    pub(super) fn owe(&mut self, resource: &Resource, because: &Reference) -> Result<(), Error> {
        let Some(debts) = &mut self.debts else { return Ok(()) };
        debts.incur(&[resource.reference()], because).map(drop).map_err(|error| unrecorded(&error))
    }

    /// Writes down, before a resource is changed, that its subscribers have to be refreshed; gives the new debts.
    pub(super) fn incur(&mut self, resource: &Resource) -> Result<Vec<Reference>, Error> {
        let Some(debts) = &mut self.debts else { return Ok(Vec::new()) };
        if self.subscribers.is_empty() {
            return Ok(Vec::new());
        }
        let because = resource.reference();
        let alias = resource.common.alias.clone().map(|name| Reference { name, ..because.clone() });
        let names = [Some(because.clone()), alias];
        let mut new = Vec::new();
        // Under the name by which they know it: so they can be asked later whether they still do.
        for name in names.iter().flatten() {
            let subscribers = self.subscribers.get(name).map(Vec::as_slice).unwrap_or_default();
            new.extend(debts.incur(subscribers, name).map_err(|error| unrecorded(&error))?);
        }
        Ok(new)
    }

    /// Strikes out debts that turned out not to be any.
    pub(super) fn cancel(&mut self, debts: &[Reference]) -> Result<(), StateError> {
        self.debts.as_mut().map_or(Ok(()), |all| all.strike(debts))
    }

    /// Strikes out a debt that was paid.
    pub(super) fn pay(&mut self, resource: &Resource) -> Result<(), StateError> {
        self.cancel(&[resource.reference()])
    }
}

fn unrecorded(error: &StateError) -> Error {
    Error::new(format!("cannot record which refreshes are owed: {error}"))
        .with_help("nothing was changed; make room in the state directory or name another with --state-dir")
}
