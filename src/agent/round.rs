//! One run: manifests are loaded with fresh facts and data, and applied in their order under the run lock.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    due::Cause,
    fleet::Fleet,
    intake::{Intake, Judge},
    log::{Log, LogLevel},
    metrics,
    pauses::Repair,
    source::Address,
    watching::{OwnWrites, Subject, Watching},
};
use crate::{
    engine::{
        Detail, Diffs, Engine, Exclusion, Observer, ReadAhead, Report, RunMode, Selected, Settings, Task,
    },
    host::input::Limits,
    manifest::{self, LoadError, LoadInputs, Loaded, Location, Manifest},
    metrics::Metrics,
    resource::{Resource, Watches, flattened},
    run::{ConfirmSettings, Ending, Given, Machine, Origin, Refused, Run},
    session::{Session, Summary},
    state::{AgentRuns, Patience, history::RunKind},
    vocabulary::{Reference, TimeLimit},
};

/// How much of a manifest is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// These, and what is refreshed on their account.
    Only(HashSet<Reference>),
}

/// What came of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) manifest: usize,
    pub(crate) failed: usize,
    pub(crate) changed: usize,
    pub(crate) resources: usize,
    /// Whether the manifest has health checks.
    pub(crate) has_checks: bool,
    /// Why it was not applied at all.
    pub(crate) error: Option<String>,
    /// The resources that were changed, without those that only acted because others did.
    pub(crate) repaired: Vec<Repair>,
    /// Those of them that somebody else has changed since.
    pub(crate) disturbed: Vec<Subject>,
}

/// What a run is made with.
pub(crate) struct Round<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) log: &'a dyn Log,
    pub(crate) metrics: &'a Metrics,
    pub(crate) fleet: &'a Fleet,
    pub(crate) mode: RunMode,
    pub(crate) cause: &'a str,
}

/// A manifest that was loaded for a run.
pub(super) struct Ready {
    pub(super) number: usize,
    pub(super) manifest: Manifest,
    pub(super) selected: Selected,
    is_whole: bool,
}

