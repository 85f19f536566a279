//! Whole files, put in place at once.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{RenameFlags, fchmod, fchown, fstat, fsync},
    io::Errno,
};
use sha2::{Digest, Sha256};

use super::{
    attributes::Attributes,
    copy,
    entry::{CopyInterrupted, Entry, FileKind},
    error::{FileError, Operation, Problem},
    extended::Kept,
    temporary::{self, Temporary},
    walk::{self, DirHandle},
};

/// Puts a complete file at `path`, in place of a file, a link or nothing; a directory there is an error. `fill` writes
/// the content. When it cannot produce it, its error is the source of the [`FileError`], and
/// `io::Error::other(CopyInterrupted)` makes that a stopped one.
pub fn replace(
    path: &Path,
    attributes: Attributes,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let attempt = || {
        let mut draft = TempFile::begin(path, attributes.uid)?;
        draft.pour(fill)?;
        draft.complete(attributes)
    };
    attempt().map_err(|problem| FileError::new(Operation::Write, path, problem))
}

/// Puts a complete file at `path` like [`replace`], without syncing it: after a power failure its content is undefined.
pub fn replace_unsynced(
    path: &Path,
    attributes: Attributes,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let attempt = || {
        let mut draft = TempFile::begin(path, attributes.uid)?;
        draft.pour(fill)?;
        draft.dress(attributes)?;
        draft.appear()
    };
    attempt().map_err(|problem| FileError::new(Operation::Write, path, problem))
}

/// Puts a complete file at `path` like [`replace`], also into a directory of somebody whom the file does not belong to.
pub fn replace_among_others(
    path: &Path,
    attributes: Attributes,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let attempt = || {
        let mut draft = TempFile::among_others(path, attributes.uid)?;
        draft.pour(fill)?;
        draft.complete(attributes)
    };
    attempt().map_err(|problem| FileError::new(Operation::Write, path, problem))
}

