//! Directories in which a run is writing, so that the next one can clean up after one that was killed.
//!
//! Each run that writes keeps a list of its own and holds a lock on it. A list whose lock is free is of a run that did
//! not come to its end: whatever temporary things it left in those directories are swept away.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{StateDirectory, make_private};
use crate::host::{
    files::{self, CopyInterrupted, FileError},
    interrupt::Interrupt,
};

/// The directories that this run writes in.
pub(crate) struct WriteJournal {
    lists: PathBuf,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    list: Option<(PathBuf, File)>,
    noted: HashSet<PathBuf>,
    /// Whether something was left that could not be removed.
    is_owed: bool,
}

impl StateDirectory {
    pub(crate) fn write_journal(&self) -> WriteJournal {
        WriteJournal { lists: self.path().join("unfinished"), open: Mutex::default() }
    }
}

impl WriteJournal {
    /// Notes that something is about to be made in a directory.
    ///
    /// It is kept as well as the state directory allows: when it cannot be kept, a kill leaves at most a temporary name
    /// behind, and that is swept when the next thing is made in the same directory.
    pub(crate) fn note(&self, directory: &Path, interrupt: &Interrupt) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.noted.insert(directory.to_owned()) {
            return;
        }
        let _ = sweep(directory, interrupt);
        if open.list.is_none() {
            open.list = self.begin().ok();
        }
        if let (Some((_, list)), Ok(mut line)) = (&mut open.list, serde_json::to_string(directory)) {
            line.push('\n');
            let _ = list.write_all(line.as_bytes());
        }
    }

    /// Makes sure that nothing was left in a directory whose work is done. What cannot be removed now is owed to the next
    /// run.
    pub(crate) fn settle(&self, directory: &Path, interrupt: &Interrupt) {
        if sweep(directory, interrupt).is_err() {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).is_owed = true;
        }
    }

    fn begin(&self) -> io::Result<(PathBuf, File)> {
        if let Some(state) = self.lists.parent() {
            make_private(state).map_err(io::Error::other)?;
        }
        make_private(&self.lists).map_err(io::Error::other)?;
        let path = self.lists.join(std::process::id().to_string());
        let list = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        list.try_lock()?;
        Ok((path, list))
    }

    /// Cleans up after runs that did not come to their end.
    pub(crate) fn recover(&self, interrupt: &Interrupt) {
        if let Some(state) = self.lists.parent() {
            let _ = sweep(state, interrupt);
        }
        for entry in fs::read_dir(&self.lists).into_iter().flatten().flatten() {
            let Ok(mut list) = File::open(entry.path()) else { continue };
            if list.try_lock().is_err() {
                continue;
            }
            let mut text = String::new();
            if list.read_to_string(&mut text).is_ok() {
                // The last line may be torn: then nothing had been made in that directory yet.
                for directory in text.lines().filter_map(|line| serde_json::from_str::<PathBuf>(line).ok()) {
                    let _ = sweep(&directory, interrupt);
                }
            }
            // What a signal kept from being swept is left to the next run.
            if interrupt.requested().is_some() {
                return;
            }
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes what killed runs left in a directory, unless a signal asks for the end.
fn sweep(directory: &Path, interrupt: &Interrupt) -> Result<usize, FileError> {
    files::sweep(directory, &mut || interrupt.requested().map_or(Ok(()), |_| Err(CopyInterrupted)))
}

impl Drop for WriteJournal {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, _list)) = open.list.take().filter(|_| !open.is_owed) {
            let _ = fs::remove_file(path);
        }
    }
}
