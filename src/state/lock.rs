//! One run at a time: a lock that the kernel releases when its holder ends, however it ends.

use std::{
    fs::{File, TryLockError},
    io::{Read, Seek, Write},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{StateDirectory, StateError, open};
use crate::host::interrupt::Interrupt;

/// How often a waiting run looks whether it is its turn: the kernel offers no way to wait for a lock and for a signal.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Held for as long as a run lasts.
pub(crate) struct RunLock {
    _file: File,
}

/// What to do when somebody else holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Wait,
    GiveUp,
}

/// Another run holds the lock: what it said of itself.
pub(crate) struct Held(pub(crate) String);

impl StateDirectory {
    /// Takes the lock of the run. `waiting` is told once for whom the run waits.
    pub(crate) fn lock(
        &self,
        who: &str,
        patience: Patience,
        interrupt: &Interrupt,
        mut waiting: impl FnMut(&str),
    ) -> Result<Result<RunLock, Held>, StateError> {
        self.make()?;
        let path = self.path().join("lock");
        let failed = |error| StateError::Io { path: path.clone(), error };
        let mut file = open(&path).map_err(failed)?;
        let mut said = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let holder = holder(&mut file);
            if patience == Patience::GiveUp {
                return Ok(Err(Held(holder)));
            }
            if !said {
                waiting(&holder);
                said = true;
            }
            let mut stop = [PollFd::new(interrupt, PollFlags::IN)];
            if !matches!(poll(&mut stop, Some(&LOOK)), Ok(0)) {
                return Err(StateError::Interrupted);
            }
        }
        // What is written here is only for the message above: it need not last.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(who.as_bytes()));
        Ok(Ok(RunLock { _file: file }))
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    if read.is_err() || text.is_empty() { "another run".to_owned() } else { text }
}
