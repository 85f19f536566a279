//! A list that a run keeps while it lives, in a file named after its process.
//!
//! The run holds a lock on its list. The kernel frees the lock with the process, whatever ends it: a list whose lock is free
//! is of a run that did not come to its end.

use std::{fs::File, io::Read, os::unix::fs::MetadataExt};

use super::{StateDirectory, StateError};
use crate::host::files::PrivateFolder;

/// The list of this run, and the folder that it is in.
pub(super) struct RunList {
    folder: PrivateFolder,
    name: String,
    pub(super) file: File,
}

/// What becomes of the list of a run that did not come to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Everything on it is done.
    Remove,
    /// The next run tries again.
    Keep,
}

impl RunList {
    /// Begins the list of this run in a folder of the state directory; `None` if another run has just cleaned up a list of
    /// the same name.
    pub(super) fn begin(state: &StateDirectory, folder: &str) -> Result<Option<Self>, StateError> {
        let folder = state.make_folder(folder)?;
        let name = std::process::id().to_string();
        let file = folder.make_to_append(&name)?;
        let is_ours = file.try_lock().is_ok() && file.metadata().is_ok_and(|found| found.nlink() > 0);
        Ok(is_ours.then_some(Self { folder, name, file }))
    }

    /// Removes the list at the end of the run.
    pub(super) fn remove(self) {
        let _ = self.folder.remove(self.name.as_ref());
    }
}

/// Hands over what is on each list of a run that did not come to its end, and removes it if that is wanted.
pub(super) fn work_off(state: &PrivateFolder, folder: &str, mut work: impl FnMut(&str) -> Fate) {
    let Ok(Some(lists)) = state.folder(folder) else { return };
    for name in lists.names().unwrap_or_default() {
        let Some(mut list) = name.to_str().and_then(|name| lists.open_file(name).ok()?) else { continue };
        let mut text = String::new();
        // The lock is held until the list is gone.
        if list.try_lock().is_ok() && list.read_to_string(&mut text).is_ok() && work(&text) == Fate::Remove {
            let _ = lists.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_somebody_else_holds_is_not_begun() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-run-list-{}", std::process::id()));
        let state = StateDirectory::at(folder.clone());
        let held = RunList::begin(&state, "lists").unwrap().unwrap();
        assert!(RunList::begin(&state, "lists").unwrap().is_none());
        held.remove();
        assert!(RunList::begin(&state, "lists").unwrap().is_some());
        let _ = std::fs::remove_dir_all(folder);
    }
}
