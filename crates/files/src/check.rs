//! Foretelling: whether a real run could do something, told without changing anything.

use std::{
    ffi::OsStr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, FileType, StatxAttributes, accessat, fstat, statat},
    io::Errno,
    process::{getegid, geteuid, getgroups},
};

use super::{
    attributes::{self, Attributes},
    dir_handle::file_attributes,
    directory::Parents,
    entry::{CopyInterrupted, Entry, FileKind},
    error::{FileError, Operation, Problem},
    listing::list,
    opening,
    remove::{self, Deed},
    trust::{STICKY, Trust},
    walk::{self, DirHandle, Walked},
};

/// Something that a caller is about to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// [`replace`](super::replace)
    Write(Attributes),
    /// [`set_attributes`](super::set_attributes)
    SetAttributes(Attributes),
    /// [`make_directory`](super::make_directory) and
    /// [`replace_file_with_directory`](super::replace_file_with_directory)
    MakeDirectory(Attributes, Parents),
    /// [`make_link`](super::make_link) with this target, in place of whatever is there
    MakeLink(PathBuf),
    /// [`remove`](super::remove)
    Remove,
    /// [`remove_tree`](super::remove_tree)
    RemoveTree,
}

/// Whether a real run could do this, as far as reading tells: the way is safe, its directories exist, permissions,
/// mounts and protecting attributes allow it. What only trying tells (space, quota, a disk that fails) stays open.
pub fn check(path: &Path, intent: &Intent) -> Result<(), FileError> {
    predict(path, intent, None, &|_| false)
        .map_err(|problem| FileError::new(intent.operation(), path, problem))
}

impl Intent {
    pub(super) fn operation(&self) -> Operation {
        match self {
            Intent::Write(_) => Operation::Write,
            Intent::SetAttributes(_) => Operation::SetAttributes,
            Intent::MakeDirectory(..) => Operation::MakeDirectory,
            Intent::MakeLink(_) => Operation::MakeLink,
            Intent::Remove | Intent::RemoveTree => Operation::Remove,
        }
    }

    /// Whether it may be done in the last directory of a way.
    pub(super) fn is_permitted(&self, trust: &Trust) -> Result<(), Problem> {
        match self {
            Intent::Write(_) | Intent::MakeLink(_) => trust.permits_whole_file(),
            Intent::SetAttributes(wanted) | Intent::MakeDirectory(wanted, _) => trust.permits(wanted.uid),
            Intent::Remove | Intent::RemoveTree => Ok(()),
        }
    }

    /// What the result is to have; nothing has none.
    pub(super) fn attributes(&self) -> Option<Attributes> {
        match self {
            Intent::Write(wanted) | Intent::SetAttributes(wanted) | Intent::MakeDirectory(wanted, _) => {
                Some(*wanted)
            }
            Intent::MakeLink(_) | Intent::Remove | Intent::RemoveTree => None,
        }
    }
}

/// Whether it could be done. The trust is what the way would deserve by then, when that is not what is on disk; `changed`
/// tells what would be different below the path.
pub(super) fn predict(
    path: &Path,
    intent: &Intent,
    trust: Option<Trust>,
    changed: &dyn Fn(&Path) -> bool,
) -> Result<(), Problem> {
    let (parent, name) = walk::split(path)?;
    let walked = walk::walk(parent)?;
    let end = walked.end();
    let Walked { place, missing } = walked;
    let place = match trust {
        Some(trust) => place.seen_with(trust),
        None => place,
    };
    match (intent, missing.front()) {
        (_, None) => foresee_entry(&place, name, intent, changed),
        (Intent::Remove | Intent::RemoveTree, Some(_)) => Ok(()),
        (Intent::Write(_) | Intent::SetAttributes(_) | Intent::MakeLink(_), Some(first)) => {
            Err(place.lacks(first))
        }
        (Intent::MakeDirectory(wanted, parents), Some(first)) => {
            place.permits(wanted.uid)?;
            if *parents == Parents::Expect {
                return Err(place.lacks(first));
            }
            may_write(&place, first, None)?;
            may_give(&end.join(name), *wanted)
        }
    }
}

fn foresee_entry(
    place: &DirHandle,
    name: &OsStr,
    intent: &Intent,
    changed: &dyn Fn(&Path) -> bool,
) -> Result<(), Problem> {
    intent.is_permitted(place.trust())?;
    if let Some(wanted) = intent.attributes() {
        may_give(&place.at(name), wanted)?;
    }
    let at = || place.at(name);
    match (intent, place.entry(name)?) {
        (Intent::Remove | Intent::RemoveTree, None) => Ok(()),
        (Intent::Remove, Some(found)) => may_remove(place, name, &found),
        (Intent::RemoveTree, Some(found)) => may_remove_tree(place, name, &found, changed, &mut || Ok(())),
        (Intent::SetAttributes(_), None) => Err(Problem::Changed { at: at() }),
        (Intent::Write(_) | Intent::MakeDirectory(..) | Intent::MakeLink(_), None) => {
            may_write(place, name, None)
        }
        (Intent::Write(_), Some(Entry { kind: FileKind::Directory, .. })) => {
            Err(Problem::IsADirectory { at: at() })
        }
        (Intent::Write(_), Some(found)) => {
            place.refuse_own_way(name)?;
            may_write(place, name, Some(&found))
        }
        (Intent::MakeLink(_), Some(found)) => {
            place.refuse_own_way(name)?;
            may_remove_tree(place, name, &found, changed, &mut || Ok(()))
        }
        (Intent::SetAttributes(_), Some(found)) => may_change(place, name, &found),
        (Intent::MakeDirectory(..), Some(found)) => match found.kind {
            FileKind::Directory => may_change(place, name, &found),
            FileKind::Symlink { target } => Err(Problem::LinkInTheWay { link: at(), target }),
            _ => may_write(place, name, Some(&found)),
        },
    }
}

