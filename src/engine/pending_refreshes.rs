//! Who has to be refreshed after whom, and what is still owed from earlier runs.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::{
    resource::{Error, ErrorKind, Resource},
    session::{Session, Store},
    state::{
        Change, Entry, Pending, PendingRefresh, RefreshOrigin, RefreshRecords, RefreshStore, ScriptSession,
        StateError,
    },
    vocabulary::Reference,
};

/// The subscribers of each resource of a run, and the refreshes that are pending for them.
pub(crate) struct PendingRefreshes {
    refresh_store: Option<RefreshStore>,
    /// For whose changes earlier runs owe a resource a refresh: what this run changes, its own events tell.
    inherited: HashMap<Reference, Vec<Reference>>,
    subscribers: HashMap<Reference, Vec<Reference>>,
    /// The session of a script in which changes are made, and others may subscribe to them later.
    session: Option<ScriptSession>,
    /// Whether sessions that will not go on have been forgotten.
    swept: bool,
    /// Manifest of the resources, unless they are from a command line or request.
    manifest: Option<String>,
    /// Refreshes that were pending when the run began, or that its changes triggered.
    seen: Vec<PendingRefresh>,
    /// Refreshes that earlier runs left pending.
    left_before: Vec<Pending>,
}

/// What was written down before a change.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Resources that are refreshed because of the change.
    subscribers: Vec<Reference>,
    refreshes: Vec<PendingRefresh>,
    changes: Vec<(String, Option<Change>)>,
}

impl Recorded {
    /// Returns the resources that are refreshed because of the change.
    pub(super) fn subscribers(&self) -> Vec<String> {
        let mut subscribers: Vec<String> = Vec::new();
        for pending in &self.subscribers {
            let name = pending.to_string();
            if !subscribers.contains(&name) {
                subscribers.push(name);
            }
        }
        subscribers
    }
}

impl PendingRefreshes {
    /// The refreshes of these resources. Without a store nothing outlives the run.
    pub(crate) fn of(
        resources: &[&Resource],
        refresh_store: Option<RefreshStore>,
        session: &Session,
        manifest: Option<String>,
    ) -> Self {
        let mut seen = Vec::new();
        let mut subscribers: HashMap<Reference, Vec<Reference>> = HashMap::new();
        let mut inherited = HashMap::new();
        for resource in resources {
            for subscribed in &resource.common.subscribe {
                subscribers.entry(subscribed.clone()).or_default().push(resource.reference());
            }
            // Another manifest may have a resource of the same name that subscribes to others.
            let mut owed = all(resource, &resource.common.subscribe);
            owed.retain(|debt| {
                refresh_store.as_ref().is_some_and(|refresh_store| refresh_store.owed().holds(debt))
            });
            seen.extend_from_slice(&owed);
            if !owed.is_empty() {
                inherited.insert(resource.reference(), owed.into_iter().map(|debt| debt.because).collect());
            }
        }
        let script = session.name().zip(session.folder());
        let script = script.map(|(name, folder)| ScriptSession { name, folder: folder.to_owned() });
        let left_before =
            refresh_store.as_ref().map(|store| store.owed().pending_among(&seen)).unwrap_or_default();
        Self {
            refresh_store,
            inherited,
            subscribers,
            session: script,
            swept: false,
            manifest,
            seen,
            left_before,
        }
    }

    /// Returns the refresh of a resource that earlier runs left pending.
    pub(super) fn pending(&self, resource: &Resource) -> Option<Pending> {
        let to = resource.reference().to_string();
        self.left_before.iter().find(|pending| pending.to == to).cloned()
    }

    /// Returns the refreshes that the run leaves pending.
    pub(super) fn left(&self) -> Vec<Pending> {
        self.refresh_store.as_ref().map(|store| store.owed().pending_among(&self.seen)).unwrap_or_default()
    }

    /// Returns whether a change of a resource refreshes others.
    pub(super) fn has_subscribers(&self, resource: &Resource, within: &[&Resource]) -> bool {
        let concerns = |resource: &Resource| {
            let name = resource.reference();
            let alias = resource.common.alias.clone().map(|alias| Reference { name: alias, ..name.clone() });
            [name].iter().chain(&alias).any(|name| self.subscribers.contains_key(name))
        };
        !self.subscribers.is_empty() && (concerns(resource) || within.iter().any(|outer| concerns(outer)))
    }

