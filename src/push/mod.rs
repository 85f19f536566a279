//! Applies manifests on other machines over the system's `ssh`.
//!
//! ```text
//! Fleet::run         one thread for each host in progress: fleet.rs
//!   host::perform    connects, begins or resumes the run, collects events, reconnects: host.rs
//!     Connection     ssh, the stub, privilege, upload, greeting: connection.rs, stub.rs, ssh.rs
//!       Link         pipes and deadlines: link.rs
//! ======== ssh ========
//! remote/serve       the other end of the connection
//! remote/supervise   the run's events, stored until the controller has them
//! remote run         the run, with the code of a local one
//! ```
//!
//! A target is not trusted: frames are limited, events must be numbered without gaps, and everything that is shown passes through
//! `visible`.

mod batches;
mod binary;
mod confirmation;
mod connection;
mod destination;
mod fleet;
mod frame;
mod groups;
mod host;
mod link;
mod opened;
mod plans;
mod protocol;
mod range;
mod remote;
mod result;
mod ssh;
mod stub;

pub(crate) use self::{
    batches::{Amount, batches},
    binary::{Binary, binaries},
    destination::{Destination, DestinationError, Privilege},
    fleet::{Finished, Fleet, Listener, Pace, Password, Target},
    groups::groups,
    host::Archive,
    opened::Opened,
    plans::{encoded_plan, plan_lines},
    protocol::{Document, Origin, Request},
    range::ranges,
    remote::{Input, Server, Workspace, serve, supervise},
    result::{Change, HostResult, Outcome},
    ssh::{ASKPASS_HOST, ASKPASS_SOCKET, Transport},
    stub::Become,
};

/// Version as `ccm --version` prints it after the name of the program.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CCM_BUILD"), ")");

/// Returns version and commit, which are the same for all architectures of a build.
fn version() -> String {
    let commit = env!("CCM_BUILD").rsplit_once(", ").map(|(commit, _)| format!(" ({commit})"));
    format!("{}{}", env!("CARGO_PKG_VERSION"), commit.unwrap_or_default())
}

/// Returns 32 random hexadecimal digits.
pub(crate) fn random_hex() -> String {
    let mut bytes = [0; 16];
    // After boot, the kernel's generator does not fail for sixteen bytes.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    crate::host::files::hex(&bytes)
}

use self::protocol::PROTOCOL;