/// Begins a file that is to appear at `path`, also in a directory of somebody whom it does not belong to, and fills it.
pub fn draft_among_others(
    path: &Path,
    owner: u32,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<TempFile, FileError> {
    let attempt = || {
        let mut draft = TempFile::among_others(path, owner)?;
        draft.pour(fill)?;
        Ok(draft)
    };
    attempt().map_err(|problem| FileError::new(Operation::Write, path, problem))
}

/// Puts a copy of an open file in its place, with other attributes, if it is still there by then.
pub(super) fn copy_over(
    place: DirHandle,
    name: OsString,
    mut from: File,
    expected: &Entry,
    attributes: Attributes,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), Problem> {
    let mut draft = TempFile::beside(Arc::new(place), name, attributes.uid)?;
    draft.pour(|out| copy::pieces(&mut from, tick, |piece| out.write_all(piece)).map(drop))?;
    let (place, name) = (draft.place(), &draft.name);
    if !place.entry(name)?.is_some_and(|entry| entry.is_same_file(expected)) {
        return Err(Problem::Changed { at: place.at(name) });
    }
    draft.complete(attributes)
}

/// A file in the making, beside the place it is meant for; gone when dropped before it is published.
pub struct TempFile {
    path: PathBuf,
    name: OsString,
    temporary: Temporary<Arc<DirHandle>, File>,
}

impl TempFile {
    /// Begins a file that is to appear at `path` and to belong to `owner`. Nobody else can open it until then.
    pub fn new(path: &Path, owner: u32) -> Result<TempFile, FileError> {
        TempFile::begin(path, owner).map_err(|problem| FileError::new(Operation::Write, path, problem))
    }

    /// The file, to write to and read from.
    pub fn file(&self) -> &File {
        &self.temporary.descriptor
    }

    /// Returns a reader of the content, from its beginning.
    pub fn reader(&self) -> io::Result<File> {
        let mut file = self.temporary.descriptor.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    /// What an error of writing to the file means.
    pub fn explain(&self, error: &io::Error) -> FileError {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        FileError::new(Operation::Write, &self.path, self.temporary.place.explain(errno, &self.name))
    }

    /// Puts the file at its place, in place of a file, a link or nothing.
    pub fn publish(self, attributes: Attributes) -> Result<(), FileError> {
        let path = self.path.clone();
        self.complete(attributes).map_err(|problem| FileError::new(Operation::Write, &path, problem))
    }

    /// Puts the file at its place like [`TempFile::publish`], if `judge` says that it is good. What is judged is the very
    /// file that will appear, complete and with its owner and mode.
    pub fn publish_validated<E>(
        mut self,
        attributes: Attributes,
        judge: impl FnOnce(&Candidate) -> Result<(), E>,
    ) -> Result<(), Refusal<E>> {
        let path = self.path.clone();
        let failed = |problem| Refusal::File(FileError::new(Operation::Write, &path, problem));
        let before = self.prepare_candidate(attributes).map_err(failed)?;
        let candidate = Candidate { path: self.temporary.path(), file: &self.temporary.descriptor };
        judge(&candidate).map_err(Refusal::Judge)?;
        if !matches!(self.fingerprint(), Ok(after) if after == before) {
            return Err(failed(Problem::Altered));
        }
        self.settle().map_err(failed)
    }

    /// Gives it its name, with content and name on disk afterwards.
    fn settle(&mut self) -> Result<(), Problem> {
        // Content, owner and mode reach the disk before the name does.
        self.sync()?;
        let barrier = self.temporary.place.dir_sync()?;
        self.appear()?;
        barrier.sync()
    }

    fn prepare_candidate(&mut self, attributes: Attributes) -> Result<Fingerprint, Problem> {
        self.dress(attributes)?;
        self.sync()?;
        if let Some(extension) = Path::new(&self.name).extension().map(OsStr::to_owned) {
            let extended = self.temporary.extend_name(&extension);
            extended.map_err(|errno| self.temporary.place.explain(errno, &self.name))?;
        }
        self.fingerprint()
    }

    /// Returns what tells whether somebody changed the file or put another in its place.
    fn fingerprint(&self) -> Result<Fingerprint, Problem> {
        let explain = |error: &io::Error| {
            let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
            self.temporary.place.explain(errno, &self.name)
        };
        let descriptor = &self.temporary.descriptor;
        let stat = fstat(descriptor).map_err(|errno| explain(&errno.into()))?;
        let there = self.temporary.entry().is_some_and(|entry| entry.ino == stat.st_ino);
        let mut hash = Sha256::new();
        let mut buffer = vec![0; copy::CHUNK];
        let mut at = 0;
        loop {
            let count = descriptor.read_at(&mut buffer, at).map_err(|error| explain(&error))?;
            if count == 0 {
                break;
            }
            hash.update(&buffer[..count]);
            at += count as u64;
        }
        let (owner, mode) = ((stat.st_uid, stat.st_gid), stat.st_mode);
        Ok(Fingerprint { there, owner, mode, hash: hash.finalize().to_vec() })
    }

    pub(super) fn begin(path: &Path, owner: u32) -> Result<TempFile, Problem> {
        let (place, name) = walk::reach(path)?;
        place.permits(owner)?;
        Ok(TempFile { path: path.to_owned(), ..Self::beside(Arc::new(place), name, owner)? })
    }

    /// Begins a file in a directory that may be another user's.
    pub(super) fn among_others(path: &Path, owner: u32) -> Result<TempFile, Problem> {
        let (place, name) = walk::reach(path)?;
        Self::within(Arc::new(place), path, name, owner)
    }

    /// Begins a file in a directory that was reached already, and that may be another user's.
    pub(super) fn within(
        place: Arc<DirHandle>,
        path: &Path,
        name: OsString,
        owner: u32,
    ) -> Result<TempFile, Problem> {
        place.trust().permits_whole_file()?;
        Ok(TempFile { path: path.to_owned(), ..Self::beside(place, name, owner)? })
    }

    fn beside(place: Arc<DirHandle>, name: OsString, owner: u32) -> Result<TempFile, Problem> {
        place.refuse_own_way(&name)?;
        refuse_directory(&place, &name)?;
        Ok(TempFile { path: place.at(&name), name, temporary: temporary::file(place, owner)? })
    }

    pub(super) fn pour(
        &mut self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Problem> {
        let Temporary { place, descriptor, .. } = &mut self.temporary;
        pour(descriptor, place, &self.name, fill)
    }

    /// Gives the file its attributes as `dress` does, and puts it in place.
    pub(super) fn complete_with(
        mut self,
        dress: impl FnOnce(&File) -> Result<(), Errno>,
    ) -> Result<(), Problem> {
        let (place, name) = (&self.temporary.place, &self.name);
        refuse_directory(place, name)?;
        dress(&self.temporary.descriptor).map_err(|errno| place.explain(errno, name))?;
        self.settle()
    }

    fn complete(mut self, attributes: Attributes) -> Result<(), Problem> {
        self.dress(attributes)?;
        self.settle()
    }

    /// Gives it its attributes, and those of the file that it replaces that are not managed.
    pub(super) fn dress(&self, attributes: Attributes) -> Result<(), Problem> {
        let (place, name) = (&self.temporary.place, &self.name);
        let kept = refuse_directory(place, name)?
            .filter(|entry| entry.kind == FileKind::File)
            .map(|entry| Kept::of(place, name, &entry, attributes));
        dress(&self.temporary.descriptor, attributes, kept.as_ref())
            .map_err(|errno| place.explain(errno, name))
    }

    pub(super) fn sync(&self) -> Result<(), Problem> {
        let at = || self.temporary.place.at(&self.name);
        fsync(&self.temporary.descriptor).map_err(|source| Problem::Unsynced { at: at(), source })
    }

    /// The directory that it is made in.
    pub(super) fn place(&self) -> &DirHandle {
        &self.temporary.place
    }

    /// Gives it its name. It has to be on disk by now.
    pub(super) fn appear(&mut self) -> Result<(), Problem> {
        refuse_directory(&self.temporary.place, &self.name)?;
        self.temporary.rename(&self.name, RenameFlags::empty()).map_err(|errno| match errno {
            Errno::NOENT => Problem::Changed { at: self.temporary.place.path().to_owned() },
            errno => self.temporary.place.explain(errno, &self.name),
        })
    }
}

/// A file that is complete but for its name.
pub struct Candidate<'a> {
    /// Its temporary path.
    pub path: PathBuf,
    /// The open file.
    pub file: &'a File,
}

impl Candidate<'_> {
    /// Returns what reads it from its beginning.
    pub fn reader(&self) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

/// Why a file that was to be validated did not appear.
pub enum Refusal<E> {
    /// A file operation failed.
    File(FileError),
    /// The validation failed.
    Judge(E),
}

/// What a file is like, so that a change of it is noticed.
#[derive(PartialEq, Eq)]
struct Fingerprint {
    /// Whether it is still under its temporary name.
    there: bool,
    owner: (u32, u32),
    mode: u32,
    hash: Vec<u8>,
}

fn refuse_directory(place: &DirHandle, name: &OsStr) -> Result<Option<Entry>, Problem> {
    match place.entry(name)? {
        Some(Entry { kind: FileKind::Directory, .. }) => Err(Problem::IsADirectory { at: place.at(name) }),
        entry => Ok(entry),
    }
}

/// Gives a file its attributes. Until the last step nobody but its owner can open it.
fn dress(file: &File, attributes: Attributes, kept: Option<&Kept>) -> Result<(), Errno> {
    if let Some(kept) = kept {
        kept.set_attributes(file)?;
    }
    let (uid, gid) = attributes.owner();
    fchown(file, uid, gid)?;
    if let Some(kept) = kept {
        kept.set_access_list(file)?;
    }
    fchmod(file, attributes.mode())
}

/// Writes what `fill` produces, and tells its errors from those of writing.
pub(super) fn pour(
    into: &mut File,
    place: &DirHandle,
    name: &OsStr,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Problem> {
    let mut sink = BufWriter::new(Sink { file: into, failure: None });
    let poured = fill(&mut sink).and_then(|()| sink.flush());
    let (sink, _) = sink.into_parts();
    match (poured, sink.failure) {
        (_, Some(errno)) => Err(place.explain(errno, name)),
        (Ok(()), None) => Ok(()),
        (Err(error), None) if is_stop(&error) => Err(Problem::CopyInterrupted),
        (Err(source), None) => Err(Problem::Content { source }),
    }
}

fn is_stop(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<CopyInterrupted>()).is_some()
}

/// Tells what went wrong with this file from what went wrong with the source of its content.
struct Sink<'f> {
    file: &'f mut File,
    failure: Option<Errno>,
}

impl Write for Sink<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer);
        if let Err(error) = &written
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.failure = Some(Errno::from_io_error(error).unwrap_or(Errno::IO));
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
