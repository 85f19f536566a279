//! A manifest, from loading to the engine.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Resource, State};
use crate::{
    document::Source,
    host::files::Staging,
    template::Scope,
    vocabulary::{RunMode, TimeLimit},
};

/// Resources that are applied one after the other: a manifest that the user named, a manifest that another one includes, or
/// the one resource of `ccm ensure` and of a request.
pub(crate) struct Manifest {
    pub(crate) resources: Vec<Resource>,
    /// The text, for messages about what is found later.
    pub(crate) source: Source,
    /// Where relative paths start.
    pub(crate) working_directory: PathBuf,
    /// What run-time templates and conditions can see.
    pub(crate) scope: Scope,
    pub(crate) on_failure: OnFailure,
    /// With [`RunMode::Noop`], a real run changes nothing in it either.
    pub(crate) mode: RunMode,
    /// With [`Task::Monitor`], every run only checks the health of its resources.
    pub(crate) task: Task,
    pub(crate) settings: ManifestSettings,
    /// The extracted bundles that it was read from, removed with it.
    pub(crate) _bundles: Vec<Staging>,
}

impl Manifest {
    /// Returns a manifest of resources that were written in one text, without settings.
    pub(crate) fn of(
        resources: Vec<Resource>,
        source: Source,
        working_directory: PathBuf,
        scope: Scope,
    ) -> Self {
        Self {
            resources,
            source,
            working_directory,
            scope,
            on_failure: OnFailure::Continue,
            mode: RunMode::Real,
            task: Task::Apply,
            settings: ManifestSettings::default(),
            _bundles: Vec::new(),
        }
    }

    /// Returns the texts and the data of the manifest and of the manifests that it includes, to notice changes.
    pub(crate) fn everything(&self) -> String {
        let included =
            flattened(&self.resources).into_iter().filter_map(|resource| resource.included.as_deref());
        let parts = included.chain([self]).map(|part| {
            let data = part.scope.data().to_string();
            format!("{}\n{}\n{}{data}", part.source.text.len(), data.len(), part.source.text)
        });
        parts.collect()
    }

    /// Returns the manifest with the settings that it was written with.
    pub(crate) fn with_settings(self, settings: ManifestSettings) -> Self {
        let on_failure = match (settings.on_failure, settings.fail_on_error) {
            (Some(FailureResponse::Undo), _) => OnFailure::Undo,
            (None, true) => OnFailure::Stop,
            (None, false) => OnFailure::Continue,
        };
        Self { on_failure, settings, ..self }
    }
}

/// Settings of a manifest that apply to the whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ManifestSettings {
    /// Stop at the first failed resource.
    pub(crate) fail_on_error: bool,
    /// If `undo`, a failure stops the run, and ccm undoes the changes that the run made in the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_failure: Option<FailureResponse>,
    /// How long a run waits for `ccm confirm` before ccm undoes it. An agent confirms its runs itself if all health checks
    /// pass for that long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confirm: Option<TimeLimit>,
    /// Printed before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pre_message: Option<String>,
    /// Printed after the run when nothing failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) post_message: Option<String>,
}

/// What to do after a resource failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnFailure {
    #[default]
    Continue,
    Stop,
    /// Stops, and undoes the changes that the run made in the manifest.
    Undo,
}

/// A response to a failure that a user can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum FailureResponse {
    /// Stop, and undo the changes that the run made in the manifest.
    Undo,
}

/// What is done with resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// They are brought to their desired states, and then checked.
    Apply,
    /// They are only checked: nothing is inspected or changed.
    Monitor,
}

/// What became of the resources of a child.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChildState {
    /// How many resources there are, and what became of them.
    pub(crate) metadata: ChildCounts,
}

/// How many resources there are, and what became of them.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ChildCounts {
    /// How many resources it has, those of its own children included.
    pub(crate) resources: usize,
    /// How many of them changed, or would have.
    pub(crate) changed: usize,
    /// How many of them failed.
    pub(crate) failed: usize,
}

impl State for ChildState {
    fn ensure(&self) -> String {
        "present".to_owned()
    }
}

/// Returns all resources, each followed by those of the manifest that it includes.
pub(crate) fn flattened(resources: &[Resource]) -> Vec<&Resource> {
    let mut all = Vec::with_capacity(resources.len());
    for resource in resources {
        all.push(resource);
        all.extend(resource.included.iter().flat_map(|included| flattened(&included.resources)));
    }
    all
}
