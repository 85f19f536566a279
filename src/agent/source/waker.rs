//! Wakes the thread of a source before its time.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Wakes the thread that asks a source: because its content changed, or because somebody wants to know now. Clones wake
/// the same thread.
#[derive(Clone, Default)]
pub(crate) struct Waker(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    called: Option<Call>,
    ended: bool,
}

/// Why a thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    /// The time is up.
    Time,
    /// The content changed far away. Others are told in the same moment.
    Changed,
    /// Somebody here wants to know now.
    Asked,
    /// Nobody wants to know any more.
    Ended,
}

impl Waker {
    /// Tells that the content may have changed. To be called by a source that is told of changes.
    pub(crate) fn changed(&self) {
        self.call(Call::Changed);
    }

    /// Asks for the content now.
    pub(super) fn ask(&self) {
        self.call(Call::Asked);
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.call(Call::Ended);
    }

    fn call(&self, call: Call) {
        let (state, condition) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended |= call == Call::Ended;
        state.called = state.called.max(Some(call));
        condition.notify_one();
    }

    /// Waits for a call, but no longer than this. A call that came before is not missed.
    pub(super) fn wait(&self, at_most: Duration) -> Call {
        let (state, condition) = &*self.0;
        let end = Instant::now().checked_add(at_most);
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.ended {
                return Call::Ended;
            }
            if let Some(call) = state.called.take() {
                return call;
            }
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Call::Time;
            }
            let waited = condition.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_came_before_is_not_missed_and_heard_once() {
        let waker = Waker::default();
        waker.changed();
        waker.ask();
        assert_eq!(waker.wait(Duration::MAX), Call::Asked);
        assert_eq!(waker.wait(Duration::ZERO), Call::Time);
        waker.end();
        waker.changed();
        assert_eq!(waker.wait(Duration::MAX), Call::Ended);
        assert_eq!(waker.wait(Duration::MAX), Call::Ended);
    }
}
