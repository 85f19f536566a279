//! Inspect, compare, enact, and compare again.

use std::cell::{OnceCell, RefCell};

use super::{
    Captured, Diffs, Observer, PendingRefreshes, Planning, Recording, RunMode, group::Grouped,
    included::Place, look_ahead::Sight, recording::Subject,
};
use crate::{
    host::Host,
    redaction::Redactor,
    resource::{
        AnyProperties, AnyState, Common, Context, Difference, Drafts, Effects, Error, ErrorKind, History,
        PlannedChange, Prediction, Properties, Provider, Resource, Retry, Trigger,
    },
    state::{LocalState, Pending, RunLock},
    template::Scope,
    vocabulary::{Duration, Reference, TimeLimit},
};

/// Pause between two attempts, unless `try_sleep` says otherwise.
pub(super) const TRY_SLEEP: Duration = Duration::from_secs(1);

/// How far ahead resources may be begun.
const AHEAD: usize = 256;

/// What came of one resource.
#[derive(Default)]
pub(super) struct Outcome {
    /// The state that was found first, in a word.
    pub(super) before: Option<String>,
    /// The state at the end, as far as it is known.
    pub(super) observed: Option<AnyState>,
    /// Completes "Would have ..." when something was or would have been done.
    pub(super) summary: Option<String>,
    pub(super) differences: Vec<Difference>,
    pub(super) refreshed: bool,
    /// Whether an attempt that failed changed something.
    pub(super) begun: bool,
    /// What was or may have been done, even if it went wrong; in a dry run nothing is.
    pub(super) effects: Option<Effects>,
    pub(super) diff: Option<String>,
    pub(super) errors: Vec<Error>,
    pub(super) warnings: Vec<String>,
    /// Number of warnings that are assumptions of a dry run.
    pub(super) assumptions: usize,
    /// Why requirements were not met: each with its name.
    pub(super) unmet: Vec<String>,
    /// Refresh that earlier runs left pending, and that this run performs or predicts.
    pub(super) pending: Option<Pending>,
    /// Hides the secrets of the resource.
    pub(super) redactor: Redactor,
    /// Keeps other runs out until the resource is done with.
    pub(super) lock: Option<RunLock>,
    /// Effects of a change that waits for its validation together with other resources.
    pub(super) deferred: Option<Effects>,
    /// The resource for a plan.
    pub(super) captured: Option<Box<Captured>>,
}

impl Outcome {
    /// Returns the outcome of a resource whose `control` or `require` cannot be evaluated.
    pub(super) fn faulty(error: Error, resource: &Resource) -> Self {
        // An expression error can quote secrets that the expression was given.
        if resource.is_sensitive() && error.kind == ErrorKind::Expression {
            let error = Error::new("its control cannot be worked out").on("control");
            return Self { errors: vec![error], ..Self::default() };
        }
        let redactor = resource.redactor(resource.wanted.as_ref());
        Self { errors: vec![error.redacted(&redactor)], redactor, ..Self::default() }
    }

    /// Masks the secrets in all that is said of the resource.
    pub(super) fn redact(&mut self) {
        let redactor = &self.redactor;
        self.errors = self.errors.drain(..).map(|error| error.redacted(redactor)).collect();
        let values = self.differences.iter_mut().filter_map(|difference| difference.values.as_mut());
        let values = values.flat_map(|values| [&mut values.have, &mut values.want]);
        let texts = self.warnings.iter_mut().chain(&mut self.summary).chain(&mut self.diff).chain(values);
        texts.for_each(|text| redactor.mask(text));
    }
}

/// How far an attempt came.
enum Step {
    Done,
    /// There is something to change, but another run is in progress.
    Blocked,
}

/// How a resource takes part in a validation together with other resources.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// It does not.
    None,
    /// A change waits for the last resource of the group.
    Waits,
    /// The change was validated.
    Publishes(&'a Drafts),
}

