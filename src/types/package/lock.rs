//! Who else is at work on the packages.

#![allow(clippy::disallowed_methods, reason = "who holds a lock is in /proc")]

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Flock, FlockType, fcntl_getlk};

use super::{error::PackageError, packages::LOCK_WAIT};
use crate::resource::Context;

/// How often it is looked whether the other one has finished.
const LOOK: Duration = Duration::from_millis(200);

/// A process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    lock: PathBuf,
    pid: i32,
    /// The kernel's short name of it; empty when it is already gone.
    name: String,
}

/// Waits until nobody holds any of these locks, for as long as `timeout` says or a minute, and says who does.
pub(super) fn wait(locks: &[&str], cx: &Context) -> Result<(), PackageError> {
    let begun = Instant::now();
    let mut told = None;
    loop {
        let Some(holder) = locks.iter().find_map(|lock| holder(Path::new(lock))) else { return Ok(()) };
        if told.as_ref() != Some(&holder) {
            cx.show(&format!("waiting: {holder}"));
        }
        let limit = cx.timeout().unwrap_or(LOCK_WAIT);
        let is_over = begun.elapsed() >= limit || cx.time_left() == Some(Duration::ZERO);
        if is_over {
            return Err(PackageError::Locked { holder, waited: limit.into() });
        }
        if cx.interrupt().pause(cx.time_left().map_or(LOOK, |left| left.min(LOOK))).is_some() {
            return Err(PackageError::Interrupted);
        }
        told = Some(holder);
    }
}

/// Returns how long a package manager may itself wait for a lock, in whole seconds.
pub(super) fn seconds_left(cx: &Context) -> u64 {
    cx.time_left().unwrap_or(LOCK_WAIT).as_secs().max(1)
}

fn holder(lock: &Path) -> Option<Holder> {
    let pid = if lock.extension().is_some_and(|extension| extension == "pid") {
        // dnf writes down who it is, and leaves it there when it is killed.
        fs::read_to_string(lock)
            .ok()?
            .trim()
            .parse()
            .ok()
            .filter(|pid| Path::new(&format!("/proc/{pid}")).exists())?
    } else {
        let file = fs::File::open(lock).ok()?;
        let held = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
        held.pid.map_or(0, rustix::process::Pid::as_raw_pid)
    };
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    Some(Holder { lock: lock.to_owned(), pid, name })
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { lock, pid, name } = self;
        let lock = lock.display();
        match (pid, name.as_str()) {
            (0, _) => write!(f, "another process holds {lock}"),
            (pid, "") => write!(f, "process {pid} holds {lock}"),
            (pid, name) => write!(f, "{name} ({pid}) holds {lock}"),
        }
    }
}
