//! What things are opened for. None of it goes through a link at the last name, and no program that is started inherits it.

use rustix::fs::OFlags;

/// All that is opened here.
pub(super) const OURS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// To open a directory and go on from there.
pub(super) const WAY: OFlags = OURS.union(OFlags::PATH).union(OFlags::DIRECTORY);

/// To open a directory, list it and change it itself.
pub(super) const DIRECTORY: OFlags = OURS.union(OFlags::RDONLY).union(OFlags::DIRECTORY);

/// To make a file where nothing is.
pub(super) const NEW_FILE: OFlags = OURS.union(OFlags::CREATE).union(OFlags::EXCL);

/// To read without waiting: a FIFO may have taken the place of a file.
pub(super) const READ: OFlags = OURS.union(OFlags::RDONLY).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
