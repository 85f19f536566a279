//! What files hold, so that those that cannot have changed are not read again.
//!
//! When that is, `host::files` decides; here is only what is kept. It is good until the machine is started again: after a
//! power failure a file may hold what was written last and have the times from before that. So it need not be brought to
//! disk. It is not used while the clock shows an earlier time than when it was written. Damage to it is noticed by its own
//! checksum, and whatever cannot be read is as good as nothing: it costs time.
//!
//! The file has a head, a record of fixed size for each digest, in the order of device and inode, and the SHA-256 of both.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use sha2::{Digest, Sha256};

use super::{StateDirectory, read};
use crate::host::{
    files::{self, DigestMemory, Stamp, Timestamp},
    system_file,
};

pub(super) const FILE: &str = "digests";
const MAGIC: &[u8; 16] = b"ccm digests 1\n\0\0";
/// The identifier that the kernel gives itself each time it is started.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const BOOT_SIZE: usize = 36;
const TIME_SIZE: usize = 12;
const HEAD: usize = MAGIC.len() + BOOT_SIZE + TIME_SIZE;
const RECORD: usize = 3 * 8 + 2 * TIME_SIZE + SUM;
const SUM: usize = 32;

/// No more than this are kept: 11 MiB.
const MOST: usize = 1 << 17;
/// As many bytes as are read in the time that it takes to open, read and close a file.
const OPENING: u64 = 8 << 10;
/// To read so much takes less time than to find out what is remembered, or to write it down.
const NEGLIGIBLE: u64 = 512 << 10;

/// What to do with what is remembered of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recall {
    Used,
    /// Every file is read.
    Ignored,
}

/// What this run has hashed, by device and inode.
type Learnt = BTreeMap<(u64, u64), (Stamp, [u8; SUM])>;

/// The digests of files, as far as earlier runs and this one took them.
pub(crate) struct Digests {
    state: StateDirectory,
    pub(super) recall: Recall,
    /// What earlier runs left, read when it is first worthwhile.
    earlier: Mutex<Option<Arc<Table>>>,
    learnt: Mutex<Learnt>,
    /// Whether something was learnt that is not written down.
    is_unsaved: AtomicBool,
    /// How much would have been read so far, had nothing been remembered.
    asked: AtomicU64,
}

impl StateDirectory {
    /// Returns the digests that are kept here.
    pub(crate) fn digests(&self) -> Digests {
        Digests {
            state: self.clone(),
            recall: Recall::Used,
            earlier: Mutex::default(),
            learnt: Mutex::default(),
            is_unsaved: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }
}

impl Digests {
    /// Writes down what was learnt, as well as the state directory allows, and lets go of what can be read there again: an
    /// agent that waits has no use for it.
    pub(crate) fn save(&self) {
        if self.is_unsaved.load(Ordering::Relaxed) && !self.write() {
            return;
        }
        self.is_unsaved.store(false, Ordering::Relaxed);
        *self.learnt() = Learnt::new();
        *self.kept() = None;
        self.asked.store(0, Ordering::Relaxed);
    }

    /// Writes down what was learnt. Returns whether it is there now.
    fn write(&self) -> bool {
        let (Some(boot), Ok(folder)) = (boot(), self.state.make()) else { return false };
        let content = Table::merged(&boot, files::now(), &self.learnt(), &self.earlier());
        folder.replace_unsynced(FILE, &content).is_ok()
    }

    fn earlier(&self) -> Arc<Table> {
        let read = || {
            let folder = self.state.open().ok().flatten();
            let bytes = folder.and_then(|folder| read(&folder, FILE).ok().flatten());
            let table = bytes.zip(boot()).and_then(|(bytes, boot)| Table::new(bytes, &boot, files::now()));
            Arc::new(table.unwrap_or_default())
        };
        Arc::clone(self.kept().get_or_insert_with(read))
    }

    fn kept(&self) -> MutexGuard<'_, Option<Arc<Table>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether enough is read in this run for it to matter.
    fn matters(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > NEGLIGIBLE
    }