impl Round<'_> {
    /// Applies manifests, one after the other. Those that were loaded to validate them are not loaded again. Returns the
    /// run that awaits confirmation, if it does.
    pub(crate) fn run(
        &self,
        intake: &Intake,
        extents: &[(usize, Extent)],
        loaded: BTreeMap<usize, Manifest>,
        mut watching: Option<&mut Watching>,
        own: &mut OwnWrites,
    ) -> (Vec<Outcome>, Option<Awaiting>) {
        let mut outcomes = Vec::new();
        let known = watching.as_deref().map(Watching::names);
        let mut ready = match self.load(intake, extents, loaded, known, &mut outcomes) {
            Ok(ready) => ready,
            Err(error) => {
                self.log.error("nothing is applied", &[("cause", &self.cause), ("error", &error)]);
                let failed = |(number, _): &(usize, Extent)| Outcome::not_applied(*number, error.clone());
                return (extents.iter().map(failed).collect(), None);
            }
        };
        let mut runs = AgentRuns::load(&self.machine.state.directory);
        ready.retain(|ready| self.is_allowed(ready, intake, &runs, &mut outcomes));
        if let Some(watching) = watching.as_deref_mut() {
            ready.iter().filter(|ready| ready.is_whole).for_each(|ready| watch(watching, ready));
        }
        let mut engine = self.engine(self.settings(Task::Apply));
        let history = self.machine.environment.history().unwrap_or_default();
        let confirm =
            ready.iter().filter_map(|ready| ready.manifest.settings.confirm).map(TimeLimit::as_std).max();
        let confirm = confirm.filter(|_| self.mode == RunMode::Real);
        if confirm.is_some() && !history.is_on {
            let error = "a confirmation needs the history, which is off".to_owned();
            self.log.error("nothing is applied", &[("cause", &self.cause), ("error", &error)]);
            outcomes.extend(ready.iter().map(|ready| Outcome::not_applied(ready.number, error.clone())));
            return (outcomes, None);
        }
        // The agent confirms the run at the end of the time. The guard waits longer.
        let settings = confirm.map(|time| ConfirmSettings { timeout: time + MARGIN, after_boot: false });
        let origin = Origin { history, confirm: settings, ..Origin::new("ccm agent", RunKind::Agent) };
        let mut run = match Run::begin(self.machine, &mut engine, &origin) {
            Ok(run) => run,
            Err(refused) => {
                let error = refused.to_string();
                let level = match refused {
                    Refused::AwaitsConfirmation { .. } => LogLevel::Info,
                    _ => LogLevel::Error,
                };
                self.log.tell(level, "nothing is applied", &[("cause", &self.cause), ("error", &error)]);
                outcomes.extend(ready.iter().map(|ready| Outcome::not_applied(ready.number, error.clone())));
                return (outcomes, None);
            }
        };
        // A run that was just waited for can have undone the last run of a manifest.
        let before = ready.len();
        ready.retain(|ready| self.is_allowed(ready, intake, &runs, &mut outcomes));
        if ready.is_empty() && before > 0 {
            return (outcomes, None);
        }
        for ready in &ready {
            if self.machine.host.interrupt.requested().is_some() {
                break;
            }
            outcomes.push(self.apply(&mut run, ready, intake, watching.as_deref_mut(), own, &mut runs));
        }
        let id = run.id();
        let Ending { deadline, undone } = run.finish();
        if let Some(undone) = undone {
            let facts: [(&str, &dyn fmt::Display); 2] = [("cause", &self.cause), ("undo", &undone.run)];
            self.log.error("the run failed and was undone", &facts);
        }
        outcomes.sort_by_key(|outcome| outcome.manifest);
        let awaiting = deadline.and(id).zip(confirm).map(|(run, time)| Awaiting { run, time });
        (outcomes, awaiting)
    }

    /// Returns whether a manifest is applied. It is not if its last run was undone, until it changes or a user requests a run.
    fn is_allowed(
        &self,
        ready: &Ready,
        intake: &Intake,
        runs: &AgentRuns,
        outcomes: &mut Vec<Outcome>,
    ) -> bool {
        let source = intake.address_of(ready.number);
        let state = &self.machine.state.directory;
        let undone = runs.undone(&source, || ready.manifest.everything(), state);
        let Some(run) = undone.filter(|_| self.cause != Cause::Asked.to_string()) else { return true };
        let reason = format!(
            "run {run} was undone; change the manifest or its data, or request a run with `ccm agent run`"
        );
        self.log.warn("the manifest is not applied", &[("source", &source), ("error", &reason)]);
        outcomes.push(Outcome::not_applied(ready.number, reason));
        false
    }

    fn apply(
        &self,
        run: &mut Run,
        ready: &Ready,
        intake: &Intake,
        watching: Option<&mut Watching>,
        own: &mut OwnWrites,
        runs: &mut AgentRuns,
    ) -> Outcome {
        let Ready { number, manifest, selected, .. } = ready;
        let source = intake.address_of(*number);
        let before = run.session().events().len();
        let started = Instant::now();
        let mut witness = Witness {
            round: self,
            manifest: *number,
            source: &source,
            folder: &manifest.working_directory,
            selected,
            watching,
            own,
            looked_at: 0,
            repaired: Vec::new(),
        };
        let finished = run.apply(&[(manifest, selected)], &mut witness);
        let is_watched = witness.watching.is_some();
        let (looked_at, repaired) = (witness.looked_at, witness.repaired);
        let took = started.elapsed();
        let disturbed = if is_watched { self.look_again(manifest, *number, &repaired) } else { Vec::new() };
        let summary = &finished.summary;
        if let Some(run) =
            summary.run.as_deref().filter(|_| summary.changed_resources + summary.failed_resources > 0)
        {
            let state = &self.machine.state.directory;
            if let Err(error) = runs.note(&source, run, &manifest.everything(), state) {
                self.log.warn("an undo of this run is not noticed", &[("error", &error)]);
            }
        }
        let resources = flattened(&manifest.resources);
        if ready.is_whole {
            let names: Vec<Reference> = resources.iter().map(|resource| resource.reference()).collect();
            self.fleet.keep_only(&source, &names);
        }
        self.fleet.tell(&source, summary, &run.session().events()[before..], self.log);
        self.report(ready, &source, summary, looked_at, took);
        Outcome {
            manifest: *number,
            failed: summary.failed_resources,
            changed: summary.changed_resources,
            resources: looked_at,
            has_checks: resources.iter().any(|resource| resource.is_checked()),
            error: finished.unrecorded.map(|error| error.to_string()),
            repaired,
            disturbed,
        }
    }

    /// Logs and counts an applied manifest.
    fn report(&self, ready: &Ready, source: &str, summary: &Summary, looked_at: usize, took: Duration) {
        let is_news = ready.is_whole || summary.changed_resources + summary.failed_resources > 0;
        let level = if is_news { LogLevel::Info } else { LogLevel::Debug };
        self.log.tell(
            level,
            "applied",
            &[
                ("source", &source),
                ("cause", &self.cause),
                ("resources", &looked_at),
                ("changed", &summary.changed_resources),
                ("failed", &summary.failed_resources),
                ("unmet", &summary.requirements_unmet_count),
                ("duration", &format_args!("{:.3}s", took.as_secs_f64())),
            ],
        );
        self.metrics.observe(&metrics::MANIFEST_APPLY, &[source], took);
        self.metrics.observe(&metrics::AGENT_APPLY, &[source], took);
    }

    /// Returns which of the resources that were just changed are not as they should be. The stamps of what the agent wrote
    /// are taken after it was written: whoever came in between would be taken for the agent.
    fn look_again(&self, manifest: &Manifest, number: usize, repaired: &[Repair]) -> Vec<Subject> {
        let repaired: HashSet<&Reference> = repaired.iter().map(|repair| &repair.subject.resource).collect();
        // What a command is for, it does once: that it would run again tells nothing.
        let states =
            flattened(&manifest.resources).into_iter().filter(|resource| !resource.kind.behavior().refreshes);
        let names: HashSet<Reference> =
            states.map(Resource::reference).filter(|name| repaired.contains(name)).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let selected = Selected::just(names.clone(), &manifest.resources);
        let settings = Settings { mode: RunMode::Noop, ignores_failures: true, ..self.settings(Task::Apply) };
        let mut second_look = SecondLook { manifest: number, repaired: &names, disturbed: Vec::new() };
        // A pending refresh is no drift.
        self.engine(settings).apply(manifest, &selected, None, &mut second_look);
        second_look.disturbed
    }

    pub(super) fn engine(&self, settings: Settings) -> Engine<'_> {
        Engine::new(&self.machine.host, &self.machine.state, settings, Session::begin())
    }

    pub(super) fn settings(&self, task: Task) -> Settings {
        Settings {
            mode: self.mode,
            diffs: Diffs::Unwanted,
            detail: Detail::Outline,
            exclusion: Exclusion::WholeRun(Patience::Wait),
            read_ahead: ReadAhead::USUAL,
            registrations: self.fleet.registrations(),
            task,
            ignores_failures: task == Task::Monitor,
        }
    }

    /// Loads the manifests that can be; of the others the outcome is told.
    pub(super) fn load(
        &self,
        intake: &Intake,
        extents: &[(usize, Extent)],
        mut loaded: BTreeMap<usize, Manifest>,
        known: Option<&BTreeMap<usize, HashSet<Reference>>>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Vec<Ready>, String> {
        let inputs = self.inputs(intake)?;
        let facts = Arc::clone(&inputs.facts);
        let mut all = Vec::new();
        for (number, slot) in intake.manifests() {
            let Some((_, extent)) = extents.iter().find(|(wanted, _)| *wanted == number) else { continue };
            let location = slot.location(inputs.limits.document);
            let Some(location) = location else {
                let reason = slot.problem().unwrap_or_else(|| "it was not fetched yet".to_owned());
                self.log
                    .warn("the manifest is not applied", &[("source", &slot.address), ("error", &reason)]);
                outcomes.push(Outcome::not_applied(number, reason));
                continue;
            };
            let loading = slot.loading();
            let manifest = match loaded.remove(&number) {
                Some(manifest) => Ok(manifest),
                None => self.load_one(&slot.address, &location, &inputs),
            };
            drop(loading);
            let manifest = manifest.and_then(|manifest| not_repeated(manifest, number, &all, known));
            match manifest {
                Ok(manifest) => {
                    let (selected, is_whole) = match extent {
                        Extent::Whole => (Selected::default(), true),
                        Extent::Only(names) => {
                            (Selected::with_refreshes(names.clone(), &manifest.resources), false)
                        }
                    };
                    all.push(Ready { number, manifest, selected, is_whole });
                }
                Err(reason) => {
                    let source = &slot.address;
                    self.log.error("the manifest is not applied", &[("source", &source), ("error", &reason)]);
                    outcomes.push(Outcome::not_applied(number, reason));
                }
            }
        }
        self.metrics.observe(&metrics::FACTS_GATHER, &[], facts.spent());
        Ok(all)
    }

    fn inputs(&self, intake: &Intake) -> Result<LoadInputs, String> {
        let started = Instant::now();
        let data = intake.data_location(Limits::default().data)?;
        let inputs = self.inputs_with(data);
        self.metrics.observe(&metrics::FACTS_RESOLVE, &[], started.elapsed());
        if inputs.is_err() {
            self.metrics.add(&metrics::FACTS_RESOLVE_ERROR, &[], 1);
        }
        inputs
    }

    /// Returns what manifests are loaded with, with facts that are gathered from now on.
    fn inputs_with(&self, data: Option<Location>) -> Result<LoadInputs, String> {
        self.machine.load_inputs(Given { hiera: data.into_iter().collect(), ..Given::default() })
    }

    fn load_one(
        &self,
        address: &Address,
        location: &Location,
        inputs: &LoadInputs,
    ) -> Result<Manifest, String> {
        let (Machine { host, state, .. }, started) = (self.machine, Instant::now());
        let Loaded { value: manifest, warnings } =
            manifest::load(location, inputs, host, state).map_err(|error| described(&error))?;
        for problem in warnings.iter().flat_map(told) {
            self.log.debug("warning", &[("source", address), ("problem", &problem)]);
        }
        self.metrics.observe(&metrics::DATA_RESOLVE, &[], started.elapsed());
        Ok(manifest)
    }
}