fn may_remove(place: &DirHandle, name: &OsStr, found: &Entry) -> Result<(), Problem> {
    may_write(place, name, Some(found))?;
    if found.kind == FileKind::Directory {
        let opened = place.open(name, opening::DIRECTORY);
        // What may not be listed is left to the attempt.
        if opened.and_then(list).is_ok_and(|mut names| names.next().is_some()) {
            return Err(Problem::from_errno(Errno::NOTEMPTY, &place.at(name)));
        }
    }
    Ok(())
}

/// Whether an entry and everything below it can be removed.
pub(super) fn may_remove_tree(
    place: &DirHandle,
    name: &OsStr,
    found: &Entry,
    changed: &dyn Fn(&Path) -> bool,
    tick: &mut dyn FnMut() -> Result<(), CopyInterrupted>,
) -> Result<(), Problem> {
    let is_directory = found.kind == FileKind::Directory;
    if is_directory && place.is_mount_point(name) {
        return Err(Problem::OtherFileSystem { at: place.at(name) });
    }
    may_write(place, name, Some(found))?;
    if is_directory { remove::empty(place, name, &Rehearsal { changed }, tick) } else { Ok(()) }
}

/// The removal of a tree in which every name stays.
struct Rehearsal<'a> {
    changed: &'a dyn Fn(&Path) -> bool,
}

impl Deed for Rehearsal<'_> {
    fn take(&self, directory: &OwnedFd, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
        accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_directory && !flags.contains(AtFlags::REMOVEDIR) {
            return Err(Errno::ISDIR);
        }
        let protects = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        let [own, above] = [name, OsStr::new(".")].map(|name| file_attributes(directory, name));
        if (own | above).intersects(protects) {
            return Err(Errno::PERM);
        }
        if own.contains(StatxAttributes::MOUNT_ROOT) {
            return Err(Errno::BUSY);
        }
        let me = geteuid();
        let above = fstat(directory)?;
        let is_sticky = above.st_mode & STICKY != 0;
        let is_strangers = ![stat.st_uid, above.st_uid].contains(&me.as_raw());
        if is_sticky && is_strangers && !me.is_root() { Err(Errno::PERM) } else { Ok(()) }
    }

    fn passes_over(&self, at: &Path) -> bool {
        (self.changed)(at)
    }
}

/// Whether a name can be made or, where an entry is under it, replaced or removed.
fn may_write(place: &DirHandle, name: &OsStr, found: Option<&Entry>) -> Result<(), Problem> {
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    accessat(place.directory(), ".", rights, AtFlags::EACCESS).map_err(|errno| place.explain(errno, name))?;
    let Some(found) = found else { return Ok(()) };
    if let Some(problem) = place.protection(name) {
        return Err(problem);
    }
    let me = geteuid();
    if place.trust().is_sticky() && !me.is_root() && ![found.uid, place.trust().owner].contains(&me.as_raw())
    {
        return Err(Problem::from_errno(Errno::PERM, &place.at(name)));
    }
    if place.is_mount_point(name) {
        return Err(Problem::from_errno(Errno::BUSY, &place.at(name)));
    }
    Ok(())
}

/// Whether owner and mode of an entry can be changed in place.
fn may_change(place: &DirHandle, name: &OsStr, found: &Entry) -> Result<(), Problem> {
    place.refuse_special(name, found)?;
    attributes::refuse_hard_links(place, name, found)?;
    if let Some(problem) = place.protection_of_entry(name) {
        return Err(problem);
    }
    let me = geteuid();
    if !me.is_root() && found.uid != me.as_raw() {
        return Err(Problem::from_errno(Errno::PERM, &place.at(name)));
    }
    match accessat(place.directory(), name, Access::WRITE_OK, AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW) {
        Err(errno @ Errno::ROFS) => Err(place.explain(errno, name)),
        _ => Ok(()),
    }
}

/// Only root gives files away, and only members give them to a group.
pub(super) fn may_give(at: &Path, wanted: Attributes) -> Result<(), Problem> {
    let me = geteuid();
    if me.is_root() {
        return Ok(());
    }
    let is_member = || {
        getegid().as_raw() == wanted.gid
            || getgroups().is_ok_and(|groups| groups.iter().any(|group| group.as_raw() == wanted.gid))
    };
    if wanted.uid == me.as_raw() && is_member() { Ok(()) } else { Err(Problem::from_errno(Errno::PERM, at)) }
}
