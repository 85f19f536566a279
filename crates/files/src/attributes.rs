//! Owner, group and mode, set on a descriptor and never by path.

use std::{
    ffi::OsStr,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, chmodat, chownat, fchmod, fsync},
    io::Errno,
    process::{getegid, geteuid},
};

use super::{
    entry::{CopyInterrupted, Entry, FileKind},
    error::{FileError, Operation, Problem},
    extended, opening, trust,
    walk::{self, DirHandle},
    write,
};

/// Owner, group and permissions for a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// UID of the owner.
    pub uid: u32,
    /// GID of the group.
    pub gid: u32,
    /// Permissions with setuid, setgid and sticky bit (07777).
    pub mode: u32,
}

impl Attributes {
    /// Returns attributes with the effective user and group of this process.
    pub fn own(mode: u32) -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode }
    }

    pub(super) fn owner(self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }

    pub(super) fn mode(self) -> Mode {
        Mode::from_raw_mode(self.mode & 0o7777)
    }

    fn fit(self, entry: &Entry) -> bool {
        (self.uid, self.gid, self.mode) == (entry.uid, entry.gid, entry.mode)
    }

    /// Whether a file gets these attributes as a new file in its place, and not in place: because somebody could have
    /// it open for writing who may not write to it any more, or because owner and mode take two system calls, which a
    /// crash could come between.
    pub fn need_a_new_file(self, found: &Entry) -> bool {
        let both = (self.uid, self.gid) != (found.uid, found.gid) && self.mode != found.mode;
        found.kind == FileKind::File && (trust::outlasts(found, self) || (both && found.nlink == 1))
    }
}

/// Sets owner, group and mode of a file or directory, if it is still the one that was inspected. Where
/// [`Attributes::need_a_new_file`] says so, the bytes of a file are copied into a new one that takes its place; `tick`
/// is asked meanwhile whether to go on.
pub fn set_attributes(
    path: &Path,
    expected: &Entry,
    attributes: Attributes,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), FileError> {
    let mut attempt = || {
        let (place, name) = walk::reach(path)?;
        place.permits(attributes.uid)?;
        let (handle, entry) = take(&place, &name, expected)?;
        if attributes.fit(&entry) {
            return Ok(());
        }
        if !attributes.need_a_new_file(&entry) {
            return handle.set(&place, &name, &entry, attributes);
        }
        match handle {
            Handle::Open(opened) => write::copy_over(place, name, opened.into(), &entry, attributes, tick),
            Handle::Unreadable(_) if trust::outlasts(&entry, attributes) => {
                Err(Problem::from_errno(Errno::ACCESS, &place.at(&name)))
            }
            Handle::Unreadable(_) => handle.set(&place, &name, &entry, attributes),
        }
    };
    attempt().map_err(|problem| FileError::new(Operation::SetAttributes, path, problem))
}

/// Sets the attributes of a directory in one that permits it.
///
/// In place, whoever owned it: the kernel checks the rights to a directory each time a name in it is used, so one that
/// a former owner holds open is of no use to him. What he has put into it stays his, and is judged when it is reached.
pub(super) fn set_directory(
    place: &DirHandle,
    name: &OsStr,
    expected: &Entry,
    attributes: Attributes,
) -> Result<(), Problem> {
    let (handle, entry) = take(place, name, expected)?;
    if attributes.fit(&entry) { Ok(()) } else { handle.set(place, name, &entry, attributes) }
}

/// Takes hold of an entry, if it is still the one that was inspected and has no name that others could have given it.
fn take(place: &DirHandle, name: &OsStr, expected: &Entry) -> Result<(Handle, Entry), Problem> {
    let (handle, entry) = Handle::open(place, name)?;
    if !entry.is_same_file(expected) {
        return Err(Problem::Changed { at: place.at(name) });
    }
    refuse_hard_links(place, name, &entry)?;
    Ok((handle, entry))
}