impl Judge for Round<'_> {
    fn data(&self, data: &Location) -> Result<(), String> {
        let inputs = self.inputs_with(None)?;
        let Machine { host, state, .. } = self.machine;
        let judged = inputs.data_of(data, Path::new("/"), host, state);
        judged.map(drop).map_err(|error| described(&error))
    }

    fn manifest(
        &self,
        address: &Address,
        manifest: &Location,
        data: Option<&Location>,
    ) -> Result<Manifest, String> {
        let inputs = self.inputs_with(data.cloned())?;
        let manifest = self.load_one(address, manifest, &inputs);
        self.metrics.observe(&metrics::FACTS_GATHER, &[], inputs.facts.spent());
        manifest
    }

    fn limit(&self) -> u64 {
        Limits::default().data
    }
}

/// A run that awaits its confirmation by the agent.
pub(crate) struct Awaiting {
    pub(crate) run: String,
    /// How long all health checks have to pass.
    pub(crate) time: Duration,
}

/// How long the agent may take to confirm a run at the end of the time.
const MARGIN: Duration = Duration::from_mins(1);

impl Outcome {
    fn not_applied(manifest: usize, error: String) -> Self {
        Self {
            manifest,
            failed: 0,
            changed: 0,
            resources: 0,
            has_checks: false,
            error: Some(error),
            repaired: Vec::new(),
            disturbed: Vec::new(),
        }
    }

