//! When a file need not be read again, because nobody can have changed it since its digest was taken.
//!
//! Every change of a file's content moves its time of change (ctime), which nobody can set at will. So a digest holds as long
//! as device, inode, size and both times are what they were, provided that a change right after it was taken would have
//! shown: clocks tick, and what happens within one tick has the same time. A file is therefore remembered only if its last
//! change was [`MARGIN`] before it was hashed.
//!
//! One kind of writer moves no time: who has the file mapped, and has already written to the page in hand. The kernel
//! grants a read lease (`F_SETLEASE`) only while nobody has the file open or mapped for writing, so a file is remembered
//! only if one was granted before it was read. Who comes later has to write to a page for the first time, and that does
//! move the times. This, and the times themselves, are certain on [`KNOWN`] file systems alone: tmpfs does not note writes
//! to mappings, overlayfs keeps no count of those who write to the file below, and the times of a network file system are
//! told by another clock.

use std::{fs::File, os::fd::AsRawFd, path::Path};

use nix::libc::{F_RDLCK, F_SETLEASE, F_UNLCK, SIGURG, c_int, fcntl};
use rustix::fs::fstatfs;

use super::entry::{Entry, FileKind, Timestamp};

/// Longer than the clock of any file system takes to tick: FAT, the slowest, counts two seconds.
const MARGIN: i64 = 2;

/// ext2 to 4, XFS, Btrfs, F2FS.
const KNOWN: [u64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];

/// Of <asm-generic/fcntl.h>: which signal tells of a lease that is in somebody's way.
const F_SETSIG: c_int = 10;

/// Identity and times of a file, which are equal as long as its content is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Device of the file system.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of the content (mtime).
    pub modified: Timestamp,
    /// Time of the last change of content or attributes (ctime).
    pub changed: Timestamp,
}

/// A cache of file digests.
pub trait DigestMemory {
    /// Returns the SHA-256 of the file with this stamp, if it is known.
    fn find(&self, stamp: &Stamp) -> Option<[u8; 32]>;
    /// Returns whether any digest of an earlier run is known.
    fn is_of_use(&self) -> bool;
    /// Returns whether it is worth the effort to remember what is read now.
    fn is_worthwhile(&self) -> bool;
    /// Remembers a digest.
    fn keep(&self, stamp: Stamp, sha256: [u8; 32]);
    /// Returns the time.
    fn now(&self) -> Timestamp {
        now()
    }
}

/// A memory that forgets everything.
pub struct NoDigests;

impl DigestMemory for NoDigests {
    fn find(&self, _: &Stamp) -> Option<[u8; 32]> {
        None
    }

    fn is_of_use(&self) -> bool {
        false
    }

    fn is_worthwhile(&self) -> bool {
        false
    }

    fn keep(&self, _: Stamp, _: [u8; 32]) {}
}

/// Returns the time by the clock that file systems go by.
pub fn now() -> Timestamp {
    let time = jiff::Timestamp::now();
    Timestamp { seconds: time.as_second(), nanoseconds: u32::try_from(time.subsec_nanosecond()).unwrap_or(0) }
}

impl Entry {
    /// Returns what a regular file is known by.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let Entry { dev, ino, size, modified, changed, .. } = *self;
        (self.kind == FileKind::File).then_some(Stamp { dev, ino, size, modified, changed })
    }
}

/// Returns the SHA-256 of an open file, which `hash` reads unless it is known. It is remembered if that is safe.
pub fn digest_once<E>(
    file: &File,
    entry: &Entry,
    memory: &dyn DigestMemory,
    hash: impl FnOnce() -> Result<Option<[u8; 32]>, E>,
) -> Result<Option<[u8; 32]>, E> {
    let Some(before) = entry.stamp() else { return hash() };
    if let Some(known) = memory.find(&before) {
        return Ok(Some(known));
    }
    // In this order: what happens after the look at the clock shows in the times, unless somebody writes already.
    let began = memory.now();
    let may_hold =
        memory.is_worthwhile() && is_settled(&before, began) && is_of_known_kind(file) && has_no_writer(file);
    let sha256 = hash()?;
    if let Some(sha256) = sha256.filter(|_| may_hold && stamp_of(file) == Some(before)) {
        memory.keep(before, sha256);
    }
    Ok(sha256)
}

fn stamp_of(file: &File) -> Option<Stamp> {
    Entry::of(file, Path::new("")).ok()?.stamp()
}

/// Whether a change at this moment or later would show in the stamp.
fn is_settled(stamp: &Stamp, now: Timestamp) -> bool {
    let Timestamp { seconds, nanoseconds } = stamp.changed;
    Timestamp { seconds: seconds.saturating_add(MARGIN), nanoseconds } < now
}

pub(super) fn is_of_known_kind(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| u64::try_from(system.f_type).is_ok_and(|kind| KNOWN.contains(&kind)))
}

/// Whether nobody has the file open or mapped for writing at this moment. The lease is given back at once: who opens the
/// file for writing has to wait for that long, and the kernel signals that he does. The signal is one that does nothing to
/// a program that does not ask for it; the usual SIGIO would end it.
fn has_no_writer(file: &File) -> bool {
    control(file, F_SETSIG, SIGURG)
        && control(file, F_SETLEASE, F_RDLCK)
        && control(file, F_SETLEASE, F_UNLCK)
}

#[expect(unsafe_code, reason = "no library that is in use has a safe function for leases")]
fn control(file: &File, command: c_int, value: c_int) -> bool {
    // SAFETY: the descriptor is open, and the commands take a number: no memory of the program is touched.
    unsafe { fcntl(file.as_raw_fd(), command, value) != -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_well_before_is_settled() {
        let at = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        let now = at(1000, 500);
        for (changed, is_old_enough) in [
            (at(900, 0), true),
            (at(998, 499), true),
            // The same tick, and as long as a clock may take for one.
            (at(1000, 500), false),
            (at(998, 500), false),
            (at(999, 0), false),
            // The clock was set back since.
            (at(2000, 0), false),
            (at(i64::MAX, 0), false),
        ] {
            let stamp = Stamp { dev: 1, ino: 2, size: 3, modified: at(0, 0), changed };
            assert_eq!(is_settled(&stamp, now), is_old_enough, "{changed:?}");
        }
    }
}
