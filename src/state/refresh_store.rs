//! Refreshes that are owed, on disk.
//!
//! When a resource changes, its subscribers have to be refreshed. If the run ends between the change and the refresh,
//! the next run finds the resource as desired and would never know. So the refresh is written down before the change is
//! made, and struck out once it is done.
//!
//! A command of a script does not know who will subscribe to what it changes. It writes down the change itself, under
//! the session of the script, and that is remembered until the session has come to a good end. Until then whoever
//! subscribes to the resource is owed one refresh.
//!
//! The file is a journal: a line of JSON for each [`Entry`], appended under a lock on the file itself, since commands of
//! scripts run at the same time. What would be forgotten if it were lost is brought to disk at once; the rest with the
//! next such entry, or at the end. A line that a kill tore is cut off by the next writer. When most lines say nothing any
//! more the file is written anew under the same name, and when nothing is owed it is removed: whoever waited for the lock
//! finds that the name stands for another file, and opens that.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
};

use super::{
    RefreshRecords, StateDirectory, StateError,
    pending_refreshes::{Entry, OldRecords},
    read,
};
use crate::host::files::PrivateFolder;

const FILE: &str = "refreshes.jsonl";
/// Where earlier versions kept the same, all in one document, and what they locked.
const OLD: [&str; 2] = ["debts.json", "debts.lock"];

/// The file may have this many lines that say nothing any more, besides as many as say something.
const SLACK: usize = 64;

/// The refreshes that are owed, as they are on disk.
pub(crate) struct RefreshStore {
    directory: StateDirectory,
    owed: RefreshRecords,
    journal: Option<Journal>,
    /// Whether some of them are still in the document of an earlier version.
    is_old: bool,
    /// What is on disk and cannot be read may be replaced.
    forgotten: bool,
    /// Whether something was written that may not have reached the disk.
    unsynced: bool,
}

/// The file, and how much of it is known.
struct Journal {
    folder: PrivateFolder,
    file: File,
    read_to: u64,
    lines: usize,
    /// With how many lines it is worth the effort to count those that still say something.
    tidy_at: usize,
}

impl StateDirectory {
    /// Reads the pending refreshes of earlier runs.
    pub(crate) fn refresh_store(&self) -> Result<RefreshStore, StateError> {
        let mut store = self.empty_refresh_store();
        store.catch_up()?;
        store.forgotten = false;
        Ok(store)
    }

    /// Returns no pending refreshes, whatever the file says: the next record replaces it if it cannot be read.
    pub(crate) fn empty_refresh_store(&self) -> RefreshStore {
        let owed = RefreshRecords::default();
        RefreshStore {
            directory: self.clone(),
            owed,
            journal: None,
            is_old: false,
            forgotten: true,
            unsynced: false,
        }
    }
}

impl RefreshStore {
    /// Returns what was owed when it was last read.
    pub(crate) fn owed(&self) -> &RefreshRecords {
        &self.owed
    }

    /// Writes down the entries that `plan` makes of what is owed now, which another command may be changing at the same
    /// time.
    pub(crate) fn edit<T>(
        &mut self,
        plan: impl Fn(&RefreshRecords) -> (Vec<Entry>, T),
    ) -> Result<T, StateError> {
        match self.catch_up() {
            Err(_) if self.forgotten => self.forget(),
            caught_up => caught_up?,
        }
        let (entries, result) = plan(&self.owed);
        // A command that has nothing to write down leaves nothing behind, not even an empty file.
        if entries.is_empty() {
            return Ok(result);
        }
        let lock = self.lock()?;
        let (entries, result) = plan(&self.owed);
        self.append(entries)?;
        self.tidy()?;
        drop(lock);
        Ok(result)
    }

