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
mod pending_refreshes;
mod providers;
mod record;
mod selection;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, path::Path, rc::Rc, time::Instant};

pub(crate) use crate::resource::RunMode;
use crate::{
    document::Source,
    host::{Host, interrupt::Signal},
    resource::{Difference, Effects, Error, ErrorKind, History, Prediction, Resource},
    session::{Event, Session, StoreError, Summary},
    state::{Memory, RefreshStore},
    template::Scope,
    vocabulary::Reference,
};
use converge::{Attempts, Outcome};
pub(crate) use exclusion::Exclusion;
use gate::Gate;
use group::Grouped;
use pending_refreshes::PendingRefreshes;
use providers::Providers;
pub(crate) use selection::{Selected, Selection, Selector};

/// How all runs of an engine are done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: RunMode,
    pub(crate) diffs: Diffs,
    pub(crate) detail: Detail,
    pub(crate) exclusion: Exclusion,
}

/// What one run applies, and all that is read with it. None of it changes while the run lasts.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) resources: &'a [Resource],
    /// What the resources were written in.
    pub(crate) source: &'a Source,
    /// Where relative paths start.
    pub(crate) working_directory: &'a Path,
    /// What late templates and conditions can see.
    pub(crate) scope: &'a Scope,
    /// What to do after a resource failed.
    pub(crate) on_failure: OnFailure,
    /// Which of the resources are to be applied.
    pub(crate) selected: &'a Selected,
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
    /// Properties and state are left out: nobody will read them.
    Outline,
}

/// What to do after a resource failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Continue,
    Stop,
}

/// Is told what happens while it happens.
pub(crate) trait Observer {
    /// The turn of a resource has come.
    fn begun(&mut self, resource: &Resource);
    /// Another run has to come to its end first.
    fn waiting(&mut self, holder: &str);
    /// A line that a resource shows while it is being worked on.
    fn output(&mut self, resource: &Resource, line: &str);
    /// A resource is done with.
    fn finished(&mut self, report: &Report);
}

/// One resource that is done with: its event, and what only people need.
pub(crate) struct Report<'r> {
    pub(crate) resource: &'r Resource,
    /// What the resource was written in.
    pub(crate) source: &'r Source,
    pub(crate) event: Event,
    /// What was done or would have been, completing "Would have ...".
    pub(crate) summary: Option<String>,
    pub(crate) differences: Vec<Difference>,
    pub(crate) errors: Vec<Error>,
    pub(crate) warnings: Vec<String>,
    /// Why the resource was passed over, by its `control` or because it was not asked for.
    pub(crate) excluded: Option<&'static str>,
    /// The state that was found first, in a word; nothing if it did not come to that.
    pub(crate) before: Option<String>,
    /// The changes of other resources on account of which it was to be refreshed.
    pub(crate) causes: Vec<&'r Reference>,
}

/// A run that came to its end, or was brought to it.
pub(crate) struct Finished {
    pub(crate) summary: Summary,
    pub(crate) stopped: Option<Stopped>,
    /// Why events could not be kept.
    pub(crate) unrecorded: Option<StoreError>,
}

/// Why a run ended early, and how many resources it did not come to.
pub(crate) struct Stopped {
    pub(crate) reason: Reason,
    pub(crate) remaining: usize,
}

pub(crate) enum Reason {
    Failure,
    Signal(Signal),
}

/// Applies resources to a machine, in as many runs as its owner likes.
pub(crate) struct Engine<'h> {
    host: &'h Host,
    memory: &'h Memory,
    settings: Settings,
    session: Session,
    /// What the dry runs so far would have left. Templates read it too.
    prediction: Rc<RefCell<Prediction>>,
}

impl<'h> Engine<'h> {
    /// Makes an engine whose runs are part of a session.
    pub(crate) fn new(host: &'h Host, memory: &'h Memory, settings: Settings, session: Session) -> Self {
        let mut prediction = Prediction::default();
        // What dry runs of other processes would have left is not told in full.
        if settings.mode == RunMode::Noop && session.events().iter().any(|event| event.noop && event.changed)
        {
            prediction.assume_anything();
        }
        Self { host, memory, settings, session, prediction: Rc::new(RefCell::new(prediction)) }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Applies the resources one after the other.
    pub(crate) fn apply(
        &mut self,
        site: Site,
        refresh_store: Option<RefreshStore>,
        observer: &mut dyn Observer,
    ) -> Finished {
        let before = self.session.events().len();
        let mut run = self.begin(site, refresh_store);
        let stopped = run.take_turns(observer);
        let unrecorded = run.unrecorded.take();
        Finished { summary: self.session.summary_since(before), stopped, unrecorded }
    }

    /// Applies several sets of resources, one after the other, and returns what came of all of them. A failure ends the
    /// set that asks for it, a signal all of them.
    pub(crate) fn apply_all(
        &mut self,
        sites: &[Site],
        refresh_store: impl Fn() -> Option<RefreshStore>,
        observer: &mut dyn Observer,
    ) -> Finished {
        let before = self.session.events().len();
        let (mut stopped, mut unrecorded) = (None::<Stopped>, None);
        for site in sites {
            match &mut stopped {
                Some(Stopped { reason: Reason::Signal(_), remaining }) => *remaining += site.resources.len(),
                _ => {
                    let finished = self.apply(*site, refresh_store(), observer);
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
                }
            }
        }
        Finished { summary: self.session.summary_since(before), stopped, unrecorded }
    }

    /// Begins a run. What providers learn is good for as long as it lasts.
    pub(crate) fn begin<'a>(
        &'a mut self,
        site: Site<'a>,
        refresh_store: Option<RefreshStore>,
    ) -> Run<'a, 'h> {
        let prediction = Rc::clone(&self.prediction);
        Run {
            scope: site.scope.with_prediction(prediction),
            providers: Providers::new(site.resources),
            history: History::default(),
            refreshes: PendingRefreshes::of(site.resources, refresh_store, &self.session),
            grouped: Grouped::default(),
            unrecorded: None,
            site,
            engine: self,
        }
    }
}

