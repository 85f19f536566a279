//! Refreshes that are owed.
//!
//! When a resource changes, its subscribers have to be refreshed. If the run ends between the change and the refresh,
//! the next run finds the resource as desired and would never know. So the debt is written down before the change is
//! made, and struck out once the refresh is done.
//!
//! A command of a script does not know who will subscribe to what it changes. It writes down the change itself, under
//! the session of the script, and that is remembered until the session has come to a good end. Until then whoever
//! subscribes to the resource is owed one refresh.

use std::{
    fs::{self, File},
    io,
};

use super::{RefreshRecords, StateDirectory, StateError, open};

const FILE: &str = "debts.json";
/// Held while the file is replaced, which therefore cannot be locked itself.
const LOCK: &str = "debts.lock";

/// The refreshes that are owed, as they are on disk.
pub(crate) struct RefreshStore {
    directory: StateDirectory,
    owed: RefreshRecords,
    /// What is on disk and cannot be read may be replaced.
    forgotten: bool,
}

impl StateDirectory {
    /// The pending refreshes of earlier runs.
    pub(crate) fn refresh_store(&self) -> Result<RefreshStore, StateError> {
        Ok(RefreshStore { directory: self.clone(), owed: self.owed()?, forgotten: false })
    }

    /// No pending refreshes, whatever the file says: the next record replaces it if it cannot be read.
    pub(crate) fn empty_refresh_store(&self) -> RefreshStore {
        RefreshStore { directory: self.clone(), owed: RefreshRecords::default(), forgotten: true }
    }

    fn owed(&self) -> Result<RefreshRecords, StateError> {
        let path = self.path().join(FILE);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| StateError::Damaged { path, reason: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(RefreshRecords::default()),
            Err(error) => Err(StateError::Io { path, error }),
        }
    }
}

impl RefreshStore {
    /// What was owed when it was last read.
    pub(crate) fn owed(&self) -> &RefreshRecords {
        &self.owed
    }

    /// Edits what is on disk, which another command may be doing at the same time.
    pub(crate) fn edit<T>(&mut self, edit: impl Fn(&mut RefreshRecords) -> T) -> Result<T, StateError> {
        let before = self.current()?;
        self.owed = before.clone();
        let mut result = edit(&mut self.owed);
        // A command that has nothing to write down leaves nothing behind, not even a lock.
        if self.owed != before {
            let _alone = self.lock()?;
            let mut owed = self.current()?;
            result = edit(&mut owed);
            self.store(&owed)?;
            self.owed = owed;
        }
        Ok(result)
    }

    fn current(&self) -> Result<RefreshRecords, StateError> {
        match self.directory.owed() {
            Err(_) if self.forgotten => Ok(RefreshRecords::default()),
            read => read,
        }
    }

    fn store(&self, owed: &RefreshRecords) -> Result<(), StateError> {
        let path = self.directory.path().join(FILE);
        let text =
            serde_json::to_vec_pretty(owed).map_err(|error| StateError::Io { path, error: error.into() })?;
        self.directory.store(FILE, &text)
    }

    fn lock(&self) -> Result<File, StateError> {
        self.directory.make()?;
        let path = self.directory.path().join(LOCK);
        let locked = open(&path).and_then(|file| file.lock().map(|()| file));
        locked.map_err(|error| StateError::Io { path, error })
    }
}

#[cfg(test)]
mod tests {
    use std::{env, path::PathBuf, process, thread};

    use super::*;
    use crate::state::PendingRefresh;

    /// A state directory that is gone when the test is over.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = env::temp_dir().canonicalize().unwrap().join(format!("{name}-{}", process::id()));
            StateDirectory::at(folder.clone()).make().unwrap();
            Self(folder)
        }

        fn state(&self) -> StateDirectory {
            StateDirectory::at(self.0.clone())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn debt(number: usize) -> PendingRefresh {
        PendingRefresh { to: format!("exec#{number}").parse().unwrap(), because: "file#/x".parse().unwrap() }
    }

    #[test]
    fn commands_that_write_down_debts_at_once_lose_none() {
        let folder = Folder::new("ccm-refresh_store-at-once");
        thread::scope(|scope| {
            for writer in 0..8 {
                // Each began before any of them wrote.
                let mut refresh_store = folder.state().refresh_store().unwrap();
                scope.spawn(move || {
                    for number in 0..10 {
                        refresh_store.edit(|owed| owed.record(&[debt(writer * 10 + number)])).unwrap();
                    }
                });
            }
        });
        let mut refresh_store = folder.state().refresh_store().unwrap();
        assert!((0..80).all(|number| refresh_store.owed().holds(&debt(number))));
        thread::scope(|scope| {
            for writer in 0..8 {
                let mut refresh_store = folder.state().refresh_store().unwrap();
                scope.spawn(move || refresh_store.edit(|owed| owed.strike(&[debt(writer * 10)])).unwrap());
            }
        });
        let all: Vec<_> = (0..80).map(debt).collect();
        assert_eq!(refresh_store.edit(|owed| owed.record(&all)).unwrap().len(), 8);
    }

    #[test]
    fn who_has_nothing_to_write_down_writes_nothing() {
        let folder = Folder::new("ccm-refresh_store-nothing");
        let mut refresh_store = folder.state().refresh_store().unwrap();
        refresh_store.edit(|owed| owed.complete(&[debt(1)])).unwrap();
        refresh_store.edit(|owed| owed.settle("session")).unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }
}
