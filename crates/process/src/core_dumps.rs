//! Core dumps of this process, whose memory contains secrets.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that this process was started with, if it was changed.
static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Prevents core dumps of this process. Commands get the limit that this process was started with.
///
/// A limit of one byte is too small for a file. Unlike any other limit, it also prevents the kernel from starting the program in
/// `core_pattern`.
pub fn disable_core_dumps() {
    let inherited = getrlimit(Resource::Core);
    let current = Some(inherited.maximum.map_or(1, |maximum| maximum.min(1)));
    if setrlimit(Resource::Core, Rlimit { current, maximum: inherited.maximum }).is_ok() {
        let _ = INHERITED.set(inherited);
    }
}

/// Restores the limit in a new process, between fork and exec.
pub(super) fn restore() -> io::Result<()> {
    match INHERITED.get() {
        Some(inherited) => Ok(setrlimit(Resource::Core, *inherited)?),
        None => Ok(()),
    }
}
