//! A desired state of files and of the running system.

use std::ops::Deref;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    host::files::Intent,
    resource::{
        AnyProperties, AnyState, AnyType, Before, Context, Effects, Error, Guard, PathEffect, PlannedChange,
        Properties, Provider, State, Trigger,
    },
};

/// Files that are restored, and a resource that restores what the files do not hold.
pub(super) struct FilesAndLive {
    files: Box<dyn AnyProperties>,
    kind: &'static dyn AnyType,
    live: Box<dyn AnyProperties>,
}

impl FilesAndLive {
    /// `kind` is the type of `files`.
    pub(super) fn new(
        kind: &'static dyn AnyType,
        files: Box<dyn AnyProperties>,
        live: Box<dyn AnyProperties>,
    ) -> Self {
        Self { files, kind, live }
    }

    fn provider(&self, cx: &Context) -> Result<Provider, Error> {
        self.kind.provider(None, cx.host)
    }
}

/// Both states. Events show that of the resource.
#[derive(Serialize, JsonSchema)]
struct Both {
    #[serde(flatten)]
    shown: Map<String, Value>,
    #[serde(skip)]
    files: AnyState,
    #[serde(skip)]
    live: AnyState,
}

impl State for Both {
    fn ensure(&self) -> String {
        self.live.ensure()
    }

    fn redact(&mut self) {
        self.shown.clear();
        self.live.redact();
    }
}

/// What is restored.
struct Steps {
    files: Option<PlannedChange>,
    live: Option<PlannedChange>,
}

impl Deref for FilesAndLive {
    type Target = dyn Properties;

    fn deref(&self) -> &Self::Target {
        &**self.live
    }
}

impl AnyProperties for FilesAndLive {
    fn to_json(&self) -> Map<String, Value> {
        self.live.to_json()
    }

    fn inspect(&self, on: &Provider, cx: &Context) -> Result<AnyState, Error> {
        let files = self.files.inspect(&self.provider(cx)?, cx)?;
        let live = self.live.inspect(on, cx)?;
        Ok(AnyState::of(Both { shown: live.fields(), files, live }))
    }

    fn compare(&self, have: &AnyState, trigger: Trigger) -> Result<Option<PlannedChange>, Error> {
        let Both { files, live, .. } = have.get();
        let steps =
            Steps { files: self.files.compare(files, trigger)?, live: self.live.compare(live, trigger)? };
        let changes = || steps.files.iter().chain(&steps.live);
        let summary = changes().map(|change| change.summary.as_str()).collect::<Vec<_>>().join(". ");
        let differences = changes().flat_map(|change| change.differences.clone()).collect();
        let is_idle = changes().next().is_none();
        Ok((!is_idle).then(|| PlannedChange::new(summary, differences, Box::new(steps))))
    }

    fn preview(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        _: &Provider,
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        let (Both { files, .. }, steps) = (have.get(), change.action::<Steps>());
        let Some(change) = &steps.files else { return Ok(None) };
        self.files.preview(files, change, &self.provider(cx)?, cx)
    }

    fn simulate(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<(), Error> {
        let (Both { files, live, .. }, steps) = (have.get(), change.action::<Steps>());
        if let Some(change) = &steps.files {
            self.files.simulate(files, change, &self.provider(cx)?, cx)?;
        }
        steps.live.as_ref().map_or(Ok(()), |change| self.live.simulate(live, change, on, cx))
    }

    fn effects(&self, have: &AnyState, change: &PlannedChange, cx: &Context) -> Effects {
        let (Both { files, live, .. }, steps) = (have.get(), change.action::<Steps>());
        let files =
            steps.files.as_ref().map(|change| self.files.effects(files, change, cx)).unwrap_or_default();
        let live = steps.live.as_ref().map(|change| self.live.effects(live, change, cx)).unwrap_or_default();
        Effects { paths: [files.paths, live.paths].concat(), ..live }
    }

    fn before(&self, have: &AnyState, change: &PlannedChange) -> Before {
        let (Both { live, .. }, steps) = (have.get(), change.action::<Steps>());
        steps.live.as_ref().map_or(Before::Paths, |change| self.live.before(live, change))
    }

    fn enact(
        &self,
        have: &AnyState,
        change: PlannedChange,
        on: &Provider,
        cx: &Context,
    ) -> Result<AnyState, Error> {
        let Both { files, live, .. } = have.get();
        let mut steps: Steps = change.into_action();
        // Nothing is removed that the running system uses.
        if steps.files.as_ref().is_some_and(|change| removes(&self.files.effects(files, change, cx)))
            && let Some(change) = steps.live.take()
        {
            self.live.enact(live, change, on, cx)?;
        }
        if let Some(change) = steps.files {
            self.files.enact(files, change, &self.provider(cx)?, cx)?;
        }
        if let Some(change) = steps.live {
            self.live.enact(live, change, on, cx)?;
        }
        self.inspect(on, cx)
    }

    fn guarded(self: Box<Self>, guard: Box<dyn Guard>) -> Box<dyn AnyProperties> {
        Box::new(Self { live: self.live.guarded(guard), ..*self })
    }

    fn check_precondition(&self, on: &Provider, cx: &Context) -> Result<(), Error> {
        self.live.check_precondition(on, cx)
    }

    fn check_effects(&self, effects: &Effects) -> Result<(), Error> {
        self.live.check_effects(effects)
    }
}

fn removes(effects: &Effects) -> bool {
    let removes = |path: &PathEffect| {
        matches!(path, PathEffect::Operation { intent: Intent::Remove | Intent::RemoveTree, .. })
    };
    effects.paths.iter().any(removes)
}
