//! Signals that tests send to their own process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Signal, getpid, kill_process};

/// Waits until no other test sends or expects a signal: signals reach the whole test process.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to this process.
pub(crate) fn send(number: i32) {
    kill_process(getpid(), Signal::from_named_raw(number).unwrap()).unwrap();
}
