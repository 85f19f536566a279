//! Kept copies of contents in `STATE/history/objects`, each named by its SHA-256.
//!
//! The content of a sensitive resource is encrypted for `STATE/identity`, and its name is a keyed hash, because the digest
//! of a short secret can be guessed.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fdatasync, futimens};

use super::{
    super::StateError,
    snapshot::{Kept, sha256, sha256_of},
};
use crate::{
    host::files::{self, CopyInterrupted, FileError, PrivateFolder, hex},
    state::StateIdentity,
};

/// Largest file that is read into memory rather than shared by block.
const SMALL: u64 = 1 << 20;

/// With more new copies than this, one sync of the file system is faster than a sync of each.
const FEW: usize = 3;

/// The kept copies. A copy is on disk only after [`Objects::sync`].
pub(crate) struct Objects {
    folder: PrivateFolder,
    /// Encrypts and hashes the contents of sensitive resources.
    identity: Option<StateIdentity>,
    unsynced: RefCell<Vec<File>>,
}

/// A kept copy and its size on disk.
pub(crate) struct Copy {
    pub(crate) digest: String,
    pub(crate) size: u64,
    /// When a run last kept this content, in nanoseconds since 1970.
    pub(crate) used: i128,
}

impl Objects {
    pub(super) fn new(folder: PrivateFolder, identity: Option<StateIdentity>) -> Self {
        Self { folder, identity, unsynced: RefCell::default() }
    }

    /// Returns whether the contents are those of sensitive resources.
    pub(crate) fn are_secret(&self) -> bool {
        self.identity.is_some()
    }

    /// Returns how a copy that is kept now is stored.
    pub(crate) fn kept(&self) -> Kept {
        if self.identity.is_some() { Kept::Encrypted } else { Kept::Copy }
    }

    /// Returns the digest of an open file, by which its copy is named.
    pub(crate) fn digest(
        &self,
        file: &File,
        tick: &dyn Fn() -> Result<(), CopyInterrupted>,
    ) -> io::Result<String> {
        Ok(self.name(&sha256(file, tick)?))
    }

    pub(crate) fn digest_bytes(&self, bytes: &[u8]) -> String {
        match &self.identity {
            None => sha256_of(bytes),
            Some(_) => self.name(&sha2_of(bytes)),
        }
    }

    fn name(&self, sha256: &[u8; 32]) -> String {
        match &self.identity {
            None => hex(sha256),
            Some(identity) => hex(&identity.keyed_hash(sha256)),
        }
    }

    /// Keeps a copy of an open file and returns its digest. The digest is that of the copy, so a file that changes
    /// meanwhile is kept in one of its states or a mixture of them, never under the digest of another.
    pub(crate) fn keep(
        &self,
        file: &File,
        tick: &dyn Fn() -> Result<(), CopyInterrupted>,
    ) -> io::Result<String> {
        let mut source = file;
        source.seek(SeekFrom::Start(0))?;
        let size = file.metadata()?.len();
        if size <= SMALL || self.identity.is_some() {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
            source.read_to_end(&mut bytes)?;
            return self.keep_bytes(&bytes);
        }
        let write = |copy: &mut File| {
            if !files::share_blocks(copy, file) {
                files::pieces(&mut source, &mut || tick(), |piece| copy.write_all(piece))?;
            }
            Ok(hex(&sha256(copy, tick)?))
        };
        self.put(write)
    }

    /// Keeps bytes and returns their digest.
    pub(crate) fn keep_bytes(&self, bytes: &[u8]) -> io::Result<String> {
        let digest = self.digest_bytes(bytes);
        if self.touch(&digest)? {
            return Ok(digest);
        }
        let encrypted = self.identity.as_ref().map(|identity| identity.encrypt(bytes));
        let encrypted = encrypted.transpose().map_err(io::Error::other)?;
        self.put(|copy| {
            copy.write_all(encrypted.as_deref().unwrap_or(bytes))?;
            Ok(digest.clone())
        })
    }

    fn put(&self, write: impl FnOnce(&mut File) -> io::Result<String>) -> io::Result<String> {
        let (digest, new) = self.folder.put_named(write).map_err(io::Error::other)?;
        match new {
            Some(file) => self.unsynced.borrow_mut().push(file),
            None => drop(self.touch(&digest)?),
        }
        Ok(digest)
    }

    /// Notes that a copy is used again; returns whether it exists.
    fn touch(&self, digest: &str) -> io::Result<bool> {
        let Some(file) = self.folder.open_file(digest).map_err(io::Error::other)? else { return Ok(false) };
        let (now, omit) = (UTIME_NOW, UTIME_OMIT);
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: omit },
            last_modification: Timespec { tv_sec: 0, tv_nsec: now },
        };
        futimens(&file, &times)?;
        Ok(true)
    }

    /// Writes new copies to disk.
    pub(super) fn sync(&self) -> Result<(), FileError> {
        let new = std::mem::take(&mut *self.unsynced.borrow_mut());
        match new.len() {
            0 => Ok(()),
            1..=FEW => {
                for file in new {
                    fdatasync(&file).map_err(|errno| self.folder.file_error("objects", &errno.into()))?;
                }
                self.folder.sync()
            }
            _ => self.folder.sync_file_system(),
        }
    }

    pub(crate) fn has(&self, digest: &str) -> bool {
        is_digest(digest) && self.folder.look(digest.as_ref()).is_ok_and(|found| found.is_some())
    }

    /// Opens a copy; `None` if it does not exist. The content of a sensitive resource is decrypted into an unnamed file in
    /// memory.
    pub(crate) fn open(&self, digest: &str) -> io::Result<Option<File>> {
        if !is_digest(digest) {
            return Ok(None);
        }
        let Some(mut file) = self.folder.open_file(digest).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let Some(identity) = &self.identity else { return Ok(Some(file)) };
        let mut encrypted = Vec::new();
        file.read_to_end(&mut encrypted)?;
        let plain = identity.decrypt(&encrypted).map_err(io::Error::other)?;
        let mut memory = File::from(rustix::fs::memfd_create("ccm", rustix::fs::MemfdFlags::CLOEXEC)?);
        memory.write_all(&plain)?;
        memory.seek(SeekFrom::Start(0))?;
        Ok(Some(memory))
    }

    /// Fails unless an open copy has the content that its digest names, and rewinds it.
    pub(crate) fn check(&self, copy: &mut File, digest: &str) -> io::Result<()> {
        if self.digest(copy, &|| Ok(()))? != digest {
            return Err(io::Error::other(format!("the copy {digest} is damaged")));
        }
        copy.seek(SeekFrom::Start(0)).map(drop)
    }

    /// Returns all copies.
    pub(crate) fn all(&self) -> Result<Vec<Copy>, StateError> {
        let mut copies = Vec::new();
        for name in self.folder.names()? {
            let Some(digest) = name.to_str().filter(|name| is_digest(name)) else { continue };
            let Some(entry) = self.folder.look(&name)? else { continue };
            let used =
                i128::from(entry.modified.seconds) * 1_000_000_000 + i128::from(entry.modified.nanoseconds);
            copies.push(Copy { digest: digest.to_owned(), size: entry.size, used });
        }
        Ok(copies)
    }

    pub(super) fn remove(&self, digest: &str) -> Result<(), StateError> {
        Ok(self.folder.remove(digest.as_ref())?)
    }
}

fn sha2_of(bytes: &[u8]) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).into()
}

/// Whether a name is that of a copy.
pub(super) fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