    /// Reads what was written since it was last read.
    fn catch_up(&mut self) -> Result<(), StateError> {
        let Some(folder) = self.folder()? else {
            self.forget();
            return Ok(());
        };
        let found = folder.look(FILE.as_ref())?;
        let is_known = match (&found, &self.journal) {
            (Some(found), Some(journal)) => journal.is_at(found.dev, found.ino),
            (None, None) => true,
            _ => false,
        };
        if !is_known || self.journal.is_none() {
            self.forget();
            if let Some(bytes) = read(&folder, OLD[0])? {
                let old: OldRecords =
                    serde_json::from_slice(&bytes).map_err(|error| damaged(&folder, OLD[0], &error))?;
                (self.owed, self.is_old) = (old.into(), true);
            }
            let Some(file) = folder.open_to_append(FILE)? else { return Ok(()) };
            self.journal = Some(Journal { folder, file, read_to: 0, lines: 0, tidy_at: SLACK });
        }
        let Some(journal) = &mut self.journal else { return Ok(()) };
        for entry in journal.read_on()? {
            self.owed.apply(entry);
        }
        Ok(())
    }

    /// Takes the lock on the file, which is made if there is none, and reads what is in it.
    fn lock(&mut self) -> Result<File, StateError> {
        loop {
            let folder = self.directory.make()?;
            if self.forgotten {
                match self.catch_up() {
                    Err(StateError::Damaged { .. }) => {
                        folder.remove(FILE.as_ref())?;
                        folder.remove(OLD[0].as_ref())?;
                    }
                    // What cannot be read this time may say something the next time.
                    caught_up => caught_up?,
                }
            }
            let path = folder.path().join(FILE);
            let failed = |error| StateError::Io { path: path.clone(), error };
            let file = folder.make_to_append(FILE)?;
            file.lock().map_err(failed)?;
            self.catch_up()?;
            let metadata = file.metadata().map_err(failed)?;
            if self.journal.as_ref().is_some_and(|journal| journal.is_at(metadata.dev(), metadata.ino())) {
                return Ok(file);
            }
        }
    }

    /// Adds lines to the file, whose lock is held.
    fn append(&mut self, entries: Vec<Entry>) -> Result<(), StateError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let mut text = Vec::new();
        for entry in &entries {
            journal.failing(to_line(&mut text, entry))?;
        }
        let is_vital = entries.iter().any(Entry::is_vital);
        journal.failing(journal.write(&text))?;
        if is_vital {
            journal.failing(journal.file.sync_data())?;
            if journal.read_to == 0 {
                journal.folder.sync()?;
            }
        }
        journal.read_to += text.len() as u64;
        journal.lines += entries.len();
        if entries.iter().any(|entry| matches!(entry, Entry::Left { .. })) {
            journal.tidy_at = 0;
        }
        self.unsynced = !is_vital;
        self.forgotten = false;
        for entry in entries {
            self.owed.apply(entry);
        }
        Ok(())
    }

    /// Keeps the file, whose lock is held, from growing with what is over.
    fn tidy(&mut self) -> Result<(), StateError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let is_worth_it = self.is_old || journal.is_worth_tidying(&self.owed);
        let folder = &journal.folder;
        if self.owed.is_empty() {
            folder.remove(FILE.as_ref())?;
            self.unsynced = true;
        } else if is_worth_it {
            folder.replace(FILE, |out| self.owed.entries().try_for_each(|entry| to_line(out, &entry)))?;
        } else {
            return Ok(());
        }
        for old in OLD.iter().filter(|_| self.is_old) {
            folder.remove(old.as_ref())?;
        }
        self.journal = None;
        self.catch_up()
    }

    fn folder(&self) -> Result<Option<PrivateFolder>, StateError> {
        self.directory.open()
    }

    /// Knows nothing any more.
    fn forget(&mut self) {
        (self.owed, self.journal, self.is_old) = (RefreshRecords::default(), None, false);
    }
}

