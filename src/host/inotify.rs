//! What happens in directories, told by the kernel (inotify(7)).

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

/// Tells what happens in directories.
pub(crate) struct Inotify(OwnedFd);

/// A directory that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch(i32);

/// Something that happened.
#[derive(Debug)]
pub(crate) struct Happening {
    pub(crate) watch: Watch,
    pub(crate) what: What,
    /// The name in the directory; empty when it happened to the directory itself.
    pub(crate) name: OsString,
}

/// What is of interest in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Which names there are.
    Names,
    /// Also what is written, and owners and modes.
    Everything,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A file was written or something got another owner, mode or the like.
    Changed,
    /// A name came, or came to mean something else.
    Came,
    /// A name went.
    Went,
    /// The directory itself went or was moved, or is not watched any more.
    Lost,
    /// More happened than the kernel could keep: anything may have happened.
    Overflow,
}

impl Inotify {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches a directory, not what is in the directories in it. One that is watched already is the same watch.
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
            Interest::Everything => names | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB,
        };
        add_watch(&self.0, directory, flags).map(Watch)
    }

    /// Watches a directory no more. What the kernel forgot by itself is as good.
    pub(crate) fn unwatch(&self, watch: Watch) {
        let _ = remove_watch(&self.0, watch.0);
    }

    /// Returns what has happened since; nothing if that is all.
    pub(crate) fn take(&self) -> Vec<Happening> {
        let mut buffer = vec![MaybeUninit::uninit(); 64 * 1024];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut all = Vec::new();
        // Nothing more has happened, or nothing can be known.
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(CStr::to_bytes).unwrap_or_default();
            let (watch, name) = (Watch(event.wd()), OsStr::from_bytes(name).to_owned());
            all.push(Happening { watch, what: What::of(event.events()), name });
        }
        all
    }
}

impl AsFd for Inotify {
    /// Readable when something happened.
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
        } else {
            Self::Changed
        }
    }
}

/// What tells whether something at a path was changed since: nothing if there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<Traits>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traits {
    device: (u32, u32),
    inode: u64,
    mode: u16,
    owner: (u32, u32),
    /// Size and last change; of a directory they tell only what is in it.
    content: Option<(u64, i64, u32)>,
}

impl Stamp {
    /// Looks at a path, without following it.
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
        // What is written or removed is told when nobody holds it any more, a test beside this one that forks included.
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
        assert_eq!(told, [(watch, What::Came, "file".into()), (watch, What::Changed, "file".into())]);
        let stamp = Stamp::of(&file);
        assert_eq!(stamp, Stamp::of(&file));
        fs::write(&file, "longer").unwrap();
        assert_ne!(stamp, Stamp::of(&file));
        fs::remove_dir_all(&folder).unwrap();
        let told = until(What::Lost);
        assert!(told.iter().any(|(_, what, _)| *what == What::Went), "{told:?}");
    }
}
