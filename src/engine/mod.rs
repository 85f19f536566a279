//! Applies resources in their written order: the one algorithm for all types.
//!
//! An [`Engine`] is a value that outlives its runs: it has the session, and in a dry run what the session would have left
//! so far. A [`Run`] lasts as long as the facts and resources that it was given: it has the providers, what was done and
//! which refreshes are pending. The engine is silent: what happens goes to an [`Observer`] as it happens and into the
//! session as events.

mod converge;
mod exclusion;
mod gate;
mod group;
mod health_checks;
mod included;
mod joint;
mod look_ahead;
mod pending_refreshes;
mod planning;
mod record;
mod recording;
mod recording_ahead;
mod selection;
#[cfg(test)]
mod tests;
mod transaction;

use std::{
    cell::RefCell,
    collections::HashSet,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    document::Source,
    host::{Host, interrupt::Signal},
    registration::Registration,
    resource::{
        AnyProperties, Difference, Error, ErrorKind, History, Managed, Manifest, Prediction, Providers,
        Resource, flattened,
    },
    session::{Event, Session, StoreError, Summary},
    state::{LocalState, Pending, RefreshStore},
    vocabulary::Reference,
};
pub(crate) use crate::{
    resource::{OnFailure, Task},
    vocabulary::RunMode,
};
use converge::{Attempts, Outcome, Part};
pub(crate) use exclusion::Exclusion;
use gate::Gate;
use group::Grouped;
use included::{PassedOver, Place, dry_run_only};
use joint::Joint;
pub(crate) use look_ahead::ReadAhead;
use look_ahead::{LookAhead, Sight};
use pending_refreshes::PendingRefreshes;
pub(crate) use planning::{Captured, Class, Planning, outline};
pub(crate) use recording::{KeepPolicy, Recording};
pub(crate) use selection::{Selected, Selection, Selector};
pub(crate) use transaction::{UndoWitness, Undone};

/// Reason why ccm skips a resource that the user did not select.
const NOT_SELECTED: &str = "not selected";

/// Settings of all runs of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: RunMode,
    pub(crate) diffs: Diffs,
    pub(crate) detail: Detail,
    pub(crate) exclusion: Exclusion,
    pub(crate) read_ahead: ReadAhead,
    pub(crate) registrations: Registrations,
    pub(crate) task: Task,
    /// Whether to continue after a failure, regardless of the manifest.
    pub(crate) ignores_failures: bool,
}

impl Settings {
    /// Returns whether runs may change something on the machine.
    pub(crate) fn may_change(&self) -> bool {
        self.mode == RunMode::Real && self.task == Task::Apply
    }

    /// Returns the settings for a manifest, which can only restrict them.
    fn within(&self, manifest: &Manifest) -> Self {
        let mode = if manifest.mode == RunMode::Noop { RunMode::Noop } else { self.mode };
        let task = if manifest.task == Task::Monitor { Task::Monitor } else { self.task };
        Self { mode, task, ..*self }
    }
}

/// Whether somebody publishes what resources register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registrations {
    Wanted,
    Unwanted,
}

/// Whether changes of content are recorded line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Diffs {
    Wanted,
    Unwanted,
}

/// How much events tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Whole,
    /// Events have no properties and no state, because no reader needs them.
    Outline,
}

/// Receives the progress of a run.
pub(crate) trait Observer {
    /// Returns the observer of everything that this one does not handle itself.
    fn rest(&mut self) -> Option<&mut dyn Observer> {
        None
    }
    /// The engine begins to apply a resource.
    fn begun(&mut self, resource: &Resource) {
        if let Some(rest) = self.rest() {
            rest.begun(resource);
        }
    }
    /// The engine waits for another run.
    fn waiting(&mut self, holder: &str) {
        if let Some(rest) = self.rest() {
            rest.waiting(holder);
        }
    }
    /// A command of a resource printed a line.
    fn output(&mut self, resource: &Resource, line: &str) {
        if let Some(rest) = self.rest() {
            rest.output(resource, line);
        }
    }
    /// The engine has applied or skipped a resource.
    fn finished(&mut self, report: &Report);
}

