//! Packages that change together with the requested ones.

use std::collections::BTreeMap;

use super::{
    name::PackageName,
    provider::{PackageProvider, Record},
    state::Metadata,
};

/// Packages that a transaction installed or removed together with the requested packages.
pub(super) struct Along {
    installed: Vec<String>,
    /// With their versions.
    removed: Vec<String>,
}

impl Along {
    pub(super) fn between(
        earlier: &[Record],
        later: &[Record],
        requested: &[&PackageName],
        on: &dyn PackageProvider,
    ) -> Self {
        let is_requested = |record: &Record| {
            requested.iter().any(|name| on.parts(name).is_ok_and(|parts| record.is_of(parts)))
        };
        let installed = |records: &[Record]| -> BTreeMap<String, String> {
            let others =
                records.iter().filter(|record| record.status == "installed" && !is_requested(record));
            others.map(|record| (record.full_name(), record.version.clone())).collect()
        };
        let (before, after) = (installed(earlier), installed(later));
        Self {
            installed: after.keys().filter(|name| !before.contains_key(*name)).cloned().collect(),
            removed: before
                .iter()
                .filter(|(name, _)| !after.contains_key(*name))
                .map(|(name, version)| format!("{name}={version}"))
                .collect(),
        }
    }

    pub(super) fn note(&self, metadata: &mut Metadata) {
        metadata.installed_along.clone_from(&self.installed);
        metadata.removed_along.clone_from(&self.removed);
    }
}
