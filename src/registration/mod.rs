//! Registrations: which services there are in a fleet, where, and for how long that is good.
//!
//! An entry is a message in a stream, one per subject. Subject, id and payload are those of the Go original, so that
//! both can live in one fleet and read each other's entries.

mod entry;
mod fleet;
mod prometheus;
mod publisher;
mod query;
mod record;
mod ttl;
mod wire;
mod words;

pub(crate) use entry::Registration;
pub(crate) use fleet::{Initialised, init, remove};
pub(crate) use prometheus::file_sd;
pub(crate) use publisher::{Publisher, Transport};
pub(crate) use query::{Filter, query};
pub(crate) use record::{from_value, records};
pub(crate) use ttl::Ttl;
pub(crate) use wire::{Change, change};
pub(crate) use words::Port;

/// What every subject of a registration begins with.
pub(crate) const SUBJECTS: &str = "choria.ccm.registration.v1";
