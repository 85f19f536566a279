//! What is in a directory and belongs to no resource of the manifest.

use std::path::{Path, PathBuf};

use super::disk;
use crate::{
    host::files::{self, FileKind},
    resource::{Context, Error, ManagedPaths, Standing},
};

/// A search for what belongs to nobody.
pub(super) struct Search<'a, 'c> {
    pub(super) directory: &'a Path,
    /// What belongs to somebody.
    pub(super) managed: &'a ManagedPaths,
    /// Says of a path below the directory that nobody cares for it.
    pub(super) is_ignored: &'a dyn Fn(&Path) -> bool,
    pub(super) cx: &'a Context<'c>,
}

impl Search<'_, '_> {
    /// Returns what belongs to nobody, as paths below the directory, in order. What leads to something managed is searched;
    /// what a resource manages is that resource's business. Links are not followed.
    pub(super) fn find(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        self.search(Path::new(""), &mut found)?;
        found.sort();
        Ok(found)
    }

    fn search(&self, below: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
        let directory = self.directory.join(below);
        let names = self.cx.prediction.borrow().files.names(&directory)?;
        for name in names {
            self.cx.tick()?;
            let (path, whole) = (below.join(&name), directory.join(&name));
            // What another run is about to put in place, or has left, is swept by its own rules.
            if (self.is_ignored)(&path) || files::is_temporary_name(&name) {
                continue;
            }
            match self.managed.standing(&whole) {
                Standing::Unmanaged => found.push(path),
                Standing::Parent if self.is_directory(&whole)? => self.search(&path, found)?,
                Standing::Parent | Standing::Managed => {}
            }
        }
        Ok(())
    }

    fn is_directory(&self, path: &Path) -> Result<bool, Error> {
        let entry = disk::entry(path, self.cx)?;
        Ok(entry.is_some_and(|entry| entry.kind == FileKind::Directory))
    }
}

/// Returns what makes a directory dearer than anybody who purges it probably thinks.
pub(super) fn dearness(path: &Path, cx: &Context) -> Result<Option<String>, Error> {
    let what = if path.parent().is_none() {
        "the root directory".to_owned()
    } else if let Some(user) = cx.host.users.with_home(path) {
        format!("the home directory of {user}")
    } else if path == Path::new("/home") || path == Path::new("/root") {
        "where home directories are".to_owned()
    } else if files::inspect(path)?.is_some() && files::is_mount_point(path)? {
        "a mount point".to_owned()
    } else {
        return Ok(None);
    };
    Ok(Some(what))
}
