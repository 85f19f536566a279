//! The file that content is copied from.

use std::{
    fs,
    io::{self, Read},
    path::PathBuf,
};

use sha2::{Digest, Sha256};

use crate::{
    host::{
        files::{self, Digested, Entry, FileError, Predicted, Problem, UNKNOWN},
        look,
    },
    resource::{Context, Error, file_help},
    types::disk::stop,
};

/// The size of what would be copied by now; `None` where that cannot be told without reading it.
pub(super) fn size(source: &str, cx: &Context) -> Result<Option<u64>, Error> {
    match cx.prediction.borrow().files.follow(&cx.resolve(source))? {
        None => Ok(open(source, cx)?.certain_size()),
        Some(_) => Ok(None),
    }
}

/// The checksum of what would be copied by now.
pub(super) fn checksum(source: &str, cx: &Context) -> Result<String, Error> {
    let prediction = cx.prediction.borrow();
    if prediction.may_differ_on_disk() && !look::exists(&cx.resolve(source)) {
        let found = prediction.files.follow(&cx.resolve(source))?;
        if matches!(found, None | Some(Predicted::Nothing)) {
            cx.assume(format!(
                "source `{source}` does not exist; assuming {} creates it",
                prediction.path_suspects()
            ));
            return Ok(UNKNOWN.to_owned());
        }
    }
    match prediction.files.follow(&cx.resolve(source))? {
        None => {}
        Some(Predicted::Entry(digested)) if digested.is_as_on_disk() => {}
        Some(Predicted::Entry(Digested { sha256: Some(sha256), .. })) => return Ok(sha256),
        Some(Predicted::Entry(_)) => return Err(failure(NOT_REGULAR, source, cx)),
        Some(Predicted::Nothing) => return Err(failure("it does not exist", source, cx)),
        Some(Predicted::Something { .. } | Predicted::Perhaps) => return Ok(UNKNOWN.to_owned()),
    }
    let sha256 = open(source, cx)?.digest(cx).map_err(|error| failure(&error.to_string(), source, cx))?;
    Ok(sha256.map_or(UNKNOWN.to_owned(), |sha256| files::hex(&sha256)))
}

/// Returns the content that is copied; `None` if an earlier resource of a dry run would leave it.
pub(super) fn content(source: &str, cx: &Context) -> Result<Option<Vec<u8>>, Error> {
    let is_on_disk = |found: &Predicted| matches!(found, Predicted::Entry(entry) if entry.is_as_on_disk());
    let found = cx.prediction.borrow().files.follow(&cx.resolve(source))?;
    let is_assumed = cx.prediction.borrow().may_differ_on_disk() && !look::exists(&cx.resolve(source));
    if is_assumed || found.is_some_and(|found| !is_on_disk(&found)) {
        return Ok(None);
    }
    let mut content = Vec::new();
    let read = open(source, cx)?.read_to_end(&mut content);
    read.map_err(|error| failure(&error.to_string(), source, cx))?;
    Ok(Some(content))
}

/// A file to copy from, open. What is added to it from now on is not read.
pub(super) struct Source {
    file: io::Take<fs::File>,
    entry: Entry,
}

impl Source {
    fn new(file: fs::File, entry: Entry) -> Self {
        let size = if entry.has_certain_size() { entry.size } else { u64::MAX };
        Self { file: file.take(size), entry }
    }

    /// Its size, where that is certain.
    fn certain_size(&self) -> Option<u64> {
        self.entry.has_certain_size().then_some(self.entry.size)
    }

    /// Its SHA-256. What cannot have changed since it was last hashed is not read.
    fn digest(self, cx: &Context) -> io::Result<Option<[u8; 32]>> {
        let Self { file, entry } = self;
        files::digest_once(file.get_ref(), &entry, cx.digests(), || {
            let mut hash = Sha256::new();
            files::pieces(&mut file.get_ref().take(file.limit()), &mut || stop(cx), |piece| {
                hash.update(piece);
                Ok(())
            })?;
            Ok(Some(hash.finalize().into()))
        })
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// Opens the file to copy from.
pub(super) fn open(source: &str, cx: &Context) -> Result<Source, Error> {
    let path = cx.prediction.borrow().files.target_on_disk(&path(source, cx));
    match files::open_followed(&path) {
        Ok(Some((file, entry))) => Ok(Source::new(file, entry)),
        Ok(None) => Err(failure("it does not exist", source, cx)),
        Err(FileError { problem: Problem::Denied { .. }, .. }) => {
            Err(failure("permission denied", source, cx))
        }
        Err(FileError { problem: Problem::IsADirectory { .. } | Problem::Special { .. }, .. }) => {
            Err(failure(NOT_REGULAR, source, cx))
        }
        Err(error) => {
            let error = error.naming(|uid| cx.host.users.known_name(uid));
            let help = file_help(&error);
            Err(Error { help, ..failure(&error.problem.to_string(), source, cx) })
        }
    }
}

const NOT_REGULAR: &str = "it is not a regular file";

/// The path with nothing left that depends on where the program runs.
fn path(source: &str, cx: &Context) -> PathBuf {
    let path = cx.resolve(source);
    std::path::absolute(&path).unwrap_or(path)
}

fn failure(reason: &str, source: &str, cx: &Context) -> Error {
    if let Err(stopped) = cx.tick() {
        return stopped;
    }
    Error::new(format!("cannot read source {}: {reason}", cx.resolve(source).display())).on("source")
}
