//! Files that one command sees and no other process does.
//!
//! The thread that starts the command gets a mount namespace of its own. An existing file is replaced by a bind mount. All
//! other changes are made in an overlay over the directory, whose upper layer is in memory. The mounts disappear with the
//! last process of the namespace.

use std::{
    collections::BTreeSet,
    ffi::{CString, OsStr, OsString},
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chmodat, chownat, fstat, mkdirat, mknodat,
        openat, statat, symlinkat, unlinkat,
    },
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
        open_tree,
    },
    thread as own_thread,
};

/// Files that one command sees and no other process does.
#[derive(Clone, Debug, Default)]
pub struct View<'a> {
    /// Absolute paths and their entries, the outer paths first. A parent that does not exist is created.
    pub entries: Vec<(PathBuf, Shown<'a>)>,
}

/// The entry at a path of a [`View`].
#[derive(Clone, Debug)]
pub enum Shown<'a> {
    /// This open file.
    File(BorrowedFd<'a>),
    /// The file at another path.
    FileAt(PathBuf),
    /// A symbolic link with this target.
    Link(PathBuf),
    /// A directory. If `is_new`, nothing that is in it on disk.
    Directory {
        /// UID of the owner.
        uid: u32,
        /// GID of the group.
        gid: u32,
        /// Permission bits.
        mode: u32,
        /// Whether it replaces what is there.
        is_new: bool,
    },
    /// Nothing.
    Nothing,
}

/// Gives the calling thread, and all processes that it starts, a mount namespace of its own with this view.
pub(super) fn enter(view: &View) -> io::Result<()> {
    // Only mounts of the current namespace can be cloned: it is done before there is another.
    let open = view.entries.iter().map(|(_, shown)| match shown {
        Shown::File(file) => clone_mount(file.as_fd(), "", OpenTreeFlags::AT_EMPTY_PATH).map(Some),
        _ => Ok(None),
    });
    let mut open = open.collect::<io::Result<Vec<_>>>()?;
    #[expect(
        deprecated,
        reason = "unsound only with `FILES`; the function that replaces it is unsafe for all flags"
    )]
    own_thread::unshare(own_thread::UnshareFlags::NEWNS)?;
    // Other processes must not see any of the mounts that follow.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let places: Vec<PathBuf> =
        view.entries.iter().map(|(path, _)| real_place(path)).collect::<io::Result<_>>()?;
    let entries: Vec<_> = places.iter().zip(view.entries.iter().map(|(_, shown)| shown)).collect();
    let mounts = mount_points()?;
    for directory in covered(&entries, &mounts) {
        let kept: Vec<&PathBuf> = outermost_below(&mounts, &directory);
        cover(&directory, &kept)?;
    }
    for ((path, shown), open) in entries.into_iter().zip(&mut open) {
        show(path, shown, open.take())?;
    }
    Ok(())
}

/// Returns the path with the links of its parents resolved, as far as they exist.
fn real_place(path: &Path) -> io::Result<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    match fs::canonicalize(parent) {
        Ok(parent) => Ok(parent.join(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && parent.parent().is_some() => {
            Ok(real_place(parent)?.join(name))
        }
        Err(error) => Err(error),
    }
}

/// Returns the directories that need an overlay: the nearest existing parents of all entries, except files over files. A
/// directory on the same mount as an outer one of these is part of it.
fn covered(entries: &[(&PathBuf, &Shown)], mounts: &[PathBuf]) -> Vec<PathBuf> {
    let needed: BTreeSet<PathBuf> = entries
        .iter()
        .filter(|(path, shown)| !is_bound(path, shown) && !is_there_already(path, shown))
        .filter_map(|(path, _)| path.ancestors().skip(1).find(|above| above.is_dir()).map(Path::to_owned))
        .collect();
    let mut outer: Vec<PathBuf> = Vec::new();
    // In the order of their components: an outer directory comes first.
    for directory in needed {
        let is_part = |above: &PathBuf| {
            let between = |mount: &&PathBuf| *mount != above && mount.starts_with(above);
            directory.starts_with(above)
                && !mounts.iter().filter(between).any(|mount| directory.starts_with(mount))
        };
        if !outer.iter().any(is_part) {
            outer.push(directory);
        }
    }
    outer
}

/// Returns whether an entry is a file over a file, for which a bind mount is enough.
fn is_bound(path: &Path, shown: &Shown) -> bool {
    matches!(shown, Shown::File(_) | Shown::FileAt(_)) && kind(path) == Some(FileType::RegularFile)
}

fn is_there_already(path: &Path, shown: &Shown) -> bool {
    match shown {
        Shown::Nothing => kind(path).is_none(),
        Shown::Directory { is_new: false, .. } => kind(path) == Some(FileType::Directory),
        _ => false,
    }
}

fn kind(path: &Path) -> Option<FileType> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Returns the mount points of this namespace.
fn mount_points() -> io::Result<Vec<PathBuf>> {
    let text = fs::read("/proc/thread-self/mountinfo")?;
    let place = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(unescaped);
    Ok(text.split(|byte| *byte == b'\n').filter_map(place).collect())
}

/// Returns a path of `mountinfo`, in which `\040` stands for a space.
fn unescaped(text: &[u8]) -> PathBuf {
    let (mut path, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        path.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(path).into()
}

/// Returns the mount points in a directory that are not in another one of them.
fn outermost_below<'m>(mounts: &'m [PathBuf], directory: &Path) -> Vec<&'m PathBuf> {
    let below: BTreeSet<&PathBuf> =
        mounts.iter().filter(|mount| *mount != directory && mount.starts_with(directory)).collect();
    let is_inner = |mount: &&PathBuf| !below.iter().any(|outer| outer != mount && mount.starts_with(outer));
    below.iter().copied().filter(is_inner).collect()
}