    pub(crate) fn is_well(&self) -> bool {
        self.failed == 0 && self.error.is_none()
    }
}

/// Returns the manifest, unless an earlier manifest declares one of its resources, too: both would change it in turn.
fn not_repeated(
    manifest: Manifest,
    number: usize,
    earlier: &[Ready],
    known: Option<&BTreeMap<usize, HashSet<Reference>>>,
) -> Result<Manifest, String> {
    let loaded: Vec<&Manifest> = earlier.iter().map(|ready| &ready.manifest).collect();
    if let Some(review) = manifest::repeated(&loaded, &manifest).first() {
        return Err(told(review).into_iter().next().unwrap_or_default());
    }
    // Not all manifests are loaded for every run.
    let others = known
        .into_iter()
        .flatten()
        .filter(|(other, _)| **other < number && !earlier.iter().any(|ready| ready.number == **other));
    let names: Vec<&HashSet<Reference>> = others.map(|(_, names)| names).collect();
    let repeated = flattened(&manifest.resources)
        .into_iter()
        .flat_map(Resource::names)
        .find(|name| names.iter().any(|names| names.contains(name)));
    match repeated {
        Some(name) => Err(format!("{name} is declared in another manifest of this agent, too")),
        None => Ok(manifest),
    }
}

/// Watches what a manifest depends on, its children included.
fn watch(watching: &mut Watching, ready: &Ready) {
    let resources = flattened(&ready.manifest.resources);
    let watches: Vec<Watches> = resources.iter().map(|resource| resource.wanted.watches()).collect();
    let named = resources.iter().map(|resource| resource.reference()).zip(&watches);
    watching.set(ready.number, &ready.manifest.working_directory, named);
    watching.set_names(ready.number, resources.iter().flat_map(|resource| resource.names()).collect());
}

