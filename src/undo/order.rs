//! Which changes belong together, and in which order they are undone.

use serde_json::{Value, json};

use super::Request;
use crate::{
    state::history::{Change, Done, Snapshot, Undo},
    vocabulary::Reference,
};

/// The changes of one resource, in the order in which they were made.
pub(super) struct Group<'a> {
    changes: Vec<(&'a Change, Option<&'a Done>)>,
    /// Undone changes that the resource is refreshed for.
    causes: Vec<Reference>,
}

impl<'a> Group<'a> {
    /// Returns the first change: its earlier state is the one to restore.
    pub(super) fn change(&self) -> &'a Change {
        self.changes[0].0
    }

    fn last(&self) -> (&'a Change, Option<&'a Done>) {
        self.changes[self.changes.len() - 1]
    }

    /// Returns the completion of the last change.
    pub(super) fn done(&self) -> Option<&'a Done> {
        self.last().1
    }

    pub(super) fn causes(&self) -> Vec<Reference> {
        self.causes.clone()
    }

    /// Whether the resource only acted because others changed.
    pub(super) fn is_refresh(&self) -> bool {
        self.changes.iter().all(|(change, _)| !change.causes.is_empty() && change.differences.is_empty())
    }

    /// Returns the paths with their states before the first and after the last change of each.
    pub(super) fn paths(&self) -> Vec<Value> {
        let mut paths: Vec<(String, &Snapshot, Option<&Snapshot>, Option<&Snapshot>)> = Vec::new();
        for (change, done) in &self.changes {
            for (at, recorded) in change.paths.iter().enumerate() {
                let after = done.and_then(|done| done.paths.get(at));
                let intended = recorded.intended.as_ref();
                match paths.iter_mut().find(|(path, ..)| *path == recorded.path) {
                    Some(known) => (known.2, known.3) = (after, intended),
                    None => paths.push((recorded.path.clone(), &recorded.before, after, intended)),
                }
            }
        }
        let to_json = |(path, before, after, intended)| json!({ "path": path, "before": before, "after": after, "intended": intended });
        paths.into_iter().map(to_json).collect()
    }
}

/// Returns whether the same command validates a later resource, too, and with it the configuration as a whole.
pub(super) fn is_validated_later(group: &Group, later: &[Group]) -> bool {
    let validate = &group.change().validate;
    let names_file = |value: &Value| value.to_string().contains("%s");
    !validate.is_empty()
        && !validate.values().any(names_file)
        && later.iter().any(|later| later.change().validate == *validate)
}

/// Returns the changes to undo, grouped by resource: the last changed resource first, and refreshes after all of their
/// causes.
pub(super) fn groups<'a>(request: &Request<'a>) -> Vec<Group<'a>> {
    let is_made = |done: &Option<Done>| done.is_some() || !request.is_over;
    let made: Vec<(&Change, Option<&Done>)> = request
        .changes
        .iter()
        .filter(|(_, done)| is_made(done))
        .map(|(change, done)| (change, done.as_ref()))
        .collect();
    let is_requested = |change: &Change| {
        request.only.is_empty()
            || request.only.contains(&change.resource)
            || change.causes.iter().any(|cause| request.only.contains(cause))
    };
    let mut groups: Vec<Group> = Vec::new();
    for (change, done) in made.into_iter().filter(|(change, _)| is_requested(change)) {
        match groups.iter().position(|group| group.change().resource == change.resource) {
            // The position of the last change decides.
            Some(at) => {
                let mut group = groups.remove(at);
                group.changes.push((change, done));
                groups.push(group);
            }
            None => groups.push(Group { changes: vec![(change, done)], causes: Vec::new() }),
        }
    }
    groups.reverse();
    let undone: Vec<String> = groups.iter().map(|group| group.change().resource.clone()).collect();
    let (mut refreshes, mut ordered): (Vec<Group>, Vec<Group>) = groups
        .into_iter()
        .partition(|group| group.is_refresh() && !matches!(group.change().undo, Undo::Paths));
    // Subscribers acted after their causes and act after them again, in their former order.
    refreshes.reverse();
    for mut group in refreshes {
        let causes: Vec<String> =
            group.changes.iter().flat_map(|(change, _)| change.causes.clone()).collect();
        let is_cause = |resource: &String| causes.contains(resource);
        let is_command = matches!(group.change().undo, Undo::Command(Some(_)));
        if !is_command {
            group.causes = undone
                .iter()
                .filter(|&resource| is_cause(resource))
                .filter_map(|resource| resource.parse().ok())
                .collect();
        }
        let last = ordered.iter().rposition(|other| is_cause(&other.change().resource));
        match last {
            Some(at) => {
                // Refreshes that were placed there before come first.
                let after = ordered[at + 1..].iter().take_while(|other| other.is_refresh()).count();
                ordered.insert(at + 1 + after, group);
            }
            None if is_command => ordered.insert(0, group),
            None => {}
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u32, resource: &str, causes: &[&str], undo: Undo) -> (Change, Option<Done>) {
        let causes = causes.iter().map(ToString::to_string).collect();
        let change = Change { number, resource: resource.to_owned(), causes, undo, ..Change::default() };
        (change, Some(Done { number, ..Done::default() }))
    }

    fn order(changes: &[(Change, Option<Done>)], only: &[&str]) -> Vec<String> {
        let only: Vec<String> = only.iter().map(ToString::to_string).collect();
        let request = Request { changes, is_over: true, only: &only, force: false, begun: &[] };
        groups(&request).iter().map(|group| group.change().resource.clone()).collect()
    }

    fn service() -> Undo {
        Undo::Resource(serde_json::Map::new())
    }

    #[test]
    fn changes_are_undone_in_reverse_order_and_refreshes_follow_their_last_cause() {
        let changes = [
            change(0, "file#/a", &[], Undo::Paths),
            change(1, "file#/b", &[], Undo::Paths),
            change(2, "service#s", &["file#/a", "file#/b"], service()),
            change(3, "file#/c", &[], Undo::Paths),
        ];
        assert_eq!(order(&changes, &[]), ["file#/c", "file#/b", "file#/a", "service#s"]);
        assert_eq!(order(&changes, &["file#/b"]), ["file#/b", "service#s"]);
        assert_eq!(order(&changes, &["file#/c"]), ["file#/c"]);
    }

    #[test]
    fn changes_of_one_resource_are_followed_back_to_the_first() {
        let mut changes = [
            change(0, "file#/a", &[], Undo::Paths),
            change(1, "file#/b", &[], Undo::Paths),
            change(2, "file#/a", &[], Undo::Paths),
        ];
        changes[2].0.action = "second".to_owned();
        assert_eq!(order(&changes, &[]), ["file#/a", "file#/b"]);
    }

    #[test]
    fn changes_that_were_never_made_are_left_out() {
        let mut changes = [change(0, "file#/a", &[], Undo::Paths)];
        changes[0].1 = None;
        assert!(order(&changes, &[]).is_empty());
        let request = Request { changes: &changes, is_over: false, only: &[], force: false, begun: &[] };
        assert_eq!(groups(&request).len(), 1, "an interrupted run could have made it");
    }
}
