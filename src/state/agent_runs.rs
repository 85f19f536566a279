//! The last run of each source of an agent that changed something, in `STATE/agent-runs.json`.
//!
//! If that run was undone, the agent does not apply the same content again. Content is compared by a keyed hash, because it
//! includes data that can be secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{StateDirectory, StateError, read};
use crate::host::files::hex;

pub(super) const FILE: &str = "agent-runs.json";

/// The last runs that changed something, by source.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct AgentRuns(BTreeMap<String, AgentRun>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AgentRun {
    run: String,
    /// Keyed hash of the manifests and their data.
    content: String,
}

impl AgentRuns {
    /// Reads the runs. A file that cannot be read costs only that an undone manifest is applied again.
    pub(crate) fn load(state: &StateDirectory) -> Self {
        let bytes = state.open().ok().flatten().and_then(|folder| read(&folder, FILE).ok()?);
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Returns the run of a source that was undone, if the source still has the content of that run.
    pub(crate) fn undone(
        &self,
        source: &str,
        content: impl Fn() -> String,
        state: &StateDirectory,
    ) -> Option<&str> {
        let AgentRun { run, content: applied } = self.0.get(source)?;
        let is_undone = state.history().ok().flatten().is_some_and(|history| history.is_undone(run));
        (is_undone && hash(&content(), state).ok().as_ref() == Some(applied)).then_some(run)
    }

    /// Notes that a run of a source changed something.
    pub(crate) fn note(
        &mut self,
        source: &str,
        run: &str,
        content: &str,
        state: &StateDirectory,
    ) -> Result<(), StateError> {
        let content = hash(content, state)?;
        self.0.insert(source.to_owned(), AgentRun { run: run.to_owned(), content });
        let json = serde_json::to_vec(self).unwrap_or_default();
        Ok(state.make()?.replace(FILE, |out| out.write_all(&json))?)
    }
}

fn hash(content: &str, state: &StateDirectory) -> Result<String, StateError> {
    Ok(hex(&state.make_identity()?.keyed_hash(&Sha256::digest(content))))
}
