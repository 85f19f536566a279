//! The parts of a plan file: the header, manifests and steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    engine::{Class, OnFailure},
    resource::{Fingerprint, ManifestSettings},
    state::history::{Depth, ManifestDigest, PropertyChange, Snapshot, Who},
    types,
};

/// Names the format. It begins the first line of a plan.
pub(crate) const PROTOCOL: &str = "io.choria.ccm.v1.plan";

/// Facts by their paths.
pub(crate) type Facts = BTreeMap<String, Value>;

/// The first line of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) protocol: String,
    pub(crate) version: String,
    pub(crate) host: String,
    /// Keyed hash of the machine id.
    pub(crate) machine: String,
    pub(crate) created: String,
    pub(crate) expires: String,
    pub(crate) who: Who,
    #[serde(default)]
    pub(crate) manifests: Vec<ManifestDigest>,
    /// Template files that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) templates: Vec<ManifestDigest>,
    /// Keyed hash of the data of all manifests.
    #[serde(default)]
    pub(crate) data: String,
    /// The machine facts that were read.
    #[serde(default)]
    pub(crate) facts: Facts,
    /// Refreshes that were pending before the plan was made: the resource and its cause.
    #[serde(default)]
    pub(crate) pending: Vec<[String; 2]>,
    /// The run that the plan undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undo_of: Option<String>,
    /// Length of the compressed part in bytes.
    pub(crate) length: u64,
}

/// A manifest of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ManifestRecord {
    pub(crate) name: String,
    /// Where relative paths start.
    pub(crate) directory: String,
    #[serde(default)]
    pub(crate) settings: ManifestSettings,
    #[serde(default)]
    pub(crate) on_failure: OnFailure,
    /// Even a real run does not change anything in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) noop: bool,
    /// Only health checks are run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) monitor: bool,
    pub(crate) steps: Vec<Step>,
}

/// A resource of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) resource: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) position: String,
    #[serde(default)]
    pub(crate) class: Class,
    #[serde(default)]
    pub(crate) action: ActionKind,
    /// Completes "Would have ...".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) differences: Vec<PropertyChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
    /// Whether the diff is that of a new file with the property `content`, and left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_new: bool,
    /// Assumptions of the dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) assumptions: Vec<String>,
    /// Resources that are refreshed because of the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refreshes: Vec<String>,
    /// Changes that the resource is refreshed for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<String>,
    /// Why the resource is not managed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
    /// Whether paths are restored from the history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) restores: bool,
    /// Whether properties and contents are encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) secret: bool,
    #[serde(default)]
    pub(crate) properties: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) common: Map<String, Value>,
    /// The state on the machine; nothing if it cannot be inspected before earlier steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<Fingerprint>,
    #[serde(default)]
    pub(crate) predicted: Predicted,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<(String, Depth, Snapshot)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) effects: Vec<String>,
    /// The content of `source`: digests by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) source: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) included: Option<ManifestRecord>,
}

/// The state right before a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Predicted {
    /// As observed.
    #[default]
    Same,
    /// It depends on an earlier step.
    Unknown,
    State(Fingerprint),
}

/// The action of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionKind {
    #[default]
    None,
    Change,
    Refresh,
}

impl Step {
    /// Returns the diff of a new file that follows from the properties.
    fn diff_of_new(&self) -> Option<String> {
        let (_, path) = self.resource.split_once('#')?;
        types::diff_of_new(path, self.properties.get("content")?.as_str()?.as_bytes())
    }

    /// Leaves out a diff that follows from the properties.
    pub(super) fn shorten(&mut self) {
        if self.diff.is_some() && self.diff == self.diff_of_new() {
            (self.diff, self.is_new) = (None, true);
        }
    }

    /// Restores diffs that were left out.
    pub(super) fn complete(&mut self) {
        if self.is_new {
            self.diff = self.diff_of_new();
        }
        self.included.iter_mut().flat_map(|included| &mut included.steps).for_each(Self::complete);
    }

    /// Returns whether the dry run inspected the resource.
    pub(super) fn is_captured(&self) -> bool {
        self.observed.is_some() || self.predicted != Predicted::Same
    }

    /// Completes "would have ..." for a reader.
    pub(crate) fn described(&self) -> String {
        let Some(summary) = &self.summary else { return "unchanged".to_owned() };
        let difference = |difference: &PropertyChange| match (&difference.have, &difference.want) {
            (Some(have), Some(want)) => format!("{} {have} → {want}", difference.property),
            _ => difference.property.clone(),
        };
        let mut details: Vec<String> = self.differences.iter().map(difference).collect();
        // The version that a package manager chose is in no property.
        let packages = self.effects.iter().filter_map(|line| line.strip_prefix("package "));
        details.extend(
            packages.filter_map(|line| Some(format!("version {}", line.split_once(" installed ")?.1))),
        );
        if details.is_empty() { summary.clone() } else { format!("{summary} ({})", details.join(", ")) }
    }

    pub(crate) fn is_conditional(&self) -> bool {
        self.class == Class::Conditional
    }

    pub(crate) fn is_opaque(&self) -> bool {
        self.class == Class::Opaque
    }
}

impl ManifestRecord {
    /// Returns all steps, those of an included manifest after its resource.
    pub(crate) fn flattened(&self) -> Vec<&Step> {
        let mut all = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            all.push(step);
            all.extend(step.included.iter().flat_map(Self::flattened));
        }
        all
    }
}
