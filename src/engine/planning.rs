//! Captures each resource of a dry run, so that exactly this can be done later.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Engine, Place, Run, RunMode, Selected, Task, converge::Attempts, included::inside, recording::expectation,
};
use crate::{
    host::files::{CopyInterrupted, Intent, UNKNOWN},
    resource::{
        AccountEffect, AccountLeft, AnyState, Common, Content, Context, Effects, Error, ErrorKind,
        Fingerprint, History, Manifest, Observation, PackageLeft, PathEffect, Pinned, PlannedChange,
        Prediction, Resource, Trigger, Unknown,
    },
    state::history::{Depth, Measure, Secrecy, Snapshot, to_text},
    vocabulary::{Secret, TimeLimit, has_scheme},
};

/// Captures the resources of a dry run.
pub(crate) struct Planning {
    measure: Arc<Measure>,
    /// Paths that earlier resources would have changed.
    touched: Vec<PathBuf>,
    /// Whether the effects of an earlier resource are not known.
    has_opaque: bool,
    /// Whether an earlier resource installs or removes a package, which brings files, accounts and units.
    has_packages: bool,
}

impl Planning {
    pub(crate) fn new(measure: Arc<Measure>) -> Self {
        Self { measure, touched: Vec::new(), has_opaque: false, has_packages: false }
    }

    fn is_touched(&self, path: &Path) -> bool {
        self.touched.iter().any(|touched| path.starts_with(touched) || touched.starts_with(path))
    }
}

/// How much is known of a resource before it is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// Its effects are known.
    #[default]
    Exact,
    /// They depend on the outcome of a guard or condition, which is recorded.
    Conditional,
    /// They are not known.
    Opaque,
}

/// A resource as a dry run found it and would have changed it.
pub(crate) struct Captured {
    pub(crate) provider: &'static str,
    /// The properties, with the values of secrets.
    pub(crate) properties: Map<String, Value>,
    pub(crate) common: Common,
    /// Whether the properties or the state could reveal a secret.
    pub(crate) is_secret: bool,
    /// The content of `source`.
    pub(crate) source: BTreeMap<PathBuf, Vec<u8>>,
    /// The state on the machine; `None` if it cannot be inspected before earlier resources.
    pub(crate) observed: Option<Fingerprint>,
    /// The state after the earlier resources of the dry run; `None` if it is not known.
    pub(crate) predicted: Option<Fingerprint>,
    /// The states of paths that the change replaces.
    pub(crate) paths: Vec<(String, Depth, Snapshot)>,
    pub(crate) effects: Vec<String>,
    pub(crate) class: Class,
}

