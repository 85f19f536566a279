//! Work in a thread of its own, so that the memory that it needed goes back to the kernel.
//!
//! A run of many resources needs far more memory than waiting does. The allocator keeps what is freed and gives it back a
//! little later, but only when it is asked for something again; an agent that waits asks for nothing. What a thread that
//! has ended left behind is looked through whenever another thread ends: so runs have threads, and one that does nothing
//! follows a moment later.

use std::{
    hint::black_box,
    io, thread,
    time::{Duration, Instant},
};

/// As much as the main thread has: manifests may be deeply nested.
const STACK: usize = 8 * 1024 * 1024;
/// The allocator waits a tenth of a second before it gives something back.
const LATER: Duration = Duration::from_millis(250);

/// When memory is to be given back.
#[derive(Debug, Default)]
pub(crate) struct Leftovers(Option<Instant>);

impl Leftovers {
    /// Notes that a thread with a run has ended just now.
    pub(crate) fn note(&mut self) {
        self.0 = Some(Instant::now() + LATER);
    }

    /// Returns when memory is to be given back next.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0
    }

    /// Gives memory back, if it is time.
    pub(crate) fn give_back(&mut self, now: Instant) {
        if self.0.is_some_and(|moment| now >= moment) {
            self.0 = None;
            // A thread counts only if it has allocated something.
            apart(|| drop(black_box(vec![0_u8; 64])));
        }
    }
}

/// Does something in a thread and waits for it. Where there can be no more threads it is done here.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let mut done = None;
    let is_done = thread::scope(|scope| -> io::Result<()> {
        let (work, done) = (&mut work, &mut done);
        let act = move || *done = work.take().map(|work| work());
        let thread =
            thread::Builder::new().name("run".to_owned()).stack_size(STACK).spawn_scoped(scope, act)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(())
    });
    match (is_done, done, work) {
        (Ok(()), Some(done), _) => done,
        (_, _, Some(work)) => work(),
        _ => unreachable!("the work is done or still to do"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_in_another_thread() {
        let here = thread::current().id();
        let mut count = 0;
        let there = apart(|| {
            count += 1;
            thread::current().id()
        });
        assert!(there != here && count == 1);
    }
}
