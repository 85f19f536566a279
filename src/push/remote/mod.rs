//! The target's side of a push: three processes.
//!
//! - `ccm remote serve` talks to the controller. It ends with the connection.
//! - `ccm remote supervise` leads a session of its own and outlives the connection. It numbers and stores the output of the run.
//! - `ccm remote run` is the run: the same code as on a local command line, with input that the controller read.

mod serve;
mod spool;
mod supervise;
mod workspace;

pub(crate) use self::{
    serve::{Server, serve},
    supervise::supervise,
    workspace::{Input, Workspace},
};
