//! Applies resources in their written order: the one algorithm for all types.
//!
//! The engine is silent: what happens goes to an [`Observer`] as it happens and into the session as events.

mod converge;
mod exclusion;
mod gate;
mod pending_refreshes;
mod record;

use std::{cell::RefCell, collections::HashMap, path::Path, time::Instant};

pub(crate) use crate::resource::RunMode;
use crate::{
    document::Source,
    host::{Host, files::Prediction, interrupt::Signal},
    resource::{AnyType, Difference, Error, Provider, Resource},
    session::{Event, Session, StoreError, Summary},
    state::Memory,
    template::Scope,
    vocabulary::Reference,
};
use converge::{Attempts, Outcome};
pub(crate) use exclusion::Exclusion;
use gate::Gate;
pub(crate) use pending_refreshes::PendingRefreshes;

/// How a run is to be done.
pub(crate) struct Options<'a> {
    pub(crate) mode: RunMode,
    pub(crate) diffs: Diffs,
    pub(crate) detail: Detail,
    /// What to do after a resource failed.
    pub(crate) on_failure: OnFailure,
    pub(crate) exclusion: Exclusion,
    /// Where relative paths start.
    pub(crate) working_directory: &'a Path,
    /// What late templates and conditions can see.
    pub(crate) scope: &'a Scope,
    /// What the resources were written in.
    pub(crate) source: &'a Source,
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
    /// The turn of a resource has come, after so many others.
    fn begun(&mut self, resource: &Resource, done: usize);
    /// Another run has to come to its end first.
    fn waiting(&mut self, holder: &str);
    /// A line that a resource shows while it is being worked on.
    fn output(&mut self, resource: &Resource, line: &str);
    /// A resource is done with.
    fn finished(&mut self, report: &Report);
}

/// One resource that is done with: its event, and what only people need.
pub(crate) struct Report<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) event: &'a Event,
    /// What was done or would have been, completing "Would have ...".
    pub(crate) summary: Option<String>,
    pub(crate) differences: Vec<Difference>,
    pub(crate) errors: Vec<Error>,
    pub(crate) warnings: Vec<String>,
    /// Why the resource was passed over by its `control`.
    pub(crate) excluded: Option<&'static str>,
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

/// Applies the resources one after the other.
pub(crate) fn run(
    resources: &[Resource],
    options: &Options,
    host: &Host,
    memory: &Memory,
    refreshes: &mut PendingRefreshes,
    session: &mut Session,
    observer: &mut dyn Observer,
) -> Finished {
    let before = session.events().len();
    let providers = Providers { resources, made: Vec::new(), chosen: HashMap::new() };
    // What earlier dry runs of the session would have done is not done either.
    let undone =
        session.events().iter().filter(|event| options.mode == RunMode::Noop && event.noop && event.changed);
    let touched =
        undone.map(|event| Reference { kind: event.kind.clone(), name: event.name.clone() }).collect();
    let prediction = RefCell::default();
    let mut run = Run {
        options,
        host,
        memory,
        providers,
        touched,
        prediction,
        refreshes,
        session,
        observer,
        unrecorded: None,
    };
    let mut stopped = None;
    for (done, resource) in resources.iter().enumerate() {
        if let Some(signal) = host.interrupt.requested() {
            stopped = Some(Stopped { reason: Reason::Signal(signal), remaining: resources.len() - done });
            break;
        }
        run.observer.begun(resource, done);
        let failed = run.apply(resource, &resources[done + 1..]);
        let remaining = resources.len() - done - 1;
        if failed && options.on_failure == OnFailure::Stop && remaining > 0 {
            stopped = Some(Stopped { reason: Reason::Failure, remaining });
            break;
        }
    }
    let unrecorded = run.unrecorded.take();
    Finished { summary: session.summary_since(before), stopped, unrecorded }
}

/// A run in progress.
struct Run<'a> {
    options: &'a Options<'a>,
    host: &'a Host,
    memory: &'a Memory,
    providers: Providers<'a>,
    /// What has been acted on so far.
    touched: Vec<Reference>,
    /// What that would have left, in a dry run.
    prediction: RefCell<Prediction>,
    refreshes: &'a mut PendingRefreshes,
    session: &'a mut Session,
    observer: &'a mut dyn Observer,
    unrecorded: Option<StoreError>,
}

