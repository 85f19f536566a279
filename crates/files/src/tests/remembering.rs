//! Which digests are remembered, and when they hold no longer.

use std::{
    cell::RefCell,
    fs::OpenOptions,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    process::{Child, Stdio},
    time::SystemTime,
};

use super::*;
use crate::{DigestMemory, Stamp, Timestamp, digest, now, remembering::is_of_known_kind};

/// Remembers everything it is told, by a clock that is ahead of the machine's: files that were just made are old.
struct Notes {
    seconds_ahead: i64,
    /// The time, where it stands still.
    stopped_at: Option<i64>,
    known: RefCell<Vec<(Stamp, [u8; 32])>>,
}

impl Notes {
    fn new(seconds_ahead: i64) -> Self {
        Self { seconds_ahead, stopped_at: None, known: RefCell::default() }
    }

    fn digest(&self, path: &Path) -> String {
        digest(path, None, self, &mut never_stop).unwrap().unwrap().sha256.unwrap()
    }

    /// Takes the digest until it is remembered. A test beside this one that forks holds open what was written for a moment.
    fn learn(&self, path: &Path) -> Option<String> {
        let count = self.count();
        let attempt = || {
            let digest = self.digest(path);
            if self.count() == count {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            digest
        };
        std::iter::repeat_with(attempt).take(5000).find(|_| self.count() > count)
    }

    fn count(&self) -> usize {
        self.known.borrow().len()
    }
}

impl DigestMemory for Notes {
    fn is_of_use(&self) -> bool {
        self.count() > 0
    }

    fn find(&self, stamp: &Stamp) -> Option<[u8; 32]> {
        self.known.borrow().iter().find(|(known, _)| known == stamp).map(|(_, sha256)| *sha256)
    }

    fn is_worthwhile(&self) -> bool {
        true
    }

    fn keep(&self, stamp: Stamp, sha256: [u8; 32]) {
        self.known.borrow_mut().push((stamp, sha256));
    }

    fn now(&self) -> Timestamp {
        let Timestamp { seconds, nanoseconds } = now();
        Timestamp { seconds: self.stopped_at.unwrap_or(seconds + self.seconds_ahead), nanoseconds }
    }
}

/// A folder on a file system whose times can be trusted; nothing, and a word about it, if there is none. Where folders of
/// tests are in memory, it is beside this program.
fn scratch() -> Option<Scratch> {
    let (usual, program) = (std::env::temp_dir(), std::env::current_exe().unwrap());
    let is_good = |base: &&Path| {
        fs::File::open(base).is_ok_and(|base| is_of_known_kind(&base))
            && rustix::fs::access(*base, rustix::fs::Access::WRITE_OK).is_ok()
    };
    let found = [usual.as_path(), program.parent().unwrap()].into_iter().find(is_good);
    if found.is_none() {
        skip("the file system is none whose times tell every change");
    }
    found.map(Scratch::below)
}

/// Waits until a change of a file gets another time than its last one.
fn wait_for_a_tick(scratch: &Scratch, path: &Path) {
    let last = entry(path).changed;
    while entry(&scratch.file("clock", "")).changed <= last {}
}

fn sum(text: &str) -> String {
    use sha2::Digest;
    super::super::hex(&sha2::Sha256::digest(text))
}

#[test]
fn what_cannot_have_changed_is_not_read_again() {
    let Some(scratch) = scratch() else { return };
    let (path, notes) = (scratch.file("f", "old"), Notes::new(10));
    assert_eq!(notes.learn(&path), Some(sum("old")));
    // What is remembered is believed: were the file read, this would not come out.
    notes.known.borrow_mut()[0].1 = [0xab; 32];
    assert_eq!(notes.digest(&path), "ab".repeat(32));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(notes.digest(&path), sum("old"), "its time of change moved");
}

#[test]
fn what_is_known_is_not_even_opened() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("f", "old");
    give(&path, NOBODY);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    as_user(NOBODY, &[NOBODY], || {
        let notes = Notes::new(10);
        assert!(digest(&path, None, &notes, &mut never_stop).is_err(), "it cannot be");
        notes.keep(entry(&path).stamp().unwrap(), [0xab; 32]);
        assert_eq!(notes.digest(&path), "ab".repeat(32));
    });
}

#[test]
fn a_file_of_another_size_than_wanted_is_told_by_its_size_alone() {
    let Some(scratch) = scratch() else { return };
    let (path, notes) = (scratch.file("f", "old"), Notes::new(10));
    notes.learn(&path);
    let found = digest(&path, Some(2), &notes, &mut never_stop).unwrap().unwrap();
    assert_eq!((found.sha256, found.entry), (None, entry(&path)));
}

