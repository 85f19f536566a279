//! A manifest inside a manifest, as the engine sees it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Resource, State};
use crate::{document::Source, template::Scope, vocabulary::RunMode};

/// The manifest that a resource stands for.
pub(crate) struct Child {
    pub(crate) resources: Vec<Resource>,
    /// What the resources were written in.
    pub(crate) source: Source,
    /// Where its relative paths start.
    pub(crate) working_directory: PathBuf,
    /// What its late templates and conditions can see.
    pub(crate) scope: Scope,
    /// Whether its first failure ends it.
    pub(crate) fail_on_error: bool,
    /// How it is applied at most.
    pub(crate) mode: RunMode,
    /// Whether only its health checks are made.
    pub(crate) health_check_only: bool,
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

/// Returns all resources, each followed by those of its child.
pub(crate) fn flattened(resources: &[Resource]) -> Vec<&Resource> {
    let mut all = Vec::with_capacity(resources.len());
    for resource in resources {
        all.push(resource);
        all.extend(resource.child.iter().flat_map(|child| flattened(&child.resources)));
    }
    all
}
