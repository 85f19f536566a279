//! Hashes an archive file while its bytes are used, so that the used bytes are the hashed bytes.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use super::error::ArchiveError;
use crate::{
    download::{CHUNK, Hashes, local},
    host::files::{self, TempFile},
    resource::{Context, Error},
    vocabulary::{Algorithm, Checksum},
};

/// A file that is hashed while it is read.
pub(super) struct HashedFile<'a, 'c> {
    file: &'a File,
    path: &'a Path,
    hashes: Hashes,
    cx: &'a Context<'c>,
    /// Reason why reading stopped before the end of the file.
    failure: Option<Error>,
}

impl<'a, 'c> HashedFile<'a, 'c> {
    /// Starts reading at the current offset of the file.
    pub(super) fn new(file: &'a File, wanted: Algorithm, path: &'a Path, cx: &'a Context<'c>) -> Self {
        Self { file, path, hashes: Hashes::new(wanted), cx, failure: None }
    }

    /// Reads the rest of the file and returns the checksums of the whole file.
    pub(super) fn finish(self) -> Result<Vec<Checksum>, Error> {
        self.pour(|_| Ok(()))
    }

    /// Copies the rest of the file to `copy`, which no other process has open, and returns the checksums of the whole
    /// file.
    pub(super) fn copy_to(self, copy: &TempFile) -> Result<Vec<Checksum>, Error> {
        let mut to = copy.file();
        self.pour(|bytes| to.write_all(bytes).map_err(|error| local(copy.explain(&error))))
    }

    fn pour(mut self, mut sink: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<Vec<Checksum>, Error> {
        let mut buffer = vec![0; CHUNK];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => return Ok(self.hashes.finish()),
                Ok(count) => sink(&buffer[..count])?,
                Err(error) => return Err(self.failure.unwrap_or_else(|| unreadable(self.path, error))),
            }
        }
    }
}

impl Read for HashedFile<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Err(stopped) = self.cx.tick() {
            self.failure = Some(stopped);
            return Err(io::Error::other("stopped"));
        }
        let count = files::read(&mut self.file, buffer)?;
        self.hashes.update(&buffer[..count]);
        Ok(count)
    }
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    ArchiveError::Unreadable { path: path.to_owned(), source }.into()
}