/// A second name may be that of somebody else's file, put here to have it given away.
pub(super) fn refuse_hard_links(place: &DirHandle, name: &OsStr, entry: &Entry) -> Result<(), Problem> {
    if entry.kind == FileKind::File && entry.nlink > 1 && place.trust().others_can_write() {
        let directory = place.path().to_owned();
        let (links, owner) = (entry.nlink, place.trust().owner.into());
        return Err(Problem::HardLinked { at: place.at(name), links, directory, owner });
    }
    Ok(())
}

/// One file or directory, whatever its name leads to by now.
enum Handle {
    Open(OwnedFd),
    /// What its owner may not read can still be chowned and chmodded by him.
    Unreadable(OwnedFd),
}

impl Handle {
    fn set(
        &self,
        place: &DirHandle,
        name: &OsStr,
        entry: &Entry,
        attributes: Attributes,
    ) -> Result<(), Problem> {
        self.change(entry, attributes).map_err(|errno| place.explain(errno, name))?;
        self.sync().map_err(|source| Problem::Unsynced { at: place.at(name), source })
    }

    /// Takes hold of an entry that is a file or directory. What it is, is found out before it is opened: that alone can
    /// block on a FIFO or start a device.
    fn open(place: &DirHandle, name: &OsStr) -> Result<(Handle, Entry), Problem> {
        let found = place.open(name, OFlags::PATH).map_err(|errno| match errno {
            Errno::NOENT => Problem::Changed { at: place.at(name) },
            errno => place.explain(errno, name),
        })?;
        let entry = Entry::of(&found, &place.at(name))?;
        place.refuse_special(name, &entry)?;
        match place.open(name, opening::READ) {
            Ok(opened) => {
                let opened_entry = Entry::of(&opened, &place.at(name))?;
                if opened_entry.is_same_file(&entry) {
                    Ok((Handle::Open(opened), opened_entry))
                } else {
                    Err(Problem::Changed { at: place.at(name) })
                }
            }
            Err(Errno::ACCESS) => Ok((Handle::Unreadable(found), entry)),
            Err(Errno::NOENT | Errno::LOOP) => Err(Problem::Changed { at: place.at(name) }),
            Err(errno) => Err(place.explain(errno, name)),
        }
    }

    /// The owner is changed before the mode, because the kernel clears set-id bits with it. When both change, the mode
    /// is first narrowed to what old and new have in common: neither the new owner nor the new group may do, even for
    /// an instant or after a crash in between, what only the old ones were meant to.
    fn change(&self, entry: &Entry, attributes: Attributes) -> Result<(), Errno> {
        if (entry.uid, entry.gid) != (attributes.uid, attributes.gid) {
            let common = entry.mode & attributes.mode & 0o777;
            if entry.mode & 0o777 != common {
                self.chmod(common)?;
            }
            // An access list of a former owner may hold the door open for him.
            if entry.uid != attributes.uid && !trust::is_ours(entry.uid) {
                extended::drop_access_lists(self.descriptor())?;
            }
            let (uid, gid) = attributes.owner();
            chownat(self.descriptor(), "", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        self.chmod(attributes.mode)
    }

    fn chmod(&self, mode: u32) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        match self {
            Handle::Open(opened) => fchmod(opened, mode),
            // Such a descriptor takes no fchmod; its name under /proc stands for the same file.
            Handle::Unreadable(found) => {
                chmodat(CWD, format!("/proc/self/fd/{}", found.as_raw_fd()), mode, AtFlags::empty())
            }
        }
    }

    fn sync(&self) -> Result<(), Errno> {
        match self {
            Handle::Open(opened) => match fsync(opened) {
                Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
                synced => synced,
            },
            // It reaches the disk in the kernel's own time.
            Handle::Unreadable(_) => Ok(()),
        }
    }

    fn descriptor(&self) -> &OwnedFd {
        match self {
            Handle::Open(descriptor) | Handle::Unreadable(descriptor) => descriptor,
        }
    }
}
