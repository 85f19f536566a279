//! Turns the steps of a plan back into resources.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use super::{
    file::PlanFile,
    planned::{Expectation, Planned},
    record::{ActionKind, ManifestRecord, Step},
};
use crate::{
    document::Source,
    engine::{RunMode, Task},
    host::{
        Host,
        files::{Attributes, Staging},
    },
    resource::{AnyProperties, AnyType, Common, IF_IS_FALSE, Manifest, Resource, UNLESS_IS_TRUE},
    state::{
        LocalState,
        history::{Change, Done, Measure, Undo, from_text},
    },
    template::Scope,
    types,
    vocabulary::Reference,
};

/// Reasons for which a resource of a plan is not managed.
const REASONS: [&str; 3] = [IF_IS_FALSE, UNLESS_IS_TRUE, "not selected"];

/// Contents of a plan, in a directory that is removed with this.
pub(crate) struct Staged(#[expect(dead_code, reason = "removed when dropped")] Option<Staging>);

/// Turns the steps of a plan into resources.
pub(crate) struct Applicable<'p> {
    pub(crate) plan: &'p PlanFile,
    pub(crate) state: &'p LocalState,
    pub(crate) measure: Arc<Measure>,
    /// Commands that an earlier run of the plan completed.
    done: BTreeSet<String>,
    /// Steps that an earlier run of the plan began and did not complete.
    begun: BTreeSet<String>,
}

impl<'p> Applicable<'p> {
    pub(crate) fn new(plan: &'p PlanFile, state: &'p LocalState, measure: Measure) -> Self {
        let (done, begun) = (BTreeSet::new(), BTreeSet::new());
        let mut applicable = Self { plan, state, measure: Arc::new(measure), done, begun };
        applicable.read_history();
        applicable
    }

    /// Finds the steps that the history records of this plan.
    fn read_history(&mut self) {
        let Ok(Some(store)) = self.state.directory.history() else { return };
        let Ok(log) = store.read() else { return };
        let of_plan = log.runs.into_iter().filter(|run| run.start.plan.as_ref() == Some(&self.plan.digest));
        let was_begun = |(change, done): &(Change, Option<Done>)| done.is_some() || !change.is_ahead;
        for (change, done) in of_plan.flat_map(|run| run.changes).filter(was_begun) {
            if done.is_none_or(|done| done.failed) {
                self.begun.insert(change.resource);
                continue;
            }
            self.begun.remove(&change.resource);
            if matches!(change.undo, Undo::Command(_)) {
                self.done.insert(change.resource);
            }
        }
    }

    /// Returns the manifests of the plan, and the contents that its resources copy.
    pub(crate) fn manifests(&self, host: &Host) -> Result<(Vec<Manifest>, Staged), String> {
        let mut builder = Builder { applicable: self, host, staging: None, next: 0 };
        let manifests = self.plan.manifests.iter().map(|record| builder.manifest(record));
        let manifests = manifests.collect::<Result<Vec<_>, String>>()?;
        Ok((manifests, Staged(builder.staging)))
    }
}

struct Builder<'b> {
    applicable: &'b Applicable<'b>,
    host: &'b Host,
    staging: Option<Staging>,
    /// Number of the next directory for the content of a source.
    next: usize,
}