#[test]
fn what_changed_within_the_same_tick_or_in_the_future_is_not_remembered() {
    let Some(scratch) = scratch() else { return };
    let path = scratch.file("f", "old");
    let changed = entry(&path).changed.seconds;
    for (seconds, what) in [(0, "the same tick"), (1, "a slow clock"), (-3600, "the clock was set back")] {
        let notes = Notes { stopped_at: Some(changed + seconds), ..Notes::new(0) };
        assert_eq!(notes.digest(&path), sum("old"));
        assert_eq!(notes.count(), 0, "{what}");
    }
}

#[test]
fn a_forged_time_of_modification_does_not_hide_a_change() {
    let Some(scratch) = scratch() else { return };
    let (path, notes) = (scratch.file("f", "old"), Notes::new(10));
    notes.learn(&path);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    wait_for_a_tick(&scratch, &path);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"new", 0).unwrap();
    file.set_modified(before).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(notes.digest(&path), sum("new"));
    // Neither does one in the future keep a file from being remembered.
    file.set_modified(SystemTime::now() + std::time::Duration::from_hours(24)).unwrap();
    drop(file);
    assert_eq!(notes.learn(&path), Some(sum("new")));
}

#[test]
fn a_file_that_another_was_renamed_over_is_read() {
    let Some(scratch) = scratch() else { return };
    let (path, other) = (scratch.file("f", "old"), scratch.file("g", "new"));
    let notes = Notes::new(10);
    notes.learn(&path);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fs::File::open(&other).unwrap().set_modified(before).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(notes.digest(&path), sum("new"));
}

#[test]
fn what_somebody_has_open_for_writing_is_not_remembered() {
    let Some(scratch) = scratch() else { return };
    let (path, notes) = (scratch.file("f", "old"), Notes::new(10));
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    assert_eq!((notes.digest(&path), notes.count()), (sum("old"), 0));
    drop(writer);
    assert_eq!(notes.learn(&path), Some(sum("old")));
}

#[test]
fn what_changes_while_it_is_hashed_is_not_remembered() {
    let Some(scratch) = scratch() else { return };
    let (path, notes) = (scratch.file("f", &"x".repeat(1_000_000)), Notes::new(10));
    wait_for_a_tick(&scratch, &path);
    let mut pieces = 0;
    let change = &mut || {
        pieces += 1;
        if pieces == 3 {
            // Who opens it meanwhile does not have to wait.
            let mut options = OpenOptions::new();
            let writer = options.write(true).custom_flags(nix::libc::O_NONBLOCK).open(&path).unwrap();
            writer.write_all_at(b"y", 0).unwrap();
        }
        Ok(())
    };
    digest(&path, None, &notes, change).unwrap();
    assert!(pieces > 3 && notes.count() == 0);
}

#[test]
fn writes_to_a_mapping_are_never_missed() {
    let Some(scratch) = scratch() else { return };
    let (path, notes) = (scratch.file("f", "old"), Notes::new(10));
    let Some(mut mapper) = Mapper::start(&path) else { return skip("needs python3") };
    assert_eq!(mapper.say("write o"), "done");
    let before = entry(&path);
    assert_eq!((notes.digest(&path), notes.count()), (sum("old"), 0), "it is mapped");
    assert_eq!(mapper.say("write n"), "done");
    assert_eq!(entry(&path), before, "no time tells of that write");
    assert_eq!(notes.digest(&path), sum("nld"));
    mapper.say("unmap");
    assert_eq!(notes.learn(&path), Some(sum("nld")));
    wait_for_a_tick(&scratch, &path);
    mapper.say("map");
    mapper.say("write m");
    assert_eq!(notes.digest(&path), sum("mld"), "the first write to a page has its time");
}

#[test]
fn files_in_memory_are_not_remembered_because_writes_to_mappings_move_no_time_there() {
    let scratch = Scratch::in_memory();
    if !scratch.0.starts_with("/dev/shm") {
        return skip("needs /dev/shm");
    }
    let notes = Notes::new(10);
    notes.digest(&scratch.file("f", "old"));
    assert_eq!(notes.count(), 0);
}

/// Another process that writes to a file through a mapping, and has closed it.
struct Mapper(Child);

impl Mapper {
    fn start(path: &Path) -> Option<Self> {
        const PROGRAM: &str = "
import mmap, sys
def mapped():
    with open(sys.argv[1], 'r+b') as file:
        return mmap.mmap(file.fileno(), 0)
mapping = mapped()
for line in sys.stdin:
    verb, *letter = line.split()
    if verb == 'map': mapping = mapped()
    elif verb == 'unmap': mapping.close()
    else: mapping[0] = ord(letter[0])
    print('done', flush=True)
";
        let mut python = Command::new("python3");
        python.args(["-c", PROGRAM]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        python.spawn().ok().map(Self)
    }

    fn say(&mut self, line: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap().take(5)).read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
