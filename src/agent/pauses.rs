//! Resources that somebody else changes back again and again: noticed, and left alone for a while.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::watching::Subject;

/// So many repairs within so much time are a fight.
const REPAIRS: usize = 3;
const WITHIN: Duration = Duration::from_mins(10);
/// The first pause, and the longest.
const FIRST: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(1);

/// Which resources are left alone, and until when.
#[derive(Default)]
pub(crate) struct Pauses(HashMap<Subject, Fight>);

#[derive(Debug)]
struct Fight {
    repairs: Vec<Instant>,
    pause: Option<Pause>,
}

/// A resource whose drift was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    pub(crate) subject: Subject,
    /// Whether its name is not to be shown to everybody.
    pub(crate) is_sensitive: bool,
}

/// A resource is left alone until this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) until: Instant,
    pub(crate) length: Duration,
    /// Whether the name of the resource is not to be shown to everybody.
    pub(crate) is_sensitive: bool,
}

impl Pauses {
    /// Notes that drift of a resource was undone. Returns the pause that begins, if this was once too often.
    pub(crate) fn repaired(&mut self, repair: &Repair, now: Instant) -> Option<Pause> {
        let Repair { subject, is_sensitive } = repair;
        let fight = self.0.entry(subject.clone()).or_insert(Fight { repairs: Vec::new(), pause: None });
        // The time of a pause does not count: whoever goes on after it goes on with the same fight.
        let ended = fight.pause.map(|pause| pause.until);
        let is_over = ended.is_some_and(|ended| now.saturating_duration_since(ended) > WITHIN);
        if is_over {
            *fight = Fight { repairs: Vec::new(), pause: None };
        }
        fight.repairs.retain(|repair| now.saturating_duration_since(*repair) <= WITHIN);
        fight.repairs.push(now);
        if fight.pause.is_none() && fight.repairs.len() < REPAIRS {
            return None;
        }
        let length = fight.pause.map_or(FIRST, |pause| LONGEST.min(pause.length * 2));
        fight.pause = Some(Pause { until: now + length, length, is_sensitive: *is_sensitive });
        fight.pause
    }

    /// Until when a resource is left alone; `None` if it is not.
    pub(crate) fn of(&self, subject: &Subject, now: Instant) -> Option<Pause> {
        self.0.get(subject)?.pause.filter(|pause| pause.until > now)
    }

    /// Returns the pauses that last.
    pub(crate) fn all(&self, now: Instant) -> Vec<(&Subject, Pause)> {
        let mut all: Vec<_> =
            self.0.keys().filter_map(|subject| Some((subject, self.of(subject, now)?))).collect();
        all.sort_by(|one, other| one.0.cmp(other.0));
        all
    }

    /// Ends the pause of a resource of which something else may be wanted.
    pub(crate) fn end_one(&mut self, subject: &Subject) {
        self.0.remove(subject);
    }

    /// Ends the pauses of what a manifest says: it, or its data, is new.
    pub(crate) fn end(&mut self, manifest: usize) {
        self.0.retain(|subject, _| subject.manifest != manifest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Reference;

    fn subject(manifest: usize) -> Subject {
        Subject { manifest, resource: Reference { kind: "file".to_owned(), name: "/x".to_owned() } }
    }

    fn repair(manifest: usize) -> Repair {
        Repair { subject: subject(manifest), is_sensitive: false }
    }

    #[test]
    fn three_repairs_in_ten_minutes_begin_a_pause_that_doubles() {
        let (mut pauses, start) = (Pauses::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(pauses.repaired(&repair(0), at(0)), None);
        assert_eq!(pauses.repaired(&repair(0), at(1)), None);
        assert_eq!(pauses.repaired(&repair(1), at(1)), None);
        assert_eq!(pauses.repaired(&repair(0), at(2)).unwrap().length, Duration::from_mins(1));
        assert!(pauses.of(&subject(0), at(61)).is_some());
        assert!(pauses.of(&subject(0), at(63)).is_none());
        let mut now = 63;
        for minutes in [2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(pauses.repaired(&repair(0), at(now)).unwrap().length, Duration::from_mins(minutes));
            now += minutes * 60 + 1;
        }
        // Ten quiet minutes after a pause it is over.
        assert_eq!(pauses.repaired(&repair(0), at(now + 601)), None);
    }

    #[test]
    fn repairs_that_are_far_apart_are_no_fight_and_a_new_manifest_ends_a_pause() {
        let (mut pauses, start) = (Pauses::default(), Instant::now());
        for minutes in [0, 6, 12, 18, 24] {
            assert_eq!(pauses.repaired(&repair(0), start + Duration::from_mins(minutes)), None);
        }
        pauses.repaired(&repair(0), start + Duration::from_mins(25));
        assert_eq!(pauses.all(start + Duration::from_mins(25)).len(), 1);
        pauses.end(1);
        assert_eq!(pauses.all(start + Duration::from_mins(25)).len(), 1);
        pauses.end(0);
        assert!(pauses.all(start + Duration::from_mins(25)).is_empty());
    }
}
