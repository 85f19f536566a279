//! Makes a plan from a dry run while it happens.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::record::{ActionKind, Header, ManifestRecord, Predicted, Step};
use crate::{
    engine::{Captured, Observer, Report, RunMode, Task},
    resource::{Difference, Manifest, Resource, hidden},
    state::{
        StateDirectory, StateError,
        history::{Measure, PropertyChange, to_text},
    },
    types,
    vocabulary::{Secret, schema::object},
};

/// The manifests of a plan in the making. It passes everything on to another observer.
pub(crate) struct Draft<'o> {
    inner: &'o mut dyn Observer,
    state: &'o StateDirectory,
    measure: Arc<Measure>,
    /// The steps in the order of their results, which a joint validation can delay.
    steps: VecDeque<Step>,
    /// Contents by digest. Those of secret resources are encrypted.
    pub(super) contents: BTreeMap<String, Vec<u8>>,
    failed: Option<StateError>,
    /// The properties of secret resources.
    secrets: Vec<String>,
    /// Whether paths are restored from the history.
    restores: bool,
}

/// A finished draft.
pub(crate) struct Drafted {
    pub(crate) header: Header,
    pub(crate) manifests: Vec<ManifestRecord>,
    pub(crate) contents: BTreeMap<String, Vec<u8>>,
}

impl Drafted {
    /// Returns the steps whose effects are not known.
    pub(crate) fn opaque(&self) -> impl Iterator<Item = &Step> {
        self.manifests.iter().flat_map(ManifestRecord::flattened).filter(|step| step.is_opaque())
    }
}

impl<'o> Draft<'o> {
    pub(crate) fn new(inner: &'o mut dyn Observer, state: &'o StateDirectory, measure: Arc<Measure>) -> Self {
        Self {
            inner,
            state,
            measure,
            steps: VecDeque::new(),
            contents: BTreeMap::new(),
            failed: None,
            secrets: Vec::new(),
            restores: false,
        }
    }

    /// Makes the plan of an undo.
    pub(crate) fn of_undo(self) -> Self {
        Self { restores: true, ..self }
    }

    /// Returns the plan of the manifests that were applied.
    pub(crate) fn finish(
        mut self,
        manifests: &[&Manifest],
        mut header: Header,
    ) -> Result<Drafted, StateError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut steps = std::mem::take(&mut self.steps);
        let mut records: Vec<ManifestRecord> =
            manifests.iter().map(|manifest| record(manifest, &mut steps)).collect();
        header.pending = announce(&mut records);
        for (path, value) in &mut header.facts {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // A secret resource could have its secret from a fact.
            if self.secrets.iter().any(|secret| secret.contains(&text)) {
                *value = hidden(path, value, &|text| self.measure.keyed(text));
            }
        }
        Ok(Drafted { header, manifests: records, contents: self.contents })
    }

    fn step(&mut self, report: &Report) -> Result<Step, StateError> {
        let Report { resource, event, source, captured, .. } = report;
        let mut step = Step {
            resource: resource.to_string(),
            position: resource.position(source),
            action: match (&report.summary, event.refreshed) {
                (Some(_), true) => ActionKind::Refresh,
                (Some(_), false) => ActionKind::Change,
                (None, _) => ActionKind::None,
            },
            summary: report.summary.clone(),
            differences: report.differences.iter().map(|difference| recorded(difference, resource)).collect(),
            diff: event.diff.clone(),
            assumptions: report.warnings.clone(),
            causes: report.causes.iter().map(ToString::to_string).collect(),
            skipped: report.excluded.map(str::to_owned),
            restores: self.restores
                && (types::undoing(resource.kind.name()).is_some()
                    || captured.as_ref().is_some_and(|captured| captured.provider == "history")),
            ..Step::default()
        };
        match captured {
            Some(captured) => self.complete(&mut step, captured)?,
            None if resource.included.is_none() => {
                let wanted = &*resource.wanted;
                step.secret = resource.hides_anything();
                step.properties = self.sealed(Secret::revealed(|| wanted.to_json()), step.secret)?;
                step.common = self.sealed(Secret::revealed(|| common(resource)), step.secret)?;
            }
            None => {}
        }
        if resource.included.is_some() {
            step.secret = resource.hides_anything();
            step.common = self.sealed(Secret::revealed(|| common(resource)), step.secret)?;
            step.action = ActionKind::None;
        }
        step.shorten();
        Ok(step)
    }

    fn complete(&mut self, step: &mut Step, captured: &Captured) -> Result<(), StateError> {
        step.secret = captured.is_secret;
        step.class = captured.class;
        step.observed.clone_from(&captured.observed);
        step.predicted = match (&captured.predicted, &captured.observed) {
            (Some(predicted), Some(observed)) if predicted == observed => Predicted::Same,
            (Some(predicted), _) => Predicted::State(predicted.clone()),
            (None, _) => Predicted::Unknown,
        };
        step.paths.clone_from(&captured.paths);
        step.effects.clone_from(&captured.effects);
        if step.secret {
            self.secrets.extend(captured.properties.values().map(ToString::to_string));
        }
        step.properties = self.sealed(captured.properties.clone(), step.secret)?;
        step.common = self.sealed(Secret::revealed(|| object(&captured.common)), step.secret)?;
        for (path, content) in &captured.source {
            let digest = self.keep(content, step.secret)?;
            step.source.insert(to_text(path.as_os_str()), digest);
        }
        Ok(())
    }

    fn sealed(&self, map: Map<String, Value>, is_secret: bool) -> Result<Map<String, Value>, StateError> {
        if is_secret { self.state.seal(&map) } else { Ok(map) }
    }

    /// Adds a content and returns its digest.
    fn keep(&mut self, content: &[u8], is_secret: bool) -> Result<String, StateError> {
        let (digest, content) = self.measure.content(content, is_secret)?;
        self.contents.entry(digest.clone()).or_insert(content);
        Ok(digest)
    }
}