impl Run<'_> {
    /// Applies one resource, whatever happens, and says whether it failed.
    fn apply(&mut self, resource: &Resource, next: &[Resource]) -> bool {
        let started = Instant::now();
        let mut event = Event::of(resource, self.options, self.session);
        let mut outcome = Outcome::default();
        let mut excluded = None;
        match gate::check(resource, self.session, self.refreshes, self.options) {
            Gate::Excluded(reason) => {
                event.skipped = true;
                excluded = Some(reason);
            }
            Gate::Unmet(unmet) => {
                event.skipped = true;
                event.unmet_requirements = unmet.iter().map(ToString::to_string).collect();
            }
            // What a condition was given may be quoted in what is wrong with it.
            Gate::Faulty(error) if resource.common.sensitive && error.property == Some("control") => {
                outcome.errors.push(Error::new("its control cannot be worked out").on("control"));
            }
            Gate::Faulty(error) => outcome.errors.push(error),
            Gate::Open(causes) => outcome = self.converge(resource, next, &causes, &mut event),
        }
        if outcome.touched {
            self.touched.push(resource.reference());
        }
        event.record(&mut outcome, resource, self.options.detail);
        event.duration = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let Outcome { summary, differences, errors, warnings, .. } = outcome;
        let failed = event.failed;
        let report = Report { resource, event: &event, summary, differences, errors, warnings, excluded };
        self.observer.finished(&report);
        if let Err(error) = self.session.record(event) {
            self.unrecorded = Some(error);
        }
        failed
    }

    /// Expands what is left to expand, finds the provider and applies the resource.
    fn converge(
        &mut self,
        resource: &Resource,
        next: &[Resource],
        causes: &[&Reference],
        event: &mut Event,
    ) -> Outcome {
        let failed = |errors| Outcome { errors, ..Outcome::default() };
        let late = match resource.wanted_now(self.options.scope, self.options.source) {
            Ok(late) => late,
            Err(errors) => return failed(errors),
        };
        if let Some(late) = late.as_ref().filter(|_| self.options.detail == Detail::Whole) {
            event.properties = resource.to_json(late.as_ref());
        }
        let provider = match self.providers.provide(resource, self.host) {
            Ok(provider) => provider,
            Err(error) => return failed(vec![error]),
        };
        provider.name.clone_into(&mut event.provider);
        let wanted = late.as_deref().unwrap_or(resource.wanted.as_ref());
        let (options, host, memory) = (self.options, self.host, self.memory);
        let (touched, prediction) = (&self.touched, &self.prediction);
        let attempts =
            Attempts { resource, wanted, provider, causes, options, host, memory, touched, next, prediction };
        let mut outcome = attempts.make(self.refreshes, self.observer);
        resource.redact(wanted, &mut outcome.errors, &mut outcome.warnings);
        outcome
    }
}

/// The providers of a run: each is made when first needed and keeps what it learns.
struct Providers<'a> {
    resources: &'a [Resource],
    made: Vec<(&'static str, Provider)>,
    /// Which of them serves a type, by what was asked for. Who asks for none is not served by whichever is there.
    chosen: HashMap<(&'static str, Option<String>), usize>,
}

impl Providers<'_> {
    fn provide(&mut self, resource: &Resource, host: &Host) -> Result<&Provider, Error> {
        let kind: &dyn AnyType = resource.kind;
        let choice = (kind.name(), resource.common.provider.clone());
        let at = if let Some(at) = self.chosen.get(&choice) {
            *at
        } else {
            let provider = kind.provider(choice.1.as_deref(), host)?;
            let same = |(of, made): &(&str, Provider)| *of == kind.name() && made.name == provider.name;
            let at = self.made.iter().position(same).unwrap_or(self.made.len());
            if at == self.made.len() {
                let same = self.resources.iter().filter(|other| other.kind.name() == kind.name());
                kind.expect(&provider, &same.map(|other| other.wanted.as_ref()).collect::<Vec<_>>());
                self.made.push((kind.name(), provider));
            }
            self.chosen.insert(choice, at);
            at
        };
        Ok(&self.made[at].1)
    }
}
