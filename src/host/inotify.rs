//! Changes in directories, through inotify(7).

use std::{
    ffi::{CStr, OsStr, OsString},
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, StatxFlags,
        inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch},
        statx,
    },
    io::Errno,
};

/// An inotify instance.
pub(crate) struct Inotify(OwnedFd);

/// A watched directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch(i32);

/// A change in a directory.
#[derive(Debug)]
pub(crate) struct Happening {
    pub(crate) watch: Watch,
    pub(crate) what: What,
    /// Name in the directory; empty for a change of the directory itself.
    pub(crate) name: OsString,
}

/// Kind of changes to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Created, removed and renamed entries.
    Names,
    /// Also content, owners and modes.
    Everything,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Content of a file changed. More can follow until the file is closed.
    Modified,
    /// A file was written and closed, or its owner, mode or other attributes changed.
    Changed,
    /// An entry was created or replaced.
    Came,
    /// An entry was removed.
    Went,
    /// The directory itself was removed or moved, or is no longer watched.
    Lost,
    /// The queue overflowed, so any change might have happened.
    Overflow,
}

impl Inotify {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches a directory without its subdirectories. Watching it again returns the same watch.
    pub(crate) fn watch(&self, directory: &Path, interest: Interest) -> Result<Watch, Errno> {
        let names = WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let flags = match interest {
            Interest::Names => names,
            // truncate(2) opens no file, so no close follows it.
            Interest::Everything => names | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB | WatchFlags::MODIFY,
        };
        add_watch(&self.0, directory, flags).map(Watch)
    }

    /// Removes a watch. Ignores a watch that the kernel already removed.
    pub(crate) fn unwatch(&self, watch: Watch) {
        let _ = remove_watch(&self.0, watch.0);
    }

    /// Returns the changes since the last call.
    pub(crate) fn take(&self) -> Vec<Happening> {
        let mut buffer = vec![MaybeUninit::uninit(); 64 * 1024];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut all = Vec::new();
        // There are no more events, or reading failed.
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(CStr::to_bytes).unwrap_or_default();
            let (watch, name) = (Watch(event.wd()), OsStr::from_bytes(name).to_owned());
            all.push(Happening { watch, what: What::of(event.events()), name });
        }
        all
    }
}

impl AsFd for Inotify {
    /// Readable when something changed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl What {
    fn of(flags: ReadFlags) -> Self {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            Self::Overflow
        } else if flags.intersects(
            ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT,
        ) {
            Self::Lost
        } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            Self::Came
        } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            Self::Went
        } else if flags.contains(ReadFlags::MODIFY) {
            Self::Modified
        } else {
            Self::Changed
        }
    }
}

/// Attributes that reveal a change of the entry at a path; `None` if there is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<Traits>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traits {
    device: (u32, u32),
    inode: u64,
    mode: u16,
    owner: (u32, u32),
    /// Size and last change; of a directory, these reveal only changes of its entries.
    content: Option<(u64, i64, u32)>,
}

impl Stamp {
    /// Inspects a path without following links.
    pub(crate) fn of(path: &Path) -> Self {
        const DIRECTORY: u16 = 0o040_000;
        let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
        Self(found.ok().map(|stat| Traits {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            mode: stat.stx_mode,
            owner: (stat.stx_uid, stat.stx_gid),
            content: (stat.stx_mode & 0o170_000 != DIRECTORY).then_some((
                stat.stx_size,
                stat.stx_ctime.tv_sec,
                stat.stx_ctime.tv_nsec,
            )),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_happens_in_a_directory_is_told_and_what_is_in_it_is_stamped() {
        let folder = std::env::temp_dir().join(format!("ccm-inotify-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let inotify = Inotify::new().unwrap();
        let watch = inotify.watch(&folder, Interest::Everything).unwrap();
        assert!(inotify.take().is_empty());
        let file = folder.join("file");
        assert_eq!(Stamp::of(&file), Stamp(None));
        // Some events arrive only when the last descriptor is closed, including those of processes that other tests
        // fork.
        let until = |what: What| {
            let mut told = Vec::new();
            for _ in 0..60_000 {
                if told.last().is_some_and(|(_, last, _)| *last == what) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
                told.extend(inotify.take().into_iter().map(|told| (told.watch, told.what, told.name)));
            }
            told
        };
        fs::write(&file, "one").unwrap();
        let told = until(What::Changed);
        let name = |what| (watch, what, OsString::from("file"));
        assert_eq!(told, [What::Came, What::Modified, What::Changed].map(name));
        let stamp = Stamp::of(&file);
        assert_eq!(stamp, Stamp::of(&file));
        fs::write(&file, "longer").unwrap();
        assert_ne!(stamp, Stamp::of(&file));
        fs::remove_dir_all(&folder).unwrap();
        let told = until(What::Lost);
        assert!(told.iter().any(|(_, what, _)| *what == What::Went), "{told:?}");
    }
}
