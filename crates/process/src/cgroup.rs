//! A cgroup for each command, if the kernel permits it.
//!
//! A process stays in its cgroup when it forks, loses its parent or starts a session. So the cgroup contains exactly the
//! processes of a command, and `cgroup.kill` kills all of them at one instant, however fast they fork. This takes cgroups
//! version 2, and write access to the cgroup of this process: root has it, and a user to whom it was delegated. Otherwise
//! `process_tree` follows the descendants.
//!
//! If a cgroup is still populated when its command has ended, the command deliberately left processes running. The cgroup
//! stays until it is empty, and a later run removes it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat, statfs};
use rustix::process::Pid;
use rustix::rand::{GetRandomFlags, getrandom};

/// Mount points of version 2: alone, or next to version 1 on hybrid machines.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Prefix of the cgroups of commands.
const PREFIX: &str = "ccm-";

/// How a cgroup is opened: commands do not inherit the descriptor.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Magic number of the cgroup2 file system, from `linux/magic.h`.
const CGROUP2: u64 = 0x6367_7270;

/// The cgroup of this process, in which the cgroups of its commands are created.
pub(super) struct Home {
    path: PathBuf,
    /// Boot ID and random number: a reused path must never name the cgroup of another command.
    unique: String,
    made: AtomicU32,
}

impl Home {
    /// Finds the cgroup of this process in version 2.
    pub(super) fn find() -> Option<Self> {
        let path = own_path(&fs::read_to_string("/proc/self/cgroup").ok()?)?.to_owned();
        let is_version_2 =
            |mount: &&&str| statfs(**mount).is_ok_and(|found| u64::try_from(found.f_type) == Ok(CGROUP2));
        let mount = MOUNTS.iter().find(is_version_2)?;
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty()).ok()?;
        let boot = boot_id()?;
        let unique = format!("{}-{:016x}", boot.split('-').next()?, u64::from_ne_bytes(random));
        let path = Path::new(mount).join(path);
        sweep(&path);
        Some(Self { path, unique, made: AtomicU32::new(0) })
    }

    /// Creates a cgroup for one command.
    pub(super) fn leaf(&self) -> io::Result<Leaf> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{PREFIX}{}-{number}", self.unique));
        fs::create_dir(&path)?;
        // Exists since Linux 5.14.
        let usable = fs::symlink_metadata(path.join("cgroup.kill")).and_then(|_| {
            let leaf = Leaf::open(&path)?;
            flock(&leaf.directory, FlockOperation::NonBlockingLockShared)?;
            Ok(leaf)
        });
        usable.inspect_err(|_| drop(fs::remove_dir(&path)))
    }
}

/// Removes the cgroups of commands, of any run, in which nothing runs any more. One in which nothing runs yet is locked by
/// whoever made it; if it was made this very moment and is not locked yet either, he makes another.
pub(super) fn sweep(home: &Path) {
    let is_ours = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    };
    for leaf in below(home).iter().filter(|path| is_ours(path)).filter_map(|path| Leaf::open(path).ok()) {
        if flock(&leaf.directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = leaf.remove();
        }
    }
}

/// The cgroup of one command.
pub(super) struct Leaf {
    path: PathBuf,
    directory: OwnedFd,
}

