//! Which resources are fit to be registered, from what runs and health checks say of them.

use std::collections::HashSet;

use crate::{engine::Task, session::Event, vocabulary::Reference};

/// A resource of a manifest.
type Key = (String, Reference);

/// The resources that are not fit to be registered.
#[derive(Debug, Default)]
pub(crate) struct Fitness {
    /// Those that the last run did not bring to their state.
    unmade: HashSet<Key>,
    /// Those whose checks failed when they were made last.
    unwell: HashSet<Key>,
}

impl Fitness {
    /// Returns whether a resource is registered after its turn in a run or in health checks. Who was only checked must have
    /// been brought to its state before; and checks that are made only after changes say what they said until they are
    /// made again.
    pub(crate) fn is_fit(&mut self, manifest: &str, resource: &Reference, task: Task, event: &Event) -> bool {
        let key = (manifest.to_owned(), resource.clone());
        let is_checked = !event.health_check.is_empty();
        if is_checked {
            note(&mut self.unwell, &key, event.failed);
        }
        if task == Task::Apply {
            // Checks are made only of what was brought to its state.
            note(&mut self.unmade, &key, event.skipped || event.noop || event.failed && !is_checked);
        }
        let is_well = !event.failed && !event.skipped && !event.noop;
        is_well && !self.unmade.contains(&key) && !self.unwell.contains(&key)
    }

    /// Forgets the resources that a manifest does not have any more.
    pub(crate) fn keep_only(&mut self, manifest: &str, resources: &HashSet<&Reference>) {
        let is_kept = |(of, resource): &Key| of != manifest || resources.contains(resource);
        self.unmade.retain(is_kept);
        self.unwell.retain(is_kept);
    }
}

fn note(keys: &mut HashSet<Key>, key: &Key, is_so: bool) {
    if is_so {
        keys.insert(key.clone());
    } else {
        keys.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        checks::{CheckResult, CheckState, Format},
        session::Session,
    };

    /// What came of a turn.
    #[derive(Clone, Copy)]
    enum Turn {
        Well,
        Failed,
        Skipped,
        Dry,
        /// Brought to its state, or only looked at, and then checked.
        Checked(CheckState),
    }

    fn event(turn: Turn) -> Event {
        let mut event = Session::begin().event("file", "/x");
        match turn {
            Turn::Well => {}
            Turn::Failed => event.failed = true,
            Turn::Skipped => event.skipped = true,
            Turn::Dry => event.noop = true,
            Turn::Checked(state) => {
                event.failed = matches!(state, CheckState::Critical | CheckState::Unknown);
                event.health_check.push(CheckResult {
                    name: "c".to_owned(),
                    format: Format::Nagios,
                    status: state.number(),
                    state,
                    tries: 1,
                    output: String::new(),
                    long_output: String::new(),
                    perfdata: Vec::new(),
                    results: Vec::new(),
                    duration: 0,
                    is_failed: event.failed,
                });
            }
        }
        event
    }

    #[test]
    fn only_what_was_brought_to_its_state_and_is_well_is_registered() {
        use Task::{Apply, Monitor};
        use Turn::{Checked, Dry, Failed, Skipped, Well};
        let (ok, warning, critical) =
            (Checked(CheckState::Ok), Checked(CheckState::Warning), Checked(CheckState::Critical));
        for (turns, expected) in [
            (vec![(Apply, Well)], true),
            (vec![(Apply, Failed)], false),
            (vec![(Apply, Skipped)], false),
            (vec![(Apply, Dry)], false),
            (vec![(Apply, ok)], true),
            (vec![(Apply, warning)], true),
            (vec![(Apply, critical)], false),
            (vec![(Apply, Checked(CheckState::Unknown))], false),
            // Health checks take it away and give it back.
            (vec![(Apply, ok), (Monitor, critical)], false),
            (vec![(Apply, ok), (Monitor, critical), (Monitor, ok)], true),
            (vec![(Apply, critical), (Monitor, ok)], true),
            // A check that is well is not enough for what the last run did not make.
            (vec![(Apply, Failed), (Monitor, ok)], false),
            (vec![(Apply, Skipped), (Monitor, Well)], false),
            (vec![(Apply, Dry), (Monitor, ok)], false),
            (vec![(Apply, Failed), (Apply, Well)], true),
            // What it needs is not well.
            (vec![(Apply, Well), (Monitor, Skipped)], false),
            (vec![(Apply, Well), (Monitor, Skipped), (Monitor, Well)], true),
            // A check that is made only after changes is not made again by a run that changes nothing.
            (vec![(Apply, ok), (Monitor, critical), (Apply, Well)], false),
            (vec![(Apply, ok), (Monitor, critical), (Apply, Well), (Apply, ok)], true),
        ] {
            let (mut fitness, name) =
                (Fitness::default(), Reference { kind: "file".to_owned(), name: "/x".to_owned() });
            let mut is_fit = |(task, turn): &(Task, Turn)| fitness.is_fit("m", &name, *task, &event(*turn));
            assert_eq!(turns.iter().map(&mut is_fit).last(), Some(expected), "{} turns", turns.len());
        }
    }
}
