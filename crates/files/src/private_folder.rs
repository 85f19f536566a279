//! A private directory of a program, such as its state directory.
//!
//! What lies in it decides what root does next, so the folder and everything on the way to it has to be out of the hands of
//! others ([`Guarded`]). It is held by its descriptor: whatever happens to the path afterwards, files are opened, made,
//! replaced and removed in the very folder that was judged. A file in it is opened with `O_NOFOLLOW` and `O_NONBLOCK`, and
//! what was opened is judged: a link, a FIFO, a device, a file of somebody else or one with a second name is an error.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, RenameFlags, chmodat, fchmod, fsync, mkdirat, openat, sendfile, syncfs,
        unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use super::{
    dir_handle::DirSync,
    entry::{CopyInterrupted, Entry, FileKind},
    error::{FileError, Operation, Problem},
    listing::list,
    opening,
    temporary::{self, Temporary},
    trust::{STICKY, is_ours},
    walk::{self, DirHandle, Disk, Links, Reached, Terrain, Walked, walk_over},
    write::pour,
};

/// Modes of private files and directories.
const FILE: Mode = Mode::from_raw_mode(0o600);
const FOLDER: Mode = Mode::from_raw_mode(0o700);
/// Directories that lead to it and have to be made.
const PARENT: Mode = Mode::from_raw_mode(0o755);

/// Largest number of bytes that are copied with one system call.
const PIECE: usize = 1 << 30;

/// Enough for a kernel that makes and removes a name between two of our calls.
const ATTEMPTS: usize = 16;

/// A directory, open by its descriptor, to which only root and the current user can write.
#[derive(Debug)]
pub struct PrivateFolder {
    place: DirHandle,
    entry: Entry,
}

impl PrivateFolder {
    /// Opens a directory; `None` if it, or a directory on the way to it, does not exist.
    pub fn open(path: &Path) -> Result<Option<Self>, FileError> {
        let attempt = || {
            let Walked { place, missing } = walk_over(&Guarded, path, Links::Trusted)?;
            if missing.is_empty() { Self::judge(place).map(Some) } else { Ok(None) }
        };
        attempt().map_err(|problem| FileError::new(Operation::Read, path, problem))
    }

    /// Opens a folder, and makes it, mode 0700, and those on the way to it if they do not exist. That somebody else made
    /// one of them at the same time is as good.
    pub fn make(path: &Path) -> Result<Self, FileError> {
        let attempt = || {
            let Walked { mut place, mut missing } = walk_over(&Guarded, path, Links::Trusted)?;
            while let Some(name) = missing.pop_front() {
                judge_parent(&place)?;
                place = make(&place, &name, if missing.is_empty() { FOLDER } else { PARENT })?;
            }
            Self::judge(place)
        };
        attempt().map_err(|problem| FileError::new(Operation::MakeDirectory, path, problem))
    }

    /// Creates a directory that must not exist, in an existing directory.
    pub fn make_new(path: &Path) -> Result<Self, FileError> {
        let attempt = || {
            let (parent, name) = walk::split(path)?;
            let Walked { place, missing } = walk_over(&Guarded, parent, Links::Trusted)?;
            if let Some(name) = missing.front() {
                return Err(place.lacks(name));
            }
            judge_parent(&place)?;
            mkdirat(place.directory(), name, FOLDER).map_err(|errno| place.explain(errno, name))?;
            Self::judge(enter(&place, name, FOLDER)?)
        };
        attempt().map_err(|problem| FileError::new(Operation::MakeDirectory, path, problem))
    }

    /// Opens a subdirectory; `None` if it does not exist.
    pub fn folder(&self, name: &str) -> Result<Option<Self>, FileError> {
        let attempt = || match Disk.look(&self.place, name.as_ref())? {
            None => Ok(None),
            Some(_) => Self::judge(self.place.enter(name.as_ref())?).map(Some),
        };
        attempt().map_err(|problem| self.failed(Operation::Read, name, problem))
    }

