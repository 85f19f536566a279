//! Inspects and reads paths without following links in the last component.

use std::{
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, readlinkat, statat},
    io::Errno,
};
use sha2::{Digest, Sha256};

use super::{
    copy::{self, CHUNK},
    error::{FileError, Operation, Problem},
    opening,
    remembering::{DigestMemory, digest_once},
    trust, walk,
};

/// A file, directory or other object at a path. Links are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its kind.
    pub kind: FileKind,
    /// UID of the owner.
    pub uid: u32,
    /// GID of the group.
    pub gid: u32,
    /// Permissions with setuid, setgid and sticky bit (07777).
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of the content (mtime), which programs can set.
    pub modified: Timestamp,
    /// Time of the last change of content or attributes (ctime).
    pub changed: Timestamp,
    /// Number of hard links.
    pub nlink: u64,
    /// Device of the file system.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

/// A time since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since the epoch.
    pub seconds: i64,
    /// Nanoseconds in that second.
    pub nanoseconds: u32,
}

/// The kinds of things that a path can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// The path that the link contains.
        target: PathBuf,
    },
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A kind that the file system does not report.
    Unknown,
}

/// An entry and, for a regular file, the digest of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digested {
    /// The entry.
    pub entry: Entry,
    /// SHA-256 in lower-case hex; `None` when the entry is no regular file, or was not read.
    pub sha256: Option<String>,
}

impl Digested {
    /// Whether this is predicted of a file whose content nobody would have touched.
    pub fn is_as_on_disk(&self) -> bool {
        self.entry.kind == FileKind::File && self.sha256.is_none()
    }
}

/// Stops a long operation, because of a time limit or a signal.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("stopped")]
pub struct CopyInterrupted;

/// Returns the entry at `path`; `None` if it, or a directory on the way to it, does not exist.
pub fn inspect(path: &Path) -> Result<Option<Entry>, FileError> {
    look(path).map_err(|problem| FileError::new(Operation::Inspect, path, problem))
}

/// Opens a regular file for reading. Anything else comes back as its entry, and is not opened: that alone can block
/// on a FIFO, rewind a tape or start a watchdog.
pub fn open_regular(path: &Path) -> Result<Option<(Option<File>, Entry)>, FileError> {
    open(path).map_err(|problem| FileError::new(Operation::Read, path, problem))
}