impl Leaf {
    /// Opens a cgroup that is there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { directory: openat(CWD, path, DIRECTORY, Mode::empty())?, path: path.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor that `clone3` takes.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Returns whether anything alive is in it or below it.
    pub(super) fn is_populated(&self) -> io::Result<bool> {
        match fs::read_to_string(self.path.join("cgroup.events")) {
            Ok(events) => Ok(events.lines().any(|line| line == "populated 1")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the processes in this cgroup and in its children: commands can create cgroups too.
    pub(super) fn pids(&self) -> Vec<Pid> {
        let mut pids = Vec::new();
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            // A process that cannot be seen from this container reads as 0.
            pids.extend(text.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw));
            folders.extend(below(&folder));
        }
        pids
    }

    /// Kills all processes in this cgroup and its children with SIGKILL, including processes that are being forked.
    pub(super) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Removes it, and the empty ones below it. Fails with `EBUSY` when something is still running there.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && !self.is_populated()? => {
                remove_below(&self.path);
                fs::remove_dir(&self.path)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

fn remove_below(folder: &Path) {
    for child in below(folder) {
        remove_below(&child);
        let _ = fs::remove_dir(child);
    }
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// The path of our own cgroup of version 2, from the mount point on. One that is outside of the container's part of the
/// tree, `/../x`, cannot be reached.
fn own_path(text: &str) -> Option<&str> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!path.split('/').any(|part| part == "..") && !path.ends_with(" (deleted)")).then_some(path)
}

/// Returns the boot ID of the kernel. Processes and cgroups of an earlier boot are gone.
pub fn boot_id() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::skip::skip;

    /// A cgroup for a command; none where this machine lets us have none.
    fn made() -> Option<(Home, Leaf)> {
        // Other tests may sweep away what was made this very moment.
        let made = Home::find().and_then(|home| {
            let leaf = iter::repeat_with(|| home.leaf()).take(100).find_map(Result::ok)?;
            Some((home, leaf))
        });
        if made.is_none() {
            skip("needs cgroups that can be written to");
        }
        made
    }

    #[test]
    fn a_sweep_leaves_the_cgroup_of_a_command_that_is_about_to_start() {
        let Some((home, leaf)) = made() else { return };
        sweep(&home.path);
        assert!(leaf.path().exists());
        let path = leaf.path().to_owned();
        drop(leaf);
        sweep(&home.path);
        assert!(!path.exists());
    }

    /// Stands for a cgroup, which has other files in it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ccm-cgroup-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_cgroup_that_cannot_be_read_is_not_taken_for_empty() {
        let folder = Folder::new("events");
        let leaf = Leaf::open(&folder.0).unwrap();
        let events = folder.0.join("cgroup.events");
        assert!(!leaf.is_populated().unwrap());
        for (text, populated) in [("populated 1\nfrozen 0\n", true), ("populated 0\nfrozen 1\n", false)] {
            fs::write(&events, text).unwrap();
            assert_eq!(leaf.is_populated().unwrap(), populated);
        }
        fs::remove_file(&events).unwrap();
        fs::create_dir(&events).unwrap();
        leaf.is_populated().unwrap_err();
    }

    #[test]
    fn the_cgroups_below_one_go_the_innermost_first() {
        let folder = Folder::new("below");
        for path in ["a/b/c", "a/d", "e"] {
            fs::create_dir_all(folder.0.join(path)).unwrap();
        }
        remove_below(&folder.0);
        fs::remove_dir(&folder.0).unwrap();
    }

    #[test]
    fn a_cgroup_that_somebody_removed_holds_nobody() {
        let Some((_home, leaf)) = made() else { return };
        fs::remove_dir(leaf.path()).unwrap();
        assert!(!leaf.is_populated().unwrap());
    }

    #[test]
    fn a_cgroup_goes_with_the_empty_ones_below_it_and_only_when_nobody_is_in_it() {
        let Some((_home, leaf)) = made() else { return };
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        fs::write(leaf.path().join("cgroup.procs"), child.id().to_string()).unwrap();
        assert!(leaf.remove().is_err_and(|error| error.kind() == ErrorKind::ResourceBusy));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::create_dir(leaf.path().join("below")).unwrap();
        leaf.remove().unwrap();
        assert!(!leaf.path().exists());
        leaf.remove().unwrap();
    }

    #[test]
    fn the_machine_says_since_when_it_runs() {
        let told = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(boot_id().as_deref(), Some(told.trim()));
    }

    #[test]
    fn the_own_cgroup_is_the_one_of_version_2() {
        for (text, path) in [
            ("0::/\n", Some("")),
            ("0::/system.slice/cron.service\n", Some("system.slice/cron.service")),
            ("4:memory:/job\n1:name=systemd:/x\n0::/user.slice\n", Some("user.slice")),
            ("4:memory:/job\n", None),
            ("0::/../outside\n", None),
            ("0::/gone (deleted)\n", None),
            ("", None),
        ] {
            assert_eq!(own_path(text), path, "{text:?}");
        }
    }
}
