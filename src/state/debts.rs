//! Refreshes that are owed.
//!
//! When a resource changes, its subscribers have to be refreshed. If the run ends between the change and the refresh,
//! the next run finds the resource as desired and would never know. So the debt is written down before the change is
//! made, and struck out once the refresh is done.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
};

use serde::{Deserialize, Serialize};

use super::{StateDirectory, StateError, open};
use crate::vocabulary::Reference;

const FILE: &str = "debts.json";
/// Held while the file is replaced, which therefore cannot be locked itself.
const LOCK: &str = "debts.lock";

/// The refreshes that are owed, as they are on disk.
pub(crate) struct Debts {
    directory: StateDirectory,
    owed: Owed,
    /// What is on disk and cannot be read may be replaced.
    forgotten: bool,
}

/// Each resource that is to be refreshed, and the changes that it is owed for: other manifests may know other resources
/// by the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owed {
    refreshes: BTreeMap<String, BTreeSet<String>>,
}

/// One refresh that is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Debt {
    /// Who is to be refreshed.
    pub(crate) to: Reference,
    /// Whose change it is for.
    pub(crate) because: Reference,
}

impl StateDirectory {
    /// The debts of earlier runs.
    pub(crate) fn debts(&self) -> Result<Debts, StateError> {
        Ok(Debts { directory: self.clone(), owed: Owed::read(self)?, forgotten: false })
    }

    /// No debts, whatever the file says: the next record replaces it if it cannot be read.
    pub(crate) fn no_debts(&self) -> Debts {
        Debts { directory: self.clone(), owed: Owed::default(), forgotten: true }
    }
}

impl Debts {
    pub(crate) fn holds(&self, debt: &Debt) -> bool {
        self.owed.holds(debt)
    }

    /// Writes down that refreshes are owed; gives those for which that is new.
    pub(crate) fn incur(&mut self, debts: &[Debt]) -> Result<Vec<Debt>, StateError> {
        self.edit(|owed| {
            let new: Vec<Debt> = debts.iter().filter(|debt| !owed.holds(debt)).cloned().collect();
            for Debt { to, because } in &new {
                owed.refreshes.entry(to.to_string()).or_default().insert(because.to_string());
            }
            new
        })
    }

    /// Strikes out what has been paid or turned out not to be owed.
    pub(crate) fn strike(&mut self, debts: &[Debt]) -> Result<(), StateError> {
        self.edit(|owed| {
            for Debt { to, because } in debts {
                if let Some(causes) = owed.refreshes.get_mut(&to.to_string()) {
                    causes.remove(&because.to_string());
                }
            }
            owed.refreshes.retain(|_, causes| !causes.is_empty());
        })
    }

    /// Edits what is on disk, which another command may be doing at the same time.
    fn edit<T>(&mut self, edit: impl Fn(&mut Owed) -> T) -> Result<T, StateError> {
        let before = self.current()?;
        self.owed = before.clone();
        let mut result = edit(&mut self.owed);
        // A command that has nothing to write down leaves nothing behind, not even a lock.
        if self.owed != before {
            let _alone = self.lock()?;
            let mut owed = self.current()?;
            result = edit(&mut owed);
            owed.store(&self.directory)?;
            self.owed = owed;
        }
        Ok(result)
    }

    fn current(&self) -> Result<Owed, StateError> {
        match Owed::read(&self.directory) {
            Err(_) if self.forgotten => Ok(Owed::default()),
            read => read,
        }
    }

    fn lock(&self) -> Result<File, StateError> {
        self.directory.make()?;
        let path = self.directory.path().join(LOCK);
        let locked = open(&path).and_then(|file| file.lock().map(|()| file));
        locked.map_err(|error| StateError::Io { path, error })
    }
}

impl Owed {
    fn read(directory: &StateDirectory) -> Result<Self, StateError> {
        let path = directory.path().join(FILE);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| StateError::Damaged { path, reason: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(StateError::Io { path, error }),
        }
    }

    fn store(&self, directory: &StateDirectory) -> Result<(), StateError> {
        let path = directory.path().join(FILE);
        let text =
            serde_json::to_vec_pretty(self).map_err(|error| StateError::Io { path, error: error.into() })?;
        directory.store(FILE, &text)
    }

    fn holds(&self, Debt { to, because }: &Debt) -> bool {
        self.refreshes.get(&to.to_string()).is_some_and(|causes| causes.contains(&because.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::{env, path::PathBuf, process, thread};

    use super::*;

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

    fn debt(number: usize) -> Debt {
        Debt { to: format!("exec#{number}").parse().unwrap(), because: "file#/x".parse().unwrap() }
    }

    #[test]
    fn commands_that_write_down_debts_at_once_lose_none() {
        let folder = Folder::new("ccm-debts-at-once");
        thread::scope(|scope| {
            for writer in 0..8 {
                // Each began before any of them wrote.
                let mut debts = folder.state().debts().unwrap();
                scope.spawn(move || {
                    for number in 0..10 {
                        debts.incur(&[debt(writer * 10 + number)]).unwrap();
                    }
                });
            }
        });
        let mut debts = folder.state().debts().unwrap();
        assert!((0..80).all(|number| debts.holds(&debt(number))));
        thread::scope(|scope| {
            for writer in 0..8 {
                let mut debts = folder.state().debts().unwrap();
                scope.spawn(move || debts.strike(&[debt(writer * 10)]).unwrap());
            }
        });
        assert_eq!(debts.incur(&(0..80).map(debt).collect::<Vec<_>>()).unwrap().len(), 8);
    }

    #[test]
    fn who_has_nothing_to_write_down_writes_nothing() {
        let folder = Folder::new("ccm-debts-nothing");
        let mut debts = folder.state().debts().unwrap();
        debts.strike(&[debt(1)]).unwrap();
        debts.incur(&[]).unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }
}
