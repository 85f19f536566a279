//! Devices, and whether one is mounted.

use std::path::{Path, PathBuf};

use super::{
    fstab::Entry,
    live::{Mounted, origin},
};
use crate::host::{files, look, system_file};

/// Returns the path of a device that is given by a tag such as `UUID=`; `None` if it is no local device.
fn path(device: &str) -> Option<PathBuf> {
    let tagged = [
        ("UUID=", "by-uuid"),
        ("LABEL=", "by-label"),
        ("PARTUUID=", "by-partuuid"),
        ("PARTLABEL=", "by-partlabel"),
    ];
    let tagged = tagged.iter().find_map(|(tag, directory)| {
        Some(PathBuf::from(format!("/dev/disk/{directory}/{}", device.strip_prefix(tag)?)))
    });
    tagged.or_else(|| device.starts_with('/').then(|| PathBuf::from(device)))
}

/// Returns the path of a device without links.
pub(super) fn real(device: &str) -> String {
    let path = path(device).unwrap_or_else(|| PathBuf::from(device));
    look::real(&path).unwrap_or(path).display().to_string()
}

/// Whether a device must be a path of this machine, and is not.
pub(super) fn is_missing(device: &str) -> bool {
    path(device).is_some_and(|path| !look::exists(&path))
}

/// Returns the size of a file.
pub(super) fn size(path: &str) -> Option<u64> {
    files::inspect(Path::new(path)).ok().flatten().map(|entry| entry.size)
}

/// Whether a mount has the device and the type of an entry.
pub(super) fn is_mounted(mounted: &Mounted, entry: &Entry, is_bind: bool, mounts: &[Mounted]) -> bool {
    if is_bind {
        let source = real(&entry.device);
        return origin(mounts, &source) == Some((mounted.number.clone(), mounted.root.clone()));
    }
    is_device(mounted, &entry.device) && is_type(&mounted.fstype, &entry.fstype)
}

fn is_type(mounted: &str, wanted: &str) -> bool {
    mounted == wanted
        || wanted == "auto"
        || wanted == "nfs" && mounted == "nfs4"
        || mounted.strip_prefix("fuse.").is_some_and(|name| name == wanted)
}

fn is_device(mounted: &Mounted, device: &str) -> bool {
    let source = mounted.source.trim_end_matches('/');
    if source == device.trim_end_matches('/') {
        return true;
    }
    if path(device).is_none() {
        return false;
    }
    let device = real(device);
    real(source) == device || backing_file(source).is_some_and(|file| file == device)
}

/// Returns the file behind a loop device.
fn backing_file(source: &str) -> Option<String> {
    let name = source.strip_prefix("/dev/loop")?;
    let file = system_file::read(&format!("/sys/block/loop{name}/loop/backing_file")).ok()?;
    Some(file.trim_end_matches('\n').to_owned())
}
