//! Facts about mounted file systems on local disks, and their usage.
//!
//! Querying the usage of a network file system waits for its server, forever if the server is gone. ccm therefore
//! queries only local file systems that are reached through local file systems. Network file systems, user-space file
//! systems (FUSE) and virtual file systems of the kernel are in neither list.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use ccm_expr::Value;
use rustix::fs::{StatVfs, statvfs};

use super::{
    lazy::{Lazy, map},
    machine::Machine,
    memory::percent,
};

pub(super) fn section(machine: &Arc<Machine>) -> Value {
    Lazy::of(machine, &[("partitions", |machine| partitions(machine)), ("usage", |machine| usage(machine))])
}

/// A line of /proc/self/mountinfo.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    device: String,
    point: PathBuf,
    kind: String,
    options: Vec<String>,
}

fn partitions(machine: &Machine) -> Value {
    let described = machine.mounts().iter().map(|mount| {
        map([
            ("device", mount.device.as_str().into()),
            ("mountpoint", text(&mount.point)),
            ("fstype", mount.kind.as_str().into()),
            ("opts", mount.options.iter().map(|option| option.as_str().into()).collect()),
        ])
    });
    described.collect()
}

fn usage(machine: &Machine) -> Value {
    if !machine.is_running() {
        return Value::from(Vec::new());
    }
    let asked = machine.mounts().iter().filter_map(|mount| {
        let usage = statvfs(&mount.point).ok()?;
        Some(fullness(mount, &usage))
    });
    asked.collect()
}

fn fullness(mount: &Mount, usage: &StatVfs) -> Value {
    let bytes = |blocks: u64| blocks.saturating_mul(usage.f_frsize);
    let (total, free) = (bytes(usage.f_blocks), bytes(usage.f_bavail));
    let used = bytes(usage.f_blocks.saturating_sub(usage.f_bfree));
    let inodes_used = usage.f_files.saturating_sub(usage.f_ffree);
    map([
        ("path", text(&mount.point)),
        ("fstype", mount.kind.as_str().into()),
        ("total", total.into()),
        ("free", free.into()),
        ("used", used.into()),
        // Blocks reserved for root are neither used nor free.
        ("usedPercent", percent(used, used.saturating_add(free)).into()),
        ("inodesTotal", usage.f_files.into()),
        ("inodesUsed", inodes_used.into()),
        ("inodesFree", usage.f_ffree.into()),
        ("inodesUsedPercent", percent(inodes_used, usage.f_files).into()),
    ])
}

/// Returns the local mounts that can be queried without blocking, in the order of mounting.
pub(super) fn local(machine: &Machine) -> Vec<Mount> {
    let known = machine.text("proc/filesystems").unwrap_or_default();
    // In /proc/filesystems, a line with one word is a file system on a device.
    let on_disk: HashSet<&str> =
        known.lines().filter(|line| !line.starts_with("nodev")).map(str::trim).collect();
    let is_local = |kind: &str| {
        !may_hang(kind) && (on_disk.contains(kind) || matches!(kind, "zfs" | "overlay" | "ubifs"))
    };
    let mounts = visible(&machine.text("proc/self/mountinfo").unwrap_or_default());
    let hanging: Vec<PathBuf> =
        mounts.iter().filter(|mount| may_hang(&mount.kind)).map(|mount| mount.point.clone()).collect();
    let is_reachable = |point: &Path| !hanging.iter().any(|hanging| point.starts_with(hanging));
    mounts.into_iter().filter(|mount| is_local(&mount.kind) && is_reachable(&mount.point)).collect()
}

/// Returns whether a file system depends on a server or a user-space program.
fn may_hang(kind: &str) -> bool {
    const SERVED: [&str; 20] = [
        "9p", "acfs", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "gfs2", "gpfs", "lustre", "ncpfs",
        "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "vboxsf", "virtiofs", "vmhgfs",
    ];
    SERVED.contains(&kind) || kind.starts_with("fuse")
}

/// Returns the mounts that no later mount at the same path hides.
fn visible(text: &str) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = text.lines().filter_map(mount).collect();
    let mut seen = HashSet::new();
    let mut shown: Vec<bool> = mounts.iter().rev().map(|mount| seen.insert(mount.point.clone())).collect();
    mounts.retain(|_| shown.pop().unwrap_or(true));
    mounts
}

/// Parses a line such as `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw`
fn mount(line: &str) -> Option<Mount> {
    let (place, system) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point, options) = (place.next()?, place.next()?, place.next()?);
    let mut system = system.split(' ');
    let (kind, device) = (system.next()?, system.next()?);
    let mut options: Vec<String> = options.split(',').map(str::to_owned).collect();
    // A bind mount of a part of a file system.
    if root != "/" && kind != "btrfs" {
        options.push("bind".to_owned());
    }
    let (device, point) = (unescaped(device), unescaped(point).into());
    Some(Mount { device, point, kind: kind.to_owned(), options })
}

/// Decodes spaces and backslashes, which are written as `\` and three octal digits.
fn unescaped(text: &str) -> String {
    let Some((before, rest)) = text.split_once('\\') else { return text.to_owned() };
    let code = rest.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
    match code {
        Some(code) => format!("{before}{}{}", char::from(code), unescaped(&rest[3..])),
        None => format!("{before}\\{}", unescaped(rest)),
    }
}

fn text(path: &Path) -> Value {
    path.to_string_lossy().as_ref().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_paths_are_read() {
        let line = r"36 35 98:0 / /mnt/my\040disk\134x rw,noatime master:1 shared:2 - ext4 /dev/sd\040a rw,errors=continue";
        let expected = Mount {
            device: "/dev/sd a".to_owned(),
            point: r"/mnt/my disk\x".into(),
            kind: "ext4".to_owned(),
            options: vec!["rw".to_owned(), "noatime".to_owned()],
        };
        assert_eq!(mount(line), Some(expected));
        assert_eq!(mount("garbage"), None);
        assert_eq!(unescaped(r"a\09"), r"a\09");
        assert_eq!(unescaped(r"a\"), r"a\");
    }

    #[test]
    fn a_mount_hides_earlier_ones_at_its_place() {
        let mounts = visible(
            "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /x rw - ext4 /dev/b rw\n3 1 8:3 / /x rw - xfs /dev/c rw\n",
        );
        let devices: Vec<&str> = mounts.iter().map(|mount| mount.device.as_str()).collect();
        assert_eq!(devices, ["/dev/a", "/dev/c"]);
    }

    #[test]
    fn file_systems_with_a_server_may_hang() {
        for kind in ["nfs", "nfs4", "cifs", "fuse.sshfs", "fuseblk", "autofs", "9p"] {
            assert!(may_hang(kind), "{kind}");
        }
        for kind in ["ext4", "xfs", "btrfs", "zfs", "vfat", "overlay", "f2fs"] {
            assert!(!may_hang(kind), "{kind}");
        }
    }
}
