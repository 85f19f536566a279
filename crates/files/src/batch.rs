//! Files that reach the disk together.
//!
//! A file has to be on disk before it gets its name, and the name before anybody acts on it. To bring a hundred files
//! to disk takes hardly longer than one, so files that are next in turn are made while the first one is, all under
//! temporary names; one sync is for all of them. Then each gets its name when its turn comes. Files between them that
//! need nothing are passed over.
//!
//! The names in a directory are brought to disk with the last file of it that is prepared, and with the last but one: it
//! is not certain before its turn that the last will be written at all, and nothing else may happen before the names are
//! on disk. So whoever is told that a directory failed has written to it himself.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    fs::{fstat, fstatfs, syncfs},
    process::{Resource, getrlimit},
    system::uname,
};

use super::{
    attributes::Attributes,
    dir_handle::DirSync,
    error::{FileError, Operation, Problem},
    walk::{self, DirHandle},
    write::TempFile,
};

/// One sync for a whole file system also waits for what others wrote to it. With more than this on its way to disk
/// each file is brought there on its own,
const MOST_DIRTY_KIBIBYTES: u64 = 64 << 10;
/// unless that has already taken so long that the others' could have been there by now.
const KIBIBYTES_PER_MILLISECOND: u64 = 500;

/// File systems on this machine whose `syncfs` brings everything to disk: ext2 to 4, XFS, Btrfs, tmpfs, F2FS, overlayfs.
const KNOWN: [u64; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010, 0x794C_7630];

/// Files that are complete but for their names, in the order in which they will get them.
#[derive(Default)]
pub struct Batch {
    ready: VecDeque<Ready>,
    /// How long files were brought to disk one by one.
    spent: Duration,
    /// Directories in which names are not on disk yet.
    unsettled: Vec<DirSync>,
    /// The directory of the last file, while files are being prepared: the next one is likely to be there too.
    last: Option<(PathBuf, Arc<DirHandle>)>,
}

struct Ready {
    path: PathBuf,
    attributes: Attributes,
    sha256: String,
    draft: TempFile,
    turn: Turn,
}

/// Whether the turn of a file has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Ahead,
    Come,
}

impl Batch {
    /// As far as the engine looks ahead.
    const MOST: usize = 256;
    /// To write a larger file takes longer than to sync it.
    pub const LARGEST: usize = 64 << 10;
    /// With fewer files, a sync of each is as quick.
    pub const WORTHWHILE: usize = 4;

    /// Whether nothing is prepared.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Returns how many files can be prepared at once. Each takes two descriptors, and half of what the process may open
    /// is left to others.
    pub fn room() -> usize {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        usize::try_from(descriptors / 4).map_or(Self::MOST, |room| room.min(Self::MOST))
    }

    /// Makes a file under a temporary name.
    pub fn prepare(
        &mut self,
        path: &Path,
        attributes: Attributes,
        content: &[u8],
        sha256: String,
    ) -> Result<(), FileError> {
        let mut make = || {
            let (parent, name) = walk::split(path)?;
            let mut draft = TempFile::within(self.reach(parent)?, path, name.to_owned(), attributes.uid)?;
            draft.pour(|out| out.write_all(content))?;
            draft.dress(attributes)?;
            Ok(draft)
        };
        let draft = make().map_err(|problem| FileError::new(Operation::Write, path, problem))?;
        self.ready.push_back(Ready { path: path.to_owned(), attributes, sha256, draft, turn: Turn::Ahead });
        Ok(())
    }

    /// Goes to a directory, in one step if the file before was there.
    fn reach(&mut self, directory: &Path) -> Result<Arc<DirHandle>, Problem> {
        let last = self.last.take().filter(|(last, _)| last == directory);
        let place =
            last.map_or_else(|| walk::reach_directory(directory).map(Arc::new), |(_, place)| Ok(place))?;
        self.last = Some((directory.to_owned(), Arc::clone(&place)));
        Ok(place)
    }

    /// Brings the prepared files to disk. Where that fails they are forgotten: each is then written in its turn, and
    /// whoever fails again says why.
    pub fn sync(&mut self) {
        self.last = None;
        let synced = if let Some(systems) = self.file_systems() {
            systems.into_iter().all(|file| syncfs(file).is_ok())
        } else {
            let start = Instant::now();
            let synced = self.ready.iter().all(|ready| ready.draft.sync().is_ok());
            self.spent += start.elapsed();
            synced
        };
        if !synced {
            self.ready.clear();
        }
    }