/// A resource whose turn has come, and all that is needed to apply it.
pub(super) struct Attempts<'a> {
    pub(super) resource: &'a Resource,
    pub(super) wanted: &'a dyn AnyProperties,
    pub(super) provider: &'a Provider,
    /// The changes on account of which it is to be refreshed.
    pub(super) causes: &'a [&'a Reference],
    /// The manifest that the resource is in.
    pub(super) place: &'a Place<'a>,
    pub(super) host: &'a Host,
    pub(super) state: &'a LocalState,
    /// What the run has done before.
    pub(super) history: &'a History,
    /// The resources whose turns come next.
    pub(super) next: &'a [Resource],
    /// All resources of the outermost manifest.
    pub(super) resources: &'a [Resource],
    /// Records changes in the history.
    pub(super) recording: Option<&'a RefCell<Recording>>,
    pub(super) part: Part<'a>,
    /// Captures the resource for a plan.
    pub(super) planning: Option<&'a RefCell<Planning>>,
}

/// What outlives a resource: the refreshes that are owed, and what was already done to those that follow.
struct Shared<'a> {
    refreshes: &'a mut PendingRefreshes,
    grouped: &'a mut Grouped,
}

impl Attempts<'_> {
    /// Brings the resource to its desired state in as many attempts as it is allowed.
    pub(super) fn make(
        &self,
        mut seen: Option<Sight>,
        refreshes: &mut PendingRefreshes,
        grouped: &mut Grouped,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let common = &self.resource.common;
        let redactor = self.resource.redactor(self.wanted);
        let mut outcome = Outcome { redactor, ..Outcome::default() };
        if let Some(early) = grouped.take(self.resource)
            && self.is_confirmed(early, &mut outcome)
        {
            outcome.redact();
            return outcome;
        }
        let shared = &mut Shared { refreshes, grouped };
        let tries = common.tries.map_or(self.resource.kind.behavior().tries, Into::into);
        // In a dry run nothing changes between two attempts.
        let tries = if self.place.settings.mode == RunMode::Noop { 1 } else { tries };
        for left in (0..tries).rev() {
            let mut result = self.attempt(seen.take(), &mut outcome, shared, observer);
            if let Ok(Step::Blocked) = result {
                // The other run may have changed what was seen. The wait is no part of this one's time limit.
                (outcome.diff, outcome.differences) = (None, Vec::new());
                let free = self.wait(&mut outcome, observer);
                result = free.and_then(|()| self.attempt(None, &mut outcome, shared, observer));
            }
            let Err(error) = result else {
                outcome.errors.clear();
                break;
            };
            let hopeless = error.retry() == Retry::Pointless;
            outcome.errors = vec![error];
            if hopeless
                || left == 0
                || self.host.interrupt.pause(common.try_sleep.unwrap_or(TRY_SLEEP).as_std()).is_some()
            {
                break;
            }
        }
        outcome.redact();
        outcome
    }

    fn attempt(
        &self,
        seen: Option<Sight>,
        outcome: &mut Outcome,
        shared: &mut Shared,
        observer: &mut dyn Observer,
    ) -> Result<Step, Error> {
        let mut listener = |line: &str| observer.output(self.resource, line);
        let own = self.resource.own_scope(&self.place.scope);
        let scope = own.as_ref().unwrap_or(&self.place.scope);
        // It sees the changes of earlier members that wait.
        let pending = matches!(self.part, Part::Waits)
            .then(|| RefCell::new(self.place.prediction.borrow().with_pending()));
        let prediction = pending.as_ref().unwrap_or(&self.place.prediction);
        let cx = self.context(prediction, scope, &outcome.redactor, &mut listener);
        let result = self.converge(seen, &cx, outcome, shared);
        outcome.assumptions += cx.assumptions();
        outcome.warnings.extend(cx.into_warnings());
        result
    }

    /// Returns the surroundings of one attempt.
    pub(super) fn context<'c>(
        &'c self,
        prediction: &'c RefCell<Prediction>,
        scope: &'c Scope,
        redactor: &Redactor,
        listener: &'c mut dyn FnMut(&str),
    ) -> Context<'c> {
        let common = &self.resource.common;
        let mut cx = Context::new(
            self.host,
            self.state,
            prediction,
            &self.place.manifest.working_directory,
            common.timeout.map(TimeLimit::as_std),
            listener,
        )
        .within(self.place.settings.mode, self.history)
        .among(self.resources)
        .seeing(scope)
        .about(self.resource)
        .triggered_by(self.trigger())
        .publishing(match self.part {
            Part::Publishes(drafts) => Some(drafts),
            Part::None | Part::Waits => None,
        });
        cx.redactor = redactor.clone();
        cx
    }

    pub(super) fn trigger(&self) -> Trigger {
        if self.causes.is_empty() { Trigger::Turn } else { Trigger::Refresh }
    }

    fn converge(
        &self,
        seen: Option<Sight>,
        cx: &Context,
        outcome: &mut Outcome,
        shared: &mut Shared,
    ) -> Result<Step, Error> {
        let (wanted, on) = (self.wanted, self.provider);
        cx.tick()?;
        let have = match seen {
            Some(Sight { state, warnings }) => {
                if let Some(ahead) = wanted.read_ahead() {
                    ahead.reached(on, cx);
                }
                for warning in warnings {
                    cx.warn(warning);
                }
                state
            }
            None => wanted.inspect(on, cx)?,
        };
        let have = outcome.observed.insert(have);
        outcome.before.get_or_insert_with(|| have.ensure());
        if let Some(pending) = wanted.compare(have, self.trigger())? {
            let joint = wanted.joint_validation().filter(|_| matches!(self.part, Part::Waits));
            if joint.is_some_and(|joint| joint.concerns(&pending)) {
                outcome.deferred = Some(wanted.effects(have, &pending, cx));
                return Ok(Step::Done);
            }
            if self.place.settings.diffs == Diffs::Wanted && !self.resource.is_sensitive() {
                outcome.diff = wanted.preview(have, &pending, on, cx)?;
            }
            outcome.differences.clone_from(&pending.differences);
            let (summary, refreshes) = (pending.summary.clone(), pending.refreshes);
            if self.place.settings.mode == RunMode::Noop {
                wanted.simulate(have, &pending, on, cx)?;
                let effects = wanted.effects(have, &pending, cx);
                outcome.captured = self.capture(have, Some((&pending, &effects)), cx)?;
                let prediction = &self.place.prediction;
                let is_known = effects.are_known() && !self.resource.kind.behavior().learns_facts;
                let extent = effects.unknown;
                let predicted = prediction.borrow_mut().apply(effects, &mut |warning| cx.assume(warning));
                predicted.map_err(|error| error.naming(|uid| self.host.users.known_name(uid)))?;
                if !is_known {
                    prediction.borrow_mut().note_unpredictable(self.resource.to_string(), extent);
                }
            } else {
                cx.tick()?;
                if !self.try_lock(outcome)? {
                    return Ok(Step::Blocked);
                }
                self.enact(pending, cx, outcome, shared)?;
            }
            outcome.summary = Some(summary);
            outcome.refreshed = refreshes;
            outcome.pending = if refreshes { shared.refreshes.pending(self.resource) } else { None };
        } else if outcome.begun {
            // What an attempt that failed had changed, this one found done.
            outcome.summary = Some("changed in an earlier attempt".to_owned());
        } else {
            outcome.captured = self.capture(have, None, cx)?;
        }
        if self.place.settings.mode == RunMode::Real
            && self.trigger() == Trigger::Refresh
            && let Err(error) = shared.refreshes.complete(self.resource)
        {
            cx.warn(format!("{error}; the next run will refresh it once more"));
        }
        Ok(Step::Done)
    }

    /// Acts, and makes sure that it helped.
    fn enact(
        &self,
        pending: PlannedChange,
        cx: &Context,
        outcome: &mut Outcome,
        shared: &mut Shared,
    ) -> Result<(), Error> {
        let wanted = self.wanted;
        let Some(before) = outcome.observed.take() else { return Ok(()) };
        let effects = wanted.effects(&before, &pending, cx);
        let permitted = wanted
            .check_effects(&effects)
            .and_then(|()| shared.refreshes.record(self.resource, self.causes, &self.place.within));
        let recorded = match permitted {
            Ok(recorded) => recorded,
            Err(error) => {
                outcome.observed = Some(before);
                return Err(error);
            }
        };
        let effects = outcome.effects.insert(effects);
        let subject = Subject {
            resource: self.resource,
            wanted,
            provider: self.provider,
            have: &before,
            pending: &pending,
            effects,
            causes: self.causes,
            diff: outcome.diff.as_deref(),
        };
        let change = match self.record_change(&subject, &recorded, shared.refreshes, cx) {
            Ok(change) => change,
            Err(error) => {
                outcome.observed = Some(before);
                let _ = shared.refreshes.cancel(&recorded);
                return Err(error);
            }
        };
        let together = self.enact_group(&before, &pending, cx, shared.refreshes, shared.grouped);
        let left = match together {
            Some(left) => Ok(left),
            None => {
                self.prepare(cx);
                wanted.enact(&before, pending, self.provider, cx)
            }
        };
        if effects.may_concern_accounts() {
            self.host.users.forget();
        }
        let result = match left {
            Ok(left) => {
                let remaining = wanted.compare(outcome.observed.insert(left), Trigger::Turn);
                remaining.and_then(|remaining| {
                    remaining.map_or(Ok(()), |remaining| Err(not_reached(&remaining, self.resource)))
                })
            }
            Err(error) => {
                outcome.observed = wanted.inspect(self.provider, &cx.last_look(&mut |_| {})).ok();
                Err(error)
            }
        };
        self.complete_change(change, self.resource, outcome.observed.as_ref(), result.is_err(), cx);
        // An action that failed and changed nothing owes nobody a refresh.
        if result.is_err() && outcome.observed.as_ref().is_some_and(|after| after.agrees_with(&before)) {
            if let Err(error) = shared.refreshes.cancel(&recorded) {
                cx.warn(format!("{error}; the next run will refresh what subscribes to it"));
            }
        } else if result.is_err() {
            outcome.begun = true;
        }
        result
    }

    /// Lets the type begin with those of the following resources whose turns are certain to come. What their templates
    /// give may yet change: when their turns come it is compared with what was begun. The time limit of one is not for
    /// the others.
    fn prepare(&self, cx: &Context) {
        let Some(preparation) = self.wanted.preparation() else { return };
        if self.resource.common.timeout.is_some() {
            return;
        }
        let expanded: [OnceCell<_>; AHEAD] = [const { OnceCell::new() }; AHEAD];
        let early = self.next.iter().take_while(|next| self.is_certain(next)).zip(&expanded);
        let mut next = early.map_while(|(next, expanded)| self.wanted_early(next, expanded));
        preparation.prepare(&mut next, self.provider, cx);
    }

    /// Whether the turn of a following resource is certain to come, and to be like this one.
    pub(super) fn is_certain(&self, next: &Resource) -> bool {
        let Common { control, require, subscribe, timeout, provider, .. } = &*next.common;
        let alone = control.is_none() && require.is_empty() && subscribe.is_empty() && timeout.is_none();
        alone && *provider == self.resource.common.provider && self.place.selected.contains(next)
    }

    fn wanted_early<'n>(
        &self,
        next: &'n Resource,
        expanded: &'n OnceCell<Box<dyn AnyProperties>>,
    ) -> Option<&'n dyn Properties> {
        match next.wanted_now(&self.place.scope, &self.place.manifest.source).ok()? {
            Some(late) => Some(&**expanded.get_or_init(|| late).as_ref()),
            None => Some(&**next.wanted.as_ref()),
        }
    }
}

fn not_reached(remaining: &PlannedChange, resource: &Resource) -> Error {
    let differs = |difference: &Difference| match &difference.values {
        Some(values) if !resource.is_sensitive() => {
            format!("{} is {}, wanted {}", difference.property, values.have, values.want)
        }
        _ => format!("{} differs", difference.property),
    };
    let what = match remaining.differences.as_slice() {
        [] => format!("it would still have to be done: {}", remaining.summary),
        differences => differences.iter().map(differs).collect::<Vec<_>>().join("; "),
    };
    ErrorKind::NotReached { what }.into()
}
