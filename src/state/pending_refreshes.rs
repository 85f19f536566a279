//! What is written down about refreshes that are owed, and how it changes.
//!
//! Every change is an [`Entry`]: a line of a journal that is appended to, so that a run with thousands of subscribers writes
//! each of them once. The functions here say which entries a step needs; [`RefreshRecords::apply`] is what they mean.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::vocabulary::Reference;

/// A script that changed something and whose session nobody has written to for this many seconds will not go on.
const ABANDONED: i64 = 24 * 60 * 60;

/// Everything that is written down.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RefreshRecords {
    /// Each resource that is to be refreshed, and the changes that it is owed for: other manifests may know other
    /// resources by the same name.
    refreshes: BTreeMap<String, BTreeMap<String, RefreshOrigin>>,
    /// What scripts have changed that may not come to their end. Who will subscribe to it, nobody knows yet.
    changes: BTreeMap<String, Change>,
}

/// A resource that was changed in the sessions of scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// The sessions that have not come to a good end since.
    sessions: BTreeMap<String, Trace>,
    /// Who has been refreshed since.
    followed: BTreeSet<String>,
}

/// Where a session is kept, and when it changed the resource (seconds since 1970).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    folder: PathBuf,
    at: i64,
}

/// The session of a script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptSession {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
}

/// One pending refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingRefresh {
    /// The resource to refresh.
    pub(crate) to: Reference,
    /// The resource that changed.
    pub(crate) because: Reference,
}

/// Origin of a pending refresh. Earlier versions recorded none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefreshOrigin {
    /// Time of the change, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<i64>,
    /// Manifest of the subscriber, if it is not from a command line or request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manifest: Option<String>,
}

/// All pending refreshes of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The resource to refresh.
    pub(crate) to: String,
    /// The resources that changed.
    pub(crate) because: Vec<String>,
    /// Origin of the first of them.
    pub(crate) origin: RefreshOrigin,
}

impl Pending {
    fn of<'o>(to: String, causes: impl Iterator<Item = (&'o String, &'o RefreshOrigin)> + Clone) -> Self {
        let first = causes.clone().map(|(_, origin)| origin).min_by_key(|origin| origin.at);
        let origin = first.cloned().unwrap_or_default();
        Self { to, because: causes.map(|(because, _)| because.clone()).collect(), origin }
    }
}

/// One change of what is written down.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Entry {
    /// A resource is owed a refresh.
    Owed {
        to: String,
        because: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        manifest: Option<String>,
    },
    /// It is owed no more.
    Done { to: String, because: String },
    /// A resource was changed in a session: all who followed an earlier change have to follow this one.
    Changed { name: String, session: String, folder: PathBuf, at: i64 },
    /// Somebody has followed a change.
    Followed { name: String, by: String },
    /// A session has nothing more to do with a change.
    Left { name: String, session: String },
    /// What is known of the changes of a resource is this.
    Known { name: String, change: Option<Change> },
}

impl Entry {
    /// Whether a refresh would be forgotten if this were lost. If anything else is lost, one is made once more.
    pub(super) fn is_vital(&self) -> bool {
        matches!(self, Self::Owed { .. } | Self::Changed { .. })
    }
}

impl RefreshRecords {
    pub(super) fn is_empty(&self) -> bool {
        self.refreshes.is_empty() && self.changes.is_empty()
    }

    /// Whether this refresh is owed.
    pub(crate) fn holds(&self, pending: &PendingRefresh) -> bool {
        let is_unfollowed = |change: &Change| !change.followed.contains(&pending.to.to_string());
        self.is_written(pending) || self.changes.get(&pending.because.to_string()).is_some_and(is_unfollowed)
    }

    fn is_written(&self, PendingRefresh { to, because }: &PendingRefresh) -> bool {
        self.refreshes.get(&to.to_string()).is_some_and(|causes| causes.contains_key(&because.to_string()))
    }

    /// Returns all pending refreshes, by resource.
    pub(crate) fn pending(&self) -> impl Iterator<Item = Pending> {
        self.refreshes.iter().map(|(to, causes)| Pending::of(to.clone(), causes.iter()))
    }

