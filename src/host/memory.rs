//! Memory usage of the program.

use super::system_file;

/// Returns the resident memory of the program in bytes; `None` if the kernel does not report it.
pub(crate) fn resident() -> Option<u64> {
    let text = system_file::read("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Keeps the memory of this process out of core dumps and away from other processes of its user, from now on. A program that
/// this process starts is not affected: `execve` resets `PR_SET_DUMPABLE`.
pub(crate) fn protect() {
    // Without the system call, only the protection is missing.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
