//! Resources that are validated together: ccm publishes their changes only after the validation of all of them.
//!
//! A member that needs a change waits for the last member of its group. There all changes are prepared as private copies,
//! the commands run once, and then each member is applied like any other resource, with its own record and event.

mod closing;

use std::{cell::RefCell, collections::HashMap, ptr, rc::Rc, time::Duration};

use super::included::Place;
use crate::{
    resource::{AnyProperties, Effects, Error, Manifest, Prediction, Resource, validation_groups},
    vocabulary::Reference,
};

/// The groups of a run.
#[derive(Default)]
pub(super) struct Joint<'a> {
    groups: Vec<Group<'a>>,
    group_of: HashMap<Reference, usize>,
    /// Included manifests with members that wait, the inner ones first.
    unfinished: Vec<Unfinished<'a>>,
    /// Manifests with a resource that failed after its turn.
    failed: Vec<&'a Manifest>,
}

/// A group and its members that need a change.
struct Group<'a> {
    last: Reference,
    waiting: Vec<Waiting<'a>>,
}

/// A resource that waits for its validation.
struct Waiting<'a> {
    place: Place<'a>,
    resource: &'a Resource,
    late: Option<Box<dyn AnyProperties>>,
    effects: Effects,
    elapsed: Duration,
}

/// An included manifest whose result depends on members that wait.
struct Unfinished<'a> {
    place: Place<'a>,
    resource: &'a Resource,
    before: usize,
    errors: Vec<Error>,
    elapsed: Duration,
}

impl<'a> Joint<'a> {
    /// Returns the groups of a manifest and those that it includes.
    pub(super) fn of(manifest: &'a Manifest) -> Self {
        let mut joint = Self::default();
        for group in validation_groups(manifest) {
            let Some(last) = group.members.last() else { continue };
            let at = joint.groups.len();
            joint.group_of.extend(group.members.iter().map(|member| (member.reference(), at)));
            joint.groups.push(Group { last: last.reference(), waiting: Vec::new() });
        }
        joint
    }

    pub(super) fn is_member(&self, resource: &Resource) -> bool {
        !self.groups.is_empty() && self.group_of.contains_key(&resource.reference())
    }

    fn waiting(&self) -> impl Iterator<Item = &Waiting<'a>> {
        self.groups.iter().flat_map(|group| &group.waiting)
    }

    pub(super) fn is_any_waiting(&self) -> bool {
        self.waiting().next().is_some()
    }

    /// Returns whether a name is that of a member that waits.
    pub(super) fn is_waiting(&self, reference: &Reference) -> bool {
        self.waiting().any(|Waiting { resource, .. }| {
            let is_name = |name: &str| name == reference.name;
            resource.kind.name() == reference.kind
                && (is_name(&resource.name) || resource.common.alias.as_deref().is_some_and(is_name))
        })
    }

    /// Returns whether a member that waits is part of a resource.
    pub(super) fn has_waiting_in(&self, resource: &Resource) -> bool {
        self.waiting().any(|waiting| is_within(&waiting.place, resource))
    }

    /// Lets a member wait for the last one of its group.
    pub(super) fn wait(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        late: Option<Box<dyn AnyProperties>>,
        effects: Effects,
        elapsed: Duration,
    ) {
        let Some(at) = self.group_of.get(&resource.reference()) else { return };
        let place = place.again();
        let prediction = Rc::clone(&place.prediction);
        self.groups[*at].waiting.push(Waiting { place, resource, late, effects, elapsed });
        self.show_templates(&prediction);
    }

    /// Lets the result of an included manifest wait for those of its members that wait.
    pub(super) fn finish_later(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        before: usize,
        errors: Vec<Error>,
        elapsed: Duration,
    ) {
        self.unfinished.push(Unfinished { place: place.again(), resource, before, errors, elapsed });
    }

    /// Shows templates what the members that wait will leave.
    fn show_templates(&self, prediction: &Rc<RefCell<Prediction>>) {
        let same = self.waiting().filter(|waiting| Rc::ptr_eq(&waiting.place.prediction, prediction));
        prediction.borrow_mut().await_validation(same.map(|waiting| &waiting.effects));
    }

    /// Takes the members of a group that wait.
    fn take(&mut self, group: usize) -> Vec<Waiting<'a>> {
        let taken = std::mem::take(&mut self.groups[group].waiting);
        if let Some(first) = taken.first() {
            self.show_templates(&first.place.prediction);
        }
        taken
    }

    /// Returns whether a resource of a manifest failed after its turn, and forgets it.
    pub(super) fn takes_failure_of(&mut self, manifest: &Manifest) -> bool {
        let before = self.failed.len();
        self.failed.retain(|failed| !ptr::eq(*failed, manifest));
        self.failed.len() < before
    }
}

impl Waiting<'_> {
    fn wanted(&self) -> &dyn AnyProperties {
        self.late.as_deref().unwrap_or(self.resource.wanted.as_ref())
    }
}

fn is_within(place: &Place, resource: &Resource) -> bool {
    place.within.iter().any(|outer| ptr::eq(*outer, resource))
}