/// A run in progress.
pub(crate) struct Run<'a, 'h> {
    engine: &'a mut Engine<'h>,
    site: Site<'a>,
    scope: Scope,
    providers: Providers<'a>,
    /// What has been done so far.
    history: History,
    refreshes: PendingRefreshes,
    /// What was done together with an earlier resource.
    grouped: Grouped,
    unrecorded: Option<StoreError>,
}

impl<'a> Run<'a, '_> {
    fn take_turns(&mut self, observer: &mut dyn Observer) -> Option<Stopped> {
        let resources = self.site.resources;
        for (done, resource) in resources.iter().enumerate() {
            if let Some(signal) = self.engine.host.interrupt.requested() {
                return Some(Stopped { reason: Reason::Signal(signal), remaining: resources.len() - done });
            }
            observer.begun(resource);
            let report = self.turn(resource, &resources[done + 1..], observer);
            observer.finished(&report);
            let remaining = resources.len() - done - 1;
            if report.event.failed && self.site.on_failure == OnFailure::Stop && remaining > 0 {
                return Some(Stopped { reason: Reason::Failure, remaining });
            }
        }
        None
    }

    /// Applies one resource, whatever happens, and records its event. `next` are those whose turns follow.
    pub(crate) fn turn(
        &mut self,
        resource: &'a Resource,
        next: &[Resource],
        observer: &mut dyn Observer,
    ) -> Report<'a> {
        let started = Instant::now();
        let Engine { session, settings: Settings { mode, detail, .. }, .. } = &mut *self.engine;
        let (mode, detail) = (*mode, *detail);
        let mut event = Event::of(resource, mode, detail, session);
        let mut outcome = Outcome::default();
        let (mut excluded, mut because_of) = (None, Vec::new());
        let gate = if self.site.selected.contains(resource) {
            gate::check(resource, session, &self.refreshes, mode, &self.scope)
        } else {
            Gate::Excluded("not selected")
        };
        match gate {
            Gate::Excluded(reason) => {
                event.skipped = true;
                excluded = Some(reason);
            }
            Gate::Unmet(unmet) => {
                event.skipped = true;
                event.unmet_requirements = unmet.iter().map(ToString::to_string).collect();
            }
            // What a condition was given may be quoted in what is wrong with it.
            Gate::Faulty(error) if resource.common.sensitive && error.kind == ErrorKind::Expression => {
                outcome.errors.push(Error::new("its control cannot be worked out").on("control"));
            }
            Gate::Faulty(error) => {
                let redactor = resource.redactor(resource.wanted.as_ref());
                outcome.errors.push(error.redacted(&redactor));
                outcome.redactor = redactor;
            }
            Gate::Open(causes) => {
                outcome = self.converge(resource, next, &causes, &mut event, observer);
                because_of = causes;
            }
        }
        if let Some(effects) = outcome.effects.take() {
            self.history.record(effects);
        }
        event.record(&mut outcome, resource, detail);
        event.duration = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if let Err(error) = self.engine.session.record(&event) {
            self.unrecorded = Some(error);
        }
        let Outcome { summary, differences, errors, warnings, before, .. } = outcome;
        Report {
            resource,
            source: self.site.source,
            event,
            summary,
            differences,
            errors,
            warnings,
            excluded,
            before,
            causes: because_of,
        }
    }

    /// Expands what is left to expand, finds the provider and applies the resource.
    fn converge(
        &mut self,
        resource: &Resource,
        next: &[Resource],
        causes: &[&Reference],
        event: &mut Event,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let failed = |errors| Outcome { errors, ..Outcome::default() };
        let Engine { host, memory, settings, prediction, .. } = &*self.engine;
        let late = match resource.wanted_now(&self.scope, self.site.source) {
            Ok(late) => late,
            Err(errors) => return failed(errors),
        };
        if let Some(late) = late.as_ref().filter(|_| settings.detail == Detail::Whole) {
            event.properties = resource.to_json(late.as_ref());
        }
        let provider = match self.providers.provide(resource, host) {
            Ok(provider) => provider,
            Err(error) => return failed(vec![error]),
        };
        provider.name.clone_into(&mut event.provider);
        let wanted = late.as_deref().unwrap_or(resource.wanted.as_ref());
        let attempts = Attempts {
            resource,
            wanted,
            provider,
            causes,
            settings,
            source: self.site.source,
            working_directory: self.site.working_directory,
            scope: &self.scope,
            host,
            memory,
            history: &self.history,
            next,
            selected: self.site.selected,
            resources: self.site.resources,
            prediction,
        };
        attempts.make(&mut self.refreshes, &mut self.grouped, observer)
    }
}

/// Forgets what the machine said about accounts, where an action may have made or removed some.
fn forget_accounts(effects: &Effects, host: &Host) {
    let names_some = !effects.users.is_empty() || !effects.groups.is_empty();
    if names_some || effects.unknown > crate::resource::Unknown::Nothing {
        host.users.forget();
    }
}