/// Result of one resource: its event, and details for people.
pub(crate) struct Report<'r> {
    pub(crate) resource: &'r Resource,
    /// Source of the declaration.
    pub(crate) source: &'r Source,
    /// Number of manifests that include the source.
    pub(crate) depth: usize,
    pub(crate) event: Event,
    /// The action, completing "Would have ...".
    pub(crate) summary: Option<String>,
    pub(crate) differences: Vec<Difference>,
    pub(crate) errors: Vec<Error>,
    pub(crate) warnings: Vec<String>,
    /// Number of warnings that are assumptions of a dry run.
    pub(crate) assumptions: usize,
    /// Failed requirements, each with the reason.
    pub(crate) unmet: Vec<String>,
    /// Refresh that earlier runs left pending, and that this run performs or predicts.
    pub(crate) pending: Option<Pending>,
    /// Reason why `control` or the selection excludes the resource.
    pub(crate) excluded: Option<&'static str>,
    /// Observed state in a word, if the resource was inspected.
    pub(crate) before: Option<String>,
    /// Entries to publish if the resource is in the desired state.
    pub(crate) registrations: Vec<Registration>,
    /// The changed resources that caused a refresh.
    pub(crate) causes: Vec<&'r Reference>,
    /// The resource for a plan.
    pub(crate) captured: Option<Box<Captured>>,
}

impl<'r> Report<'r> {
    fn of(
        resource: &'r Resource,
        place: &Place<'r>,
        event: Event,
        outcome: Outcome,
        excluded: Option<&'static str>,
        registrations: Vec<Registration>,
        causes: Vec<&'r Reference>,
    ) -> Self {
        let Outcome {
            summary,
            differences,
            errors,
            warnings,
            assumptions,
            unmet,
            pending,
            before,
            captured,
            ..
        } = outcome;
        let (source, depth) = (&place.manifest.source, place.within.len());
        Self {
            resource,
            source,
            depth,
            event,
            summary,
            differences,
            errors,
            warnings,
            assumptions,
            unmet,
            pending,
            excluded,
            before,
            registrations,
            causes,
            captured,
        }
    }
}

/// Result of a run.
pub(crate) struct Finished {
    pub(crate) summary: Summary,
    pub(crate) stopped: Option<Stopped>,
    /// Error that prevented the record of events.
    pub(crate) unrecorded: Option<StoreError>,
    /// Whether a change was not attempted because another run was in progress.
    pub(crate) is_kept_out: bool,
    /// Manifests whose changes were undone after a failure.
    pub(crate) undone: Vec<Undone>,
    /// Refreshes that the run leaves pending.
    pub(crate) pending: Vec<Pending>,
}

/// Reason why a run ended early, and the number of resources that it did not reach.
pub(crate) struct Stopped {
    pub(crate) reason: Reason,
    pub(crate) remaining: usize,
}

pub(crate) enum Reason {
    Failure,
    /// The machine differs from a plan.
    Stale,
    Signal(Signal),
}

/// Applies resources to a machine, in one or more runs.
pub(crate) struct Engine<'h> {
    host: &'h Host,
    state: &'h LocalState,
    settings: Settings,
    session: Session,
    /// Changes that the dry runs so far would have made. Templates read them, too.
    prediction: Rc<RefCell<Prediction>>,
    /// Records changes in the history, unless it is off.
    recording: Option<RefCell<Recording>>,
    /// Captures the resources of dry runs for a plan.
    planning: Option<RefCell<Planning>>,
}

