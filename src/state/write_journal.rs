//! Directories in which a run is writing, so that the next one can clean up after one that was killed.
//!
//! Each run that writes keeps a list of its own ([`RunList`]). Whatever temporary things a run that did not come to its end
//! left in the directories of its list are swept away.

use std::{
    collections::HashSet,
    io::Write,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{
    StateDirectory,
    archives::sweep_archives,
    run_list::{Fate, RunList, work_off},
};
use crate::host::{
    files::{self, CopyInterrupted, FileError},
    interrupt::Interrupt,
};

/// The folder of the lists.
const FOLDER: &str = "unfinished";

/// The directories that this run writes in.
pub(crate) struct WriteJournal {
    state: StateDirectory,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    list: Option<RunList>,
    noted: HashSet<PathBuf>,
    /// Whether something was left that could not be removed.
    is_owed: bool,
}

impl StateDirectory {
    /// Returns the journal of this run, which nothing is written to yet.
    pub(crate) fn write_journal(&self) -> WriteJournal {
        WriteJournal { state: self.clone(), open: Mutex::default() }
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
            open.list = RunList::begin(&self.state, FOLDER).ok().flatten();
        }
        if let (Some(list), Ok(mut line)) = (&mut open.list, serde_json::to_string(directory)) {
            line.push('\n');
            let _ = list.file.write_all(line.as_bytes());
        }
    }

    /// Makes sure that nothing was left in a directory whose work is done. What cannot be removed now is owed to the next
    /// run.
    pub(crate) fn settle(&self, directory: &Path, interrupt: &Interrupt) {
        if sweep(directory, interrupt).is_err() {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).is_owed = true;
        }
    }

    /// Cleans up after runs that did not come to their end.
    pub(crate) fn recover(&self, interrupt: &Interrupt) {
        let Ok(Some(state)) = self.state.open() else { return };
        let _ = state.sweep(&mut || tick(interrupt));
        let _ = sweep_archives(&state, interrupt);
        work_off(&state, FOLDER, |text| {
            // The last line may be torn: then nothing had been made in that directory yet.
            for directory in text.lines().filter_map(|line| serde_json::from_str::<PathBuf>(line).ok()) {
                let _ = sweep(&directory, interrupt);
            }
            // What a signal kept from being swept is left to the next run.
            if interrupt.requested().is_some() { Fate::Keep } else { Fate::Remove }
        });
    }
}

/// Removes what killed runs left in a directory, unless a signal asks for the end.
fn sweep(directory: &Path, interrupt: &Interrupt) -> Result<usize, FileError> {
    files::sweep(directory, &mut || tick(interrupt))
}

/// Fails when a signal asks for the end.
pub(super) fn tick(interrupt: &Interrupt) -> Result<(), CopyInterrupted> {
    interrupt.requested().map_or(Ok(()), |_| Err(CopyInterrupted))
}

impl Drop for WriteJournal {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = open.list.take().filter(|_| !open.is_owed) {
            list.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;
    use crate::host::interrupt::Signal;

    #[test]
    fn a_list_is_gone_at_the_end_unless_something_could_not_be_removed() {
        let folder = env::temp_dir().canonicalize().unwrap().join(format!("ccm-settled-{}", process::id()));
        let state = StateDirectory::at(folder.join("state"));
        let (work, list) =
            (folder.join("work"), folder.join("state").join(FOLDER).join(process::id().to_string()));
        fs::create_dir_all(&work).unwrap();
        let left = work.join(".ccm-aaaaaaaaaaaa.tmp");
        let _turn = crate::signals::turn();
        let asked_to_end = Interrupt::install().unwrap();
        crate::signals::send(Signal::Terminate.number());
        asked_to_end.pause(std::time::Duration::MAX);
        let never = Interrupt::never().unwrap();
        for (interrupt, is_left) in [(&never, false), (&asked_to_end, true)] {
            let journal = state.write_journal();
            journal.note(&work, &never);
            fs::create_dir_all(left.join("inside")).unwrap();
            journal.settle(&work, interrupt);
            assert_eq!(left.exists(), is_left);
            drop(journal);
            assert_eq!(list.exists(), is_left);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn clean_up_never_takes_the_list_of_a_living_run() {
        let folder = env::temp_dir().canonicalize().unwrap().join(format!("ccm-journal-{}", process::id()));
        let never = Interrupt::never().unwrap();
        let state = StateDirectory::at(folder.join("state"));
        let (work, list) =
            (folder.join("work"), folder.join("state").join(FOLDER).join(process::id().to_string()));
        fs::create_dir_all(&work).unwrap();
        let living = state.write_journal();
        living.note(&work, &never);
        state.write_journal().recover(&never);
        let text = fs::read_to_string(&list).unwrap();
        assert_eq!(text, format!("{:?}\n", work.display().to_string()));
        // The list of a run that was killed is worked off and removed.
        let other = list.with_file_name((process::id() + 1).to_string());
        fs::rename(&list, &other).unwrap();
        let left = work.join(".ccm-aaaaaaaaaaaa.tmp");
        fs::write(&left, "").unwrap();
        state.write_journal().recover(&never);
        assert!(left.exists(), "it is locked under any name");
        drop(living);
        state.write_journal().recover(&never);
        assert!(!left.exists() && !other.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