    /// Returns those of these pending refreshes that are recorded, by resource.
    pub(crate) fn pending_among(&self, among: &[PendingRefresh]) -> Vec<Pending> {
        let recorded = self.refreshes.iter().filter_map(|(to, causes)| {
            let is_among = |because: &str| {
                among.iter().any(|one| one.to.to_string() == *to && one.because.to_string() == because)
            };
            let causes: Vec<_> = causes.iter().filter(|(because, _)| is_among(because)).collect();
            (!causes.is_empty()).then(|| Pending::of(to.clone(), causes.into_iter()))
        });
        recorded.collect()
    }

    /// Returns those refreshes that are not written down yet.
    pub(crate) fn lacking(&self, pending: &[PendingRefresh]) -> Vec<PendingRefresh> {
        pending.iter().filter(|pending| !self.is_written(pending)).cloned().collect()
    }

    /// Returns the entries that record pending refreshes.
    pub(crate) fn owe(&self, pending: &[PendingRefresh], origin: &RefreshOrigin) -> Vec<Entry> {
        let owed = |PendingRefresh { to, because }| Entry::Owed {
            to: to.to_string(),
            because: because.to_string(),
            at: origin.at,
            manifest: origin.manifest.clone(),
        };
        self.lacking(pending).into_iter().map(owed).collect()
    }

    /// Says that refreshes turned out not to be needed.
    pub(crate) fn strike(&self, pending: &[PendingRefresh]) -> Vec<Entry> {
        let done = |PendingRefresh { to, because }: &PendingRefresh| Entry::Done {
            to: to.to_string(),
            because: because.to_string(),
        };
        pending.iter().filter(|pending| self.is_written(pending)).map(done).collect()
    }

    /// Says that refreshes were made.
    pub(crate) fn complete(&self, pending: &[PendingRefresh]) -> Vec<Entry> {
        let mut entries = self.strike(pending);
        for PendingRefresh { to, because } in pending {
            let (name, by) = (because.to_string(), to.to_string());
            if self.changes.get(&name).is_some_and(|change| !change.followed.contains(&by)) {
                entries.push(Entry::Followed { name, by });
            }
        }
        entries
    }

    /// Says that a resource is changed in a session, under each of its names.
    pub(crate) fn change(names: &[Reference], session: &ScriptSession, at: i64) -> Vec<Entry> {
        let ScriptSession { name: session, folder } = session;
        let changed = |name: &Reference| Entry::Changed {
            name: name.to_string(),
            session: session.clone(),
            folder: folder.clone(),
            at,
        };
        names.iter().map(changed).collect()
    }

    /// Returns what is known of the changes of a resource, under each of its names.
    pub(crate) fn known(&self, names: &[Reference]) -> Vec<(String, Option<Change>)> {
        names.iter().map(|name| (name.to_string(), self.changes.get(&name.to_string()).cloned())).collect()
    }

    /// Takes back a change that came to nothing.
    pub(crate) fn restore(&self, before: &[(String, Option<Change>)]) -> Vec<Entry> {
        let differs = |(name, change): &&(String, Option<Change>)| self.changes.get(name) != change.as_ref();
        let known = |(name, change): &(String, Option<Change>)| Entry::Known {
            name: name.clone(),
            change: change.clone(),
        };
        before.iter().filter(differs).map(known).collect()
    }

    /// Forgets what was changed in a session that came to a good end.
    pub(crate) fn settle(&self, session: &str) -> Vec<Entry> {
        let is_part = |(_, change): &(&String, &Change)| change.sessions.contains_key(session);
        let left =
            |(name, _): (&String, &Change)| Entry::Left { name: name.clone(), session: session.to_owned() };
        self.changes.iter().filter(is_part).map(left).collect()
    }

