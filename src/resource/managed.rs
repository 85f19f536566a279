//! What on disk belongs to the resources of a manifest, whether or not their turns come.

use std::{
    collections::BTreeSet,
    ops::Bound,
    path::{Path, PathBuf},
};

/// A part of the file system that a resource is responsible for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Managed {
    /// One path, and the directories that lead to it.
    Path(PathBuf),
    /// Everything below a directory.
    Tree(PathBuf),
}

impl Managed {
    pub(crate) fn into_path(self) -> PathBuf {
        let (Self::Path(path) | Self::Tree(path)) = self;
        path
    }
}

/// What nobody may take away who does not own it.
#[derive(Debug, Default)]
pub(crate) struct ManagedPaths {
    paths: BTreeSet<PathBuf>,
    trees: BTreeSet<PathBuf>,
}

/// How a path stands to what is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No resource knows it.
    Unmanaged,
    /// It is a resource's own.
    Managed,
    /// It leads to what is managed, and is itself not.
    Parent,
}

impl ManagedPaths {
    pub(crate) fn new(managed: impl IntoIterator<Item = Managed>) -> Self {
        let mut all = Self::default();
        for managed in managed {
            match managed {
                Managed::Path(path) => all.paths.insert(path),
                Managed::Tree(path) => all.trees.insert(path),
            };
        }
        all
    }

    /// Returns how a path stands to all that is managed.
    pub(crate) fn standing(&self, path: &Path) -> Standing {
        // Paths are in the order of their components: what is below one comes right after it.
        let leads_to = |known: &BTreeSet<PathBuf>| {
            let after = (Bound::Excluded(path), Bound::Unbounded);
            known.range::<Path, _>(after).next().is_some_and(|next| next.starts_with(path))
        };
        if self.paths.contains(path) || path.ancestors().any(|above| self.trees.contains(above)) {
            Standing::Managed
        } else if leads_to(&self.paths) || leads_to(&self.trees) {
            Standing::Parent
        } else {
            Standing::Unmanaged
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_managed_and_what_leads_to_it_is_spared() {
        let managed = ManagedPaths::new(vec![Managed::Path("/d/a/b".into()), Managed::Tree("/d/t".into())]);
        for (path, standing) in [
            ("/d", Standing::Parent),
            ("/d/a", Standing::Parent),
            ("/d/a/b", Standing::Managed),
            ("/d/a/b/c", Standing::Unmanaged),
            ("/d/ab", Standing::Unmanaged),
            ("/d/t", Standing::Managed),
            ("/d/t/x/y", Standing::Managed),
            ("/e", Standing::Unmanaged),
        ] {
            assert_eq!(managed.standing(Path::new(path)), standing, "{path}");
        }
    }
}
