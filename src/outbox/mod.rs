//! Publishes the events of runs to a stream. Messages that cannot be published now wait on disk, and are published in
//! order, once each.
//!
//! Each run is one file with a message per line. Each message has an id, so that the stream can deduplicate a message
//! that is sent again because the program was killed before it recorded the progress.

mod posting;
mod spool;

pub(crate) use posting::Run;
pub(crate) use spool::Limits;

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use self::{posting::Posting, spool::Spool};
use crate::{
    host::files::{FileError, PrivateFolder},
    nats::{Connection, Listening, NatsError},
};

/// Pause before a rejected message is sent again.
const RETRY: Duration = Duration::from_secs(5);

/// Publishes the messages in a spool until it is dropped.
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    /// Wakes the thread when the connection is established or lost.
    _listening: Listening,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

struct State {
    spool: Spool,
    ended: bool,
}

impl Outbox {
    /// Opens the spool of an earlier process, and starts the thread that publishes it. Calls `tell` with messages for
    /// the log.
    pub(crate) fn start(
        connection: Arc<Connection>,
        folder: PrivateFolder,
        limits: Limits,
        subject: String,
        tell: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let spool = Spool::open(folder, limits).map_err(|error| io::Error::other(error.to_string()))?;
        let shared =
            Arc::new(Shared { state: Mutex::new(State { spool, ended: false }), woken: Condvar::new() });
        let on_change = Arc::clone(&shared);
        let listening = connection.on_change(move |_| on_change.wake());
        let working = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("events".to_owned()).stack_size(512 * 1024).spawn(move || {
                Work { connection, subject, shared: working, tell: Box::new(tell), told: None }.go_on();
            })?;
        Ok(Self { shared, _listening: listening, thread: Some(thread) })
    }

    /// Returns whether the spool is empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.state().spool.is_empty()
    }

    /// Adds the messages of a run to the spool. Returns how many messages of earlier runs were discarded for it.
    pub(crate) fn post(&self, run: &Run) -> Result<usize, FileError> {
        let dropped = self.shared.state().spool.add(&run.postings())?;
        self.shared.woken.notify_all();
        Ok(dropped)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.woken.notify_all();
        // Only now can another process open the directory.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread, even if it has just decided to wait.
    fn wake(&self) {
        drop(self.state());
        self.woken.notify_all();
    }
}

struct Work {
    connection: Arc<Connection>,
    subject: String,
    shared: Arc<Shared>,
    tell: Box<dyn Fn(&str) + Send>,
    /// Last error that was logged.
    told: Option<String>,
}

impl Work {
    fn go_on(mut self) {
        loop {
            let shared = Arc::clone(&self.shared);
            let mut state = shared.state();
            if state.ended {
                state.spool.note_progress();
                return;
            }
            let next = if self.connection.status().connected { state.spool.next() } else { None };
            let Some((place, posting)) = next else {
                // Record the progress while there is time for it.
                state.spool.note_progress();
                drop(shared.woken.wait(state).unwrap_or_else(PoisonError::into_inner));
                continue;
            };
            drop(state);
            let sent = self.send(&posting);
            let mut state = shared.state();
            match sent {
                Ok(()) => state.spool.done(place),
                Err(error) => {
                    state.spool.note_progress();
                    self.tell_failure(&error);
                    drop(shared.woken.wait_timeout(state, RETRY).unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    fn send(&mut self, posting: &Posting) -> Result<(), NatsError> {
        let headers = [("Nats-Msg-Id", posting.id.clone())];
        self.connection.put(&self.subject, &headers, posting.payload())?;
        self.told = None;
        Ok(())
    }

    /// Logs why messages cannot be published, once per reason. The agent logs an unreachable NATS server itself.
    fn tell_failure(&mut self, error: &NatsError) {
        let text = error.to_string();
        if !error.may_pass() && self.told.as_ref() != Some(&text) {
            (self.tell)(&format!("cannot publish events: {text}; they wait on disk"));
        }
        self.told = Some(text);
    }
}
