//! Whatever the program is given to read: manifests, data, facts, content, certificates.
//!
//! Opening and reading never hang. What a path leads to is opened with `O_NONBLOCK` and judged by its descriptor, so
//! that nobody can put a named pipe in the place of a file in between. Pipes that the caller hands over by descriptor
//! (`/dev/stdin`, `/dev/fd/N`, `/proc/self/fd/N`) are read until they end or the program is asked to stop.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Access, FileType, Mode, OFlags, access, fstat, open},
    io::Errno,
};

use super::interrupt::{Interrupt, Signal, Stdin};

/// How much is read of each kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Manifests, facts, and files that templates read.
    pub(crate) document: u64,
    /// Hierarchical data.
    pub(crate) data: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { document: 64 << 20, data: 256 << 20 }
    }
}

impl Limits {
    /// Makes limits of one size for every kind of input.
    pub(crate) fn of(size: u64) -> Self {
        Self { document: size, data: size }
    }
}

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("no such file")]
    Missing,
    #[error("permission denied")]
    Denied,
    #[error("it is {}, not a regular file", noun(*.kind))]
    NotAFile { kind: FileType },
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("stopped by {0}")]
    Interrupted(Signal),
    #[error("{0}")]
    Io(io::Error),
}

impl InputError {
    /// Returns what the user can do about it, if there is something.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::TooLarge { .. } => Some("--max-input-size or CCM_MAX_INPUT_SIZE allow more"),
            Self::NotAFile { kind: FileType::Fifo } => {
                Some("hand a pipe over as `-`, /dev/stdin or /dev/fd/N")
            }
            _ => None,
        }
    }

    fn of(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Io(error),
        }
    }
}

impl From<Errno> for InputError {
    fn from(error: Errno) -> Self {
        Self::of(error.into())
    }
}

/// Returns the one path of a file that leads through no links, which says whether two files are the same one.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, InputError> {
    path.canonicalize().map_err(InputError::of)
}

/// Among more names nobody looks for the one that was meant.
const MOST_NAMES: usize = 10_000;

/// Reads a regular file whole, without following a path that leads to anything else.
pub(crate) fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, InputError> {
    read_to_end(open_file(path)?, limit)
}

/// Returns the names of what lies in the same folder as a path, as far as they are text.
pub(crate) fn names_beside(path: &Path) -> Vec<String> {
    let entries = path.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).take(MOST_NAMES).collect()
}

/// Kind of file, for callers that treat directories and programs differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    /// An executable file: a binary, or a script that names its interpreter.
    Program,
    Other,
}

/// Returns the kind of the file at a path, or `None` if it does not exist or is not accessible.
pub(crate) fn kind(path: &Path) -> Option<Kind> {
    let metadata = path.metadata().ok()?;
    if metadata.is_dir() {
        return Some(Kind::Directory);
    }
    let is_program = metadata.is_file() && access(path, Access::EXEC_OK).is_ok() && has_program(path);
    Some(if is_program { Kind::Program } else { Kind::Other })
}

fn has_program(path: &Path) -> bool {
    let mut first = Vec::new();
    open_file(path).is_ok_and(|file| file.take(4).read_to_end(&mut first).is_ok())
        && (first.starts_with(b"#!") || first == b"\x7fELF")
}

/// Returns the names in a directory in order, without those that are not text.
pub(crate) fn names_in(directory: &Path) -> Result<Vec<String>, InputError> {
    let entries = directory.read_dir().map_err(InputError::of)?;
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Opens a regular file for reading, and refuses anything else.
pub(crate) fn open_file(path: &Path) -> Result<File, InputError> {
    match opened(path)? {
        (file, FileType::RegularFile) => Ok(file),
        (_, kind) => Err(InputError::NotAFile { kind }),
    }
}

/// Reads a regular file whole, or what comes through a descriptor that the caller handed over.
pub(crate) fn read_argument(path: &Path, limit: u64, interrupt: &Interrupt) -> Result<Vec<u8>, InputError> {
    match inherited(path) {
        None => read_file(path, limit),
        Some(Inherited::Stdin) => read_stdin(limit, interrupt),
        Some(Inherited::Other) => match opened(path)? {
            (file, FileType::RegularFile) => read_to_end(file, limit),
            (_, kind @ FileType::Directory) => Err(InputError::NotAFile { kind }),
            (file, _) => stoppable(read(Interruptible { file, interrupt }, limit, 0), interrupt),
        },
    }
}

/// Reads standard input to its end.
pub(crate) fn read_stdin(limit: u64, interrupt: &Interrupt) -> Result<Vec<u8>, InputError> {
    stoppable(read(Stdin(interrupt), limit, 0), interrupt)
}

/// Says of a read that a signal ended which signal it was.
fn stoppable(read: Result<Vec<u8>, InputError>, interrupt: &Interrupt) -> Result<Vec<u8>, InputError> {
    match interrupt.requested() {
        Some(signal) if read.is_err() => Err(InputError::Interrupted(signal)),
        _ => read,
    }
}

/// A descriptor that the program was started with.
enum Inherited {
    Stdin,
    Other,
}

fn inherited(path: &Path) -> Option<Inherited> {
    let name = path.to_str()?;
    let number = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|folder| name.strip_prefix(folder));
    match (name, number) {
        ("/dev/stdin", _) | (_, Some("0")) => Some(Inherited::Stdin),
        (_, Some(number)) => number.parse::<u32>().ok().map(|_| Inherited::Other),
        (_, None) => None,
    }
}

fn opened(path: &Path) -> Result<(File, FileType), InputError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let descriptor = match open(path, flags, Mode::empty()) {
        // A socket cannot be opened by its name.
        Err(Errno::NXIO) => return Err(InputError::NotAFile { kind: FileType::Unknown }),
        opened => opened?,
    };
    let kind = FileType::from_raw_mode(fstat(&descriptor)?.st_mode);
    Ok((File::from(descriptor), kind))
}

/// What a kind of file is called.
fn noun(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "a socket or a device",
    }
}

/// Reads a file that is already open to its end.
pub(crate) fn read_to_end(file: File, limit: u64) -> Result<Vec<u8>, InputError> {
    let size = fstat(&file)?.st_size;
    read(file, limit, u64::try_from(size).unwrap_or(0))
}

/// Reads to the end, into room for as much as is expected: a buffer that grows is copied and copied again.
fn read(reader: impl Read, limit: u64, expected: u64) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let room = usize::try_from(expected.min(limit)).unwrap_or(0);
    bytes.try_reserve_exact(room).map_err(|error| InputError::of(error.into()))?;
    reader.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(InputError::of)?;
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLarge { limit });
    }
    Ok(bytes)
}

/// A pipe or terminal, read until it ends or the program is asked to stop.
struct Interruptible<'a> {
    file: File,
    interrupt: &'a Interrupt,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut fds =
                [PollFd::new(&self.file, PollFlags::IN), PollFd::new(self.interrupt, PollFlags::IN)];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            if let Some(signal) = self.interrupt.requested() {
                return Err(io::Error::other(format!("stopped by {signal}")));
            }
            match rustix::io::read(self.file.as_fd(), &mut *buffer) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }
}

/// An input that could not be read, by its name.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {error}{}", path.display(), .error.help().map(|help| format!("; {help}")).unwrap_or_default())]
pub(crate) struct UnreadableInput {
    pub(crate) path: PathBuf,
    pub(crate) error: InputError,
}
