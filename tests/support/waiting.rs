//! Waiting for something to happen, on machines that are as busy as they like.
//!
//! No time limit decides a test: what must not run out is long, and what must run out before something else happens is tried
//! again with more time.

use std::{
    fs,
    process::Child,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

/// What has not happened by then never will.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// Time limits for a command that has to come to its point before they run out.
const LIMITS: [&str; 4] = ["1s", "5s", "25s", "2m"];

/// Waits until it is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        pause(begun);
    }
}

/// Pauses before somebody who has been waiting since then looks again: the longer the wait was, the longer, because looking takes
/// time from others.
pub(crate) fn pause(begun: Instant) {
    thread::sleep((begun.elapsed() / 10).clamp(Duration::from_millis(1), Duration::from_millis(250)));
}

/// Tries with one time limit after the other until one was long enough; `None` is an attempt that came to nothing because
/// its time was up too early.
#[track_caller]
pub(crate) fn with_time_enough<T>(attempt: impl FnMut(&'static str) -> Option<T>) -> T {
    LIMITS.into_iter().find_map(attempt).expect("two minutes are enough")
}

/// Does the same with each of many, a few at a time: most of it is waiting.
pub(crate) fn side_by_side<T: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) + Sync,
) {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

/// Waits until the program listens to a signal.
#[track_caller]
pub(crate) fn listens(child: &Child, to: Signal) {
    let path = format!("/proc/{}/status", child.id());
    let bit = 1_u64 << (to.as_raw() - 1);
    wait_until("the program listens to signals", || {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
        // Whatever starts the program may listen to it as well.
        status.starts_with("Name:\tccm\n") && u64::from_str_radix(caught, 16).unwrap_or(0) & bit != 0
    });
}
