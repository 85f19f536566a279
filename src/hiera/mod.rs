//! Hierarchical data: a base, and overrides for some machines merged into it.

mod doubts;
mod files;
mod layers;
mod merge;
mod rules;

pub(crate) use files::{ENDINGS, LayerFile};
pub(crate) use layers::{Origin, Resolved, Selection, check, over, resolve, selection};
pub(crate) use merge::{ADVICE as MERGE_ADVICE, deep};