impl<'h> Engine<'h> {
    /// Makes an engine whose runs are part of a session.
    pub(crate) fn new(host: &'h Host, state: &'h LocalState, settings: Settings, session: Session) -> Self {
        let mut prediction = Prediction::default();
        // What dry runs of other processes would have left is not told in full.
        if settings.mode == RunMode::Noop && session.events().iter().any(|event| event.noop && event.changed)
        {
            prediction.assume_anything();
        }
        let prediction = Rc::new(RefCell::new(prediction));
        Self { host, state, settings, session, prediction, recording: None, planning: None }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    /// Selects how many resources threads inspect ahead of their turns.
    pub(crate) fn set_read_ahead(&mut self, read_ahead: ReadAhead) {
        self.settings.read_ahead = read_ahead;
    }

    /// Records the changes of the runs that follow.
    pub(crate) fn record_in(&mut self, recording: Option<Recording>) {
        self.recording = recording.map(RefCell::new);
    }

    pub(crate) fn recording(&mut self) -> Option<&mut Recording> {
        self.recording.as_mut().map(RefCell::get_mut)
    }

    /// Applies the selected resources of a manifest one after the other.
    pub(crate) fn apply(
        &mut self,
        manifest: &Manifest,
        selected: &Selected,
        refresh_store: Option<RefreshStore>,
        observer: &mut dyn Observer,
    ) -> Finished {
        let before = self.session.events().len();
        let transaction = self.begin_transaction(manifest.on_failure);
        let (mut run, place) = self.begin(manifest, selected, refresh_store);
        let remaining = |first| flattened(&manifest.resources[first..]).len();
        let stopped = run.apply_resources(&place, observer);
        if stopped.is_some() {
            run.skip_waiting(
                &place,
                &PassedOver::Excluded("the run stopped before it was validated"),
                observer,
            );
        }
        let mut stopped = stopped.map(|(reason, first)| Stopped { reason, remaining: remaining(first) });
        let (unrecorded, is_kept_out) = (run.unrecorded.take(), run.is_kept_out);
        let mut undone = std::mem::take(&mut run.undone);
        let pending = run.left_pending();
        let summary = self.session.summary_since(before);
        if let Some(transaction) = transaction
            && let Some(more) = self.end_transaction(transaction, before, observer)
        {
            undone.push(more);
            stopped.get_or_insert(Stopped { reason: Reason::Failure, remaining: 0 });
        }
        Finished { summary, stopped, unrecorded, is_kept_out, undone, pending }
    }

    /// Applies several manifests one after the other, and returns the result of all of them. A failure stops its manifest if
    /// the manifest wants that; a signal stops all of them.
    pub(crate) fn apply_all(
        &mut self,
        manifests: &[(&Manifest, &Selected)],
        refresh_store: impl Fn(&Manifest) -> Option<RefreshStore>,
        observer: &mut dyn Observer,
    ) -> Finished {
        let before = self.session.events().len();
        let (mut stopped, mut unrecorded, mut is_kept_out) = (None::<Stopped>, None, false);
        let (mut undone, mut pending) = (Vec::new(), Vec::new());
        for (manifest, selected) in manifests {
            match &mut stopped {
                Some(Stopped { reason: Reason::Signal(_) | Reason::Stale, remaining }) => {
                    *remaining += flattened(&manifest.resources).len();
                }
                _ => {
                    let finished = self.apply(manifest, selected, refresh_store(manifest), observer);
                    let earlier = stopped.take().map_or(0, |stopped| stopped.remaining);
                    stopped = match finished.stopped {
                        Some(Stopped { reason, remaining }) => {
                            Some(Stopped { reason, remaining: remaining + earlier })
                        }
                        None => {
                            (earlier > 0).then_some(Stopped { reason: Reason::Failure, remaining: earlier })
                        }
                    };
                    unrecorded = finished.unrecorded.or(unrecorded);
                    is_kept_out |= finished.is_kept_out;
                    undone.extend(finished.undone);
                    pending.extend(finished.pending);
                }
            }
        }
        let summary = self.session.summary_since(before);
        Finished { summary, stopped, unrecorded, is_kept_out, undone, pending }
    }

    /// Begins a run. What providers learn is good for as long as it lasts.
    fn begin<'a>(
        &'a mut self,
        manifest: &'a Manifest,
        selected: &'a Selected,
        refresh_store: Option<RefreshStore>,
    ) -> (Run<'a, 'h>, Place<'a>) {
        let prediction = Rc::clone(&self.prediction);
        manifest.scope.forget_learned();
        let resources = flattened(&manifest.resources);
        self.session.expect(resources.len());
        let place = Place {
            manifest,
            selected,
            scope: manifest.scope.with_prediction(Rc::clone(&prediction) as Rc<_>),
            settings: self.settings.within(manifest),
            prediction,
            within: Vec::new(),
        };
        let written = (!manifest.source.text.is_empty()).then(|| manifest.source.name.clone());
        let run = Run {
            dry_run_only: dry_run_only(&manifest.resources),
            resources: &manifest.resources,
            history: History::default(),
            refreshes: PendingRefreshes::of(&resources, refresh_store, &self.session, written),
            providers: Providers::new(resources),
            grouped: Grouped::default(),
            joint: Joint::of(manifest),
            unrecorded: None,
            is_kept_out: false,
            undone: Vec::new(),
            is_stale: false,
            engine: self,
        };
        (run, place)
    }
}

