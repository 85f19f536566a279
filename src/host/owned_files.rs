//! Files that a user owns, on all local file systems.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{interrupt::Interrupt, system_file};

/// File systems whose files are on this machine.
const LOCAL: [&str; 19] = [
    "bcachefs",
    "btrfs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hugetlbfs",
    "jfs",
    "nilfs2",
    "ntfs3",
    "overlay",
    "ramfs",
    "reiserfs",
    "tmpfs",
    "ubifs",
    "vfat",
    "xfs",
    "zfs",
];

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owned {
    /// The user owns no file.
    Nothing,
    /// The user owns this file.
    Path(PathBuf),
    /// The search did not reach all files, for this reason.
    Undecided(String),
}

/// Searches for a file of a user outside of the directory `except`, for at most `limit`.
pub(crate) fn search(uid: u32, except: Option<&Path>, limit: Duration, interrupt: &Interrupt) -> Owned {
    let mounts = match system_file::read("/proc/self/mountinfo") {
        Ok(text) => local_mounts(&text),
        Err(error) => return Owned::Undecided(format!("cannot read the mounts: {error}")),
    };
    let mut search = Search { uid, except, end: Instant::now() + limit, limit, interrupt };
    for mount in mounts {
        match search.walk(mount) {
            Owned::Nothing => {}
            found => return found,
        }
    }
    Owned::Nothing
}

struct Search<'a> {
    uid: u32,
    except: Option<&'a Path>,
    end: Instant,
    limit: Duration,
    interrupt: &'a Interrupt,
}

impl Search<'_> {
    /// Searches one file system.
    fn walk(&mut self, root: PathBuf) -> Owned {
        let failed = |path: &Path, error: &io::Error| {
            Owned::Undecided(format!("cannot read {}: {error}", path.display()))
        };
        if self.except.is_some_and(|except| root.starts_with(except)) {
            return Owned::Nothing;
        }
        // Another mount can hide it.
        let Ok(metadata) = fs::symlink_metadata(&root) else { return Owned::Nothing };
        let device = metadata.dev();
        if metadata.uid() == self.uid {
            return Owned::Path(root);
        }
        // A single file can be mounted, too.
        let mut open = if metadata.is_dir() { vec![root] } else { Vec::new() };
        while let Some(directory) = open.pop() {
            if Instant::now() >= self.end {
                let seconds = self.limit.as_secs();
                return Owned::Undecided(format!("the search for its files takes longer than {seconds} s"));
            }
            if self.interrupt.requested().is_some() {
                return Owned::Undecided("the search for its files was interrupted".to_owned());
            }
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return failed(&directory, &error),
            };
            for entry in entries.flatten() {
                let path = entry.path();
                let Ok(metadata) = entry.metadata() else { continue };
                // Another file system. Files of an overlay can have the device of another layer.
                let is_mount = metadata.is_dir() && metadata.dev() != device;
                if is_mount || self.except == Some(&path) {
                    continue;
                }
                if metadata.uid() == self.uid {
                    return Owned::Path(path);
                }
                if metadata.is_dir() {
                    open.push(path);
                }
            }
        }
        Owned::Nothing
    }
}

/// Returns the mount points of local file systems, each file system once if it is mounted completely somewhere.
fn local_mounts(mountinfo: &str) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut mounts: Vec<(&str, &str, &str)> = mountinfo
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let fields: Vec<&str> = before.split(' ').collect();
            let kind = after.split(' ').next()?;
            LOCAL.contains(&kind).then_some((*fields.get(2)?, *fields.get(3)?, *fields.get(4)?))
        })
        .collect();
    // A bind mount shows only a part of its file system.
    mounts.sort_by_key(|(_, root, _)| *root != "/");
    let mut points = Vec::new();
    for (device, root, point) in mounts {
        if seen.contains(&(device, "/")) || !seen.insert((device, root)) {
            continue;
        }
        points.push(PathBuf::from(unescaped(point)));
    }
    points
}

/// Decodes the octal escapes of spaces and other characters.
fn unescaped(point: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(point.to_owned(), |text, (escape, character)| text.replace(escape, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_file_systems_are_listed_once() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      23 22 8:1 /srv /mnt/bind rw - ext4 /dev/sda1 rw\n\
                      24 22 0:5 / /proc rw shared:1 - proc proc rw\n\
                      25 22 0:40 / /net rw - nfs4 server:/ rw\n\
                      26 22 8:2 /part /mnt/with\\040space rw - xfs /dev/sdb rw\n\
                      27 22 0:30 / /tmp rw - tmpfs tmpfs rw\n";
        let expected = ["/", "/tmp", "/mnt/with space"].map(PathBuf::from);
        assert_eq!(local_mounts(mounts), expected);
    }

    #[test]
    fn file_of_the_user_is_found_outside_of_the_exception() {
        const OWNER: u32 = 12345;
        let directory = std::env::temp_dir().join(format!("ccm-owned-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let (home, own) = (directory.join("home"), directory.join("home/own"));
        fs::create_dir_all(&home).unwrap();
        fs::write(&own, "").unwrap();
        if std::os::unix::fs::chown(&own, Some(OWNER), None).is_ok() {
            let (limit, interrupt) = (Duration::from_hours(1), &Interrupt::never().unwrap());
            let mut search =
                Search { uid: OWNER, except: None, end: Instant::now() + limit, limit, interrupt };
            assert_eq!(search.walk(directory.clone()), Owned::Path(own.clone()));
            assert_eq!(search.walk(own.clone()), Owned::Path(own));
            search.except = Some(&home);
            assert_eq!(search.walk(directory.clone()), Owned::Nothing);
            assert_eq!(search.walk(home.clone()), Owned::Nothing);
            search.end = Instant::now();
            assert!(matches!(search.walk(directory.clone()), Owned::Undecided(_)));
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
