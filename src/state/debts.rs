//! Refreshes that are owed.
//!
//! When a resource changes, its subscribers have to be refreshed. If the run ends between the change and the refresh,
//! the next run finds the resource as desired and would never know. So the debt is written down before the change is
//! made, and struck out once the refresh is done.

use std::{collections::BTreeMap, fs, io};

use serde::{Deserialize, Serialize};

use super::{StateDirectory, StateError};
use crate::vocabulary::Reference;

const FILE: &str = "debts.json";

/// The refreshes that are owed, as they are on disk.
pub(crate) struct Debts {
    directory: StateDirectory,
    owed: Owed,
}

/// Each resource that is to be refreshed, and the change that it is owed for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owed {
    refreshes: BTreeMap<String, String>,
}

impl StateDirectory {
    /// The debts of earlier runs.
    pub(crate) fn debts(&self) -> Result<Debts, StateError> {
        let path = self.path().join(FILE);
        let owed = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| StateError::Damaged { path, reason: error.to_string() })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Owed::default(),
            Err(error) => return Err(StateError::Io { path, error }),
        };
        Ok(Debts { directory: self.clone(), owed })
    }

    /// No debts, whatever the file says: the next record replaces it.
    pub(crate) fn no_debts(&self) -> Debts {
        Debts { directory: self.clone(), owed: Owed::default() }
    }
}

impl Debts {
    /// The change for which a refresh of this resource is owed.
    pub(crate) fn owed_to(&self, resource: &Reference) -> Option<&str> {
        self.owed.refreshes.get(&resource.to_string()).map(String::as_str)
    }

    /// Writes down that these resources are to be refreshed; gives those for which that is new.
    pub(crate) fn incur(
        &mut self,
        resources: &[Reference],
        because: &Reference,
    ) -> Result<Vec<Reference>, StateError> {
        let new: Vec<Reference> =
            resources.iter().filter(|resource| self.owed_to(resource).is_none()).cloned().collect();
        if new.is_empty() {
            return Ok(new);
        }
        let mut owed = self.owed.clone();
        owed.refreshes.extend(new.iter().map(|resource| (resource.to_string(), because.to_string())));
        self.store(owed)?;
        Ok(new)
    }

    /// Strikes out what has been paid or turned out not to be owed.
    pub(crate) fn strike(&mut self, resources: &[Reference]) -> Result<(), StateError> {
        let mut owed = self.owed.clone();
        for resource in resources {
            owed.refreshes.remove(&resource.to_string());
        }
        if owed.refreshes.len() == self.owed.refreshes.len() { Ok(()) } else { self.store(owed) }
    }

    fn store(&mut self, owed: Owed) -> Result<(), StateError> {
        let path = self.directory.path().join(FILE);
        let text =
            serde_json::to_vec_pretty(&owed).map_err(|error| StateError::Io { path, error: error.into() })?;
        self.directory.store(FILE, &text)?;
        self.owed = owed;
        Ok(())
    }
}
