//! What on disk belongs to the resources of a manifest, whether or not their turns come.

use std::path::{Path, PathBuf};

/// A part of the file system that a resource is responsible for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Managed {
    /// One path, and the directories that lead to it.
    Path(PathBuf),
    /// Everything below a directory.
    Tree(PathBuf),
}

/// What nobody may take away who does not own it.
#[derive(Debug, Default)]
pub(crate) struct ManagedPaths(Vec<Managed>);

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
    pub(crate) fn new(managed: Vec<Managed>) -> Self {
        Self(managed)
    }

    /// Returns how a path stands to all that is managed.
    pub(crate) fn standing(&self, path: &Path) -> Standing {
        let standing = |managed: &Managed| match managed {
            Managed::Path(own) if own == path => Standing::Managed,
            Managed::Tree(tree) if path.starts_with(tree) => Standing::Managed,
            Managed::Path(own) | Managed::Tree(own) if own.starts_with(path) => Standing::Parent,
            _ => Standing::Unmanaged,
        };
        let all = || self.0.iter().map(standing);
        let has = |wanted| all().any(|standing| standing == wanted);
        if has(Standing::Managed) {
            Standing::Managed
        } else if has(Standing::Parent) {
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
