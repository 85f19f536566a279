//! What whole-program tests are made of: a world of their own to run the program in, and what came of a run.

mod agent;
pub(crate) mod encrypted;
pub(crate) mod http;
mod mount;
mod namespace;
pub(crate) mod nats;
mod outcome;
mod random;
mod skip;
mod strace;
mod tree;
mod waiting;
mod world;

pub(crate) use agent::Agent;
pub(crate) use http::ports;
use mount::Mount;
pub(crate) use namespace::Machine;
pub(crate) use outcome::Outcome;
pub(crate) use random::random;
pub(crate) use skip::skip;
pub(crate) use strace::{Syscall, Trace, fits_strace, injection, paused, tampered, tampered_command};
pub(crate) use tree::{Item, Tree, What};
pub(crate) use waiting::{PATIENCE, listens, pause, side_by_side, wait_until, with_time_enough};
pub(crate) use world::{Call, World, finish};

use std::{path::Path, process::Command};

/// A user whom nobody trusts.
pub(crate) const NOBODY: u32 = 65534;

/// Whether the test may act as root. Where it may not, it says so and is passed over; never on the build server.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root() || skip("needs root")
}

/// Whether a program is there that the test cannot do without.
pub(crate) fn has(program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    found || skip(&format!("needs {program}"))
}

/// Returns a port of this machine that no other test is given, where nobody listens yet.
pub(crate) fn free_port() -> u16 {
    ports::listen().local_addr().expect("an address").port()
}

/// Runs another program, which must go well, and gives what it printed.
#[track_caller]
pub(crate) fn sh(script: &str, folder: &Path) -> String {
    let output = Command::new("/bin/sh").args(["-ec", script]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
