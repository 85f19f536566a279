//! Memory usage of the program.

use super::system_file;

/// Returns the resident memory of the program in bytes; `None` if the kernel does not report it.
pub(crate) fn resident() -> Option<u64> {
    let text = system_file::read("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