    /// Forgets sessions that will not go on: those untouched for a day, and of those whose folder is gone all but the last
    /// that changed a resource. `touched` tells when a session's folder was last written to, if it is there.
    pub(crate) fn forget_abandoned(&self, now: i64, touched: impl Fn(&Path) -> Option<i64>) -> Vec<Entry> {
        let folders: BTreeSet<&Path> = self.traces().map(|(_, _, trace)| trace.folder.as_path()).collect();
        let touched: BTreeMap<&Path, Option<i64>> =
            folders.into_iter().map(|folder| (folder, touched(folder))).collect();
        let seen = |trace: &Trace| touched.get(trace.folder.as_path()).copied().flatten();
        let last_of_gone = |name: &str| {
            let gone = self.changes.get(name).into_iter().flat_map(|change| &change.sessions);
            let gone = gone.filter(|(_, trace)| seen(trace).is_none());
            gone.max_by_key(|(_, trace)| trace.at).map(|(session, _)| session)
        };
        let is_over = |name: &str, session: &String, trace: &Trace| match seen(trace) {
            Some(touched) => touched.max(trace.at) < now - ABANDONED,
            None => trace.at < now - ABANDONED || last_of_gone(name) != Some(session),
        };
        let left = |(name, session, trace): (&String, &String, &Trace)| {
            let left = || Entry::Left { name: name.clone(), session: session.clone() };
            is_over(name, session, trace).then(left)
        };
        self.traces().filter_map(left).collect()
    }

    /// Returns every session that changed a resource, with the name of the resource.
    fn traces(&self) -> impl Iterator<Item = (&String, &String, &Trace)> {
        self.changes.iter().flat_map(|(name, change)| {
            change.sessions.iter().map(move |(session, trace)| (name, session, trace))
        })
    }

    /// Changes the records as an entry says.
    pub(super) fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Owed { to, because, at, manifest } => {
                self.refreshes.entry(to).or_default().insert(because, RefreshOrigin { at, manifest });
            }
            Entry::Done { to, because } => {
                if let Some(causes) = self.refreshes.get_mut(&to) {
                    causes.remove(&because);
                    if causes.is_empty() {
                        self.refreshes.remove(&to);
                    }
                }
            }
            Entry::Changed { name, session, folder, at } => {
                let change = self.changes.entry(name).or_default();
                change.sessions.insert(session, Trace { folder, at });
                change.followed.clear();
            }
            Entry::Followed { name, by } => {
                self.changes.get_mut(&name).map(|change| change.followed.insert(by));
            }
            Entry::Left { name, session } => {
                if let Some(change) = self.changes.get_mut(&name) {
                    change.sessions.remove(&session);
                    if change.sessions.is_empty() {
                        self.changes.remove(&name);
                    }
                }
            }
            Entry::Known { name, change: Some(change) } => {
                self.changes.insert(name, change);
            }
            Entry::Known { name, change: None } => {
                self.changes.remove(&name);
            }
        }
    }

    /// Returns the fewest entries that make these records.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let owed = self.refreshes.iter().flat_map(|(to, causes)| {
            causes.iter().map(|(because, RefreshOrigin { at, manifest })| Entry::Owed {
                to: to.clone(),
                because: because.clone(),
                at: *at,
                manifest: manifest.clone(),
            })
        });
        let known = |(name, change): (&String, &Change)| Entry::Known {
            name: name.clone(),
            change: Some(change.clone()),
        };
        owed.chain(self.changes.iter().map(known))
    }
}

/// The records as earlier versions kept them, all in one document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OldRecords {
    refreshes: BTreeMap<String, BTreeSet<String>>,
    changes: BTreeMap<String, OldChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldChange {
    sessions: BTreeSet<String>,
    followed: BTreeSet<String>,
}

impl From<OldRecords> for RefreshRecords {
    fn from(old: OldRecords) -> Self {
        let trace = |session: String| {
            // Sessions are named after the time of their beginning; where their folders are was not written down.
            let at = session.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second);
            (session, Trace { folder: PathBuf::new(), at })
        };
        let change = |(name, OldChange { sessions, followed })| {
            (name, Change { sessions: sessions.into_iter().map(trace).collect(), followed })
        };
        let refresh = |(to, causes): (String, BTreeSet<String>)| {
            (to, causes.into_iter().map(|because| (because, RefreshOrigin::default())).collect())
        };
        let refreshes = old.refreshes.into_iter().map(refresh).collect();
        Self { refreshes, changes: old.changes.into_iter().map(change).collect() }
    }
}
