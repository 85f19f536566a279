//! The end of a group: its changes are validated, and published if they are valid.

use std::{cell::RefCell, ptr, time::Duration};

use super::{Unfinished, Waiting};
use crate::{
    engine::{
        Concluding, Detail, Observer, Outcome, Planning, Recording, Run,
        converge::{Attempts, Part, TRY_SLEEP},
        first_provider,
        included::{PassedOver, Place},
        nanoseconds,
    },
    host::Host,
    resource::{Context, Drafts, Error, History, Prediction, Provider, Resource, Retry},
    session::Event,
    state::LocalState,
    vocabulary::{Reference, TimeLimit},
};

/// Result of preparing a member.
enum Staged {
    /// It waits for the commands.
    Ready,
    /// Another resource or process has brought it to its desired state.
    Unchanged,
    Failed,
    /// It requires members that failed.
    Unmet(Vec<String>),
}

impl<'a, 'h: 'a> Run<'a, 'h> {
    /// Validates and publishes the group that a resource completes.
    pub(in crate::engine) fn close_group_after(&mut self, resource: &Resource, observer: &mut dyn Observer) {
        if self.joint.groups.is_empty() {
            return;
        }
        let reference = resource.reference();
        let Some(at) = self.joint.groups.iter().position(|group| group.last == reference) else { return };
        let waiting = self.joint.take(at);
        if !waiting.is_empty() {
            self.close(waiting, observer);
        }
        self.finish_included(observer);
    }

    /// Skips the members in a manifest that wait, because the manifest stops.
    pub(in crate::engine) fn skip_waiting(
        &mut self,
        place: &Place<'a>,
        why: &PassedOver,
        observer: &mut dyn Observer,
    ) {
        let is_inside = |waiting: &Waiting| {
            ptr::eq(waiting.place.manifest, place.manifest)
                || waiting.place.within.iter().any(|outer| {
                    outer.included.as_deref().is_some_and(|included| ptr::eq(included, place.manifest))
                })
                || place.within.is_empty()
        };
        for at in 0..self.joint.groups.len() {
            let (inside, others): (Vec<_>, Vec<_>) = self.joint.take(at).into_iter().partition(is_inside);
            self.joint.groups[at].waiting = others;
            for Waiting { place, resource, .. } in inside {
                self.joint.show_templates(&place.prediction);
                self.skip(&place, resource, why, observer);
            }
        }
        self.finish_included(observer);
    }

    fn close(&mut self, waiting: Vec<Waiting<'a>>, observer: &mut dyn Observer) {
        let mut outcomes: Vec<Outcome> = waiting.iter().map(|_| Outcome::default()).collect();
        let mut staged: Vec<Staged> = Vec::new();
        match Drafts::new(&self.engine.state.directory) {
            Ok(drafts) => {
                let prediction = RefCell::new(waiting[0].place.prediction.borrow().without_pending());
                for (at, one) in waiting.iter().enumerate() {
                    let unmet = unmet(one, &waiting[..at], &staged);
                    staged.push(if unmet.is_empty() {
                        self.stage(one, &drafts, &prediction, &mut outcomes[at], observer)
                    } else {
                        Staged::Unmet(unmet)
                    });
                }
                // A plan has one step for the group, with the preconditions of all members.
                let stale =
                    outcomes.iter().flat_map(|outcome| &outcome.errors).find(|error| error.is_stale());
                let valid = match stale.cloned() {
                    Some(error) => Err(error),
                    None => self.validate(&waiting, &staged, &drafts, &prediction, &mut outcomes),
                };
                match valid {
                    Ok(()) => self.publish(&waiting, &staged, &drafts, &mut outcomes, observer),
                    Err(error) => reject(&error, &waiting, &staged, &mut outcomes),
                }
            }
            Err(error) => {
                staged.extend(waiting.iter().map(|_| Staged::Ready));
                reject(&error, &waiting, &staged, &mut outcomes);
            }
        }
        for ((one, staged), outcome) in waiting.into_iter().zip(staged).zip(outcomes) {
            self.report(one, staged, outcome, observer);
        }
    }

    /// Prepares the new content of a member.
    fn stage(
        &mut self,
        one: &Waiting<'a>,
        drafts: &Drafts,
        prediction: &RefCell<Prediction>,
        outcome: &mut Outcome,
        observer: &mut dyn Observer,
    ) -> Staged {
        let result = self.with_attempts(one, Part::Waits, outcome, |attempts, outcome| {
            let tries = attempts.resource.common.tries.map_or(1, Into::into);
            let mut left: u32 = tries;
            loop {
                left -= 1;
                match attempts.stage(drafts, prediction, outcome, observer) {
                    Err(error) if left > 0 && error.retry() == Retry::Worthwhile => {
                        let pause = attempts.resource.common.try_sleep.unwrap_or(TRY_SLEEP);
                        if attempts.host.interrupt.pause(pause.as_std()).is_some() {
                            return Err(error);
                        }
                    }
                    result => return result,
                }
            }
        });
        result.unwrap_or_else(|error| {
            outcome.errors = vec![error];
            outcome.redact();
            Staged::Failed
        })
    }

    /// Runs the commands of a group once, in view of all its changes.
    fn validate(
        &mut self,
        waiting: &[Waiting<'a>],
        staged: &[Staged],
        drafts: &Drafts,
        prediction: &RefCell<Prediction>,
        outcomes: &mut [Outcome],
    ) -> Result<(), Error> {
        let ready = |at: &usize| matches!(staged[*at], Staged::Ready);
        let Some(first) = (0..waiting.len()).find(ready) else { return Ok(()) };
        let redactor = waiting
            .iter()
            .fold(outcomes[first].redactor.clone(), |redactor, one| redactor.and(one.wanted().secrets()));
        let sensitive = waiting.iter().map(|one| one.resource).find(|resource| resource.is_sensitive());
        let timeout = time_limit(waiting);
        let (one, mut outcome) = (&waiting[first], std::mem::take(&mut outcomes[first]));
        let result = self.with_attempts(one, Part::Waits, &mut outcome, |attempts, outcome| {
            let mut silent = |_: &str| {};
            let mut cx = Context::new(
                attempts.host,
                attempts.state,
                prediction,
                &attempts.place.manifest.working_directory,
                timeout,
                &mut silent,
            )
            .within(attempts.place.settings.mode, attempts.history)
            .about(sensitive.unwrap_or(one.resource));
            cx.redactor = redactor.clone();
            let joint = attempts.wanted.joint_validation();
            let result = joint.map_or(Ok(()), |joint| joint.validate(drafts, &cx)).and_then(|()| cx.tick());
            outcome.warnings.extend(cx.into_warnings());
            outcome.redact();
            result.map_err(|error| error.redacted(&redactor))
        });
        outcomes[first] = outcome;
        result
    }

    /// Publishes the changes of all members. If that fails for one of them, those that follow stay as they are.
    fn publish(
        &mut self,
        waiting: &[Waiting<'a>],
        staged: &[Staged],
        drafts: &Drafts,
        outcomes: &mut [Outcome],
        observer: &mut dyn Observer,
    ) {
        let mut broken = None;
        for ((one, staged), outcome) in waiting.iter().zip(staged).zip(outcomes) {
            if !matches!(staged, Staged::Ready) {
                continue;
            }
            if let Some(broken) = &broken {
                let message = format!("not published, because {broken} could not be published");
                outcome.errors = vec![Error::new(message).on("validate")];
                continue;
            }
            let warnings = std::mem::take(&mut outcome.warnings);
            let assumptions = outcome.assumptions;
            let made = self.publish_one(one, drafts, observer);
            match made {
                Ok(made) => *outcome = made,
                Err(error) => outcome.errors = vec![error],
            }
            outcome.warnings.splice(..0, warnings);
            outcome.assumptions += assumptions;
            if let Some(effects) = outcome.effects.take() {
                self.history.record(effects);
            }
            if !outcome.errors.is_empty() {
                broken = Some(one.resource.to_string());
            }
        }
    }

    fn publish_one(
        &mut self,
        one: &Waiting<'a>,
        drafts: &Drafts,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, Error> {
        let (host, state) = (self.engine.host, self.engine.state);
        let provider = self.providers.provide(one.resource, host)?;
        let (recording, planning) = (self.engine.recording.as_ref(), self.engine.planning.as_ref());
        let (history, resources) = (&self.history, self.resources);
        let surroundings = Surroundings { host, state, provider, history, resources, recording, planning };
        let attempts = surroundings.attempts(one, Part::Publishes(drafts));
        Ok(attempts.make(None, &mut self.refreshes, &mut self.grouped, observer))
    }

    /// Reports the result of a member.
    fn report(&mut self, one: Waiting<'a>, staged: Staged, outcome: Outcome, observer: &mut dyn Observer) {
        let Waiting { place, resource, late, elapsed, .. } = one;
        if let Staged::Unmet(unmet) = staged {
            return self.skip(&place, resource, &PassedOver::Unmet(unmet), observer);
        }
        let settings = place.settings;
        let mut event = Event::of(resource, settings.mode, settings.detail, &mut self.engine.session);
        if let Some(late) = late.filter(|_| settings.detail == Detail::Whole) {
            event.properties = resource.to_json(late.as_ref());
        }
        if let Ok(provider) = self.providers.provide(resource, self.engine.host) {
            provider.name.clone_into(&mut event.provider);
        }
        event.duration = nanoseconds(elapsed);
        let concluding = Concluding { event, outcome, excluded: None, causes: Vec::new(), is_open: true };
        self.report_late(&place, resource, concluding, observer);
    }

    fn report_late(
        &mut self,
        place: &Place<'a>,
        resource: &'a Resource,
        concluding: Concluding<'a>,
        observer: &mut dyn Observer,
    ) {
        let report = self.conclude(place, resource, concluding, observer);
        observer.finished(&report);
        if report.event.failed {
            self.joint.failed.push(place.manifest);
        }
    }

    /// Reports the included manifests in which no member waits any longer.
    fn finish_included(&mut self, observer: &mut dyn Observer) {
        for one in std::mem::take(&mut self.joint.unfinished) {
            if self.joint.has_waiting_in(one.resource) {
                self.joint.unfinished.push(one);
                continue;
            }
            let Unfinished { place, resource, before, errors, elapsed } = one;
            let Some(included) = resource.included.as_deref() else { continue };
            let outcome = self.result_of_included(resource, included, before, errors);
            let settings = place.settings.within(included);
            let mut event = Event::of(resource, settings.mode, settings.detail, &mut self.engine.session);
            event.provider = first_provider(resource);
            event.duration = nanoseconds(elapsed);
            let concluding = Concluding { event, outcome, excluded: None, causes: Vec::new(), is_open: true };
            self.report_late(&place, resource, concluding, observer);
        }
    }

    /// Calls `work` with a member that is about to be worked on.
    fn with_attempts<T>(
        &mut self,
        one: &Waiting<'a>,
        part: Part<'_>,
        outcome: &mut Outcome,
        work: impl FnOnce(&Attempts, &mut Outcome) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (host, state) = (self.engine.host, self.engine.state);
        outcome.redactor = one.resource.redactor(one.wanted());
        let provider = self.providers.provide(one.resource, host)?;
        let (recording, planning) = (self.engine.recording.as_ref(), self.engine.planning.as_ref());
        let (history, resources) = (&self.history, self.resources);
        let surroundings = Surroundings { host, state, provider, history, resources, recording, planning };
        work(&surroundings.attempts(one, part), outcome)
    }
}

/// The values that all attempts of a run share.
struct Surroundings<'s> {
    host: &'s Host,
    state: &'s LocalState,
    provider: &'s Provider,
    history: &'s History,
    resources: &'s [Resource],
    recording: Option<&'s RefCell<Recording>>,
    planning: Option<&'s RefCell<Planning>>,
}

impl<'s> Surroundings<'s> {
    fn attempts(&self, one: &'s Waiting<'s>, part: Part<'s>) -> Attempts<'s> {
        let Self { host, state, provider, history, resources, recording, planning } = *self;
        Attempts {
            resource: one.resource,
            wanted: one.wanted(),
            provider,
            causes: &[],
            place: &one.place,
            host,
            state,
            history,
            next: &[],
            resources,
            recording,
            planning,
            part,
        }
    }
}

impl Attempts<'_> {
    /// Prepares the new content of a member, if it still needs a change, for a machine on which the earlier members of the
    /// group are published.
    fn stage(
        &self,
        drafts: &Drafts,
        prediction: &RefCell<Prediction>,
        outcome: &mut Outcome,
        observer: &mut dyn Observer,
    ) -> Result<Staged, Error> {
        let mut listener = |line: &str| observer.output(self.resource, line);
        let own = self.resource.own_scope(&self.place.scope);
        let scope = own.as_ref().unwrap_or(&self.place.scope);
        let cx = self.context(prediction, scope, &outcome.redactor, &mut listener);
        let result = self.stage_in(&cx, drafts, prediction, outcome);
        outcome.assumptions = cx.assumptions();
        outcome.warnings = cx.into_warnings();
        result
    }

    fn stage_in(
        &self,
        cx: &Context,
        drafts: &Drafts,
        prediction: &RefCell<Prediction>,
        outcome: &mut Outcome,
    ) -> Result<Staged, Error> {
        cx.tick()?;
        let (wanted, on) = (self.wanted, self.provider);
        let have = outcome.observed.insert(wanted.inspect(on, cx)?);
        outcome.before.get_or_insert_with(|| have.ensure());
        let Some(change) = wanted.compare(have, self.trigger())? else { return Ok(Staged::Unchanged) };
        let Some(joint) = wanted.joint_validation().filter(|joint| joint.concerns(&change)) else {
            return Ok(Staged::Ready);
        };
        let effects = joint.stage(have, &change, on, drafts, cx)?;
        if !effects.are_known() {
            cx.assume("the new content is not known yet; assuming it is valid");
            prediction.borrow_mut().note_unpredictable(self.resource.to_string(), effects.unknown);
        }
        let predicted = prediction.borrow_mut().apply(effects, &mut |warning| cx.assume(warning));
        predicted.map_err(|error| error.naming(|uid| self.host.users.known_name(uid)))?;
        Ok(Staged::Ready)
    }
}

/// Returns the members that a member requires and that failed.
fn unmet(one: &Waiting, earlier: &[Waiting], staged: &[Staged]) -> Vec<String> {
    let has_failed = |required: &&Reference| {
        earlier.iter().zip(staged).any(|(other, staged)| {
            let names = [Some(&other.resource.name), other.resource.common.alias.as_ref()];
            matches!(staged, Staged::Failed | Staged::Unmet(_))
                && other.resource.kind.name() == required.kind
                && names.contains(&Some(&required.name))
        })
    };
    one.resource.common.require.iter().filter(has_failed).map(ToString::to_string).collect()
}

/// Lets all members that were about to be published fail.
fn reject(error: &Error, waiting: &[Waiting], staged: &[Staged], outcomes: &mut [Outcome]) {
    let ready: Vec<usize> = (0..staged.len()).filter(|at| matches!(staged[*at], Staged::Ready)).collect();
    for at in &ready {
        let others: Vec<String> = ready
            .iter()
            .filter(|other| *other != at)
            .map(|other| waiting[*other].resource.to_string())
            .collect();
        let together = (!others.is_empty()).then(|| {
            let shown = others.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = others.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("validated together with {shown}{more}; none of them was changed")
        });
        let outcome = &mut outcomes[*at];
        outcome.errors = vec![Error { help: error.help.clone().or(together), ..error.clone() }];
    }
}

/// Maximum number of other members that a message names.
const NAMED: usize = 3;

/// Returns the longest time limit of the members: those without one have the usual limit of a validation.
fn time_limit(waiting: &[Waiting]) -> Option<Duration> {
    let limits: Vec<Option<Duration>> =
        waiting.iter().map(|one| one.resource.common.timeout.map(TimeLimit::as_std)).collect();
    let longest = limits.iter().flatten().max().copied()?;
    let has_usual = limits.iter().any(Option::is_none);
    Some(if has_usual { longest.max(Duration::from_mins(1)) } else { longest })
}