impl Observer for Draft<'_> {
    fn rest(&mut self) -> Option<&mut dyn Observer> {
        Some(&mut *self.inner)
    }

    fn finished(&mut self, report: &Report) {
        match self.step(report) {
            Ok(step) => self.steps.push_back(step),
            Err(error) => {
                self.failed.get_or_insert(error);
            }
        }
        self.inner.finished(report);
    }
}

fn common(resource: &Resource) -> Map<String, Value> {
    let mut common = (*resource.common).clone();
    common.sensitive = resource.is_sensitive();
    common.control = None;
    common.register_when_stable.clear();
    object(&common)
}

fn recorded(difference: &Difference, resource: &Resource) -> PropertyChange {
    let values = difference.values.as_ref().filter(|_| !resource.is_sensitive());
    PropertyChange {
        property: difference.property.to_owned(),
        have: values.map(|values| values.have.clone()),
        want: values.map(|values| values.want.clone()),
    }
}

/// Returns a manifest with the first of the steps for each of its resources.
fn record(manifest: &Manifest, steps: &mut VecDeque<Step>) -> ManifestRecord {
    let mut own = Vec::new();
    for resource in &manifest.resources {
        let included = resource.included.as_deref().map(|included| record(included, steps));
        let name = resource.to_string();
        let at = steps.iter().position(|step| step.resource == name);
        if let Some(step) = at.and_then(|at| steps.remove(at)) {
            own.push(Step { included, ..step });
        }
    }
    ManifestRecord {
        steps: own,
        name: manifest.source.name.clone(),
        directory: to_text(manifest.working_directory.as_os_str()),
        settings: manifest.settings.clone(),
        on_failure: manifest.on_failure,
        noop: manifest.mode == RunMode::Noop,
        monitor: manifest.task == Task::Monitor,
    }
}

/// Adds to each step the refreshes that it causes, and returns those that earlier runs left pending.
fn announce(manifests: &mut [ManifestRecord]) -> Vec<[String; 2]> {
    let mut pending = Vec::new();
    let mut causes: Vec<(String, String)> = Vec::new();
    for step in manifests.iter().flat_map(ManifestRecord::flattened) {
        causes.extend(step.causes.iter().map(|cause| (cause.clone(), step.resource.clone())));
    }
    for manifest in manifests.iter_mut() {
        add_refreshes(manifest, &causes);
    }
    for (cause, refreshed) in causes {
        let is_changed = manifests.iter().flat_map(ManifestRecord::flattened).any(|step| {
            step.resource == cause && (step.action != ActionKind::None || step.included.is_some())
        });
        if !is_changed {
            pending.push([refreshed, cause]);
        }
    }
    pending
}

fn add_refreshes(manifest: &mut ManifestRecord, causes: &[(String, String)]) {
    for step in &mut manifest.steps {
        let own = causes.iter().filter(|(cause, _)| *cause == step.resource);
        step.refreshes = own.map(|(_, refreshed)| refreshed.clone()).collect();
        if let Some(included) = &mut step.included {
            add_refreshes(included, causes);
        }
    }
}
