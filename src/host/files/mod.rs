//! Files, reached without trusting the path and written without a half-way state.
//!
//! Two promises are kept here and nowhere else.
//!
//! *A managed file is at every instant the complete old or the complete new one, with its final owner and mode.* What
//! is new is made under a temporary name beside its place ([`temporary`]), with nobody but its owner able to open it;
//! it gets its content, extended attributes ([`extended`]), owner and mode on its descriptor; it is brought to disk,
//! and then renamed ([`write`], [`directory`], [`link`]), and then the directory is brought to disk. A run that dies leaves at
//! most a temporary name, which the next one sweeps.
//!
//! What cannot have changed since it was hashed is not read again ([`remembering`]).
//!
//! Files that come one after the other share their syncs ([`batch`]). Trees are made and published in the same way ([`staging`], [`merge`]), each name of them at once.
//!
//! *Nothing is written, owned or chmodded through a path component that another unprivileged user could have
//! swapped.* Every operation goes to the directory it works in by descriptors ([`walk`]), and works there by name
//! relative to the last of them. Where the way leads through the hands of others, it refuses. [`check`] tells before,
//! without changing anything, for dry runs.
//!
//! Errors name the component at fault and what to do about it ([`error`]). Paths are absolute and clean: no `.`, `..`
//! or doubled slash. That they are is the business of the type that holds them.

mod attributes;
mod batch;
mod check;
mod copy;
mod dir_handle;
mod directory;
mod entry;
mod error;
mod extended;
mod follow;
mod link;
mod listing;
mod merge;
mod moving;
pub(super) mod opening;
mod prediction;
mod private_folder;
mod remembering;
mod remove;
mod staging;
mod temporary;
#[cfg(test)]
mod tests;
mod trust;
mod walk;
mod write;

#[cfg(test)]
use self::check::check;
pub(crate) use self::{
    attributes::{Attributes, set_attributes},
    batch::Batch,
    check::Intent,
    copy::{CHUNK, pieces, read},
    directory::{Parents, make_directory, replace_file_with_directory},
    entry::{CopyInterrupted, Digested, Entry, FileKind, Timestamp, digest, hex, inspect, open_regular},
    error::{FileError, Problem},
    follow::open_followed,
    link::{InTheWay, make_link},
    listing::{is_mount_point, names},
    moving::{Moved, move_directory},
    prediction::{Occupancy, Predicted, Prediction, UNKNOWN},
    private_folder::PrivateFolder,
    remembering::{DigestMemory, Stamp, digest_once, now},
    remove::{remove, remove_tree},
    staging::Staging,
    temporary::{is_temporary_name, sweep},
    trust::{is_among_others, is_ours, refuse_planted},
    write::{Candidate, Refusal, TempFile, draft_among_others, replace, replace_among_others},
};