    /// Opens a subdirectory, and creates it if it does not exist.
    pub fn make_folder(&self, name: &str) -> Result<Self, FileError> {
        let attempt = || match self.folder(name) {
            Ok(Some(folder)) => Ok(folder),
            Ok(None) => Self::judge(make(&self.place, name.as_ref(), FOLDER)?),
            Err(error) => Err(error.problem),
        };
        attempt().map_err(|problem| self.failed(Operation::MakeDirectory, name, problem))
    }

    /// Rejects a directory that another user owns or can write to.
    fn judge(place: DirHandle) -> Result<Self, Problem> {
        let entry = Entry::of(place.directory(), place.path())?;
        let at = || place.path().to_owned();
        if !is_ours(entry.uid) {
            return Err(Problem::Foreign { at: at(), owner: entry.uid });
        }
        if entry.mode & 0o022 != 0 {
            return Err(Problem::Exposed { at: at(), mode: entry.mode });
        }
        Ok(Self { place, entry })
    }

    /// Returns the path at which the directory was opened, with links resolved. For messages only: the directory can have moved.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Returns owner and mode of the directory at the time it was opened.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns whether only the owner can read or enter the directory.
    pub fn is_closed(&self) -> bool {
        self.entry.mode | 0o7700 == 0o7700
    }

    /// Removes the permissions of other users.
    pub fn close_to_others(&self) -> Result<(), FileError> {
        set_mode(self.place.directory(), FOLDER)
            .map_err(|errno| self.failed(Operation::SetAttributes, ".", self.explain(errno, ".")))
    }

    /// Returns the names in the directory.
    pub fn names(&self) -> Result<Vec<OsString>, FileError> {
        list(self.place.directory())
            .and_then(|listed| listed.map(|listed| listed.map(|listed| listed.name)).collect())
            .map_err(|errno| self.failed(Operation::Read, ".", self.explain(errno, ".")))
    }

    /// Returns the entry with this name, without following links.
    pub fn look(&self, name: &OsStr) -> Result<Option<Entry>, FileError> {
        self.place
            .entry(name)
            .map_err(|problem| FileError::new(Operation::Inspect, &self.place.at(name), problem))
    }

    /// Opens a file for reading; `None` if there is none.
    pub fn open_file(&self, name: &str) -> Result<Option<File>, FileError> {
        match self.open_judged(name, OFlags::RDONLY) {
            Err(Problem::System { source: Errno::NOENT, .. }) => Ok(None),
            opened => opened.map(Some).map_err(|problem| self.failed(Operation::Read, name, problem)),
        }
    }

    /// Opens a file for reading and for writing at its end; `None` if there is none.
    pub fn open_to_append(&self, name: &str) -> Result<Option<File>, FileError> {
        match self.open_judged(name, OFlags::RDWR | OFlags::APPEND) {
            Err(Problem::System { source: Errno::NOENT, .. }) => Ok(None),
            opened => opened.map(Some).map_err(|problem| self.failed(Operation::Write, name, problem)),
        }
    }

    /// Opens a file for reading and for writing at its end, and makes it, mode 0600 whatever the umask, if there is none.
    pub fn make_to_append(&self, name: &str) -> Result<File, FileError> {
        for _ in 0..ATTEMPTS {
            if let Some(file) = self.open_to_append(name)? {
                return Ok(file);
            }
            if let Some(file) = self.make_file(name)? {
                return Ok(file);
            }
        }
        Err(self.failed(Operation::Write, name, Problem::Changed { at: self.place.at(name.as_ref()) }))
    }

    /// Makes a file, mode 0600 whatever the umask, to read and to write at its end; `None` if the name is taken.
    pub fn make_file(&self, name: &str) -> Result<Option<File>, FileError> {
        let flags = opening::NEW_FILE.union(OFlags::RDWR).union(OFlags::APPEND);
        let made = openat(self.place.directory(), name, flags, FILE);
        let made = made.and_then(|made| fchmod(&made, FILE).map(|()| made));
        match made {
            Ok(made) => Ok(Some(File::from(made))),
            Err(Errno::EXIST) => Ok(None),
            Err(errno) => Err(self.failed(Operation::Write, name, self.explain(errno, name))),
        }
    }

