//! Reading to the end, with a stop on the way.

use std::io::{self, Read};

use super::entry::CopyInterrupted;

/// How much is read at once, with a look at the clock in between.
pub const CHUNK: usize = 128 * 1024;

/// Reads to the end and hands on each piece; returns how much that was. `tick` is asked before each piece whether to go
/// on: when it says no, the error is `io::Error::other(CopyInterrupted)`.
pub fn pieces(
    from: &mut dyn Read,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut copied = 0;
    loop {
        tick().map_err(io::Error::other)?;
        let count = read(from, &mut buffer)?;
        if count == 0 {
            return Ok(copied);
        }
        take(&buffer[..count])?;
        copied += count as u64;
    }
}

/// Reads once, again where a signal came in between (EINTR).
pub fn read<R: Read + ?Sized>(from: &mut R, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