impl Attempts<'_> {
    /// Captures the resource for a plan, if there is one in the making. Called before its effects are predicted.
    pub(super) fn capture(
        &self,
        have: &AnyState,
        decided: Option<(&PlannedChange, &Effects)>,
        cx: &Context,
    ) -> Result<Option<Box<Captured>>, Error> {
        let Some(planning) = self.planning else { return Ok(None) };
        let planning = &mut *planning.borrow_mut();
        let change = decided.map(|(change, _)| change);
        let mut properties = Secret::revealed(|| self.wanted.to_json());
        let pinned = match self.wanted.pinning() {
            Some(pinning) => pinning.pin(have, change, cx)?,
            None => Pinned::default(),
        };
        properties.extend(pinned.properties);
        properties.retain(|_, value| !value.is_null());
        let common = self.common(cx)?;
        let has_secret_checks = common.health_checks.iter().any(|check| !check.secrets().is_empty());
        let is_secret = common.sensitive || has_secret_checks || !self.wanted.secrets().is_empty();
        let effects = decided.map(|(_, effects)| effects);
        let class = self.class(planning, have, effects, &properties, cx);
        let paths = effects.map(|effects| paths(planning, effects, is_secret, cx)).unwrap_or_default();
        let predicted = self.observation(have, change, is_secret, &planning.measure);
        let (observed, predicted) = if cx.prediction.borrow().is_empty() {
            (Some(predicted.clone()), Some(predicted))
        } else {
            let observed = self.observed(is_secret, &planning.measure, cx);
            // A state that earlier resources change is checked only after them.
            let is_independent =
                !cx.has_assumed() && observed.as_ref() == Some(&(predicted.clone(), change.is_some()));
            let is_known = !planning.has_packages && !cx.has_assumed();
            (is_independent.then(|| predicted.clone()), is_known.then_some(predicted))
        };
        planning.has_opaque |= class == Class::Opaque;
        planning.has_packages |= effects.is_some_and(|effects| !effects.packages.is_empty());
        planning.touched.extend(effects.iter().flat_map(|effects| effects.paths.iter()).map(touched));
        Ok(Some(Box::new(Captured {
            provider: self.provider.name,
            properties,
            common,
            is_secret,
            source: pinned.source,
            observed,
            predicted,
            paths,
            effects: effects.map(outline).unwrap_or_default(),
            class,
        })))
    }

    /// Returns the common properties with everything decided that depends on the manifest.
    fn common(&self, cx: &Context) -> Result<Common, Error> {
        let resource = self.resource;
        let mut common = Common::clone(&resource.common);
        common.sensitive = resource.is_sensitive();
        common.control = None;
        common.subscribe = self.causes.iter().copied().cloned().collect();
        common.register_when_stable.clear();
        let checks = resource.checks_now(&self.place.scope, &self.place.manifest.source);
        let mut checks =
            checks.map_err(|mut errors| errors.pop().unwrap_or_else(Error::interrupted))?.into_owned();
        for file in checks.iter_mut().filter_map(|check| check.goss_file.as_mut()) {
            *file = cx.resolve(file).display().to_string();
        }
        common.health_checks = checks;
        Ok(common)
    }

    fn observation(
        &self,
        have: &AnyState,
        change: Option<&PlannedChange>,
        is_secret: bool,
        measure: &Measure,
    ) -> Fingerprint {
        let Resource { kind, name, .. } = self.resource;
        let observation =
            Observation { kind: kind.name(), name, wanted: self.wanted, have, change, is_secret };
        observation.fingerprint(&|text| measure.keyed(text))
    }

    /// Inspects the resource without the effects of earlier resources. Returns its state, and whether it would change.
    fn observed(&self, is_secret: bool, measure: &Measure, cx: &Context) -> Option<(Fingerprint, bool)> {
        let (prediction, history) = (RefCell::<Prediction>::default(), History::default());
        let mut silent = |_: &str| {};
        let directory = &self.place.manifest.working_directory;
        let mut pristine =
            Context::new(self.host, self.state, &prediction, directory, cx.timeout(), &mut silent)
                .within(RunMode::Noop, &history)
                .among(self.resources)
                .about(self.resource)
                .triggered_by(cx.trigger());
        if let Some(scope) = cx.scope() {
            pristine = pristine.seeing(scope);
        }
        let have = self.wanted.inspect(self.provider, &pristine).ok()?;
        let change = self.wanted.compare(&have, cx.trigger()).ok()?;
        let is_changed = change.is_some();
        Some((self.observation(&have, change.as_ref(), is_secret, measure), is_changed))
    }

    fn class(
        &self,
        planning: &Planning,
        have: &AnyState,
        effects: Option<&Effects>,
        properties: &Map<String, Value>,
        cx: &Context,
    ) -> Class {
        let is_unknown = effects.is_some_and(|effects| has_unknown_effects(effects, properties));
        if is_unknown || cx.has_assumed() && planning.has_opaque {
            return Class::Opaque;
        }
        let has_condition = self.resource.common.control.is_some();
        let has_guard = ["creates", "onlyif", "unless"].iter().any(|guard| properties.contains_key(*guard));
        let is_guarded = effects.is_none() && has_guard;
        if has_condition || is_guarded || have.learned().is_some() {
            Class::Conditional
        } else {
            Class::Exact
        }
    }
}

/// Returns whether an action does more than its effects tell.
fn has_unknown_effects(effects: &Effects, properties: &Map<String, Value>) -> bool {
    let has_unknown_version =
        effects.packages.iter().any(|package| package.left == PackageLeft::Installed(None));
    let is_command = effects.unknown > Unknown::Nothing && effects.packages.is_empty();
    let is_url = |key: &str| properties.get(key).and_then(Value::as_str).is_some_and(has_scheme);
    let is_unchecked = !properties.contains_key("checksum") && (is_url("source") || is_url("url"));
    let is_written = |effect: &PathEffect| match effect {
        PathEffect::Operation { intent: Intent::Write(_), sha256, content, .. } => {
            *content == Content::Unknown || sha256.as_deref() == Some(UNKNOWN)
        }
        PathEffect::Filled { .. } => true,
        _ => false,
    };
    has_unknown_version || is_command || is_unchecked && effects.paths.iter().any(is_written)
}

fn touched(effect: &PathEffect) -> PathBuf {
    effect.path().to_owned()
}

/// Returns the states of the paths that a change replaces. Paths that earlier resources change are left out.
fn paths(
    planning: &Planning,
    effects: &Effects,
    is_secret: bool,
    cx: &Context,
) -> Vec<(String, Depth, Snapshot)> {
    let secrecy = if is_secret { Secrecy::Secret } else { Secrecy::Public };
    let tick = || cx.tick().map_err(|_| CopyInterrupted);
    let mut paths: Vec<(String, Depth, Snapshot)> = Vec::new();
    for effect in &effects.paths {
        let depth = match effect {
            PathEffect::Operation { .. } => expectation(effect).0,
            // Other files in the directory do not matter.
            PathEffect::Filled { .. } => Depth::Attributes,
            PathEffect::Appears { .. } => continue,
        };
        let path = to_text(effect.path().as_os_str());
        if planning.is_touched(effect.path()) || paths.iter().any(|(known, ..)| *known == path) {
            continue;
        }
        if let Ok(snapshot) = planning.measure.snapshot(effect.path(), depth, secrecy, &tick) {
            paths.push((path, depth, snapshot));
        }
    }
    paths
}