    /// Puts a complete file, mode 0600, under a name, and brings both to disk.
    pub fn replace(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let attempt = || {
            let mut made = self.prepare(name, fill)?;
            let barrier = self.place.dir_sync()?;
            made.rename(name.as_ref(), RenameFlags::empty()).map_err(|errno| self.explain(errno, name))?;
            barrier.sync()
        };
        attempt().map_err(|problem| self.failed(Operation::Write, name, problem))
    }

    /// Puts a complete file, mode 0600, under a name, without bringing it to disk: after a power failure anything may be
    /// there.
    pub fn replace_unsynced(&self, name: &str, content: &[u8]) -> Result<(), FileError> {
        let attempt = || {
            let mut made = self.fill(name, |out| out.write_all(content))?;
            made.rename(name.as_ref(), RenameFlags::empty()).map_err(|errno| self.explain(errno, name))
        };
        attempt().map_err(|problem| self.failed(Operation::Write, name, problem))
    }

    /// Puts a copy of an open program, mode 0700, under a name, and brings it to disk. The copy keeps the `SELinux` label,
    /// because services cannot run programs with the label of data.
    pub fn put_program(&self, name: &str, program: &File) -> Result<(), FileError> {
        let attempt = || {
            let mut made: Temporary<_, File> = temporary::file(&self.place, geteuid().as_raw())?;
            if !super::original::share_blocks(&made.descriptor, program) {
                copy(program, &made.descriptor).map_err(|errno| self.explain(errno, name))?;
            }
            super::extended::copy_label(program, &made.descriptor);
            fchmod(&made.descriptor, FOLDER).map_err(|errno| self.explain(errno, name))?;
            fsync(&made.descriptor)
                .map_err(|source| Problem::Unsynced { at: self.place.at(name.as_ref()), source })?;
            made.rename(name.as_ref(), RenameFlags::empty()).map_err(|errno| self.explain(errno, name))
        };
        attempt().map_err(|problem| self.failed(Operation::Write, name, problem))
    }

    /// Puts a complete file, mode 0600, under a name that is free; says whether it was.
    pub fn put_new(&self, name: &str, content: &[u8]) -> Result<bool, FileError> {
        let attempt = || {
            let mut made = self.prepare(name, |out| out.write_all(content))?;
            let put = match made.rename(name.as_ref(), RenameFlags::NOREPLACE) {
                // Not every file system can promise this.
                Err(Errno::INVAL | Errno::NOSYS) => made.rename(name.as_ref(), RenameFlags::empty()),
                put => put,
            };
            match put {
                Ok(()) => Ok(true),
                Err(Errno::EXIST) => Ok(false),
                Err(errno) => Err(self.explain(errno, name)),
            }
        };
        attempt().map_err(|problem| self.failed(Operation::Write, name, problem))
    }

    /// Puts a complete file, mode 0600, under the name that `fill` returns, unless that name is taken, and returns the name
    /// and the new file. The file is not synced.
    pub fn put_named(
        &self,
        fill: impl FnOnce(&mut File) -> io::Result<String>,
    ) -> Result<(String, Option<File>), FileError> {
        let attempt = || {
            let mut made = temporary::file(&self.place, geteuid().as_raw())?;
            let name = fill(&mut made.descriptor).map_err(|error| self.explain_io(&error, "."))?;
            if self.place.entry(name.as_ref())?.is_some() {
                return Ok((name, None));
            }
            fchmod(&made.descriptor, FILE).map_err(|errno| self.explain(errno, &name))?;
            let copy = made.descriptor.try_clone().map_err(|error| self.explain_io(&error, &name))?;
            made.rename(name.as_ref(), RenameFlags::empty()).map_err(|errno| self.explain(errno, &name))?;
            Ok((name, Some(copy)))
        };
        attempt().map_err(|problem| self.failed(Operation::Write, ".", problem))
    }