impl Builder<'_> {
    fn manifest(&mut self, record: &ManifestRecord) -> Result<Manifest, String> {
        let resources = record.steps.iter().map(|step| {
            let resource = self.resource(step);
            resource.map_err(|problem| format!("{}: {problem}", step.resource))
        });
        let resources = resources.collect::<Result<Vec<_>, String>>()?;
        let directory = from_text(&record.directory).unwrap_or_default();
        let scope = Scope::new(ccm_expr::Map::new().into(), ccm_expr::Map::new().into(), directory.clone());
        let source = Source { name: record.name.clone(), text: String::new() };
        let manifest = Manifest::of(resources, source, directory, scope);
        Ok(Manifest {
            on_failure: record.on_failure,
            mode: if record.noop { RunMode::Noop } else { RunMode::Real },
            task: if record.monitor { Task::Monitor } else { Task::Apply },
            settings: record.settings.clone(),
            ..manifest
        })
    }

    fn resource(&mut self, step: &Step) -> Result<Resource, String> {
        let reference: Reference = step.resource.parse().map_err(|_| "not a reference".to_owned())?;
        let restoring = || types::undoing(&reference.kind).or_else(|| types::restoring(&reference.kind));
        let known = if step.restores { restoring() } else { types::find(&reference.kind) };
        let kind = known.ok_or_else(|| format!("this version of ccm has no type `{}`", reference.kind))?;
        let common: Common = serde_json::from_value(Value::Object(self.unsealed(&step.common)?))
            .map_err(|error| error.to_string())?;
        let mut properties = self.unsealed(&step.properties)?;
        properties.insert("name".to_owned(), reference.name.clone().into());
        let source = properties.get("source").cloned().filter(|_| !step.source.is_empty());
        if !step.source.is_empty() {
            let staged = self.stage(step)?;
            properties.insert("source".to_owned(), staged.to_string_lossy().into_owned().into());
        }
        let skipped = step
            .skipped
            .as_ref()
            .map(|reason| REASONS.into_iter().find(|known| known == reason).unwrap_or("not selected"));
        let wanted = match (read(kind, &properties), skipped) {
            (Ok(wanted), None) if step.is_captured() => {
                let expectation = self.expectation(step, kind, reference.name.clone(), source);
                wanted.guarded(Box::new(Planned::new(expectation)))
            }
            (Ok(wanted), _) => wanted,
            // Templates of a resource that is not managed were not expanded.
            (Err(_), Some(_)) => neutral(&reference.name)?,
            (Err(problem), None) => return Err(problem),
        };
        let mut resource = Resource::assembled(kind, reference.name, common, wanted);
        resource.places.recorded = Some(step.position.clone()).filter(|position| !position.is_empty());
        resource.switched_off = skipped;
        let included = step.included.as_ref().map(|record| self.manifest(record)).transpose()?;
        resource.included = included.map(Box::new);
        Ok(resource)
    }

    fn expectation(
        &self,
        step: &Step,
        kind: &'static dyn AnyType,
        name: String,
        source: Option<Value>,
    ) -> Expectation {
        Expectation {
            kind: kind.name(),
            name,
            action: step.action,
            observed: step.observed.clone(),
            predicted: step.predicted.clone(),
            paths: step.paths.clone(),
            effects: step.effects.clone(),
            is_secret: step.secret,
            is_done: step.action != ActionKind::None && self.applicable.done.contains(&step.resource),
            is_begun: self.applicable.begun.contains(&step.resource),
            measure: Arc::clone(&self.applicable.measure),
            source,
        }
    }

    fn unsealed(&self, map: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        self.applicable.state.directory.unseal(map).map_err(|error| error.to_string())
    }

    /// Writes the content of a source into a private directory, and returns its path.
    fn stage(&mut self, step: &Step) -> Result<PathBuf, String> {
        let failed =
            |error: &dyn std::fmt::Display| format!("cannot extract the content of `source`: {error}");
        if self.staging.is_none() {
            let LocalState { directory, write_journal, .. } = self.applicable.state;
            let folder = directory.make_folder("bundles").map_err(|error| failed(&error))?;
            write_journal.note(folder.path(), &self.host.interrupt);
            let staging = Staging::new(&folder.path().join("plan"), Attributes::own(0o700));
            self.staging = Some(staging.map_err(|error| failed(&error))?);
        }
        let Some(staging) = &mut self.staging else { return Err(failed(&"no directory")) };
        let root = PathBuf::from(self.next.to_string());
        self.next += 1;
        let mut made = BTreeSet::new();
        for (path, digest) in &step.source {
            let content =
                self.applicable.plan.contents.get(digest).ok_or_else(|| failed(&"it is missing"))?;
            let content = if step.secret {
                self.applicable.measure.decrypted(content).map_err(|error| failed(&error))?
            } else {
                content.clone()
            };
            let path = from_text(path).unwrap_or_default();
            let at = if path.as_os_str().is_empty() { root.clone() } else { root.join(path) };
            let parents: Vec<&Path> =
                at.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
            for parent in parents.into_iter().rev() {
                if made.insert(parent.to_owned()) {
                    staging.make_directory(parent).map_err(|error| failed(&error))?;
                }
            }
            let copied = staging.copy_file(&at, &mut content.as_slice(), Attributes::own(0o600));
            copied.map_err(|error| failed(&error))?;
        }
        Ok(staging.path().join(root))
    }
}

/// Returns the desired state of a resource that is not managed.
fn neutral(name: &str) -> Result<Box<dyn AnyProperties>, String> {
    let kind = types::find("apply").ok_or_else(|| "no type `apply`".to_owned())?;
    read(kind, &Map::from_iter([("name".to_owned(), name.into())]))
}

fn read(
    kind: &'static dyn AnyType,
    properties: &Map<String, Value>,
) -> Result<Box<dyn AnyProperties>, String> {
    let text = json!(properties).to_string();
    let source = Source { name: "plan".to_owned(), text };
    let node = crate::document::parse(&source).map_err(|_| "its properties are not valid".to_owned())?;
    kind.read(&node).map_err(|error| error.to_string())
}