    /// The changes for which earlier runs owe this resource a refresh.
    pub(super) fn owed(&self, resource: &Resource) -> &[Reference] {
        self.inherited.get(&resource.reference()).map(Vec::as_slice).unwrap_or_default()
    }

    /// Writes down, before a resource is changed, that its subscribers have to be refreshed, and that it has to be
    /// refreshed itself because of others, if it has: should that fail, the next run owes it. With it, what it is part
    /// of changes.
    pub(super) fn record(
        &mut self,
        resource: &Resource,
        because: &[&Reference],
        within: &[&Resource],
    ) -> Result<Recorded, Error> {
        let own = all(resource, because.iter().copied());
        let names_of = |resource: &Resource| {
            let name = resource.reference();
            let alias = resource.common.alias.clone().map(|alias| Reference { name: alias, ..name.clone() });
            [name].into_iter().chain(alias)
        };
        // Under the name by which they know it: so they can be asked later whether they still do.
        let names: Vec<Reference> = names_of(resource).collect();
        let mut refreshes = Vec::new();
        let around: Vec<Reference> = within.iter().flat_map(|outer| names_of(outer)).collect();
        for because in names.iter().chain(&around) {
            let subscribers = self.subscribers.get(because).into_iter().flatten();
            refreshes
                .extend(subscribers.map(|to| PendingRefresh { to: to.clone(), because: because.clone() }));
        }
        let session = self.session.clone();
        // The alias of a sensitive resource is stored only where another that is not sensitive names it.
        let known = if resource.is_sensitive() { &names[..1] } else { &names };
        if own.is_empty() && refreshes.is_empty() && session.is_none() {
            return Ok(Recorded::default());
        }
        let now = Timestamp::now().as_second();
        let forget = session.is_some() && !std::mem::replace(&mut self.swept, true);
        let origin = RefreshOrigin { at: Some(now), manifest: self.manifest.clone() };
        let triggered = [&own[..], &refreshes].concat();
        self.seen.extend_from_slice(&triggered);
        let recorded = self.edit(|owed| {
            let mut entries = owed.owe(&triggered, &origin);
            let mut recorded = Recorded {
                subscribers: refreshes.iter().map(|pending| pending.to.clone()).collect(),
                refreshes: owed.lacking(&refreshes),
                changes: Vec::new(),
            };
            if forget {
                entries.extend(owed.forget_abandoned(now, Store::last_touched));
            }
            if let Some(session) = &session {
                recorded.changes = owed.known(known);
                entries.extend(RefreshRecords::change(known, session, now));
            }
            (entries, recorded)
        });
        recorded.map_err(|error| ErrorKind::Unrecorded { reason: error.to_string() }.into())
    }

    /// Strikes out what turned out not to be owed to the subscribers of a resource.
    pub(super) fn cancel(&mut self, recorded: &Recorded) -> Result<(), StateError> {
        if *recorded == Recorded::default() {
            return Ok(());
        }
        self.edit(|owed| {
            let mut entries = owed.strike(&recorded.refreshes);
            entries.extend(owed.restore(&recorded.changes));
            (entries, ())
        })
    }

    /// Strikes out what was owed to a resource that has now been refreshed, after whatever it subscribes to.
    pub(super) fn complete(&mut self, resource: &Resource) -> Result<(), StateError> {
        let refreshes = all(resource, &resource.common.subscribe);
        self.edit(|owed| (owed.complete(&refreshes), ()))
    }

    fn edit<T: Default>(
        &mut self,
        plan: impl Fn(&RefreshRecords) -> (Vec<Entry>, T),
    ) -> Result<T, StateError> {
        self.refresh_store.as_mut().map_or_else(|| Ok(T::default()), |refresh_store| refresh_store.edit(plan))
    }
}

/// What is owed to a resource for all of these changes.
fn all<'a>(resource: &Resource, because: impl IntoIterator<Item = &'a Reference>) -> Vec<PendingRefresh> {
    because
        .into_iter()
        .map(|because| PendingRefresh { to: resource.reference(), because: because.clone() })
        .collect()
}