    /// Writes everything on the file system of the directory to disk.
    pub fn sync_file_system(&self) -> Result<(), FileError> {
        let opened = self.place.open(".".as_ref(), opening::DIRECTORY);
        opened.and_then(syncfs).map_err(|errno| self.failed(Operation::Write, ".", self.explain(errno, ".")))
    }

    fn prepare(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Temporary<&DirHandle, File>, Problem> {
        let made = self.fill(name, fill)?;
        fsync(&made.descriptor)
            .map_err(|source| Problem::Unsynced { at: self.place.at(name.as_ref()), source })?;
        Ok(made)
    }

    /// Makes a file under a temporary name.
    fn fill(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Temporary<&DirHandle, File>, Problem> {
        let mut made = temporary::file(&self.place, geteuid().as_raw())?;
        pour(&mut made.descriptor, &self.place, name.as_ref(), fill)?;
        fchmod(&made.descriptor, FILE).map_err(|errno| self.explain(errno, name))?;
        Ok(made)
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, name: &OsStr) -> Result<(), FileError> {
        match unlinkat(self.place.directory(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => {
                let problem = self.place.explain(errno, name);
                Err(FileError::new(Operation::Remove, &self.place.at(name), problem))
            }
        }
    }

    /// Removes the empty directory itself, if it has not moved.
    pub fn remove_self(&self) -> Result<(), FileError> {
        let path = self.place.path().to_owned();
        let attempt = || {
            let (parent, name) = walk::split(&path)?;
            let Walked { place, missing } = walk_over(&Guarded, parent, Links::Trusted)?;
            let found = if missing.is_empty() { place.entry(name)? } else { None };
            if !found.is_some_and(|found| found.is_same_file(&self.entry)) {
                return Err(Problem::Changed { at: path.clone() });
            }
            unlinkat(place.directory(), name, AtFlags::REMOVEDIR).map_err(|errno| place.explain(errno, name))
        };
        attempt().map_err(|problem| FileError::new(Operation::Remove, &path, problem))
    }

    /// Syncs the names in the directory.
    pub fn sync(&self) -> Result<(), FileError> {
        self.place
            .dir_sync()
            .and_then(DirSync::sync)
            .map_err(|problem| self.failed(Operation::Write, ".", problem))
    }

    /// Removes temporary files of killed processes, and returns their number.
    pub fn sweep(&self, tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>) -> Result<usize, FileError> {
        temporary::sweep_in(&self.place, tick).map_err(|problem| self.failed(Operation::Sweep, ".", problem))
    }

    /// Converts an error of reading or writing a file in the directory.
    pub fn file_error(&self, name: &str, error: &io::Error) -> FileError {
        self.failed(Operation::Write, name, self.explain_io(error, name))
    }

    fn open_judged(&self, name: &str, flags: OFlags) -> Result<File, Problem> {
        let flags = flags.union(opening::READ);
        let opened = match self.place.open(name.as_ref(), flags) {
            Err(Errno::ACCESS) if self.give_back(name)? => self.place.open(name.as_ref(), flags),
            opened => opened,
        };
        let at = self.place.at(name.as_ref());
        let opened = match opened {
            Err(Errno::LOOP | Errno::NXIO) => return Err(Problem::Special { at }),
            opened => opened.map_err(|errno| self.explain(errno, name))?,
        };
        let entry = Entry::of(&opened, &at)?;
        match entry.kind {
            FileKind::File => {}
            FileKind::Directory => return Err(Problem::IsADirectory { at }),
            _ => return Err(Problem::Special { at }),
        }
        if !is_ours(entry.uid) {
            return Err(Problem::Foreign { at, owner: entry.uid });
        }
        if entry.nlink > 1 {
            let (links, owner) = (entry.nlink, self.entry.uid);
            return Err(Problem::HardLinked {
                at,
                links,
                directory: self.path().to_owned(),
                owner: owner.into(),
            });
        }
        Ok(File::from(opened))
    }

    /// Gives the owner the right to use a file of his own, which a strange umask took; says whether it did.
    fn give_back(&self, name: &str) -> Result<bool, Problem> {
        let explain = |errno| self.explain(errno, name);
        let found = self.place.open(name.as_ref(), OFlags::PATH).map_err(explain)?;
        let entry = Entry::of(&found, &self.place.at(name.as_ref()))?;
        if entry.kind != FileKind::File || entry.uid != geteuid().as_raw() || entry.mode & 0o600 == 0o600 {
            return Ok(false);
        }
        set_mode(&found, FILE).map_err(explain)?;
        Ok(true)
    }

    fn explain(&self, errno: Errno, name: &str) -> Problem {
        self.place.explain(errno, name.as_ref())
    }

    fn explain_io(&self, error: &io::Error, name: &str) -> Problem {
        self.explain(Errno::from_io_error(error).unwrap_or(Errno::IO), name)
    }

    fn failed(&self, operation: Operation, name: &str, problem: Problem) -> FileError {
        let at = if name == "." { self.path().to_owned() } else { self.place.at(name.as_ref()) };
        FileError::new(operation, &at, problem)
    }
}

/// The disk, as far as nobody else controls where the way leads: a directory on the way that belongs to somebody else, or
/// in which others may rename what is there, is an error. In a sticky directory such as /tmp only owners rename.
struct Guarded;

impl Terrain for Guarded {
    type Directory = OwnedFd;

    fn root(&self) -> Result<(OwnedFd, Entry), Problem> {
        Disk.root()
    }

    fn look(&self, from: &Reached<OwnedFd>, name: &OsStr) -> Result<Option<(OwnedFd, Entry)>, Problem> {
        judge_parent(from)?;
        Disk.look(from, name)
    }
}

fn judge_parent(place: &DirHandle) -> Result<(), Problem> {
    let entry = Entry::of(place.directory(), place.path())?;
    // A group with the number of its only member is as good as him.
    let is_own_group = entry.gid == 0 || entry.gid == geteuid().as_raw();
    let writers = if is_own_group { 0o002 } else { 0o022 };
    if is_ours(entry.uid) && (entry.mode & writers == 0 || entry.mode & STICKY != 0) {
        return Ok(());
    }
    Err(Problem::Controlled { component: place.path().to_owned(), owner: entry.uid, mode: entry.mode })
}

/// Makes a directory, unless there is one by now, and goes there.
/// Copies a file, from its beginning.
fn copy(from: &File, to: &File) -> Result<(), Errno> {
    let mut offset = 0;
    while sendfile(to, from, Some(&mut offset), PIECE)? > 0 {}
    Ok(())
}

fn make(place: &DirHandle, name: &OsStr, mode: Mode) -> Result<DirHandle, Problem> {
    match mkdirat(place.directory(), name, mode) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(place.explain(errno, name)),
    }
    let entered = enter(place, name, mode)?;
    place.dir_sync()?.sync()?;
    Ok(entered)
}

/// Goes to a directory just made, and gives its owner what the umask took. Nobody else could have put another in its place.
fn enter(place: &DirHandle, name: &OsStr, mode: Mode) -> Result<DirHandle, Problem> {
    let entered = place.enter(name)?;
    let entry = Entry::of(entered.directory(), entered.path())?;
    if entry.uid == geteuid().as_raw() && entry.mode & 0o700 != 0o700 {
        set_mode(entered.directory(), mode).map_err(|errno| place.explain(errno, name))?;
    }
    Ok(entered)
}

/// Sets the mode of what an `O_PATH` descriptor stands for, which takes no `fchmod`: its name under /proc is the same file.
fn set_mode(found: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    chmodat(CWD, format!("/proc/self/fd/{}", found.as_raw_fd()), mode, AtFlags::empty())
}
