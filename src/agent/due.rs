//! What is to be run next, and why.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
    mem::take,
    time::Instant,
};

use super::{pauses::Pauses, round::Extent, watching::Subject};

/// Why something runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Something on the machine was changed.
    Drift,
    /// A health check is critical.
    Health,
    /// The time has come.
    Interval,
    /// A source has something new.
    Changed,
    /// Somebody asked for it.
    Asked,
    /// The configuration was read again.
    Hangup,
    /// The agent was started.
    Start,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Drift => "drift",
            Self::Health => "health",
            Self::Interval => "interval",
            Self::Changed => "changed",
            Self::Asked => "asked",
            Self::Hangup => "hangup",
            Self::Start => "start",
        })
    }
}

/// What is to be run.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// Everything, and why.
    pub(crate) everything: Option<Cause>,
    /// Whether content arrived that is not validated yet.
    pub(crate) arrived: bool,
    /// Manifests whose content is new.
    pub(crate) manifests: BTreeSet<usize>,
    /// Manifests that have a critical health check.
    pub(crate) unhealthy: BTreeSet<usize>,
    /// Resources that may have drifted.
    pub(crate) subjects: BTreeSet<Subject>,
    /// Resources of which something else may be wanted.
    pub(crate) renewed: BTreeSet<Subject>,
    /// When drift was noticed.
    pub(crate) noticed: Option<Instant>,
}

/// A run that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) cause: Cause,
    pub(crate) extents: Vec<(usize, Extent)>,
    /// Resources of which something else may be wanted: what is changed of them undoes no drift.
    pub(crate) renewed: BTreeSet<Subject>,
}

impl Due {
    /// Asks for everything. The weightier cause is the one that is told.
    pub(crate) fn all(&mut self, cause: Cause) {
        self.everything = self.everything.max(Some(cause));
    }

    /// Returns what to run, and leaves what has to wait: resources that are left alone for a while. Of `count` manifests,
    /// each is applied once, as a whole if anything asks for that.
    pub(crate) fn plan(&mut self, count: usize, pauses: &Pauses, now: Instant) -> Option<Plan> {
        if let Some(cause) = self.everything.take() {
            *self = Self::default();
            let extents = (0..count).map(|number| (number, Extent::Whole)).collect();
            return Some(Plan { cause, extents, renewed: BTreeSet::new() });
        }
        let mut extents: BTreeMap<usize, Extent> = BTreeMap::new();
        let (changed, unhealthy) = (take(&mut self.manifests), take(&mut self.unhealthy));
        let (waiting, ready): (BTreeSet<_>, BTreeSet<_>) =
            take(&mut self.subjects).into_iter().partition(|subject| pauses.of(subject, now).is_some());
        self.subjects = waiting;
        let renewed = take(&mut self.renewed);
        let cause = match (changed.is_empty(), unhealthy.is_empty()) {
            (false, _) => Cause::Changed,
            (true, false) => Cause::Health,
            (true, true) if ready.is_subset(&renewed) => Cause::Changed,
            (true, true) => Cause::Drift,
        };
        extents.extend(changed.into_iter().chain(unhealthy).map(|number| (number, Extent::Whole)));
        for Subject { manifest, resource } in ready.into_iter().chain(renewed.iter().cloned()) {
            if let Extent::Only(names) =
                extents.entry(manifest).or_insert_with(|| Extent::Only(HashSet::new()))
            {
                names.insert(resource);
            }
        }
        (!extents.is_empty()).then(|| Plan { cause, extents: extents.into_iter().collect(), renewed })
    }

    /// Whether a manifest is to be applied as a whole, which waits for nothing.
    pub(crate) fn is_whole(&self) -> bool {
        self.arrived || self.everything.is_some() || !self.manifests.is_empty() || !self.unhealthy.is_empty()
    }

    /// Whether something can run now.
    pub(crate) fn is_anything(&self, pauses: &Pauses, now: Instant) -> bool {
        self.is_whole()
            || !self.renewed.is_empty()
            || self.subjects.iter().any(|subject| pauses.of(subject, now).is_none())
    }

