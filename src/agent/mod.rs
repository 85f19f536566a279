//! The agent: keeps a machine as its manifests say, for as long as it runs.
#![allow(dead_code, unused_imports, reason = "the callers follow")]

mod cache;
mod chance;
mod config;
mod mailbox;
mod source;
