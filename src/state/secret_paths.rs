//! Paths of files and trees that contain secret values. `ccm status` shows no digests of them.
//!
//! The list is only read by commands that know nothing about the resource. If it is lost, the next run writes it again.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{StateDirectory, StateError, read};

pub(super) const FILE: &str = "secret-paths";

impl StateDirectory {
    /// Returns whether a path contains secret values.
    pub(crate) fn is_secret_path(&self, path: &Path) -> bool {
        self.secret_paths().is_ok_and(|known| path.ancestors().any(|above| known.contains(above)))
    }

    /// Records that paths contain secret values.
    pub(crate) fn add_secret_paths(&self, new: BTreeSet<PathBuf>) -> Result<(), StateError> {
        let mut known = self.secret_paths().unwrap_or_default();
        if new.is_subset(&known) {
            return Ok(());
        }
        known.extend(new);
        Ok(self.make()?.replace_unsynced(FILE, &serde_json::to_vec(&known).unwrap_or_default())?)
    }

    fn secret_paths(&self) -> Result<BTreeSet<PathBuf>, StateError> {
        let Some(folder) = self.open()? else { return Ok(BTreeSet::new()) };
        let bytes = read(&folder, FILE)?.unwrap_or_default();
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }
}
