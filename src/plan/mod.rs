//! Plans: a dry run whose result can be applied later, exactly and only on the machine that it was made for.
//!
//! `ccm plan -o FILE` lets a [`Draft`] observe a dry run. The engine captures each resource: its expanded properties, the
//! state that it was found in, and its change. [`file`] has the format. `ccm apply FILE` turns the steps back into
//! resources ([`resources`]), which the engine applies like any others; each checks its recorded state first ([`planned`]).

mod draft;
mod file;
mod planned;
mod record;
mod refusal;
mod resources;

pub(crate) use self::{
    draft::{Draft, Drafted},
    file::{Envelope, FIRST_BYTES, PlanFile},
    record::{ActionKind, Facts, Header, Step},
    refusal::{Reason, Refusal, Stale},
    resources::Applicable,
};
