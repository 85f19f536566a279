//! What is being made and not yet in its place: a file or directory under a temporary name beside it.
//!
//! Whoever makes one holds an exclusive lock on it until it is in place or gone. The kernel frees the lock with the
//! process, whatever ends it, so that [`sweep`] can tell what a killed run left from what a living one is working on.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat, renameat,
        renameat_with, unlinkat,
    },
    io::Errno,
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};

use super::{
    dir_handle::DirSync,
    entry::{CopyInterrupted, Entry, FileKind},
    error::{FileError, Operation, Problem},
    listing::list,
    opening, remove, trust,
    walk::{self, DirHandle},
};

const PREFIX: &str = ".ccm-";
const SUFFIX: &str = ".tmp";
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const RANDOM_LETTERS: usize = 12;

/// How often another name is tried. One collision is already unlikely; more mean that somebody interferes.
const ATTEMPTS: usize = 16;

/// A file or directory under a temporary name, removed when dropped before it was put in place.
#[derive(Debug)]
pub(super) struct Temporary<P: AsRef<DirHandle>, D> {
    pub(super) place: P,
    pub(super) descriptor: D,
    name: OsString,
    remains: Remains,
    shelter: Option<Shelter>,
}

/// A private directory around something that is to belong to somebody else, in a directory that others can write to.
///
/// Between the change of its owner and its rename such a thing looks like one that its new owner made himself, and
/// [`sweep`] removes only what is ours: here it lies in something that is.
#[derive(Debug)]
struct Shelter {
    directory: OwnedFd,
    name: OsString,
}

impl Shelter {
    /// Makes one, if a thing of `owner` needs it there.
    fn for_owner(place: &DirHandle, owner: u32) -> Result<Option<Shelter>, Problem> {
        if trust::is_ours(owner) || !place.trust().others_can_write() {
            return Ok(None);
        }
        let (name, directory) = make_directory(place, place.directory())?;
        Ok(Some(Shelter { directory, name }))
    }
}

/// What is under the temporary name when the work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remains {
    File,
    Directory,
    Nothing,
}

/// Makes an empty file that only we may open, whatever the umask, and that is to belong to `owner`.
pub(super) fn file<P: AsRef<DirHandle>>(place: P, owner: u32) -> Result<Temporary<P, File>, Problem> {
    let flags = opening::NEW_FILE.union(OFlags::RDWR);
    let at = place.as_ref();
    let shelter = Shelter::for_owner(at, owner)?;
    let inside = shelter.as_ref().map_or(at.directory(), |shelter| &shelter.directory);
    for _ in 0..ATTEMPTS {
        let name = random_name().map_err(|errno| at.explain_new(errno))?;
        match openat(inside, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(made) if is_locked_and_linked(&made) => {
                let descriptor = File::from(made);
                return Ok(Temporary { place, descriptor, name, remains: Remains::File, shelter });
            }
            Ok(_) | Err(Errno::EXIST) => {}
            Err(errno) => {
                let problem = at.explain_new(errno);
                leave(at, shelter);
                return Err(problem);
            }
        }
    }
    let changed = Problem::Changed { at: at.path().to_owned() };
    leave(at, shelter);
    Err(changed)
}

/// Makes an empty directory that only we may enter, and that is to belong to `owner`.
pub(super) fn directory<P: AsRef<DirHandle>>(place: P, owner: u32) -> Result<Temporary<P, OwnedFd>, Problem> {
    let at = place.as_ref();
    let shelter = Shelter::for_owner(at, owner)?;
    let inside = shelter.as_ref().map_or(at.directory(), |shelter| &shelter.directory);
    match make_directory(at, inside) {
        Ok((name, descriptor)) => {
            Ok(Temporary { place, descriptor, name, remains: Remains::Directory, shelter })
        }
        Err(problem) => {
            leave(at, shelter);
            Err(problem)
        }
    }
}

/// Removes an empty shelter. Nothing better can be done about a failure: the next run's sweep tries again.
fn leave(place: &DirHandle, shelter: Option<Shelter>) {
    if let Some(Shelter { name, .. }) = shelter {
        let _ = unlinkat(place.directory(), &name, AtFlags::REMOVEDIR);
    }
}

/// Makes a private directory in one at or below `place`.
fn make_directory(place: &DirHandle, inside: &OwnedFd) -> Result<(OsString, OwnedFd), Problem> {
    for _ in 0..ATTEMPTS {
        let name = random_name().map_err(|errno| place.explain_new(errno))?;
        match mkdirat(inside, &name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(place.explain_new(errno)),
        }
        let opened = open_made_directory(inside, &name);
        if let Ok(Some(descriptor)) = opened {
            return Ok((name, descriptor));
        }
        // Whatever is there now is of no use, and stays only if it is not empty.
        let _ = unlinkat(inside, &name, AtFlags::REMOVEDIR);
        opened.map_err(|errno| place.explain_new(errno))?;
    }
    Err(Problem::Changed { at: place.path().to_owned() })
}

