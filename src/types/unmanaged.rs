//! What is in a directory and belongs to no resource of the manifest.

use std::path::{Path, PathBuf};

use super::disk;
use crate::{
    host::files::{self, FileKind},
    resource::{Context, Error, ManagedPaths, Standing},
    vocabulary::Glob,
};

/// A search for what belongs to nobody.
pub(super) struct Search<'a, 'c> {
    pub(super) directory: &'a Path,
    /// What belongs to somebody.
    pub(super) managed: &'a ManagedPaths,
    /// Which paths below the directory are left alone, and what they are in.
    pub(super) ignored: &'a [Glob],
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

    /// Adds what belongs to nobody below a directory, and returns whether anything that is ignored is there.
    fn search(&self, below: &Path, found: &mut Vec<PathBuf>) -> Result<bool, Error> {
        let directory = self.directory.join(below);
        let names = self.cx.prediction.borrow().files.names(&directory)?;
        let mut has_ignored = false;
        for name in names {
            self.cx.tick()?;
            let (path, whole) = (below.join(&name), directory.join(&name));
            if self.ignored.iter().any(|glob| glob.matches(&path)) {
                has_ignored = true;
                continue;
            }
            // What another run is about to put in place, or has left, is swept by its own rules.
            if files::is_temporary_name(&name) {
                continue;
            }
            match self.managed.standing(&whole) {
                Standing::Unmanaged => {
                    let others = found.len();
                    let may_hold_ignored = !self.ignored.is_empty() && self.is_directory(&whole)?;
                    if may_hold_ignored && self.search(&path, found)? {
                        has_ignored = true;
                    } else {
                        found.truncate(others);
                        found.push(path);
                    }
                }
                Standing::Parent if self.is_directory(&whole)? => has_ignored |= self.search(&path, found)?,
                Standing::Parent | Standing::Managed => {}
            }
        }
        Ok(has_ignored)
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