/// Describes effects, each by a line. Attributes and contents follow from the properties.
pub(crate) fn outline(effects: &Effects) -> Vec<String> {
    let path = |effect: &PathEffect| {
        let path = to_text(effect.path().as_os_str());
        match effect {
            PathEffect::Appears { .. } => format!("appears {path}"),
            PathEffect::Filled { .. } => format!("fill {path}"),
            PathEffect::Operation { intent, .. } => match intent {
                Intent::Write(_) | Intent::SetAttributes(_) => format!("change {path}"),
                Intent::MakeDirectory(..) => format!("directory {path}"),
                Intent::MakeLink(_) => format!("link {path}"),
                Intent::Remove => format!("remove {path}"),
                Intent::RemoveTree => format!("remove-tree {path}"),
            },
        }
    };
    let mut lines: Vec<String> = effects.paths.iter().map(path).collect();
    for unit in &effects.units {
        let settings = [("running", unit.running), ("enabled", unit.enabled), ("masked", unit.masked)];
        let settings = settings.into_iter().filter_map(|(name, value)| Some((name, value?)));
        lines.extend(settings.map(|(name, value)| format!("unit {} {name} {value}", unit.unit)));
    }
    for package in &effects.packages {
        let left = match &package.left {
            PackageLeft::Installed(version) => format!("installed {}", version.as_deref().unwrap_or("*")),
            PackageLeft::Removed => "removed".to_owned(),
        };
        lines.push(format!("package {} {left}", package.name));
    }
    let accounts = [("user", &effects.users), ("group", &effects.groups)];
    for (noun, accounts) in accounts {
        let left = |account: &AccountEffect| match account.left {
            AccountLeft::Absent => format!("{noun} {} absent", account.name),
            AccountLeft::Present(_) => format!("{noun} {} present", account.name),
        };
        lines.extend(accounts.iter().map(left));
    }
    lines
}

impl Engine<'_> {
    /// Captures the resources of the dry runs that follow.
    pub(crate) fn plan_with(&mut self, planning: Option<Planning>) {
        self.planning = planning.map(RefCell::new);
    }

    /// Checks the preconditions of the resources of a manifest, and returns the resources that differ.
    pub(crate) fn check_preconditions<'a>(
        &'a mut self,
        manifest: &'a Manifest,
        selected: &'a Selected,
    ) -> Vec<(&'a Resource, Error)> {
        let (mut run, place) = self.begin(manifest, selected, None);
        let mut failed = Vec::new();
        run.check_place(&place, &mut failed);
        failed
    }
}

impl<'a, 'h: 'a> Run<'a, 'h> {
    fn check_place(&mut self, place: &Place<'a>, failed: &mut Vec<(&'a Resource, Error)>) {
        let Manifest { resources, mode, task, .. } = place.manifest;
        if *mode == RunMode::Noop || *task == Task::Monitor {
            return;
        }
        for resource in resources.iter().filter(|resource| resource.switched_off.is_none()) {
            match resource.included.as_deref() {
                Some(included) => self.check_place(&inside(place, resource, included), failed),
                None => failed.extend(self.check_one(place, resource).err().map(|error| (resource, error))),
            }
        }
    }

    fn check_one(&mut self, place: &Place<'a>, resource: &'a Resource) -> Result<(), Error> {
        let Engine { host, state, .. } = *self.engine;
        let provider = self.providers.provide(resource, host)?;
        let (prediction, history) = (RefCell::<Prediction>::default(), History::default());
        let mut silent = |_: &str| {};
        let limit = resource.common.timeout.map(TimeLimit::as_std);
        let directory = &place.manifest.working_directory;
        let trigger = if resource.common.subscribe.is_empty() { Trigger::Turn } else { Trigger::Refresh };
        let cx = Context::new(host, state, &prediction, directory, limit, &mut silent)
            .within(RunMode::Noop, &history)
            .among(self.resources)
            .seeing(&place.scope)
            .about(resource)
            .triggered_by(trigger);
        resource.wanted.check_precondition(provider, &cx)
    }
}

impl Error {
    /// Returns whether the machine differs from the state that a plan relies on.
    pub(in crate::engine) fn is_stale(&self) -> bool {
        matches!(self.kind, ErrorKind::Stale { .. })
    }
}
