//! The stored events of runs: `STATE/push/RUN`, one message on a line, the first line with the supervisor's process id.
//!
//! The supervisor holds a lock on the file while it lives, through a descriptor that only it has.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    process::Pid,
};

use super::super::protocol::RunId;
use crate::{host::files::PrivateFolder, state::StateDirectory};

/// How long events of a run are kept whose end the controller has not acknowledged.
const KEPT: Duration = Duration::from_hours(24);

/// Space that is reserved for the events of a run.
const RESERVED: u64 = 1 << 20;

/// Name of the folder in the state directory.
const FOLDER: &str = "push";

/// The folders that can have events: the state directory, and one in memory in case that the disk is full.
pub(super) struct Spools(Vec<PrivateFolder>);

/// The events of one run.
pub(super) struct Spool {
    file: File,
    folder: usize,
    name: String,
    /// Bytes of an incomplete line.
    rest: Vec<u8>,
}

impl Spools {
    /// Opens the folders, and deletes the events of runs that ended long ago.
    pub(super) fn open(state: &StateDirectory) -> Self {
        let in_memory = Path::new(if rustix::process::geteuid().is_root() { "/run/ccm" } else { "/dev/shm" });
        let own = format!("ccm-push-{}", rustix::process::geteuid().as_raw());
        let folders = [state.make_folder(FOLDER).ok(), PrivateFolder::make(&in_memory.join(own)).ok()];
        let spools = Self(folders.into_iter().flatten().collect());
        spools.sweep();
        spools
    }

    fn sweep(&self) {
        for folder in &self.0 {
            for name in folder.names().unwrap_or_default() {
                let Some(name) = name.to_str() else { continue };
                let Ok(Some(file)) = folder.open_file(name) else { continue };
                let modified = file.metadata().and_then(|metadata| metadata.modified());
                let is_old = modified
                    .is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT));
                if is_old && file.try_lock().is_ok() {
                    let _ = folder.remove(name.as_ref());
                }
            }
        }
    }

    /// Creates the file of a run and locks it; `None` if the run exists.
    pub(super) fn create(&self, run: &RunId) -> io::Result<Option<OwnedFd>> {
        if self.find(run).is_some() {
            return Ok(None);
        }
        let mut failure = io::Error::other("no state directory");
        for folder in &self.0 {
            match begin(folder, run.as_str()) {
                Ok(file) => return Ok(file),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Opens the events of a run to read them from the beginning.
    pub(super) fn find(&self, run: &RunId) -> Option<Spool> {
        let name = run.as_str().to_owned();
        let opened = |(at, folder): (usize, &PrivateFolder)| Some((at, folder.open_file(&name).ok()??));
        let (folder, file) = self.0.iter().enumerate().find_map(opened)?;
        Some(Spool { file, folder, name, rest: Vec::new() })
    }

    pub(super) fn remove(&self, spool: &Spool) {
        let _ = self.0[spool.folder].remove(spool.name.as_ref());
    }

    /// Returns the path of the events, to watch them.
    pub(super) fn path(&self, spool: &Spool) -> std::path::PathBuf {
        self.0[spool.folder].path().join(&spool.name)
    }
}

fn begin(folder: &PrivateFolder, name: &str) -> io::Result<Option<OwnedFd>> {
    let statistics = statvfs(folder.path())?;
    if statistics.f_bavail * statistics.f_frsize < 2 * RESERVED {
        return Err(io::Error::new(io::ErrorKind::StorageFull, "no space for the events of the run"));
    }
    let Some(made) = folder.make_file(name).map_err(io::Error::other)? else { return Ok(None) };
    drop(made);
    let file = folder.open_to_append(name).map_err(io::Error::other)?;
    let file = file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    file.lock()?;
    // Not all file systems reserve space. Without it, only a disk that fills up during the run loses events.
    let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, 0, RESERVED);
    Ok(Some(file.into()))
}

impl Spool {
    /// Returns the next complete line.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.drain(..=end).collect::<Vec<u8>>();
                return Ok(Some(line[..end].to_vec()));
            }
            let mut buffer = vec![0; 64 * 1024];
            match self.file.read(&mut buffer)? {
                0 => return Ok(None),
                count => self.rest.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// Returns whether the supervisor is gone.
    pub(super) fn is_abandoned(&self) -> bool {
        match self.file.try_lock() {
            Ok(()) => {
                let _ = self.file.unlock();
                true
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        }
    }

    /// Returns the process id of the supervisor while it lives.
    pub(super) fn supervisor(&self) -> Option<Pid> {
        if self.is_abandoned() {
            return None;
        }
        let mut file = self.file.try_clone().ok()?;
        let position = file.stream_position().ok()?;
        let mut head = [0; 32];
        file.seek(SeekFrom::Start(0)).ok()?;
        let count = file.read(&mut head).ok()?;
        file.seek(SeekFrom::Start(position)).ok()?;
        let line = str::from_utf8(&head[..count]).ok()?.lines().next()?.parse().ok()?;
        Pid::from_raw(line).filter(|_| file.metadata().is_ok_and(|metadata| metadata.nlink() > 0))
    }
}
