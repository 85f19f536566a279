//! Limits that stop decompression bombs.

use std::{
    cell::Cell,
    fmt,
    io::{self, Read},
    rc::Rc,
};

/// Limits on the extracted files.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of bytes of the decompressed archive, including headers.
    pub size: u64,
    /// Maximum number of files, directories and links.
    pub entries: u64,
    /// Maximum compression ratio.
    pub ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { size: 16 << 30, entries: 1_000_000, ratio: 250 }
    }
}

/// Number of decompressed bytes up to which any ratio is permitted.
const HARMLESS: u64 = 64 << 20;

/// Number of compressed bytes that may be read without any output: more than any decompressor requires, and a limit for
/// streams of empty members.
const MOST_WITHOUT_OUTPUT: u64 = 4 << 20;

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each limit names it")]
pub enum Breach {
    #[error("it unpacks to more than {}", Size(*.0))]
    Size(u64),
    #[error("it has more than {0} entries")]
    Entries(u64),
    #[error("it unpacks to more than {0} times its size")]
    Ratio(u64),
    #[error("more than {} of it, one after the other, unpack to nothing", Size(*.0))]
    NoOutput(u64),
}

/// Bytes in a message, in the largest unit that divides them.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.iter().find(|(bytes, _)| self.0 >= *bytes && self.0.is_multiple_of(*bytes)) {
            Some((bytes, unit)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Counts compressed and decompressed bytes and the entries of one archive.
#[derive(Clone)]
pub(super) struct Meter {
    limits: Limits,
    consumed: Rc<Cell<u64>>,
    /// Compressed bytes since the last output.
    consumed_in_vain: Rc<Cell<u64>>,
    produced: Rc<Cell<u64>>,
    entries: Rc<Cell<u64>>,
}

impl Meter {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            consumed: Rc::default(),
            consumed_in_vain: Rc::default(),
            produced: Rc::default(),
            entries: Rc::default(),
        }
    }

    /// Counts an entry.
    pub(super) fn entry(&self) -> Result<(), Breach> {
        self.entries.set(self.entries.get() + 1);
        self.entries_allowed(self.entries.get())
    }

    pub(super) fn most_entries(&self) -> u64 {
        self.limits.entries
    }

    pub(super) fn entries_allowed(&self, count: u64) -> Result<(), Breach> {
        let limit = self.limits.entries;
        if count > limit { Err(Breach::Entries(limit)) } else { Ok(()) }
    }

    /// Counts bytes of the archive itself.
    pub(super) fn consume(&self, count: u64) {
        self.consumed.set(self.consumed.get() + count);
    }

    /// Counts bytes that a decompressor reads.
    fn decompress(&self, count: u64) -> Result<(), Breach> {
        self.consume(count);
        self.consumed_in_vain.set(self.consumed_in_vain.get() + count);
        let limit = MOST_WITHOUT_OUTPUT;
        if self.consumed_in_vain.get() > limit { Err(Breach::NoOutput(limit)) } else { Ok(()) }
    }

    fn produce(&self, count: u64) -> Result<(), Breach> {
        if count > 0 {
            self.consumed_in_vain.set(0);
        }
        let Limits { size, ratio, .. } = self.limits;
        let produced = self.produced.get() + count;
        self.produced.set(produced);
        if produced > size {
            Err(Breach::Size(size))
        } else if produced > HARMLESS && produced / ratio.max(1) > self.consumed.get() {
            Err(Breach::Ratio(ratio))
        } else {
            Ok(())
        }
    }

    /// Wraps the compressed archive to count it.
    pub(super) fn before<R: Read>(&self, reader: R) -> Before<R> {
        Before { reader, meter: self.clone() }
    }

    /// Wraps the decompressed data to count and limit it.
    pub(super) fn after<R: Read>(&self, reader: R) -> After<R> {
        After { reader, meter: self.clone() }
    }
}

pub(super) struct Before<R> {
    reader: R,
    meter: Meter,
}

impl<R: Read> Read for Before<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.meter.decompress(count as u64).map_err(io::Error::other)?;
        Ok(count)
    }
}

pub(super) struct After<R> {
    reader: R,
    meter: Meter,
}

impl<R: Read> Read for After<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.meter.produce(count as u64).map_err(io::Error::other)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_can_be_reached_exactly() {
        let meter = Meter::new(Limits::default());
        meter.consume(1 << 20);
        assert_eq!(meter.produce(250 << 20), Ok(()));
        assert_eq!(meter.produce(250), Err(Breach::Ratio(250)));
    }
}