impl Drop for RefreshStore {
    fn drop(&mut self) {
        // What is lost here costs a refresh too many after a power cut.
        if self.unsynced
            && let Ok(Some(folder)) = self.folder()
        {
            let _ = self.journal.as_ref().map(|journal| journal.file.sync_data());
            let _ = folder.sync();
        }
    }
}

impl Journal {
    fn is_at(&self, dev: u64, ino: u64) -> bool {
        self.file.metadata().is_ok_and(|held| (held.dev(), held.ino()) == (dev, ino))
    }

    /// Whether most of the lines say nothing any more. It counts only when there are twice as many as at the last time.
    fn is_worth_tidying(&mut self, owed: &RefreshRecords) -> bool {
        if self.lines < self.tidy_at {
            return false;
        }
        let slack = if self.tidy_at == 0 { 0 } else { SLACK };
        self.tidy_at = 2 * self.lines.max(SLACK);
        self.lines > 2 * owed.entries().count() + slack
    }

    /// Reads the entries that were added since; half a line is somebody's who is still writing, or was killed.
    fn read_on(&mut self) -> Result<Vec<Entry>, StateError> {
        let mut bytes = Vec::new();
        let read =
            self.file.seek(SeekFrom::Start(self.read_to)).and_then(|_| self.file.read_to_end(&mut bytes));
        self.failing(read)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
        let entries = lines.map(serde_json::from_slice).collect::<Result<Vec<Entry>, _>>();
        let entries = entries.map_err(|error| damaged(&self.folder, FILE, &error))?;
        self.read_to += whole as u64;
        self.lines += entries.len();
        Ok(entries)
    }

    /// Writes behind what was read: what else is there, a killed command began and nobody relies on.
    fn write(&self, text: &[u8]) -> io::Result<()> {
        if self.file.metadata()?.len() > self.read_to {
            self.file.set_len(self.read_to)?;
        }
        (&self.file).write_all(text)
    }

    fn failing<T>(&self, result: io::Result<T>) -> Result<T, StateError> {
        result.map_err(|error| self.folder.file_error(FILE, &error).into())
    }
}

fn to_line(out: &mut dyn Write, entry: &Entry) -> io::Result<()> {
    serde_json::to_writer(&mut *out, entry)?;
    out.write_all(b"\n")
}

