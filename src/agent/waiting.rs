//! The one place where the agent waits.

use std::{
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until one of the descriptors can be read, or until a moment.
pub(super) fn wait(descriptors: &[BorrowedFd], until: Option<Instant>) {
    let mut fds: Vec<PollFd> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN))
        .collect();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    // A wait that ends a moment too soon would be followed by many that last no time at all.
    let left = left.map(|left| left + Duration::from_micros(1));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // Whatever ends it, whoever waits looks at everything.
    let _ = poll(&mut fds, left.as_ref());
}
