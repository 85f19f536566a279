//! The agent: keeps a machine as its manifests say, for as long as it runs.
//!
//! Threads ask the sources ([`source`]) and answer callers ([`control`], [`exporter`]); everything that changes the machine
//! or decides about it happens in the one main thread, which waits for all of them in one `poll` ([`waiting`]) and then
//! runs what is due ([`due`]). What sources send is judged and put in force by [`intake`]; [`round`] loads and applies it
//! through the same `Engine` as `ccm apply`, and [`checkup`] makes health checks between runs. Drift is noticed by
//! [`watching`], and fights over a resource by [`pauses`].
//!
//! With local sources and nothing to do, the only thing that wakes it is the service manager's watchdog.

mod apart;
mod cache;
mod chance;
mod checkup;
mod config;
mod content;
mod control;
mod due;
mod exporter;
mod fitness;
mod fleet;
mod health;
mod intake;
mod log;
mod mailbox;
mod metrics;
mod opening;
mod pauses;
mod round;
mod running;
mod source;
mod status;
mod waiting;
mod watching;

pub(crate) use self::config::Written;
#[cfg(test)]
pub(crate) use self::metrics::described as described_metrics;
pub(crate) use self::{
    config::{Config, LogLevel, PLACES},
    control::{Command, call},
    log::Log,
    opening::Openings,
    running::{Agent, Once, Setting},
};
