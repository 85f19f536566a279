//! Who has to be refreshed after whom, and what is still owed from earlier runs.

use std::collections::HashMap;

use crate::{
    resource::{Error, Resource},
    state::{Debt, Debts, StateError},
    vocabulary::Reference,
};

/// The subscribers of each resource of a run, and the debts to them.
pub(crate) struct Ledger {
    debts: Option<Debts>,
    /// For whose changes earlier runs owe a resource a refresh: what this run changes, its own events tell.
    inherited: HashMap<Reference, Vec<Reference>>,
    subscribers: HashMap<Reference, Vec<Reference>>,
}

impl Ledger {
    /// The ledger of these resources. Without debts nothing outlives the run.
    pub(crate) fn of(resources: &[Resource], debts: Option<Debts>) -> Self {
        let mut subscribers: HashMap<Reference, Vec<Reference>> = HashMap::new();
        let mut inherited = HashMap::new();
        for resource in resources {
            for subscribed in &resource.common.subscribe {
                subscribers.entry(subscribed.clone()).or_default().push(resource.reference());
            }
            // Another manifest may have a resource of the same name that subscribes to others.
            let mut owed = all(resource, &resource.common.subscribe);
            owed.retain(|debt| debts.as_ref().is_some_and(|debts| debts.holds(debt)));
            if !owed.is_empty() {
                inherited.insert(resource.reference(), owed.into_iter().map(|debt| debt.because).collect());
            }
        }
        Self { debts, inherited, subscribers }
    }

    /// The changes for which earlier runs owe this resource a refresh.
    pub(super) fn owed(&self, resource: &Resource) -> &[Reference] {
        self.inherited.get(&resource.reference()).map(Vec::as_slice).unwrap_or_default()
    }

    /// Writes down, before a resource is refreshed, that it has to be: if the refresh fails, the next run owes it.
    pub(super) fn owe(&mut self, resource: &Resource, because: &[&Reference]) -> Result<(), Error> {
        self.record(&all(resource, because.iter().copied())).map(drop)
    }

    /// Writes down, before a resource is changed, that its subscribers have to be refreshed; gives the new debts.
    pub(super) fn incur(&mut self, resource: &Resource) -> Result<Vec<Debt>, Error> {
        let name = resource.reference();
        let alias = resource.common.alias.clone().map(|alias| Reference { name: alias, ..name.clone() });
        let mut debts = Vec::new();
        // Under the name by which they know it: so they can be asked later whether they still do.
        for because in [Some(name), alias].into_iter().flatten() {
            let subscribers = self.subscribers.get(&because).into_iter().flatten();
            debts.extend(subscribers.map(|to| Debt { to: to.clone(), because: because.clone() }));
        }
        self.record(&debts)
    }

    fn record(&mut self, debts: &[Debt]) -> Result<Vec<Debt>, Error> {
        match &mut self.debts {
            Some(all) if !debts.is_empty() => all.incur(debts).map_err(|error| unrecorded(&error)),
            _ => Ok(Vec::new()),
        }
    }

    /// Strikes out debts that turned out not to be any.
    pub(super) fn cancel(&mut self, debts: &[Debt]) -> Result<(), StateError> {
        match &mut self.debts {
            Some(all) if !debts.is_empty() => all.strike(debts),
            _ => Ok(()),
        }
    }

    /// Strikes out what was owed to a resource that has now been refreshed, after whatever it subscribes to.
    pub(super) fn pay(&mut self, resource: &Resource) -> Result<(), StateError> {
        self.cancel(&all(resource, &resource.common.subscribe))
    }
}

/// What is owed to a resource for all of these changes.
fn all<'a>(resource: &Resource, because: impl IntoIterator<Item = &'a Reference>) -> Vec<Debt> {
    because.into_iter().map(|because| Debt { to: resource.reference(), because: because.clone() }).collect()
}

fn unrecorded(error: &StateError) -> Error {
    Error::new(format!("cannot record which refreshes are owed: {error}"))
        .with_help("nothing was changed; make room in the state directory or name another with --state-dir")
}
