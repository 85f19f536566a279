//! What is known of the health of manifests, and when one is applied because a check is critical.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::checks::CheckState;

/// A check: the number of its manifest, its resource and its name.
type Check = (usize, String, String);

/// How manifests are, and what was tried for which of them.
#[derive(Debug, Default)]
pub(crate) struct Health {
    states: BTreeMap<Check, CheckState>,
    remedies: BTreeMap<usize, Remedy>,
}

/// A manifest was applied because a check is critical.
#[derive(Clone, Copy, Debug)]
struct Remedy {
    /// Before this nothing is tried again.
    until: Instant,
    /// How long the next wait is.
    wait: Duration,
}

impl Health {
    /// Notes the state of a check. Returns the state before, if that was another one; what is well from the beginning is
    /// no news.
    pub(crate) fn note(&mut self, check: Check, state: CheckState) -> Option<CheckState> {
        let before = self.states.insert(check, state).unwrap_or(CheckState::Ok);
        (before != state).then_some(before)
    }

    /// Returns the worst state of a manifest's checks; `None` if there are none.
    pub(crate) fn worst(&self, manifest: usize) -> Option<CheckState> {
        let own = self.states.iter().filter(|((number, ..), _)| *number == manifest);
        own.map(|(_, state)| *state).reduce(CheckState::worse)
    }

    /// Returns whether a manifest is to be applied now on account of its checks. What did not help is tried again after
    /// `first`, and then after twice as long each time, up to `longest`, until all checks are well.
    pub(crate) fn is_to_remedy(
        &mut self,
        manifest: usize,
        now: Instant,
        first: Duration,
        longest: Duration,
    ) -> bool {
        match self.worst(manifest) {
            Some(CheckState::Critical) => {}
            Some(CheckState::Ok) | None => {
                self.remedies.remove(&manifest);
                return false;
            }
            Some(CheckState::Warning | CheckState::Unknown) => return false,
        }
        let wait = match self.remedies.get(&manifest) {
            Some(remedy) if now < remedy.until => return false,
            Some(remedy) => remedy.wait,
            None => first,
        };
        let wait = wait.min(longest);
        self.remedies.insert(manifest, Remedy { until: now + wait, wait: wait * 2 });
        true
    }

    /// Forgets the checks of a manifest that are not made any more.
    pub(crate) fn keep_only(&mut self, manifest: usize, made: &[(String, String)]) {
        self.states.retain(|(number, resource, check), _| {
            *number != manifest || made.iter().any(|made| (&made.0, &made.1) == (resource, check))
        });
    }

    /// Forgets everything about a manifest: it is another one now.
    pub(crate) fn forget(&mut self, manifest: usize) {
        self.states.retain(|(number, ..), _| *number != manifest);
        self.remedies.remove(&manifest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: usize, name: &str) -> Check {
        (manifest, "file#/x".to_owned(), name.to_owned())
    }

    #[test]
    fn what_does_not_help_is_tried_less_and_less_often_and_health_resets_it() {
        let (mut health, start) = (Health::default(), Instant::now());
        let (first, longest) = (Duration::from_secs(2), Duration::from_secs(30));
        health.note(check(0, "a"), CheckState::Critical);
        let tried: Vec<u64> = (0..60)
            .filter(|check| health.is_to_remedy(0, start + Duration::from_secs(check * 2), first, longest))
            .map(|check| check * 2)
            .collect();
        // The original applies at every one of the 60 checks.
        assert_eq!(tried, [0, 2, 6, 14, 30, 60, 90]);
        health.note(check(1, "a"), CheckState::Critical);
        assert!(health.is_to_remedy(1, start, first, longest), "each manifest for itself");
        let later = start + Duration::from_secs(119);
        for (state, resets) in
            [(CheckState::Warning, false), (CheckState::Unknown, false), (CheckState::Ok, true)]
        {
            health.note(check(0, "a"), state);
            assert!(!health.is_to_remedy(0, later, first, longest), "{state:?}");
            health.note(check(0, "a"), CheckState::Critical);
            assert_eq!(health.is_to_remedy(0, later, first, longest), resets, "{state:?}");
        }
    }

    #[test]
    fn only_what_is_different_is_news_and_the_worst_of_all_checks_counts() {
        let mut health = Health::default();
        assert_eq!(health.note(check(0, "a"), CheckState::Ok), None);
        assert_eq!(health.note(check(0, "b"), CheckState::Unknown), Some(CheckState::Ok));
        assert_eq!(health.note(check(0, "b"), CheckState::Unknown), None);
        assert_eq!(health.worst(0), Some(CheckState::Unknown));
        health.note(check(0, "a"), CheckState::Critical);
        assert_eq!(health.worst(0), Some(CheckState::Critical));
        health.keep_only(0, &[("file#/x".to_owned(), "b".to_owned())]);
        assert_eq!(health.worst(0), Some(CheckState::Unknown));
        health.forget(0);
        assert_eq!(health.worst(0), None);
    }
}
