//! Memory usage of the program.

use std::{
    alloc::{GlobalAlloc, Layout},
    sync::atomic::{AtomicI32, Ordering},
};

use rustix::process::{Resource, getrlimit};

use super::system_file;

/// Returns the resident memory of the program in bytes; `None` if the kernel does not report it.
pub(crate) fn resident() -> Option<u64> {
    let text = system_file::read("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Reports whether the stack of the first thread can grow to this size.
pub(crate) fn has_stack_of(bytes: usize) -> bool {
    getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= bytes as u64)
}

/// Keeps the memory of this process out of core dumps and away from other processes of its user, from now on. A program that
/// this process starts is not affected: `execve` resets `PR_SET_DUMPABLE`.
pub(crate) fn protect() {
    // Without the system call, only the protection is missing.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Exit status for a lack of memory before anything was attempted, and afterwards.
const NOT_ATTEMPTED: i32 = 2;
const FAILED: i32 = 1;

const MESSAGE: &[u8] = b"error: not enough memory: raise the limit (ulimit -v, MemoryMax=)\n";

/// Exit status for a lack of memory; 0 if the program aborts.
static STATUS: AtomicI32 = AtomicI32::new(NOT_ATTEMPTED);

/// Makes a lack of memory exit with the status of a failed run from now on, because resources are being applied.
pub(crate) fn begin_to_attempt() {
    let _ = STATUS.compare_exchange(NOT_ATTEMPTED, FAILED, Ordering::Relaxed, Ordering::Relaxed);
}

/// Makes a lack of memory abort the program: a service manager then reports a crash and starts the program again.
pub(crate) fn abort_without_memory() {
    STATUS.store(0, Ordering::Relaxed);
}

/// The allocator of the program, which exits with a message if there is no memory.
pub(crate) struct Allocator(pub(crate) mimalloc::MiMalloc);

#[expect(unsafe_code, reason = "an allocator has no safe interface")]
// SAFETY: all calls go to mimalloc as they are; a call that returns nothing does not return here.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the trait.
        or_exit(unsafe { self.0.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { self.0.realloc(pointer, layout, size) })
    }
}

fn or_exit(allocated: *mut u8) -> *mut u8 {
    if allocated.is_null() {
        exit_without_memory();
    }
    allocated
}

/// Exits with one line on standard error. Nothing here allocates, and no destructor runs.
#[cold]
#[expect(unsafe_code, reason = "an exit that runs no handlers, which could allocate")]
fn exit_without_memory() {
    let status = STATUS.load(Ordering::Relaxed);
    if status == 0 {
        return;
    }
    let _ = rustix::io::write(rustix::stdio::stderr(), MESSAGE);
    // SAFETY: the call has no conditions, and does not return.
    unsafe { nix::libc::_exit(status) }
}
