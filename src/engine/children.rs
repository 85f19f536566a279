//! Manifests inside manifests: their resources take their turns in the place of one resource.

use std::{cell::RefCell, rc::Rc};

use super::{Observer, OnFailure, Outcome, Reason, Report, Run, RunMode, Site, Task};
use crate::{
    resource::{AnyState, Child, ChildCounts, ChildState, Error, Prediction, Resource},
    session::Event,
    template::Scope,
};

/// A manifest whose resources take their turns.
pub(super) struct Place<'a> {
    pub(super) site: Site<'a>,
    pub(super) scope: Scope,
    pub(super) mode: RunMode,
    pub(super) task: Task,
    pub(super) prediction: Rc<RefCell<Prediction>>,
    /// The resources that it is part of, from the outside in.
    pub(super) within: Vec<&'a Resource>,
}

/// Why the resources of a child were passed over.
pub(super) enum PassedOver {
    Excluded(&'static str),
    /// These failed or were skipped.
    Unmet(Vec<String>),
}

impl<'a, 'h: 'a> Run<'a, 'h> {
    /// Lets the resources of a child take their turns, and returns what became of them.
    pub(super) fn apply_child(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        child: &'a Child,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let inner = inside(place, resource, child);
        let before = self.engine.session.events().len();
        let stopped = self.take_turns(&inner, observer);
        let mut errors = Vec::new();
        if let Some((reason, first)) = stopped {
            let why = match reason {
                Reason::Failure => {
                    let failed = self.engine.session.events().last();
                    PassedOver::Unmet(
                        failed.map(|event| format!("{}#{}", event.kind, event.name)).into_iter().collect(),
                    )
                }
                Reason::Signal(signal) => {
                    errors.push(Error::new(format!("stopped by {signal}")));
                    PassedOver::Unmet(vec![resource.to_string()])
                }
            };
            self.pass_over(&inner, &child.resources[first..], &why, observer);
        }
        let counts = counts(&self.engine.session.events()[before..], resource.kind.name());
        let ChildCounts { resources, changed, failed } = counts;
        if failed > 0 {
            errors.insert(0, Error::new(format!("{failed} of {resources} failed")));
        }
        Outcome {
            summary: (changed > 0).then(|| format!("changed {changed} of {resources} resources")),
            observed: Some(AnyState::of(ChildState { metadata: counts })),
            errors,
            ..Outcome::default()
        }
    }

    /// Records of the resources of a child that none of them had a turn.
    pub(super) fn pass_over_child(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        why: &PassedOver,
        observer: &mut dyn Observer,
    ) {
        if let Some(child) = resource.child.as_deref() {
            self.pass_over(&inside(place, resource, child), &child.resources, why, observer);
        }
    }

    fn pass_over(
        &mut self,
        place: &Place<'a>,
        resources: &'a [Resource],
        why: &PassedOver,
        observer: &mut dyn Observer,
    ) {
        for resource in resources {
            self.pass_over_child(place, resource, why, observer);
            let detail = self.engine.settings.detail;
            let mut event = Event::of(resource, place.mode, detail, &mut self.engine.session);
            event.skipped = true;
            let excluded = match why {
                PassedOver::Excluded(reason) => {
                    event.skip_reason = Some((*reason).to_owned());
                    Some(*reason)
                }
                PassedOver::Unmet(unmet) => {
                    event.unmet_requirements.clone_from(unmet);
                    None
                }
            };
            if let Err(error) = self.engine.session.record(&event) {
                self.unrecorded = Some(error);
            }
            observer.begun(resource);
            observer.finished(&Report {
                resource,
                source: place.site.source,
                depth: place.within.len(),
                event,
                summary: None,
                differences: Vec::new(),
                errors: Vec::new(),
                warnings: Vec::new(),
                excluded,
                before: None,
                registrations: Vec::new(),
                causes: Vec::new(),
            });
        }
    }
}

fn inside<'a>(place: &Place<'a>, resource: &'a Resource, child: &'a Child) -> Place<'a> {
    let mode = stronger(place.mode, child.mode);
    // What is only looked at will not happen, in a real run or in a dry one: nobody outside of it builds on that.
    let is_apart =
        only_looks(child) && !place.within.iter().any(|outer| outer.child.as_deref().is_some_and(only_looks));
    let prediction = if is_apart {
        Rc::new(RefCell::new(place.prediction.borrow().clone()))
    } else {
        Rc::clone(&place.prediction)
    };
    let on_failure = if child.fail_on_error { OnFailure::Stop } else { OnFailure::Continue };
    let site = Site {
        resources: &child.resources,
        source: &child.source,
        working_directory: &child.working_directory,
        scope: &child.scope,
        on_failure,
        selected: place.site.selected,
    };
    let mut within = place.within.clone();
    within.push(resource);
    let scope = child.scope.with_prediction(Rc::clone(&prediction) as Rc<_>);
    Place { site, scope, mode, task: task_of(place, Some(child)), prediction, within }
}

/// What is done with a resource, and with what is inside it.
pub(super) fn task_of(place: &Place, child: Option<&Child>) -> Task {
    if child.is_some_and(|child| child.health_check_only) { Task::Monitor } else { place.task }
}

/// Whether a real run changes nothing in it either.
fn only_looks(child: &Child) -> bool {
    child.mode == RunMode::Noop
}

/// The mode that changes less.
pub(super) fn stronger(one: RunMode, other: RunMode) -> RunMode {
    if one == RunMode::Noop { one } else { other }
}

/// What became of the resources of a child; those that are children themselves count by their own.
fn counts(events: &[Event], kind: &str) -> ChildCounts {
    let mut counts = ChildCounts::default();
    for event in events.iter().filter(|event| event.kind != kind) {
        counts.resources += 1;
        counts.changed += usize::from(event.changed && !event.failed);
        counts.failed += usize::from(event.failed);
    }
    counts
}
