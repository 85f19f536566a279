//! A file system of its own for a test.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{is_root, skip};

/// A small file system in memory, unmounted when the test is over.
pub(super) struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts it; `None` where that is not allowed.
    pub(super) fn tmpfs(at: &Path, options: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let mount = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(at).stderr(Stdio::null()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip("needs to mount a file system");
            return None;
        }
        Some(Self { at: at.to_owned() })
    }

    /// From now on nobody can write to it.
    pub(super) fn make_read_only(&self) {
        let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.at).status();
        assert!(remounted.expect("mount").success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