/// Returns what is wrong in one line.
pub(crate) fn described(error: &LoadError) -> String {
    match error {
        LoadError::Unreadable(unreadable) => unreadable.to_string(),
        LoadError::NotSet(reason) => reason.clone(),
        LoadError::Invalid(reviews) => {
            let problems: Vec<String> = reviews.iter().flat_map(told).collect();
            problems.join("; ")
        }
    }
}

fn told(review: &crate::document::Review) -> Vec<String> {
    let is_error = review.diagnostics.has_errors();
    let counts = |found: &&crate::document::Diagnostic| {
        !is_error || found.severity == crate::document::Severity::Error
    };
    let text = |found: &crate::document::Diagnostic| found.located(&review.source).to_string();
    review.diagnostics.iter().filter(counts).map(text).collect()
}

/// Sees what happens in a run.
struct Witness<'w> {
    round: &'w Round<'w>,
    manifest: usize,
    source: &'w str,
    folder: &'w Path,
    selected: &'w Selected,
    watching: Option<&'w mut Watching>,
    own: &'w mut OwnWrites,
    looked_at: usize,
    repaired: Vec<Repair>,
}

/// After so many resources the kernel's events are taken, so that it need not keep more than it can.
const TAKE_EVENTS_AFTER: usize = 256;

impl Observer for Witness<'_> {
    fn finished(&mut self, report: &Report) {
        let Report { resource, event, excluded, errors, summary, warnings, .. } = report;
        // Of what this run is not about, nothing is known.
        if excluded.is_none() || self.selected.contains(resource) {
            self.round.fleet.note(self.source, Task::Apply, report);
        }
        if excluded.is_some() {
            return;
        }
        self.looked_at += 1;
        let log = self.round.log;
        for warning in warnings {
            log.warn("warning", &[("resource", resource), ("problem", warning)]);
        }
        if event.failed {
            let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
            log.error("failed", &[("resource", resource), ("error", &reasons.join("; "))]);
        } else if event.changed {
            let what = summary.as_deref().unwrap_or("changed");
            let message = if event.noop { "would change" } else { "changed" };
            log.info(message, &[("resource", resource), ("what", &what), ("cause", &self.round.cause)]);
            if !event.noop {
                let subject = Subject { manifest: self.manifest, resource: resource.reference() };
                let repair = Repair { subject, is_sensitive: resource.is_sensitive() };
                self.repaired.extend(Some(repair).filter(|_| !event.refreshed));
                if self.watching.is_some() {
                    self.own.note(&resource.wanted.watches(), self.folder);
                }
            }
        }
        metrics::count_event(self.round.metrics, event, resource.is_sensitive());
        if self.looked_at.is_multiple_of(TAKE_EVENTS_AFTER)
            && let Some(watching) = self.watching.as_deref_mut()
        {
            watching.keep();
        }
    }
}

/// Sees what a dry run would change once more.
struct SecondLook<'r> {
    manifest: usize,
    repaired: &'r HashSet<Reference>,
    disturbed: Vec<Subject>,
}

impl Observer for SecondLook<'_> {
    fn finished(&mut self, report: &Report) {
        let resource = report.resource.reference();
        if report.event.changed && self.repaired.contains(&resource) {
            self.disturbed.push(Subject { manifest: self.manifest, resource });
        }
    }
}