fn damaged(folder: &PrivateFolder, name: &str, error: &serde_json::Error) -> StateError {
    StateError::Damaged { path: folder.path().join(name), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, os::unix::fs::MetadataExt, path::PathBuf, process, thread};

    use super::*;
    use crate::state::{PendingRefresh, RefreshOrigin, ScriptSession};

    /// A state directory that is gone when the test is over.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = env::temp_dir().canonicalize().unwrap().join(format!("{name}-{}", process::id()));
            StateDirectory::at(folder.clone()).make().unwrap();
            Self(folder)
        }

        fn store(&self) -> RefreshStore {
            StateDirectory::at(self.0.clone()).refresh_store().unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn pending(number: usize) -> PendingRefresh {
        PendingRefresh { to: format!("exec#{number}").parse().unwrap(), because: "file#/x".parse().unwrap() }
    }

    fn owe(store: &mut RefreshStore, number: usize) {
        store.edit(|owed| (owed.owe(&[pending(number)], &RefreshOrigin::default()), ())).unwrap();
    }

    #[test]
    fn commands_that_write_down_refreshes_at_once_lose_none() {
        let folder = Folder::new("ccm-refreshes-at-once");
        thread::scope(|scope| {
            for writer in 0..8 {
                // Each began before any of them wrote.
                let mut store = folder.store();
                scope.spawn(move || (0..10).for_each(|number| owe(&mut store, writer * 10 + number)));
            }
        });
        let store = folder.store();
        assert!((0..80).all(|number| store.owed().holds(&pending(number))));
        thread::scope(|scope| {
            for writer in 0..8 {
                let mut store = folder.store();
                let done = pending(writer * 10);
                scope.spawn(move || {
                    store.edit(|owed| (owed.strike(std::slice::from_ref(&done)), ())).unwrap();
                });
            }
        });
        let all: Vec<_> = (0..80).map(pending).collect();
        assert_eq!(folder.store().owed().lacking(&all).len(), 8);
    }

    #[test]
    fn a_file_that_says_mostly_what_is_over_is_written_anew_while_others_use_it() {
        let folder = Folder::new("ccm-refreshes-tidied");
        let (mut one, mut other) = (folder.store(), folder.store());
        owe(&mut one, 0);
        for number in 1..500 {
            owe(&mut other, number);
            one.edit(|owed| (owed.strike(&[pending(number)]), ())).unwrap();
        }
        let lines = fs::read_to_string(folder.0.join(FILE)).unwrap().lines().count();
        assert!(lines < 300, "{lines} lines for one refresh that is owed");
        other.edit(|owed| (owed.strike(&[pending(0)]), ())).unwrap();
        assert!(!folder.0.join(FILE).exists(), "nothing is owed");
        owe(&mut one, 7);
        assert!(folder.store().owed().holds(&pending(7)));
    }

    #[test]
    fn a_file_of_which_much_still_counts_is_not_written_anew() {
        // How many refreshes stay owed, and how many come and go.
        for (staying, passing) in [(100, 100), (1, 33)] {
            let folder = Folder::new(&format!("ccm-refreshes-kept-{staying}"));
            let mut store = folder.store();
            (0..staying).for_each(|number| owe(&mut store, number));
            let file = || fs::metadata(folder.0.join(FILE)).unwrap().ino();
            let before = file();
            for _ in 0..passing {
                owe(&mut store, staying);
                store.edit(|owed| (owed.strike(&[pending(staying)]), ())).unwrap();
            }
            assert_eq!(file(), before, "{staying} owed, {passing} come and gone");
        }
    }

    #[test]
    fn what_others_did_with_the_file_is_noticed() {
        let folder = Folder::new("ccm-refreshes-of-others");
        let mut one = folder.store();
        owe(&mut one, 1);
        let mut other = folder.store();
        assert!(other.owed().holds(&pending(1)));
        // Nothing is owed any more, so the file is gone.
        one.edit(|owed| (owed.strike(&[pending(1)]), ())).unwrap();
        let still = other.edit(|owed| (Vec::new(), owed.holds(&pending(1)))).unwrap();
        assert!(!still, "a refresh that was made is owed again");
        // What a kill tore is no part of the file, and the next line begins where it began.
        owe(&mut one, 2);
        let mut file = fs::File::options().append(true).open(folder.0.join(FILE)).unwrap();
        file.write_all(b"{\"owed\":{\"to\"").unwrap();
        owe(&mut other, 3);
        let store = folder.store();
        assert!(store.owed().holds(&pending(2)) && store.owed().holds(&pending(3)));
    }

    #[test]
    fn only_what_cannot_be_read_is_replaced() {
        let folder = Folder::new("ccm-refreshes-replaced");
        let state = StateDirectory::at(folder.0.clone());
        owe(&mut folder.store(), 1);
        owe(&mut state.empty_refresh_store(), 2);
        assert!(folder.store().owed().holds(&pending(1)), "what can be read stays");
        // A file with a second name is not read.
        let second = folder.0.join("second");
        fs::hard_link(folder.0.join(FILE), &second).unwrap();
        let mut without = state.empty_refresh_store();
        assert!(without.edit(|owed| (owed.owe(&[pending(2)], &RefreshOrigin::default()), ())).is_err());
        fs::remove_file(second).unwrap();
        assert!(folder.store().owed().holds(&pending(1)), "what is not damaged stays");
        fs::write(folder.0.join(FILE), "nonsense\n").unwrap();
        assert!(state.refresh_store().is_err());
        owe(&mut state.empty_refresh_store(), 3);
        let store = folder.store();
        assert!(!store.owed().holds(&pending(1)) && store.owed().holds(&pending(3)));
    }

    #[test]
    fn who_has_nothing_to_write_down_writes_nothing() {
        let folder = Folder::new("ccm-refreshes-nothing");
        let mut store = folder.store();
        store.edit(|owed| (owed.complete(&[pending(1)]), ())).unwrap();
        store.edit(|owed| (owed.settle("session"), ())).unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn of_a_change_that_came_to_nothing_only_what_it_changed_is_taken_back() {
        let session = |name: &str| ScriptSession { name: name.to_owned(), folder: name.into() };
        let names = ["file#/x".parse().unwrap(), "file#/y".parse().unwrap()];
        let mut owed = RefreshRecords::default();
        for entry in RefreshRecords::change(&names[..1], &session("first"), 1) {
            owed.apply(entry);
        }
        let before = owed.known(&names);
        assert_eq!(owed.restore(&before), [], "nothing was changed since");
        for entry in RefreshRecords::change(&names[1..], &session("next"), 2) {
            owed.apply(entry);
        }
        let entries = owed.restore(&before);
        assert_eq!(entries, [Entry::Known { name: "file#/y".to_owned(), change: None }]);
        for entry in entries {
            owed.apply(entry);
        }
        assert_eq!(owed.known(&names), before);
    }

    #[test]
    fn sessions_that_will_not_go_on_are_forgotten_after_a_day() {
        const DAY: i64 = 24 * 60 * 60;
        let mut owed = RefreshRecords::default();
        let name = ["file#/x".parse().unwrap()];
        // When the session changed the file, and when its folder was last written to.
        let sessions = [
            ("alive", 0, Some(DAY)),
            ("left", 0, Some(1)),
            ("gone", 0, None),
            ("later", DAY, None),
            ("old", 5, None),
            // A day ago to the second.
            ("lately", 0, Some(10)),
        ];
        for (session, at, _) in sessions {
            let session = ScriptSession { name: session.to_owned(), folder: session.into() };
            for entry in RefreshRecords::change(&name, &session, at) {
                owed.apply(entry);
            }
        }
        let touched = |folder: &std::path::Path| sessions.iter().find(|(name, ..)| folder.ends_with(name))?.2;
        let mut left: Vec<String> = Vec::new();
        for entry in owed.forget_abandoned(DAY + 10, touched) {
            let Entry::Left { session, .. } = &entry else { panic!("{entry:?}") };
            left.push(session.clone());
            owed.apply(entry);
        }
        assert_eq!(left, ["gone", "left", "old"]);
        assert!(owed.holds(&pending(1)));
        assert_eq!(
            owed.forget_abandoned(2 * DAY, |_| None).len(),
            2,
            "all but the last, a day ago to the second"
        );
        for entry in owed.forget_abandoned(3 * DAY, |_| None) {
            owed.apply(entry);
        }
        assert!(owed.is_empty());
    }

    #[test]
    fn what_is_owed_is_not_forgotten_because_it_cannot_be_read_any_more() {
        let folder = Folder::new("ccm-refreshes-damaged");
        let mut store = folder.store();
        owe(&mut store, 0);
        let journal = fs::read_to_string(folder.0.join(FILE)).unwrap() + "nonsense\n";
        fs::write(folder.0.join(FILE), &journal).unwrap();
        let pay = |store: &mut RefreshStore| store.edit(|owed| (owed.strike(&[pending(0)]), ()));
        let told = pay(&mut store).unwrap_err().to_string();
        assert!(told.contains("is damaged"), "{told}");
        assert!(store.owed().holds(&pending(0)));
        assert_eq!(fs::read_to_string(folder.0.join(FILE)).unwrap(), journal);
        // Whoever was told so goes on without it.
        let mut without = StateDirectory::at(folder.0.clone()).empty_refresh_store();
        pay(&mut without).unwrap();
        owe(&mut without, 1);
        assert!(folder.store().owed().holds(&pending(1)));
    }
}