/// SHA-256 of a regular file; `tick` is asked between chunks whether to go on.
///
/// With the size that the file is wanted to have, no more is read than it takes to know whether it has it: the owner of a
/// file can make it seem terabytes long with one call. A file of another size comes back without a checksum.
///
/// A file that cannot have changed since `memory` was told its checksum is not read.
pub fn digest(
    path: &Path,
    wanted: Option<u64>,
    memory: &dyn DigestMemory,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<Option<Digested>, FileError> {
    let failed = |problem| FileError::new(Operation::Read, path, problem);
    let needs_reading =
        |entry: &Entry| wanted.is_none_or(|wanted| wanted == entry.size || !entry.has_certain_size());
    if memory.is_of_use()
        && let Some(entry) = look_plain(path)
        && let Some(known) = entry.stamp().and_then(|stamp| memory.find(&stamp))
    {
        let sha256 = needs_reading(&entry).then(|| hex(&known));
        return Ok(Some(Digested { entry, sha256 }));
    }
    let Some((file, mut entry)) = open(path).map_err(failed)? else { return Ok(None) };
    let sha256 = match file.filter(|_| needs_reading(&entry)) {
        Some(file) => {
            let before = entry.clone();
            digest_once(&file, &before, memory, || hash(&file, &mut entry, wanted, path, tick))
                .map_err(failed)?
        }
        None => None,
    };
    Ok(Some(Digested { entry, sha256: sha256.map(|sha256| hex(&sha256)) }))
}

/// Reads a file and returns its checksum; `None` when it turns out to be longer than it is wanted to be, which its
/// entry then shows.
fn hash(
    mut file: &File,
    entry: &mut Entry,
    wanted: Option<u64>,
    path: &Path,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<Option<[u8; 32]>, Problem> {
    // One byte more than the file has: a read that fills less of it, and gives all that is there, has come to the end.
    let room = usize::try_from(entry.size).map_or(CHUNK, |size| CHUNK.min(size.saturating_add(1)));
    let mut buffer = vec![0; room.max(512)];
    let mut hasher = Sha256::new();
    let mut read = 0;
    loop {
        tick().map_err(|CopyInterrupted| Problem::CopyInterrupted)?;
        let count = copy::read(&mut file, &mut buffer)
            .map_err(|error| Problem::from_errno(Errno::from_io_error(&error).unwrap_or(Errno::IO), path))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        read += count as u64;
        if wanted.is_some_and(|wanted| read > wanted) {
            entry.size = entry.size.max(read);
            return Ok(None);
        }
        if read == entry.size && count < buffer.len() {
            break;
        }
    }
    Ok(Some(hasher.finalize().into()))
}

/// Bytes as events and states show them.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    text
}

/// Looking is done in two system calls where no link is on the way, which is nearly always: the kernel itself then
/// refuses to pass through one, and what a link would need checked is not there. Everything else takes the walk,
/// which also finds the words for what is wrong.
pub(super) fn look(path: &Path) -> Result<Option<Entry>, Problem> {
    debug_assert!(path.is_absolute());
    match open_without_links(path, OFlags::PATH) {
        Ok(found) => return Entry::of(&found, path).map(Some),
        Err(Errno::NOENT) => return Ok(None),
        Err(_) => {}
    }
    match walk::reach(path) {
        Ok((place, name)) => place.entry(&name),
        Err(Problem::ParentMissing { .. } | Problem::DanglingLink { .. }) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Looks at what is nearly always there: something with no link on the way.
fn look_plain(path: &Path) -> Option<Entry> {
    Entry::of(open_without_links(path, OFlags::PATH).ok()?, path).ok()
}

fn open(path: &Path) -> Result<Option<(Option<File>, Entry)>, Problem> {
    if let Some((file, entry)) = open_plain(path) {
        return Ok(Some((Some(file), entry)));
    }
    let Some(seen) = look(path)? else { return Ok(None) };
    if seen.kind != FileKind::File {
        return Ok(Some((None, seen)));
    }
    let opened = open_without_links(path, opening::READ).or_else(|_| {
        let (place, name) = walk::reach(path)?;
        // It was seen a moment ago, so a refusal is the file's own and not its directory's.
        place.open(&name, opening::READ).map_err(|errno| Problem::from_errno(errno, &place.at(&name)))
    });
    let opened = match opened {
        Err(Problem::System { source: Errno::NOENT, .. }) => return Ok(None),
        opened => opened?,
    };
    let entry = Entry::of(&opened, path)?;
    // Between the two looks it may have become something else, which is then not read.
    let file = (entry.kind == FileKind::File).then(|| File::from(opened));
    Ok(Some((file, entry)))
}

/// Opens what nearly always is there: a regular file with no link on the way. What the path led to before it was opened
/// only keeps devices from being opened; what counts is what was opened.
fn open_plain(path: &Path) -> Option<(File, Entry)> {
    let seen = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
        return None;
    }
    let opened = open_without_links(path, opening::READ).ok()?;
    let entry = Entry::of(&opened, path).ok()?;
    (entry.kind == FileKind::File).then(|| (File::from(opened), entry))
}

fn open_without_links(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat2(CWD, path, flags.union(opening::OURS), Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

impl Entry {
    /// What a descriptor stands for; `path` is for the error.
    pub(super) fn of(descriptor: impl AsFd, path: &Path) -> Result<Entry, Problem> {
        let stat = fstat(&descriptor).map_err(|errno| Problem::from_errno(errno, path))?;
        Entry::from_stat(&stat, || readlinkat(&descriptor, "", Vec::new()))
            .map_err(|errno| Problem::from_errno(errno, path))
    }

    #[allow(clippy::useless_conversion, reason = "the widths of these fields differ between architectures")]
    pub(super) fn from_stat(
        stat: &Stat,
        read_link: impl FnOnce() -> rustix::io::Result<std::ffi::CString>,
    ) -> rustix::io::Result<Entry> {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => {
                FileKind::Symlink { target: std::ffi::OsString::from_vec(read_link()?.into_bytes()).into() }
            }
            FileType::Fifo => FileKind::Fifo,
            FileType::Socket => FileKind::Socket,
            FileType::CharacterDevice => FileKind::CharacterDevice,
            FileType::BlockDevice => FileKind::BlockDevice,
            FileType::Unknown => FileKind::Unknown,
        };
        Ok(Entry {
            kind,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: stat.st_mode & 0o7777,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Timestamp {
                seconds: stat.st_mtime,
                nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
            },
            changed: Timestamp {
                seconds: stat.st_ctime,
                nanoseconds: u32::try_from(stat.st_ctime_nsec).unwrap_or(0),
            },
            nlink: stat.st_nlink.into(),
            dev: stat.st_dev,
            ino: stat.st_ino,
        })
    }

    /// Returns whether somebody else than root and the user running the program could have the file open for writing, or
    /// reach it under another name.
    pub fn is_exposed(&self) -> bool {
        !trust::is_ours(self.uid) || self.mode & trust::GROUP_OR_OTHERS_WRITE != 0 || self.nlink > 1
    }

    /// Whether the size is that of the content. Files of /proc and /sys say 0 or the size of a page, whatever they hold.
    pub fn has_certain_size(&self) -> bool {
        !matches!(self.size, 0 | 4096)
    }

    /// Whether both are the same file, whatever its attributes are now.
    pub(super) fn is_same_file(&self, other: &Entry) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
            && std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
    }
}