    fn learnt(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DigestMemory for Digests {
    fn is_of_use(&self) -> bool {
        self.recall == Recall::Used && self.matters() && !self.earlier().is_empty()
    }

    fn find(&self, stamp: &Stamp) -> Option<[u8; SUM]> {
        self.asked.fetch_add(OPENING.saturating_add(stamp.size), Ordering::Relaxed);
        if !self.matters() {
            return None;
        }
        let learnt = self.learnt().get(&(stamp.dev, stamp.ino)).filter(|(known, _)| known == stamp).copied();
        match learnt {
            Some((_, sha256)) => Some(sha256),
            None if self.recall == Recall::Used => self.earlier().find(stamp),
            None => None,
        }
    }

    fn is_worthwhile(&self) -> bool {
        self.matters() && !self.state.is_none()
    }

    fn keep(&self, stamp: Stamp, sha256: [u8; SUM]) {
        let mut learnt = self.learnt();
        if learnt.len() < MOST {
            learnt.insert((stamp.dev, stamp.ino), (stamp, sha256));
            self.is_unsaved.store(true, Ordering::Relaxed);
        }
    }
}

/// Digests as they are kept.
#[derive(Default)]
struct Table {
    bytes: Vec<u8>,
}

impl Table {
    /// Judges what was read; `None` if it is of no use.
    fn new(bytes: Vec<u8>, boot: &[u8; BOOT_SIZE], now: Timestamp) -> Option<Self> {
        let (content, sum) = bytes.split_last_chunk::<SUM>()?;
        let (magic, rest) = content.split_first_chunk()?;
        let (started, rest) = rest.split_first_chunk()?;
        let (written, records) = rest.split_first_chunk()?;
        let is_whole = records.len() % RECORD == 0 && <[u8; SUM]>::from(Sha256::digest(content)) == *sum;
        (magic == MAGIC && started == boot && time(written) <= now && is_whole).then_some(Self { bytes })
    }

    fn records(&self) -> &[u8] {
        self.bytes.get(HEAD..self.bytes.len().saturating_sub(SUM)).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.records().is_empty()
    }

    fn find(&self, stamp: &Stamp) -> Option<[u8; SUM]> {
        let (records, _) = self.records().as_chunks::<RECORD>();
        let at = records.binary_search_by_key(&(stamp.dev, stamp.ino), key).ok()?;
        let (known, sha256) = records[at].split_last_chunk::<SUM>()?;
        (known == encoded(stamp)).then_some(*sha256)
    }

    /// Returns what is to be kept: what was learnt now, and as much of what was known before as there is room for.
    fn merged(
        boot: &[u8; BOOT_SIZE],
        now: Timestamp,
        learnt: &BTreeMap<(u64, u64), (Stamp, [u8; SUM])>,
        earlier: &Table,
    ) -> Vec<u8> {
        let (records, _) = earlier.records().as_chunks::<RECORD>();
        let room = MOST.saturating_sub(learnt.len());
        let is_old = |record: &&[u8; RECORD]| !learnt.contains_key(&key(record));
        let old = records.iter().filter(is_old).take(room).map(|record| (key(record), *record));
        let new = learnt.iter().map(|(key, (stamp, sha256))| {
            let mut record = [0; RECORD];
            record[..RECORD - SUM].copy_from_slice(&encoded(stamp));
            record[RECORD - SUM..].copy_from_slice(sha256);
            (*key, record)
        });
        let all: BTreeMap<(u64, u64), [u8; RECORD]> = old.chain(new).collect();
        let mut bytes = Vec::with_capacity(HEAD + all.len() * RECORD + SUM);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(boot);
        bytes.extend_from_slice(&encoded_time(now));
        for record in all.values() {
            bytes.extend_from_slice(record);
        }
        let sum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&sum);
        bytes
    }
}

/// Device and inode of a record.
fn key(record: &[u8; RECORD]) -> (u64, u64) {
    let number = |at: usize| record[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (number(0), number(8))
}

fn encoded(stamp: &Stamp) -> [u8; RECORD - SUM] {
    let mut bytes = [0; RECORD - SUM];
    let numbers = [stamp.dev, stamp.ino, stamp.size].map(u64::to_le_bytes);
    let times = [stamp.modified, stamp.changed].map(encoded_time);
    bytes[..24].copy_from_slice(numbers.as_flattened());
    bytes[24..].copy_from_slice(times.as_flattened());
    bytes
}

fn encoded_time(time: Timestamp) -> [u8; TIME_SIZE] {
    let mut bytes = [0; TIME_SIZE];
    bytes[..8].copy_from_slice(&time.seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&time.nanoseconds.to_le_bytes());
    bytes
}

fn time(bytes: &[u8; TIME_SIZE]) -> Timestamp {
    Timestamp {
        seconds: bytes.first_chunk().map_or(0, |seconds| i64::from_le_bytes(*seconds)),
        nanoseconds: bytes.last_chunk().map_or(0, |nanoseconds| u32::from_le_bytes(*nanoseconds)),
    }
}

fn boot() -> Option<[u8; BOOT_SIZE]> {
    system_file::read(BOOT).ok()?.trim_end().as_bytes().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT_ID: &[u8; BOOT_SIZE] = b"01234567-89ab-cdef-0123-456789abcdef";

    #[test]
    fn the_machine_says_when_it_was_started() {
        let told = std::fs::read(BOOT).unwrap();
        assert_eq!(boot().unwrap(), told[..BOOT_SIZE]);
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp { seconds, nanoseconds: 7 }
    }

    fn stamp(ino: u64) -> Stamp {
        Stamp { dev: 1, ino, size: 10, modified: at(3), changed: at(4) }
    }

    fn table(inodes: &[u64], earlier: &Table) -> Vec<u8> {
        let learnt = inodes.iter().map(|ino| ((1, *ino), (stamp(*ino), [u8::try_from(*ino).unwrap(); SUM])));
        Table::merged(BOOT_ID, at(100), &learnt.collect(), earlier)
    }

    fn open(bytes: Vec<u8>) -> Option<Table> {
        Table::new(bytes, BOOT_ID, at(100))
    }

    #[test]
    fn what_is_kept_is_found_again_and_only_for_the_very_same_file() {
        let first = open(table(&[5, 3, 9], &Table::default())).unwrap();
        let both = open(table(&[4, 9], &first)).unwrap();
        for ino in [3, 4, 5, 9] {
            assert_eq!(both.find(&stamp(ino)), Some([u8::try_from(ino).unwrap(); SUM]));
        }
        for other in [
            stamp(2),
            stamp(10),
            Stamp { dev: 2, ..stamp(3) },
            Stamp { size: 11, ..stamp(3) },
            Stamp { modified: at(2), ..stamp(3) },
            Stamp { changed: Timestamp { nanoseconds: 8, ..at(4) }, ..stamp(3) },
        ] {
            assert_eq!(both.find(&other), None, "{other:?}");
        }
    }

    #[test]
    fn damage_of_any_byte_is_noticed() {
        let whole = table(&[1, 2], &Table::default());
        assert!(open(whole.clone()).is_some());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(open(damaged).is_none(), "byte {at}");
            assert!(open(whole[..at].to_vec()).is_none(), "the first {at} bytes");
        }
        assert!(open([whole.as_slice(), &[0]].concat()).is_none());
    }

    #[test]
    fn it_is_not_used_after_a_restart_nor_while_the_clock_is_behind() {
        let whole = table(&[1], &Table::default());
        assert!(Table::new(whole.clone(), b"11111111-89ab-cdef-0123-456789abcdef", at(100)).is_none());
        assert!(Table::new(whole.clone(), BOOT_ID, at(99)).is_none());
        assert!(Table::new(whole, BOOT_ID, at(101)).is_some());
    }

    #[test]
    fn what_one_run_learnt_is_of_use_to_the_next_once_that_reads_enough() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-digests-{}", std::process::id()));
        let state = StateDirectory::at(folder.clone());
        let little = Stamp { size: NEGLIGIBLE - OPENING, ..stamp(1) };
        let first = state.digests();
        assert_eq!(first.find(&little), None);
        assert!(!first.is_worthwhile(), "so much is read without a thought");
        assert_eq!(first.find(&stamp(2)), None);
        assert!(first.is_worthwhile());
        first.keep(little, [7; SUM]);
        assert!(!first.is_of_use(), "no earlier run left anything");
        first.save();
        assert!(first.learnt().is_empty() && first.kept().is_none(), "what can be read again is let go of");

        let next = state.digests();
        assert!(!next.is_of_use(), "nothing is read yet");
        assert_eq!(next.find(&little), None, "not enough is read yet");
        assert_eq!(next.find(&little), Some([7; SUM]));
        assert!(next.is_of_use());
        let file = || rustix::fs::stat(folder.join(FILE)).unwrap().st_ino;
        let before = file();
        next.save();
        assert_eq!(file(), before, "who learnt nothing writes nothing");

        let distrustful = Digests { recall: Recall::Ignored, ..state.digests() };
        assert_eq!([distrustful.find(&little), distrustful.find(&little)], [None, None]);
        assert!(!distrustful.is_of_use());
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn what_cannot_be_written_down_is_kept_in_mind() {
        let digests = StateDirectory::at("/proc/ccm".into()).digests();
        let large = Stamp { size: NEGLIGIBLE, ..stamp(1) };
        assert_eq!(digests.find(&large), None);
        digests.keep(large, [7; SUM]);
        digests.save();
        assert_eq!(digests.find(&large), Some([7; SUM]));
    }

    #[test]
    fn no_more_is_learnt_than_is_kept() {
        let digests = StateDirectory::none().digests();
        (0..=MOST as u64).for_each(|ino| digests.keep(stamp(ino), [7; SUM]));
        assert_eq!(digests.learnt().len(), MOST);
    }
}
