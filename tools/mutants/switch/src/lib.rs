//! Tells the program which of the changes compiled into it is in force.
//!
//! The number stands in the program's data, behind a mark by which it is found and overwritten in the file: arguments and
//! environment belong to the tests, which take them away from the programs that they start.

use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// The mark, and behind it the number of the change in force: 0 is none, `u32::MAX` has all that are reached written down.
pub static SWITCH: [AtomicU32; 4] = [
    AtomicU32::new(0x6d75_7461),
    AtomicU32::new(0x6e74_2d73),
    AtomicU32::new(0x7769_7463),
    AtomicU32::new(0),
];

/// One byte for each change, 1 for those that were reached.
const REACHED: &str = "/run/ccm-mutants/reached";

/// Whether this change is in force.
pub fn on(change: u32) -> bool {
    let chosen = SWITCH[3].load(Ordering::Relaxed);
    if chosen == u32::MAX {
        reached(change);
    }
    chosen == change
}

fn reached(change: u32) {
    static MAP: OnceLock<&'static [AtomicU8]> = OnceLock::new();
    if let Some(byte) = MAP.get_or_init(|| map().unwrap_or_default()).get(change as usize) {
        byte.store(1, Ordering::Relaxed);
    }
}

/// Maps the file, so that reaching a change is no system call, which tests may count.
fn map() -> Option<&'static [AtomicU8]> {
    let file = std::fs::File::options().read(true).write(true).open(REACHED).ok()?;
    let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping, of the length of the file, which nobody makes shorter.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, file.as_raw_fd(), 0) };
    // SAFETY: it stays mapped until the end, and its bytes are only used as atomic ones.
    (start != libc::MAP_FAILED).then(|| unsafe { std::slice::from_raw_parts(start.cast(), length) })
}
