//! What is written down about refreshes that are owed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::vocabulary::Reference;

/// Everything that is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefreshRecords {
    /// Each resource that is to be refreshed, and the changes that it is owed for: other manifests may know other
    /// resources by the same name.
    refreshes: BTreeMap<String, BTreeSet<String>>,
    /// What scripts have changed that may not come to their end. Who will subscribe to it, nobody knows yet.
    changes: BTreeMap<String, Change>,
}

/// A resource that was changed in the sessions of scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// The sessions that have not come to a good end since.
    sessions: BTreeSet<String>,
    /// Who has been refreshed since.
    followed: BTreeSet<String>,
}

/// One refresh that is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingRefresh {
    /// Who is to be refreshed.
    pub(crate) to: Reference,
    /// Whose change it is for.
    pub(crate) because: Reference,
}

impl RefreshRecords {
    pub(crate) fn holds(&self, debt: &PendingRefresh) -> bool {
        let is_unfollowed = |change: &Change| !change.followed.contains(&debt.to.to_string());
        self.is_written(debt) || self.changes.get(&debt.because.to_string()).is_some_and(is_unfollowed)
    }

    fn is_written(&self, PendingRefresh { to, because }: &PendingRefresh) -> bool {
        self.refreshes.get(&to.to_string()).is_some_and(|causes| causes.contains(&because.to_string()))
    }

    /// Records pending refreshes, and returns those that are new.
    pub(crate) fn record(&mut self, refresh_store: &[PendingRefresh]) -> Vec<PendingRefresh> {
        let new: Vec<PendingRefresh> =
            refresh_store.iter().filter(|debt| !self.is_written(debt)).cloned().collect();
        for PendingRefresh { to, because } in &new {
            self.refreshes.entry(to.to_string()).or_default().insert(because.to_string());
        }
        new
    }

    /// Removes refreshes that turned out not to be needed.
    pub(crate) fn strike(&mut self, refresh_store: &[PendingRefresh]) {
        for PendingRefresh { to, because } in refresh_store {
            if let Some(causes) = self.refreshes.get_mut(&to.to_string()) {
                causes.remove(&because.to_string());
            }
        }
        self.refreshes.retain(|_, causes| !causes.is_empty());
    }

    /// Removes refreshes that were made.
    pub(crate) fn complete(&mut self, refresh_store: &[PendingRefresh]) {
        self.strike(refresh_store);
        for PendingRefresh { to, because } in refresh_store {
            if let Some(change) = self.changes.get_mut(&because.to_string()) {
                change.followed.insert(to.to_string());
            }
        }
    }

    /// Notes that a resource is changed in a session, under each of its names; gives what was known of it before.
    pub(crate) fn change(&mut self, names: &[Reference], session: &str) -> Vec<(String, Option<Change>)> {
        let change = |name: &Reference| {
            let before = self.changes.remove(&name.to_string());
            let mut sessions = before.as_ref().map(|before| before.sessions.clone()).unwrap_or_default();
            sessions.insert(session.to_owned());
            self.changes.insert(name.to_string(), Change { sessions, followed: BTreeSet::new() });
            (name.to_string(), before)
        };
        names.iter().map(change).collect()
    }

    /// Takes back a change that came to nothing.
    pub(crate) fn restore(&mut self, before: &[(String, Option<Change>)]) {
        for (name, before) in before {
            self.changes.remove(name);
            self.changes.extend(before.clone().map(|before| (name.clone(), before)));
        }
    }

    /// Forgets what was changed in a session that came to a good end.
    pub(crate) fn settle(&mut self, session: &str) {
        self.changes.retain(|_, change| !change.sessions.remove(session) || !change.sessions.is_empty());
    }
}