/// Opens a directory just made. A stranger who may write here could have moved another directory of ours to its name,
/// to have that one given away; an empty one that only we can enter is as good as the one that was made. `None` for
/// any other.
fn open_made_directory(inside: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, Errno> {
    let made = match openat(inside, name, opening::DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        opened => opened?,
    };
    let stat = fstat(&made)?;
    let is_private = stat.st_uid == geteuid().as_raw()
        && (Mode::from_raw_mode(stat.st_mode) & (Mode::RWXG | Mode::RWXO)).is_empty();
    let is_ours = is_private && is_locked_and_linked(&made) && list(&made)?.next().is_none();
    Ok(is_ours.then_some(made))
}

/// Takes the lock. A sweep may have come between making and locking: then the lock or the name is gone.
fn is_locked_and_linked(made: &OwnedFd) -> bool {
    is_free(made) && fstat(made).is_ok_and(|stat| stat.st_nlink > 0)
}

/// Takes the lock unless somebody has it. Where the file system knows no locks, it counts as free: two runs at once are
/// kept apart elsewhere, and this is for those that are not.
fn is_free(descriptor: &OwnedFd) -> bool {
    flock(descriptor, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

impl<P: AsRef<DirHandle>, D> Temporary<P, D> {
    /// Puts it in its place.
    pub(super) fn rename(&mut self, name: &OsStr, flags: RenameFlags) -> Result<(), Errno> {
        let (from, to) = (self.inside(), self.place.as_ref().directory());
        if flags.is_empty() {
            renameat(from, &self.name, to, name)?;
        } else {
            renameat_with(from, &self.name, to, name, flags)?;
        }
        self.remains = Remains::Nothing;
        leave(self.place.as_ref(), self.shelter.take());
        Ok(())
    }

    /// The directory that it is in for now.
    fn inside(&self) -> &OwnedFd {
        self.shelter.as_ref().map_or(self.place.as_ref().directory(), |shelter| &shelter.directory)
    }

    /// Where it is for now.
    pub(super) fn path(&self) -> PathBuf {
        let place = self.place.as_ref();
        self.shelter
            .as_ref()
            .map_or(place.path().to_owned(), |shelter| place.at(&shelter.name))
            .join(&self.name)
    }

    /// Gives it an extension behind its temporary name, for programs that go by that.
    pub(super) fn extend_name(&mut self, extension: &OsStr) -> Result<(), Errno> {
        let mut name = self.name.clone();
        name.push(".");
        name.push(extension);
        renameat(self.inside(), &self.name, self.inside(), &name)?;
        self.name = name;
        Ok(())
    }

    /// What is under its temporary name.
    pub(super) fn entry(&self) -> Option<Entry> {
        let opened = openat(
            self.inside(),
            &self.name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        );
        Entry::of(&opened.ok()?, &self.path()).ok()
    }

    /// Trades places with the file under `name`, then removes that.
    pub(super) fn trade_with_file(&mut self, name: &OsStr) -> Result<(), Errno> {
        let (from, to) = (self.inside(), self.place.as_ref().directory());
        renameat_with(from, &self.name, to, name, RenameFlags::EXCHANGE)?;
        let removed = unlinkat(from, &self.name, AtFlags::empty());
        if removed.is_ok() {
            self.remains = Remains::Nothing;
        } else {
            // What came back is no file, or cannot be removed: things go back to where they were.
            renameat_with(from, &self.name, to, name, RenameFlags::EXCHANGE)?;
        }
        removed
    }
}

impl<P: AsRef<DirHandle>, D> Drop for Temporary<P, D> {
    fn drop(&mut self) {
        // Nothing better can be done about a failure here: the next run's sweep tries again.
        match self.remains {
            Remains::File => drop(unlinkat(self.inside(), &self.name, AtFlags::empty())),
            Remains::Directory => {
                let removed = unlinkat(self.inside(), &self.name, AtFlags::REMOVEDIR);
                if removed == Err(Errno::NOTEMPTY) {
                    let top = self.shelter.as_ref().map_or(&self.name, |shelter| &shelter.name);
                    let _ = remove::tree(self.place.as_ref(), top, &mut || Ok(()));
                }
            }
            Remains::Nothing => {}
        }
        leave(self.place.as_ref(), self.shelter.take());
    }
}

/// Whether a name is one that this module gives to what it has not finished yet. What is being validated has the
/// extension of its place behind that.
pub fn is_temporary_name(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let Some((random, rest)) =
        bytes.strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.split_at_checked(RANDOM_LETTERS))
    else {
        return false;
    };
    let behind = rest.strip_prefix(SUFFIX.as_bytes());
    random.iter().all(|byte| LETTERS.contains(byte))
        && behind.is_some_and(|behind| behind.is_empty() || behind.len() > 1 && behind[0] == b'.')
}

fn random_name() -> Result<OsString, Errno> {
    let mut random = [0; RANDOM_LETTERS];
    let count = getrandom(&mut random, GetRandomFlags::empty())?;
    if count < random.len() {
        return Err(Errno::AGAIN);
    }
    let letters = random.map(|byte| LETTERS[usize::from(byte) % LETTERS.len()]);
    let name = [PREFIX.as_bytes(), &letters, SUFFIX.as_bytes()].concat();
    Ok(OsString::from_vec(name))
}

/// Removes what killed runs of our own left in `directory`; gives how many. One that cannot be removed does not keep the
/// others, and is the error in the end. `tick` is asked between entries whether to go on.
pub fn sweep(
    directory: &Path,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<usize, FileError> {
    let failed = |problem| FileError::new(Operation::Sweep, directory, problem);
    let place = match walk::reach_directory(directory) {
        Ok(place) => place,
        Err(Problem::ParentMissing { .. } | Problem::DanglingLink { .. }) => return Ok(0),
        Err(problem) => return Err(failed(problem)),
    };
    sweep_in(&place, tick).map_err(failed)
}

/// Removes what killed runs left in a directory that was reached; gives how many.
pub(super) fn sweep_in(
    place: &DirHandle,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<usize, Problem> {
    let names = left_over_names(place).map_err(|errno| Problem::from_errno(errno, place.path()))?;
    let mut swept = 0;
    let mut trouble = None;
    for name in names {
        let Some(_lock) = lock_abandoned(place, &name) else { continue };
        match remove::tree(place, &name, tick) {
            Ok(()) => swept += 1,
            Err(Problem::CopyInterrupted) => return Err(Problem::CopyInterrupted),
            Err(problem) => trouble = trouble.or(Some(problem)),
        }
    }
    if swept > 0 {
        place.dir_sync().and_then(DirSync::sync)?;
    }
    trouble.map_or(Ok(swept), Err)
}

fn left_over_names(place: &DirHandle) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for listed in list(place.directory())? {
        let name = listed?.name;
        if is_temporary_name(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Takes the lock of a file or directory of ours that nobody is working on. Anything that cannot be told stays; so does
/// what this module never makes, and what others may have made.
fn lock_abandoned(place: &DirHandle, name: &OsStr) -> Option<OwnedFd> {
    let is_ours = |entry: &Entry| {
        let kind = matches!(entry.kind, FileKind::File | FileKind::Directory);
        kind && (entry.uid == geteuid().as_raw() || !place.trust().others_can_write())
    };
    place.entry(name).ok()?.filter(is_ours)?;
    let opened = place.open(name, opening::READ).ok()?;
    (Entry::of(&opened, place.path()).is_ok_and(|entry| is_ours(&entry)) && is_free(&opened))
        .then_some(opened)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn names_are_random_and_known_to_be_temporary() {
        let names: BTreeSet<OsString> = (0..200).map(|_| random_name().unwrap()).collect();
        assert_eq!(names.len(), 200);
        assert!(names.iter().all(|name| is_temporary_name(name)));
        let length = PREFIX.len()..PREFIX.len() + RANDOM_LETTERS;
        let used: BTreeSet<u8> =
            names.iter().flat_map(|name| name.as_encoded_bytes()[length.clone()].to_vec()).collect();
        assert_eq!(used.len(), LETTERS.len(), "each letter has the same chance");
    }

    #[test]
    fn only_an_empty_directory_that_nobody_else_can_enter_is_as_good_as_the_one_that_was_made() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-made-directory-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let made = folder.join("made");
        let is_taken = || {
            let inside = fs::File::open(&folder).unwrap().into();
            open_made_directory(&inside, OsStr::new("made")).unwrap().is_some()
        };
        assert!(!is_taken(), "there is none");
        fs::write(&made, "").unwrap();
        assert!(!is_taken(), "it is a file");
        fs::remove_file(&made).unwrap();
        fs::create_dir(&made).unwrap();
        for (mode, expected) in [(0o700, true), (0o710, false), (0o701, false), (0o777, false)] {
            fs::set_permissions(&made, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_taken(), expected, "{mode:o}");
        }
        fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(&made, Some(1), None).unwrap();
            assert!(!is_taken(), "it is somebody else's");
            std::os::unix::fs::chown(&made, Some(0), None).unwrap();
        }
        fs::write(made.join("file"), "").unwrap();
        assert!(!is_taken(), "it is not empty");
        fs::remove_dir_all(folder).unwrap();
    }
}