/// A run in progress.
pub(crate) struct Run<'a, 'h> {
    engine: &'a mut Engine<'h>,
    /// The resources that even a real run does not change.
    dry_run_only: HashSet<Reference>,
    /// The resources of the outermost manifest.
    resources: &'a [Resource],
    providers: Providers<'a>,
    /// What has been done so far.
    history: History,
    refreshes: PendingRefreshes,
    /// What was done together with an earlier resource.
    grouped: Grouped,
    /// Changes that wait for their validation together with other resources.
    joint: Joint<'a>,
    unrecorded: Option<StoreError>,
    is_kept_out: bool,
    /// Included manifests whose changes were undone.
    undone: Vec<Undone>,
    /// Whether the machine differed from the state that a plan relies on, which ends the run.
    is_stale: bool,
}

impl<'a, 'h: 'a> Run<'a, 'h> {
    /// Applies the resources of a manifest in their order. If the run ends early, returns the reason and the index of the next resource.
    fn apply_resources(&mut self, place: &Place<'a>, observer: &mut dyn Observer) -> Option<(Reason, usize)> {
        let Engine { host, state, .. } = *self.engine;
        let (manifest, settings) = (place.manifest, place.settings);
        let stops = manifest.on_failure != OnFailure::Continue && !settings.ignores_failures;
        thread::scope(|threads| {
            let now = self.history.now();
            let mut ahead = LookAhead::new(threads, place, host, state, now);
            let resources = &manifest.resources;
            for (done, resource) in resources.iter().enumerate() {
                if let Some(signal) = host.interrupt.requested() {
                    return Some((Reason::Signal(signal), done));
                }
                observer.begun(resource);
                let seen = ahead.take(done, self.history.now());
                let beforehand = Beforehand { seen, next: &resources[done + 1..] };
                let report = self.apply_resource(place, resource, beforehand, observer);
                if let Some(report) = &report {
                    observer.finished(report);
                }
                if !self.is_stale {
                    self.close_group_after(resource, observer);
                }
                let has_failed = report.is_some_and(|report| report.event.failed);
                let is_last = done + 1 == resources.len();
                if self.is_stale && (!is_last || self.joint.is_any_waiting()) {
                    return Some((Reason::Stale, done + 1));
                }
                if (has_failed || self.joint.takes_failure_of(manifest)) && stops && !is_last {
                    return Some((Reason::Failure, done + 1));
                }
            }
            None
        })
    }

    /// Returns the refreshes that the run leaves pending. Those of resources that `control` excludes are left out.
    fn left_pending(&self) -> Vec<Pending> {
        if !self.engine.settings.may_change() {
            return Vec::new();
        }
        let is_excluded = |pending: &Pending| {
            let event = pending.to.parse().ok().and_then(|to| self.engine.session.find(&to, RunMode::Real));
            event.and_then(|event| event.skip_reason.as_deref()).is_some_and(|reason| reason != NOT_SELECTED)
        };
        self.refreshes.left().into_iter().filter(|pending| !is_excluded(pending)).collect()
    }

    /// Returns the failed requirements of a skipped resource, each with the reason.
    fn unmet_reasons(&self, event: &Event) -> Vec<String> {
        let session = &self.engine.session;
        let reason = |name: &String| {
            let found = name.parse().ok().and_then(|name: Reference| session.find(&name, RunMode::Noop));
            let is_skipped = found.is_some_and(|event| !event.failed && !event.unmet_requirements.is_empty());
            format!("{name} {}", if is_skipped { "was skipped" } else { "failed" })
        };
        event.unmet_requirements.iter().map(reason).collect()
    }

    /// Applies one resource, whatever happens, and records its event. Returns nothing if the result is known only after the
    /// validation together with other resources.
    fn apply_resource(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        beforehand: Beforehand,
        observer: &mut dyn Observer,
    ) -> Option<Report<'a>> {
        let started = Instant::now();
        let included = resource.included.as_ref();
        let Settings { mode, detail, task, .. } =
            included.map_or(place.settings, |included| place.settings.within(included));
        let mut event = Event::of(resource, mode, detail, &mut self.engine.session);
        event.health_check_only = task == Task::Monitor;
        let mut outcome = Outcome::default();
        let (mut excluded, mut because_of, mut is_open) = (None, Vec::new(), false);
        match self.gate(place, resource) {
            Gate::Open(causes) => {
                is_open = true;
                if let Some(included) = included {
                    event.provider = first_provider(resource);
                    let (before, errors) = self.apply_included(place, resource, included, observer);
                    if self.joint.has_waiting_in(resource) {
                        self.joint.finish_later(place, resource, before, errors, started.elapsed());
                        return None;
                    }
                    outcome = self.result_of_included(resource, included, before, errors);
                } else if task != Task::Monitor {
                    let (late, applied) =
                        self.converge(place, resource, beforehand, &causes, &mut event, observer);
                    if let Some(effects) = applied.deferred {
                        self.joint.wait(place, resource, late, effects, started.elapsed());
                        return None;
                    }
                    (outcome, because_of) = (applied, causes);
                }
            }
            closed => {
                excluded = closed.exclusion();
                outcome = self.decline(place, resource, closed, &mut event, observer);
            }
        }
        event.duration = nanoseconds(started.elapsed());
        let concluding = Concluding { event, outcome, excluded, causes: because_of, is_open };
        Some(self.conclude(place, resource, concluding, observer))
    }

    /// Returns whether ccm applies a resource in this run.
    fn gate(&self, place: &Place<'a>, resource: &'a Resource) -> Gate<'a> {
        if !place.selected.contains(resource) {
            return Gate::Excluded(NOT_SELECTED);
        }
        gate::check(
            resource,
            &self.engine.session,
            &self.refreshes,
            &self.dry_run_only,
            place.settings.mode,
            &place.scope,
            &|reference| self.joint.is_waiting(reference),
        )
    }

    /// Records why a resource is not applied. The resources of an included manifest are skipped with it.
    fn decline(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        gate: Gate,
        event: &mut Event,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let why = match gate {
            Gate::Excluded(reason) => {
                event.skipped = true;
                event.skip_reason = Some(reason.to_owned());
                PassedOver::Excluded(reason)
            }
            Gate::Unmet(unmet) => {
                event.skipped = true;
                event.unmet_requirements = unmet.iter().map(ToString::to_string).collect();
                PassedOver::Unmet(event.unmet_requirements.clone())
            }
            Gate::Faulty(error) => {
                outcome = Outcome::faulty(error, resource);
                PassedOver::Unmet(vec![resource.to_string()])
            }
            Gate::Open(_) => return outcome,
        };
        self.pass_over_included(place, resource, &why, observer);
        outcome
    }

    /// Runs the health checks of a resource, and records its event.
    fn conclude(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        concluding: Concluding<'a>,
        observer: &mut dyn Observer,
    ) -> Report<'a> {
        let started = Instant::now();
        let Concluding { mut event, mut outcome, excluded, causes, is_open } = concluding;
        let detail = place.settings.detail;
        if let Some(effects) = outcome.effects.take() {
            self.history.record(effects);
        }
        self.is_stale |= outcome.errors.iter().any(Error::is_stale);
        if is_open {
            self.check_health(place, resource, &mut outcome, &mut event, observer);
        }
        outcome.unmet = self.unmet_reasons(&event);
        event.record(&mut outcome, resource, detail);
        if is_open {
            event.announce_checks(resource);
        }
        event.duration = event.duration.saturating_add(nanoseconds(started.elapsed()));
        if let Err(error) = self.engine.session.record(&event) {
            self.unrecorded = Some(error);
        }
        let registrations = self.registrations(place, resource, &event, &mut outcome.warnings);
        Report::of(resource, place, event, outcome, excluded, registrations, causes)
    }

    /// Returns what a resource registers that had its turn and is as it should be. That it cannot be worked out is a
    /// warning: the resource itself is well.
    fn registrations(
        &self,
        place: &Place,
        resource: &Resource,
        event: &Event,
        warnings: &mut Vec<String>,
    ) -> Vec<Registration> {
        let is_wanted = self.engine.settings.registrations == Registrations::Wanted;
        if !is_wanted || event.failed || event.skipped || event.noop {
            return Vec::new();
        }
        resource.registrations_now(&place.scope, &place.manifest.source).unwrap_or_else(|errors| {
            warnings.extend(errors.iter().map(|error| format!("it is not registered: {error}")));
            Vec::new()
        })
    }

    /// Expands what is left to expand, finds the provider and applies the resource.
    fn converge(
        &mut self,
        place: &Place<'a>,
        resource: &Resource,
        beforehand: Beforehand,
        causes: &[&Reference],
        event: &mut Event,
        observer: &mut dyn Observer,
    ) -> (Option<Box<dyn AnyProperties>>, Outcome) {
        let failed = |errors| (None, Outcome { errors, ..Outcome::default() });
        let Beforehand { seen, next } = beforehand;
        let Engine { host, state, .. } = *self.engine;
        let late = match resource.wanted_now(&place.scope, &place.manifest.source) {
            Ok(late) => late,
            Err(errors) => return failed(errors),
        };
        if let Some(late) = late.as_ref().filter(|_| place.settings.detail == Detail::Whole) {
            event.properties = resource.to_json(late.as_ref());
        }
        let provider = match self.providers.provide(resource, host) {
            Ok(provider) => provider,
            Err(error) => return failed(vec![error]),
        };
        provider.name.clone_into(&mut event.provider);
        let wanted = late.as_deref().unwrap_or(resource.wanted.as_ref());
        let is_member = self.joint.is_member(resource);
        let attempts = Attempts {
            resource,
            wanted,
            provider,
            causes,
            place,
            host,
            state,
            history: &self.history,
            next,
            resources: self.resources,
            recording: self.engine.recording.as_ref(),
            part: if is_member { Part::Waits } else { Part::None },
            planning: self.engine.planning.as_ref(),
        };
        let seen = seen.filter(|_| !is_member);
        let mut outcome = attempts.make(seen, &mut self.refreshes, &mut self.grouped, observer);
        if resource.is_secret() && place.settings.mode == RunMode::Real && outcome.errors.is_empty() {
            let paths = wanted.manages().into_iter().map(Managed::into_path).collect();
            let recorded = state.directory.add_secret_paths(paths);
            outcome.warnings.extend(recorded.err().map(|error| error.to_string()));
        }
        self.is_kept_out |= outcome
            .errors
            .iter()
            .any(|error| matches!(error.kind, ErrorKind::AnotherRun { .. } | ErrorKind::Unguarded { .. }));
        let left = outcome.observed.as_ref().filter(|_| outcome.errors.is_empty());
        if let Some(value) = left.and_then(|have| have.learned()) {
            let value = ccm_expr::Value::from(value.clone());
            let value = if resource.is_secret() { ccm_expr::Value::secret(value) } else { value };
            place.scope.learn(&resource.name, value);
        }
        (late, outcome)
    }
}

/// The result of a resource, before its health checks.
struct Concluding<'a> {
    event: Event,
    outcome: Outcome,
    excluded: Option<&'static str>,
    causes: Vec<&'a Reference>,
    is_open: bool,
}

fn first_provider(resource: &Resource) -> String {
    resource.kind.providers().first().map(|first| first.name.to_owned()).unwrap_or_default()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Knowledge about a resource before the engine applies it.
struct Beforehand<'n> {
    /// State that a thread observed ahead.
    seen: Option<Sight>,
    /// The resources after it.
    next: &'n [Resource],
}
