//! One run at a time: a lock that the kernel releases when its holder ends, however it ends.

use std::{
    fs::{File, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::MetadataExt,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{StateDirectory, StateError};
use crate::host::{interrupt::Interrupt, process::is_run_by};

/// How often a waiting run looks whether it is its turn, at first and at most: the kernel offers no way to wait for a
/// lock and for a signal.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// A wait that is over sooner is not worth a word.
const LONG: Duration = Duration::from_secs(1);

const FILE: &str = "lock";

/// Held for as long as a run lasts.
pub(crate) struct RunLock(File);

impl Drop for RunLock {
    fn drop(&mut self) {
        // The next holder is not taken for this one before it has said who it is.
        let _ = self.0.set_len(0);
    }
}

/// What to do when somebody else holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Wait,
    GiveUp,
}

/// Another run holds the lock.
pub(crate) struct Held {
    /// What it said of itself.
    pub(crate) who: String,
    /// Whether it is waiting for this very process, which must not wait for it in turn.
    pub(crate) waits_for_us: bool,
}

impl StateDirectory {
    /// Takes the lock for a command. `waiting` is told once for whom the run waits.
    pub(crate) fn lock(
        &self,
        command: &str,
        patience: Patience,
        interrupt: &Interrupt,
        mut waiting: impl FnMut(&str),
    ) -> Result<Result<RunLock, Held>, StateError> {
        let folder = self.make()?;
        let failed = |error| StateError::Io { path: folder.path().join(FILE), error };
        let mut file = folder.make_to_append(FILE)?;
        let (began, mut said, mut look) = (Instant::now(), false, LOOK.0);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let held = Held::read(&mut file);
            if patience == Patience::GiveUp || held.waits_for_us {
                return Ok(Err(held));
            }
            if !said && began.elapsed() >= LONG {
                waiting(&held.who);
                said = true;
            }
            let mut stop = [PollFd::new(interrupt, PollFlags::IN)];
            let pause = Timespec { tv_sec: 0, tv_nsec: look.subsec_nanos().into() };
            if !matches!(poll(&mut stop, Some(&pause)), Ok(0)) {
                return Err(StateError::Interrupted);
            }
            look = LOOK.1.min(look * 2);
        }
        // What is written here is only for those who wait: it need not last.
        let who = format!("process {} ({command})", std::process::id());
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(who.as_bytes()));
        Ok(Ok(RunLock(file)))
    }
}

impl Held {
    fn read(file: &mut File) -> Self {
        let mut who = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut who));
        if read.is_err() || who.is_empty() {
            "another run".clone_into(&mut who);
        }
        Self { who, waits_for_us: pids(file).into_iter().any(is_run_by) }
    }
}

/// Who holds the lock, from the kernel. The number that the holder gives may be another process here: it may be in
/// another container.
fn pids(file: &File) -> Vec<i32> {
    let Ok(inode) = file.metadata().map(|metadata| metadata.ino().to_string()) else { return Vec::new() };
    let pid = |line: &str| {
        // As in `1: FLOCK  ADVISORY  WRITE 1234 fe:00:567 0 EOF`.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (kind, pid, place) = (fields.get(1)?, fields.get(4)?, fields.get(5)?);
        let is_ours = *kind == "FLOCK" && place.rsplit(':').next() == Some(&inode);
        is_ours.then(|| pid.parse().ok()).flatten()
    };
    crate::host::system_file::read("/proc/locks").unwrap_or_default().lines().filter_map(pid).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, process};

    use super::*;

    #[test]
    fn who_waits_is_told_once_and_late_for_whom() {
        let folder = std::env::temp_dir().canonicalize().unwrap().join(format!("ccm-lock-{}", process::id()));
        let state = StateDirectory::at(folder.clone());
        let never = Interrupt::never().unwrap();
        let lock = |patience, waiting: &mut dyn FnMut(&str)| {
            state.lock("ccm apply", patience, &never, waiting).unwrap()
        };
        let mut held = lock(Patience::Wait, &mut |_| ()).ok();
        let us = format!("process {} (ccm apply)", process::id());
        assert_eq!(lock(Patience::GiveUp, &mut |_| ()).err().map(|held| held.who), Some(us.clone()));
        let (began, mut told) = (Instant::now(), Vec::new());
        let next = lock(Patience::Wait, &mut |who| {
            assert!(began.elapsed() >= LONG);
            told.push(who.to_owned());
            // Then it goes on, long enough to be told again.
            if let Some(held) = held.take() {
                held.0.set_len(0).unwrap();
                std::thread::spawn(move || {
                    std::thread::sleep(3 * LOOK.1);
                    drop(held);
                });
            }
        });
        assert_eq!(told, [us]);
        let other = fs::File::create(folder.join("other")).unwrap();
        other.lock().unwrap();
        let mut file = fs::File::options().read(true).append(true).open(folder.join(FILE)).unwrap();
        assert_eq!(pids(&file), [i32::try_from(process::id()).unwrap()], "others hold other locks");
        drop(next);
        assert_eq!(Held::read(&mut file).who, "another run", "who does not hold it any more is not named");
        let _ = fs::remove_dir_all(folder);
    }
}
