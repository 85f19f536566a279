//! The machine as it would be, for the walk.

use std::{ffi::OsStr, path::Path};

use super::{
    super::{
        entry::{self, Entry, FileKind},
        error::Problem,
        walk::{self, Links, Reached, Terrain, Walked},
    },
    Known, Left, Prediction, of,
};

impl Terrain for Prediction {
    /// Nothing is opened of what may not be there yet.
    type Directory = ();

    fn root(&self) -> Result<((), Entry), Problem> {
        let path = Path::new("/");
        let entry = self.entry(path)?.ok_or(Problem::Root)?;
        Ok(((), entry))
    }

    fn look(&self, from: &Reached<()>, name: &OsStr) -> Result<Option<((), Entry)>, Problem> {
        Ok(self.component(&from.at(name))?.map(|entry| ((), entry)))
    }
}

impl Prediction {
    /// Walks towards a directory as far as it would exist.
    pub(super) fn walk(&self, path: &Path, links: Links) -> Result<Walked<()>, Problem> {
        walk::walk_over(self, path, links)
    }

    /// What the walk would come upon. What may be anything is the directory that the path takes it for.
    pub(super) fn component(&self, at: &Path) -> Result<Option<Entry>, Problem> {
        match self.known(at) {
            Known::Left(Left::Something(attributes)) => Ok(Some(of(FileKind::Directory, *attributes))),
            Known::Anything(attributes) => Ok(Some(of(FileKind::Directory, attributes))),
            Known::DiskOrAnything(attributes) => {
                Ok(entry::look(at)?.or_else(|| Some(of(FileKind::Directory, attributes))))
            }
            Known::Left(_) | Known::Void | Known::Disk => self.entry(at),
        }
    }
}
