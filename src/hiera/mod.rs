//! Hierarchical data: a base, and overrides for some machines merged into it.

mod layers;
mod merge;
mod rules;

pub(crate) use layers::{check, resolve};
pub(crate) use merge::{deep, set};
