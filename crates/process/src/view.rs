//! A command that sees one file in the place of another, and nobody else does.
//!
//! The thread that starts the command gets mounts of its own, in which the file is bound over its place. Where there is
//! nothing to be bound over, the directory gets a layer on top in which there is. The mounts are gone with the last process
//! that has them.

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, chmodat, chownat, fstat, mkdirat, mknodat, openat,
        statat,
    },
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
        open_tree,
    },
    thread as own_thread,
};

/// A file that a command sees at another place.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The file to show.
    pub file: BorrowedFd<'a>,
    /// The place, whose directory exists.
    pub target: &'a Path,
}

/// Gives the calling thread, and whatever it starts, mounts of its own with the file at its place.
pub(super) fn enter(view: &View) -> io::Result<()> {
    // Only what is in the mounts that everybody has can be cloned, so it is cloned before there are others.
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let file = open_tree(view.file, "", flags)?;
    #[expect(
        deprecated,
        reason = "unsound only with `FILES`; the function that replaces it is unsafe for all flags"
    )]
    own_thread::unshare(own_thread::UnshareFlags::NEWNS)?;
    // Nothing of what follows is to be seen by others.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let (Some(parent), Some(name)) = (view.target.parent(), view.target.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let mut place = open_directory(parent)?;
    let is_file = match statat(&place, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
        Err(Errno::NOENT) => false,
        Err(errno) => return Err(errno.into()),
    };
    if !is_file {
        cover(&place, parent, name)?;
        place = open_directory(parent)?;
    }
    Ok(move_mount(&file, "", &place, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Opens whatever is at the path by now, for finding things in it.
fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Puts a layer over a directory in which there is an empty file of this name. The layer is in memory: what the directory
/// is on may not be able to carry it.
fn cover(place: &OwnedFd, parent: &Path, name: &std::ffi::OsStr) -> io::Result<()> {
    mount("ccm", parent, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
    let memory = open_directory(parent)?;
    let original = fstat(place)?;
    for folder in ["upper", "work"] {
        mkdirat(&memory, folder, Mode::RWXU)?;
    }
    let (uid, gid) = (Uid::from_raw(original.st_uid), Gid::from_raw(original.st_gid));
    chownat(&memory, "upper", Some(uid), Some(gid), AtFlags::empty())?;
    chmodat(&memory, "upper", Mode::from_raw_mode(original.st_mode & 0o7777), AtFlags::empty())?;
    mknodat(&memory, Path::new("upper").join(name), FileType::RegularFile, Mode::empty(), 0)?;
    let (lower, above) = (place.as_raw_fd(), memory.as_raw_fd());
    let options = format!(
        "lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{above}/upper,workdir=/proc/self/fd/{above}/work"
    );
    let options = CString::new(options)?;
    Ok(mount("ccm", parent, "overlay", MountFlags::empty(), options.as_c_str())?)
}
