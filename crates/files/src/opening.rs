//! Flags for opening. All of them reject a link as the last component and set close-on-exec.

use rustix::fs::OFlags;

/// Flags of all descriptors.
pub(super) const OURS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Opens a directory on the way to a path.
pub(super) const WAY: OFlags = OURS.union(OFlags::PATH).union(OFlags::DIRECTORY);

/// Opens a directory to list it or to change its attributes.
pub(super) const DIRECTORY: OFlags = OURS.union(OFlags::RDONLY).union(OFlags::DIRECTORY);

/// Creates a file that must not exist.
pub(super) const NEW_FILE: OFlags = OURS.union(OFlags::CREATE).union(OFlags::EXCL);

/// Reads without blocking, because a FIFO might have replaced the file.
pub(super) const READ: OFlags = OURS.union(OFlags::RDONLY).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
