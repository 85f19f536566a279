//! The file that content is copied from.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::posix::stop;
use crate::{
    host::files::{self, Digested, Predicted, UNKNOWN},
    resource::{Context, Error},
};

/// Content is read and written in pieces of this size, with a look at the clock in between.
pub(super) const CHUNK: usize = 128 * 1024;

/// The checksum of what would be copied by now.
pub(super) fn checksum(source: &str, cx: &Context) -> Result<String, Error> {
    match cx.prediction.borrow().files.follow(&cx.resolve(source))? {
        None => {}
        Some(Predicted::Entry(digested)) if digested.is_as_on_disk() => {}
        Some(Predicted::Entry(Digested { sha256: Some(sha256), .. })) => return Ok(sha256),
        Some(Predicted::Entry(_)) => return Err(failure(&not_regular(), source, cx)),
        Some(Predicted::Nothing) => {
            return Err(failure(&io::ErrorKind::NotFound.into(), source, cx));
        }
        Some(Predicted::Something { .. } | Predicted::Perhaps) => return Ok(UNKNOWN.to_owned()),
    }
    let mut hash = Sha256::new();
    copy(open(source, cx)?, cx, |piece| {
        hash.update(piece);
        Ok(())
    })
    .map_err(|error| failure(&error, source, cx))?;
    Ok(files::hex(&hash.finalize()))
}

/// Opens the file to copy from. It is the user's own choice, so links in its path are followed.
pub(super) fn open(source: &str, cx: &Context) -> Result<fs::File, Error> {
    let path = cx.resolve(source);
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let opened = || {
        let file = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(&path)?;
        let regular = file.metadata()?.is_file();
        if regular { Ok(file) } else { Err(not_regular()) }
    };
    opened().map_err(|error| failure(&error, source, cx))
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

fn failure(error: &io::Error, source: &str, cx: &Context) -> Error {
    if let Err(stopped) = cx.tick() {
        return stopped;
    }
    Error::new(format!("cannot read source {}: {}", cx.resolve(source).display(), reason(error))).on("source")
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) fn copy(
    mut from: fs::File,
    cx: &Context,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        stop(cx).map_err(io::Error::other)?;
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
