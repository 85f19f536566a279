//! Included manifests: their resources take their turns in the place of one resource.

use std::{cell::RefCell, collections::HashSet, rc::Rc, slice};

use super::{Observer, Outcome, Reason, Report, Run, RunMode, Selected, Settings};
use crate::{
    resource::{
        AnyState, ChildCounts, ChildState, Effects, Error, Manifest, Prediction, Resource, flattened,
    },
    session::Event,
    template::Scope,
    vocabulary::Reference,
};

/// A manifest whose resources take their turns.
pub(super) struct Place<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) selected: &'a Selected,
    /// The manifest's scope, with the prediction.
    pub(super) scope: Scope,
    /// The settings of the run, as far as the manifest and those around it do not restrict them.
    pub(super) settings: Settings,
    pub(super) prediction: Rc<RefCell<Prediction>>,
    /// The resources that it is part of, from the outside in.
    pub(super) within: Vec<&'a Resource>,
}

impl Place<'_> {
    /// Returns the same place, for a resource that is applied after its turn.
    pub(super) fn again(&self) -> Self {
        let Self { manifest, selected, settings, prediction, within, .. } = self;
        Self {
            scope: manifest.scope.with_prediction(Rc::clone(prediction) as Rc<_>),
            settings: *settings,
            prediction: Rc::clone(prediction),
            within: within.clone(),
            manifest,
            selected,
        }
    }
}

/// Why the resources of an included manifest were passed over.
pub(super) enum PassedOver {
    Excluded(&'static str),
    /// These failed or were skipped.
    Unmet(Vec<String>),
}

impl<'a, 'h: 'a> Run<'a, 'h> {
    /// Lets the resources of an included manifest take their turns. Returns the number of events before, and why the
    /// manifest failed, apart from failures of its resources.
    pub(super) fn apply_included(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        included: &'a Manifest,
        observer: &mut dyn Observer,
    ) -> (usize, Vec<Error>) {
        let inner = inside(place, resource, included);
        let before = self.engine.session.events().len();
        let transaction = self.engine.begin_transaction(included.on_failure);
        let stopped = self.apply_resources(&inner, observer);
        let mut errors = Vec::new();
        if let Some((reason, first)) = stopped {
            let why = match reason {
                Reason::Failure | Reason::Stale => {
                    let failed = self.engine.session.events().iter().rev().find(|event| event.failed);
                    PassedOver::Unmet(
                        failed.map(|event| format!("{}#{}", event.kind, event.name)).into_iter().collect(),
                    )
                }
                Reason::Signal(signal) => {
                    errors.push(Error::new(format!("stopped by {signal}")));
                    PassedOver::Unmet(vec![resource.to_string()])
                }
            };
            self.skip_waiting(&inner, &why, observer);
            self.pass_over(&inner, &included.resources[first..], &why, observer);
        }
        if let Some(transaction) = transaction
            && let Some(undone) = self.engine.end_transaction(transaction, before, observer)
        {
            self.history.record(Effects::anything());
            errors.push(Error::new(undone.to_string()));
            self.undone.push(undone);
        }
        (before, errors)
    }

    /// Returns the result of an included manifest, from the events of its resources.
    pub(super) fn result_of_included(
        &self,
        resource: &Resource,
        included: &Manifest,
        before: usize,
        mut errors: Vec<Error>,
    ) -> Outcome {
        let inner: HashSet<Reference> =
            flattened(&included.resources).into_iter().map(Resource::reference).collect();
        let events = self.engine.session.events()[before..].iter();
        let own = events.filter(|event| {
            inner.contains(&Reference { kind: event.kind.clone(), name: event.name.clone() })
        });
        let counts = counts(own, resource.kind.name());
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

    /// Records that no resource of an included manifest had a turn.
    pub(super) fn pass_over_included(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        why: &PassedOver,
        observer: &mut dyn Observer,
    ) {
        if let Some(included) = resource.included.as_deref() {
            self.pass_over(&inside(place, resource, included), &included.resources, why, observer);
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
            self.pass_over_included(place, resource, why, observer);
            observer.begun(resource);
            self.skip(place, resource, why, observer);
            self.close_group_after(resource, observer);
        }
    }

    /// Records that a resource was skipped.
    pub(super) fn skip(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        why: &PassedOver,
        observer: &mut dyn Observer,
    ) {
        let Settings { mode, detail, .. } = place.settings;
        let mut event = Event::of(resource, mode, detail, &mut self.engine.session);
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
        let outcome = Outcome { unmet: self.unmet_reasons(&event), ..Outcome::default() };
        let nothing = Vec::new();
        observer.finished(&Report::of(resource, place, event, outcome, excluded, nothing, Vec::new()));
    }
}

pub(super) fn inside<'a>(place: &Place<'a>, resource: &'a Resource, manifest: &'a Manifest) -> Place<'a> {
    // What is only predicted in it will not happen, in a real run or in a dry one: nothing outside of it builds on that.
    let is_apart = only_predicts(manifest)
        && !place.within.iter().any(|outer| outer.included.as_deref().is_some_and(only_predicts));
    let prediction = if is_apart {
        Rc::new(RefCell::new(place.prediction.borrow().clone()))
    } else {
        Rc::clone(&place.prediction)
    };
    let mut within = place.within.clone();
    within.push(resource);
    Place {
        manifest,
        selected: place.selected,
        scope: manifest.scope.with_prediction(Rc::clone(&prediction) as Rc<_>),
        settings: place.settings.within(manifest),
        prediction,
        within,
    }
}

/// Returns whether a real run does not change anything in a manifest either.
fn only_predicts(manifest: &Manifest) -> bool {
    manifest.mode == RunMode::Noop
}

/// Returns the resources that even a real run does not change: the manifests included with `noop`, and what is in them.
pub(super) fn dry_run_only(resources: &[Resource]) -> HashSet<Reference> {
    let mut found = HashSet::new();
    for resource in resources {
        let Some(included) = resource.included.as_deref() else { continue };
        if only_predicts(included) {
            found.extend(flattened(slice::from_ref(resource)).into_iter().map(Resource::reference));
        } else {
            found.extend(dry_run_only(&included.resources));
        }
    }
    found
}

/// Returns the result of the resources of an included manifest. Manifests that it includes count by their resources.
fn counts<'e>(events: impl Iterator<Item = &'e Event>, kind: &str) -> ChildCounts {
    let mut counts = ChildCounts::default();
    for event in events.filter(|event| event.kind != kind) {
        counts.resources += 1;
        counts.changed += usize::from(event.changed && !event.failed);
        counts.failed += usize::from(event.failed);
    }
    counts
}