    /// A file on each of the file systems, if it is wise to sync those as a whole.
    fn file_systems(&self) -> Option<Vec<&File>> {
        let patience = u64::try_from(self.spent.as_millis()).ok()?.saturating_mul(KIBIBYTES_PER_MILLISECOND);
        if !syncfs_tells_errors() || dirty_kibibytes()? > MOST_DIRTY_KIBIBYTES.saturating_add(patience) {
            return None;
        }
        let (mut seen, mut systems) = (BTreeSet::new(), Vec::new());
        for file in self.ready.iter().map(|ready| ready.draft.file()) {
            if seen.insert(fstat(file).ok()?.st_dev) {
                let kind = u64::try_from(fstatfs(file).ok()?.f_type).ok()?;
                KNOWN.contains(&kind).then(|| systems.push(file))?;
            }
        }
        Some(systems)
    }

    /// Notes that the turn of a path has come: what was prepared for paths before it is of no use any more.
    ///
    /// Names that are to be on disk by now, because the files after them in their directory came to nothing, are brought
    /// there. An error of that belongs to none who can still be told: it is returned for a warning.
    pub fn turn(&mut self, path: &Path) -> Result<(), FileError> {
        let before = self.ready.iter().position(|ready| ready.path == path);
        let passed =
            before.unwrap_or_else(|| self.ready.iter().take_while(|ready| ready.turn == Turn::Come).count());
        drop(self.ready.drain(..passed));
        if let Some(ready) = self.ready.front_mut().filter(|_| before.is_some()) {
            ready.turn = Turn::Come;
        }
        self.settle_all(|waiting| waiting.iter().all(|ready| ready.turn == Turn::Come))
    }

    /// Gives the file that was prepared for a path its name; `None` if there is none with these attributes and content.
    pub fn publish(
        &mut self,
        path: &Path,
        attributes: Attributes,
        sha256: &str,
    ) -> Option<Result<(), FileError>> {
        let fits = |ready: &mut Ready| {
            ready.path == path && ready.attributes == attributes && ready.sha256 == sha256
        };
        let Ready { mut draft, .. } = self.ready.pop_front_if(fits)?;
        let mut appear = || {
            let place = draft.place();
            if !self.unsettled.iter().any(|barrier| barrier.path == place.path()) {
                let barrier = place.dir_sync()?;
                self.unsettled.push(barrier);
            }
            draft.appear()
        };
        let appeared = appear().map_err(|problem| FileError::new(Operation::Write, path, problem));
        let directory = draft.place().path().to_owned();
        Some(appeared.and_then(|()| self.settle(path, &directory)))
    }

    /// Brings the names in a directory to disk after `path` was written there, if at most one more is to come.
    fn settle(&mut self, path: &Path, directory: &Path) -> Result<(), FileError> {
        let to_come = self.ready.iter().filter(|ready| ready.draft.place().path() == directory).count();
        match self.unsettled.iter().position(|barrier| barrier.path == directory) {
            Some(at) if to_come <= 1 => {
                let synced = self.unsettled.swap_remove(at).sync();
                synced.map_err(|problem| FileError::new(Operation::Write, path, problem))
            }
            _ => Ok(()),
        }
    }

    /// Brings to disk the names in all directories for whose prepared files `is_due` holds.
    fn settle_all(&mut self, is_due: impl Fn(&[&Ready]) -> bool) -> Result<(), FileError> {
        let mut trouble = Ok(());
        for barrier in std::mem::take(&mut self.unsettled) {
            let directory = barrier.path.clone();
            let waiting: Vec<&Ready> =
                self.ready.iter().filter(|ready| ready.draft.place().path() == directory).collect();
            if !is_due(&waiting) {
                self.unsettled.push(barrier);
                continue;
            }
            let synced = barrier.sync();
            let synced = synced.map_err(|problem| FileError::new(Operation::Write, &directory, problem));
            trouble = trouble.and(synced);
        }
        trouble
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // Only a run that was stopped gets here with something to do, and it says that it was.
        let _ = self.settle_all(|_| true);
    }
}

/// Since Linux 5.8.
fn syncfs_tells_errors() -> bool {
    let name = uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(8))
}

/// How much is on its way to disk.
fn dirty_kibibytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(of("Dirty:")? + of("Writeback:")?)
}
