//! Who has to be refreshed after whom, and what is still owed from earlier runs.

use std::collections::HashMap;

use crate::{
    resource::{Error, Resource},
    session::Session,
    state::{Change, Debt, Debts, Owed, StateError},
    vocabulary::Reference,
};

/// The subscribers of each resource of a run, and the debts to them.
pub(crate) struct Ledger {
    debts: Option<Debts>,
    /// For whose changes earlier runs owe a resource a refresh: what this run changes, its own events tell.
    inherited: HashMap<Reference, Vec<Reference>>,
    subscribers: HashMap<Reference, Vec<Reference>>,
    /// The session of a script in which changes are made, and others may subscribe to them later.
    session: Option<String>,
}

/// What was written down before a change.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Incurred {
    debts: Vec<Debt>,
    changes: Vec<(String, Option<Change>)>,
}

impl Ledger {
    /// The ledger of these resources. Without debts nothing outlives the run.
    pub(crate) fn of(resources: &[Resource], debts: Option<Debts>, session: &Session) -> Self {
        let mut subscribers: HashMap<Reference, Vec<Reference>> = HashMap::new();
        let mut inherited = HashMap::new();
        for resource in resources {
            for subscribed in &resource.common.subscribe {
                subscribers.entry(subscribed.clone()).or_default().push(resource.reference());
            }
            // Another manifest may have a resource of the same name that subscribes to others.
            let mut owed = all(resource, &resource.common.subscribe);
            owed.retain(|debt| debts.as_ref().is_some_and(|debts| debts.owed().holds(debt)));
            if !owed.is_empty() {
                inherited.insert(resource.reference(), owed.into_iter().map(|debt| debt.because).collect());
            }
        }
        Self { debts, inherited, subscribers, session: session.name() }
    }

    /// The changes for which earlier runs owe this resource a refresh.
    pub(super) fn owed(&self, resource: &Resource) -> &[Reference] {
        self.inherited.get(&resource.reference()).map(Vec::as_slice).unwrap_or_default()
    }

    /// Writes down, before a resource is changed, that its subscribers have to be refreshed, and that it has to be
    /// refreshed itself because of others, if it has: should that fail, the next run owes it.
    pub(super) fn incur(&mut self, resource: &Resource, because: &[&Reference]) -> Result<Incurred, Error> {
        let own = all(resource, because.iter().copied());
        let name = resource.reference();
        let alias = resource.common.alias.clone().map(|alias| Reference { name: alias, ..name.clone() });
        // Under the name by which they know it: so they can be asked later whether they still do.
        let names: Vec<Reference> = [name].into_iter().chain(alias).collect();
        let mut debts = Vec::new();
        for because in &names {
            let subscribers = self.subscribers.get(because).into_iter().flatten();
            debts.extend(subscribers.map(|to| Debt { to: to.clone(), because: because.clone() }));
        }
        let session = self.session.clone();
        if own.is_empty() && debts.is_empty() && session.is_none() {
            return Ok(Incurred::default());
        }
        let incurred = self.edit(|owed| {
            owed.incur(&own);
            let changes = session.iter().flat_map(|session| owed.change(&names, session)).collect();
            Incurred { debts: owed.incur(&debts), changes }
        });
        incurred.map_err(|error| {
            Error::new(format!("cannot record which refreshes are owed: {error}")).with_help(
                "nothing was changed; make room in the state directory or name another with --state-dir",
            )
        })
    }

    /// Strikes out what turned out not to be owed to the subscribers of a resource.
    pub(super) fn cancel(&mut self, incurred: &Incurred) -> Result<(), StateError> {
        if *incurred == Incurred::default() {
            return Ok(());
        }
        self.edit(|owed| {
            owed.strike(&incurred.debts);
            owed.restore(&incurred.changes);
        })
    }

    /// Strikes out what was owed to a resource that has now been refreshed, after whatever it subscribes to.
    pub(super) fn pay(&mut self, resource: &Resource) -> Result<(), StateError> {
        let debts = all(resource, &resource.common.subscribe);
        self.edit(|owed| owed.pay(&debts))
    }

    fn edit<T: Default>(&mut self, edit: impl Fn(&mut Owed) -> T) -> Result<T, StateError> {
        self.debts.as_mut().map_or_else(|| Ok(T::default()), |debts| debts.edit(edit))
    }
}

/// What is owed to a resource for all of these changes.
fn all<'a>(resource: &Resource, because: impl IntoIterator<Item = &'a Reference>) -> Vec<Debt> {
    because.into_iter().map(|because| Debt { to: resource.reference(), because: because.clone() }).collect()
}