    /// When the first of the resources that are left alone is looked at again.
    pub(crate) fn next(&self, pauses: &Pauses, now: Instant) -> Option<Instant> {
        self.subjects.iter().filter_map(|subject| pauses.of(subject, now)).map(|pause| pause.until).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{agent::pauses::Repair, vocabulary::Reference};

    fn subject(manifest: usize, name: &str) -> Subject {
        Subject { manifest, resource: Reference { kind: "file".to_owned(), name: name.to_owned() } }
    }

    #[test]
    fn everything_swallows_the_rest_and_the_weightier_cause_is_told() {
        let mut due = Due::default();
        due.subjects.insert(subject(0, "/a"));
        due.all(Cause::Interval);
        due.all(Cause::Asked);
        let plan = due.plan(2, &Pauses::default(), Instant::now()).unwrap();
        assert_eq!((plan.cause, plan.extents), (Cause::Asked, vec![(0, Extent::Whole), (1, Extent::Whole)]));
        assert_eq!(due.plan(2, &Pauses::default(), Instant::now()), None);
    }

    #[test]
    fn drift_runs_only_what_it_concerns_in_the_written_order() {
        let mut due = Due::default();
        due.subjects.extend([subject(2, "/c"), subject(0, "/a"), subject(0, "/b")]);
        due.manifests.insert(2);
        let plan = due.plan(3, &Pauses::default(), Instant::now()).unwrap();
        assert_eq!(plan.cause, Cause::Changed);
        let names = |names: &[&str]| names.iter().map(|name| subject(0, name).resource).collect();
        assert_eq!(plan.extents, [(0, Extent::Only(names(&["/a", "/b"]))), (2, Extent::Whole)]);
    }

    #[test]
    fn a_critical_check_runs_its_manifest_as_a_whole() {
        let mut due = Due::default();
        due.unhealthy.insert(1);
        due.subjects.insert(subject(1, "/a"));
        let plan = due.plan(3, &Pauses::default(), Instant::now()).unwrap();
        assert_eq!((plan.cause, plan.extents), (Cause::Health, vec![(1, Extent::Whole)]));
        assert!(!due.is_anything(&Pauses::default(), Instant::now()));
    }

    #[test]
    fn what_is_wanted_anew_is_no_drift_and_drift_beside_it_is() {
        let only = |name: &str| vec![(0, Extent::Only([subject(0, name).resource].into()))];
        let mut due = Due::default();
        due.renewed.insert(subject(0, "/a"));
        assert!(!due.is_whole() && due.is_anything(&Pauses::default(), Instant::now()));
        let plan = due.plan(1, &Pauses::default(), Instant::now()).unwrap();
        assert_eq!((plan.cause, plan.extents), (Cause::Changed, only("/a")));
        assert_eq!(due.plan(1, &Pauses::default(), Instant::now()), None);
        due.renewed.insert(subject(0, "/a"));
        due.subjects.insert(subject(0, "/b"));
        let plan = due.plan(1, &Pauses::default(), Instant::now()).unwrap();
        assert_eq!((plan.cause, plan.renewed), (Cause::Drift, [subject(0, "/a")].into()));
    }

    #[test]
    fn what_is_left_alone_waits_and_is_not_forgotten() {
        let (mut due, mut pauses, now) = (Due::default(), Pauses::default(), Instant::now());
        for _ in 0..3 {
            let _ = pauses.repaired(&Repair { subject: subject(0, "/a"), is_sensitive: false }, now);
        }
        due.subjects.extend([subject(0, "/a")]);
        assert!(!due.is_anything(&pauses, now));
        assert_eq!(due.plan(1, &pauses, now), None);
        assert_eq!(due.next(&pauses, now), Some(now + Duration::from_mins(1)));
        let later = now + Duration::from_secs(61);
        assert!(due.plan(1, &pauses, later).is_some());
    }
}
