//! What is in a directory and belongs to no resource of the manifest.

use std::path::{Path, PathBuf};

use super::{Ensure, Properties, posix};
use crate::{
    host::files::{self, FileKind},
    resource::{Context, Error, ManagedPaths, Standing},
};

/// Returns what purging the directory removes, as paths below it, in order. What leads to something managed stays, and is
/// purged inside; what a resource manages is that resource's business.
pub(super) fn unmanaged(want: &Properties, cx: &Context) -> Result<Vec<PathBuf>, Error> {
    if !want.purge || want.ensure != Ensure::Directory {
        return Ok(Vec::new());
    }
    if !want.force {
        refuse_what_is_dear(want.name.as_path(), cx)?;
    }
    let search = Search { want, cx, managed: cx.managed_paths() };
    let mut found = Vec::new();
    search.directory(Path::new(""), &mut found)?;
    found.sort();
    Ok(found)
}

/// Refuses directories that hold what is of more worth than anybody who purges them probably thinks.
fn refuse_what_is_dear(path: &Path, cx: &Context) -> Result<(), Error> {
    let what = if path.parent().is_none() {
        "the root directory".to_owned()
    } else if let Some(user) = cx.host.users.with_home(path) {
        format!("the home directory of {user}")
    } else if path == Path::new("/home") || path == Path::new("/root") {
        "where home directories are".to_owned()
    } else if files::inspect(path)?.is_some() && files::is_mount_point(path)? {
        "a mount point".to_owned()
    } else {
        return Ok(());
    };
    let message = format!("{} is {what}, which is not purged without being sure", path.display());
    Err(Error::new(message).on("purge").with_help("set `force: true` if that is what you mean"))
}

struct Search<'a, 'c> {
    want: &'a Properties,
    cx: &'a Context<'c>,
    managed: ManagedPaths,
}

impl Search<'_, '_> {
    /// Collects what is unmanaged in a directory below the purged one.
    fn directory(&self, below: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
        let directory = self.want.name.as_path().join(below);
        let names = self.cx.prediction.borrow().files.names(&directory)?;
        for name in names {
            self.cx.tick()?;
            let (path, whole) = (below.join(&name), directory.join(&name));
            let is_ignored = self.want.ignore.iter().any(|glob| glob.matches(&path));
            // What another run is about to put in place, or has left, is swept by its own rules.
            if is_ignored || files::is_temporary_name(&name) {
                continue;
            }
            match self.managed.standing(&whole) {
                Standing::Unmanaged => found.push(path),
                Standing::Parent if self.is_directory(&whole)? => self.directory(&path, found)?,
                Standing::Parent | Standing::Managed => {}
            }
        }
        Ok(())
    }

    fn is_directory(&self, path: &Path) -> Result<bool, Error> {
        let entry = posix::entry(path, self.cx)?;
        Ok(entry.is_some_and(|entry| entry.kind == FileKind::Directory))
    }
}
