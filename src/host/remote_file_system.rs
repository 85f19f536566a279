//! File systems that change without notification.
//!
//! inotify(7) reports only changes through this mount, not those that another machine, a program or the kernel makes.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, statat, statfs};

/// File systems by their statfs(2) numbers.
const KINDS: [(u32, &str); 21] = [
    (0x6969, "nfs"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb3"),
    (0x517B, "smb"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x00C3_6400, "ceph"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x0116_1970, "gfs2"),
    (0x7461_636F, "ocfs2"),
    (0x0BD0_0BD0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x786F_4256, "vboxsf"),
    (0xBACB_ACBC, "vmhgfs"),
    (0x9FA0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x0027_E0EB, "cgroup"),
    (0x6367_7270, "cgroup2"),
];

/// A file system that changes without notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RemoteFileSystem {
    pub(crate) name: &'static str,
    /// Distinguishes mounts of the same kind.
    device: u64,
}

impl RemoteFileSystem {
    /// Returns the file system of a directory; `None` if the kernel reports all of its changes.
    pub(crate) fn of(directory: &Path) -> Option<Self> {
        let number = statfs(directory).ok()?.f_type;
        // The 32-bit number is in a field that is wider or signed on some machines.
        let (_, name) =
            KINDS.iter().find(|(kind, _)| i64::from(*kind) & 0xFFFF_FFFF == number & 0xFFFF_FFFF)?;
        let device = statat(CWD, directory, AtFlags::SYMLINK_NOFOLLOW).ok()?.st_dev;
        Some(Self { name, device })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_files_are_told_of_by_nobody() {
        assert_eq!(RemoteFileSystem::of(Path::new("/proc")).unwrap().name, "proc");
        assert_eq!(RemoteFileSystem::of(Path::new("/dev")), None);
        assert_eq!(RemoteFileSystem::of(Path::new("/no/where")), None);
    }
}
