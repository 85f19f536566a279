//! ccm brings a machine to a declared state.
//!
//! The way of one run: `cli` reads the arguments, `manifest` (or `cli::flags`) turns what somebody wrote into
//! declarations, `resource` turns declarations into resources or into everything that is wrong with them, `engine`
//! applies them one by one through their `types`, which see the machine only through `host`, and `session` keeps the
//! events that `cli::report` prints. ARCHITECTURE.md walks that way from `main` to the rename of a file.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at the machine themselves"))]

mod agent;
mod bundle;
mod checks;
mod cli;
mod declare;
mod download;
mod engine;
mod facts;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod hiera;
mod host;
mod inventory;
mod manifest;
mod metrics;
mod nats;
mod outbox;
mod plan;
mod push;
mod redaction;
mod registration;
mod resource;
mod run;
mod secrets;
mod session;
#[cfg(test)]
#[path = "../tests/support/signals.rs"]
mod signals;
#[cfg(test)]
#[path = "../tests/support/skip.rs"]
mod skip;
mod state;
mod template;
mod types;
mod undo;
mod vocabulary;

pub use cli::main;

pub(crate) use ccm_document::{self as document, visible};

// Fuzzers bring an allocator that finds mistakes.
#[cfg(not(feature = "fuzzing"))]
#[global_allocator]
static ALLOCATOR: host::memory::Allocator = host::memory::Allocator(mimalloc::MiMalloc);
