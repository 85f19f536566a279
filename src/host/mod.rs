//! The machine: the only part of the program that touches it.

#![allow(clippy::disallowed_methods, reason = "this is where the machine is touched")]

pub(crate) mod bus;
pub(crate) mod guard;
pub(crate) mod http;
pub(crate) mod inotify;
pub(crate) mod input;
pub(crate) mod journal;
pub(crate) mod look;
pub(crate) mod memory;
pub(crate) mod native_bytes;
pub(crate) mod open_files;
pub(crate) mod owned_files;
pub(crate) mod platform;
pub(crate) mod remote_file_system;
pub(crate) mod scope;
pub(crate) mod service_manager;
pub(crate) mod sockets;
pub(crate) mod system_file;
pub(crate) mod users;

pub(crate) use ccm_files as files;
pub(crate) use ccm_process::{self as process, interrupt};
pub(crate) use ccm_unpack as unpack;

use std::io;

use http::Client;
use interrupt::Interrupt;
use process::Runner;
use users::Users;

/// The machine that the program runs on, made once and passed by reference.
pub(crate) struct Host {
    /// Whether the program was asked to stop.
    pub(crate) interrupt: Interrupt,
    /// What runs programs.
    pub(crate) runner: Runner,
    /// Who there is on the machine.
    pub(crate) users: Users,
    /// What is on the network.
    pub(crate) http: Client,
}

impl Host {
    /// Returns the same machine without the signal that requested this process to stop.
    pub(crate) fn uninterrupted(&self) -> io::Result<Self> {
        let interrupt = Interrupt::never()?;
        let http = self.http.with_interrupt(interrupt.clone());
        let (runner, users) = (Runner::default(), Users::default());
        Ok(Self { interrupt, runner, users, http })
    }
}