fn clone_mount(from: BorrowedFd, path: impl rustix::path::Arg, flags: OpenTreeFlags) -> io::Result<OwnedFd> {
    let flags = flags | OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(from, path, flags)?)
}

/// Opens a directory to find entries in it.
fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Mounts an overlay over a directory, and in it again what was mounted below. Its upper layer is in memory, because the
/// file system of the directory might not support one. The root directory cannot be covered: paths start below its mounts.
fn cover(directory: &Path, kept: &[&PathBuf]) -> io::Result<()> {
    if directory.parent().is_none() {
        return Err(Errno::OPNOTSUPP.into());
    }
    let clone = |mount: &&PathBuf| clone_mount(CWD, mount.as_path(), OpenTreeFlags::AT_RECURSIVE);
    let mounts: Vec<_> = kept.iter().map(clone).collect();
    let place = open_directory(directory)?;
    mount("view", directory, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
    let memory = open_directory(directory)?;
    let original = fstat(&place)?;
    for folder in ["upper", "work"] {
        mkdirat(&memory, folder, Mode::RWXU)?;
    }
    let attributes = (original.st_uid, original.st_gid, original.st_mode & 0o7777);
    dress(&memory, "upper".as_ref(), attributes)?;
    let (lower, above) = (place.as_raw_fd(), memory.as_raw_fd());
    let options = format!(
        "lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{above}/upper,workdir=/proc/self/fd/{above}/work"
    );
    let options = CString::new(options)?;
    mount("view", directory, "overlay", MountFlags::empty(), options.as_c_str())?;
    for (mounted, path) in mounts.into_iter().zip(kept) {
        // A mount point that was deleted, or that cannot be cloned, is not there for the command.
        if let Ok(mounted) = mounted {
            let _ = move_mount(&mounted, "", CWD, path.as_path(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH);
        }
    }
    Ok(())
}

fn dress(parent: &OwnedFd, name: &OsStr, (uid, gid, mode): (u32, u32, u32)) -> io::Result<()> {
    chownat(parent, name, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)), AtFlags::empty())?;
    Ok(chmodat(parent, name, Mode::from_raw_mode(mode), AtFlags::empty())?)
}

/// Makes an entry visible in the namespace of the calling thread.
fn show(path: &Path, shown: &Shown, open: Option<OwnedFd>) -> io::Result<()> {
    if is_there_already(path, shown) {
        return Ok(());
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    create_parents(parent)?;
    let place = open_directory(parent)?;
    let is_file = kind(path) == Some(FileType::RegularFile);
    match shown {
        Shown::File(_) | Shown::FileAt(_) => {
            let file = match (open, shown) {
                (Some(file), _) => file,
                (None, Shown::FileAt(from)) => clone_mount(CWD, from.as_path(), OpenTreeFlags::empty())?,
                (None, _) => return Err(Errno::INVAL.into()),
            };
            if !is_file {
                remove(&place, name)?;
                mknodat(&place, name, FileType::RegularFile, Mode::empty(), 0)?;
            }
            Ok(move_mount(&file, "", &place, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
        }
        Shown::Link(target) => {
            remove(&place, name)?;
            Ok(symlinkat(target, &place, name)?)
        }
        Shown::Directory { uid, gid, mode, .. } => {
            remove(&place, name)?;
            mkdirat(&place, name, Mode::RWXU)?;
            dress(&place, name, (*uid, *gid, *mode))
        }
        Shown::Nothing => remove(&place, name),
    }
}

fn create_parents(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|above| kind(above).is_none()).collect();
    for directory in missing.into_iter().rev() {
        mkdirat(CWD, directory, Mode::from_raw_mode(0o755))?;
    }
    Ok(())
}

/// Removes an entry with everything in it, if there is one.
fn remove(place: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(place, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = openat(place, name, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&inner)? {
        let entry = entry?;
        names.push(OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    }
    for name in names.iter().filter(|name| *name != "." && *name != "..") {
        remove(&inner, name)?;
    }
    Ok(unlinkat(place, name, AtFlags::REMOVEDIR)?)
}
