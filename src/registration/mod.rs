//! Service registrations: which services a fleet has, at which addresses, and for how long.
//!
//! An entry is a message in a stream, one per subject. Subject, id and payload are those of the Go original, so that
//! both programs can read each other's entries in one fleet.

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
pub(crate) use query::{Filter, Found, query};
pub(crate) use record::{from_value, records};
pub(crate) use ttl::Ttl;
pub(crate) use wire::{Change, change};
pub(crate) use words::{Port, Priority};

/// Common prefix of the subjects of registrations.
pub(crate) const SUBJECTS: &str = "choria.ccm.registration.v1";
