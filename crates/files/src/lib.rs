//! File operations that are safe in directories that other users can write to, with atomic and durable writes.
//!
//! A privileged program that writes `/srv/app/config` has two problems that `std::fs` leaves to it. The user `app` can
//! replace a directory on the way by a symbolic link, so that the write reaches another file. And a crash, or a full disk,
//! can leave half of a file. This crate makes two promises.
//!
//! *A file is at every instant either the complete old file or the complete new file, with its final owner and mode.*
//! New content is written to a temporary file in the same directory, which only its owner can open ([`replace`],
//! [`TempFile`]). Content, extended attributes, owner and mode are set through its descriptor. The file is synced, then renamed,
//! and then the directory is synced. Directories and links are created in the same way ([`make_directory`],
//! [`make_link`]). A [`Staging`] builds a tree and publishes each of its entries with a rename. A [`Batch`] lets consecutive files
//! share their syncs. A killed process leaves at most temporary files, which [`sweep`] removes. `sweep` detects by a lock
//! whether the process that made a file is still alive.
//!
//! *Nothing is written, given away or changed through a path component that another unprivileged user could replace.*
//! Every operation opens the path component by component without following links blindly, and works by name relative to the
//! last descriptor. It checks who owns each directory and link on the way. If another user controls one of them, the operation
//! fails, unless the result would belong to the same user. [`check`] makes the same checks without a change, and
//! [`Prediction`] extends them to paths that earlier actions of a dry run would create or remove.
//!
//! Further parts:
//!
//! - [`inspect`], [`open_regular`] and [`open_followed`] read without blocking on pipes and devices. [`digest`] hashes a
//!   file, and a [`DigestMemory`] saves hashing a file again if the kernel guarantees that it did not change.
//! - [`original`] reads a path with all its attributes, and [`restore_file`] and its siblings restore it.
//! - [`PrivateFolder`] is the data directory of a program: it refuses directories that other users can change.
//! - [`remove_tree`], [`Staging`] and all other long operations call a closure regularly, which can stop them
//!   ([`CopyInterrupted`]).
//! - A [`FileError`] names the operation, the path, the component that caused the failure, and help.
//!
//! Paths must be absolute and normalized: without `.`, `..` and doubled slashes. Linux only. Processes of different versions of this crate can
//! use the same directories: temporary names start with `.ccm-` and end with `.tmp`.

#![allow(clippy::disallowed_methods, reason = "file operations are the purpose of this crate")]
#![warn(missing_docs)]

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
mod opening;
mod original;
mod prediction;
mod private_folder;
mod remembering;
mod remove;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
mod staging;
mod temporary;
#[cfg(test)]
mod tests;
mod trust;
mod walk;
mod write;

pub use self::{
    attributes::{Attributes, set_attributes},
    batch::Batch,
    check::{Intent, check},
    copy::{CHUNK, pieces, read},
    directory::{Parents, make_directory, replace_file_with_directory},
    entry::{CopyInterrupted, Digested, Entry, FileKind, Timestamp, digest, hex, inspect, open_regular},
    error::{FileError, Flag, LinkRisk, Operation, Party, Problem},
    follow::open_followed,
    link::{InTheWay, make_link},
    listing::{is_mount_point, names},
    moving::{Moved, move_directory},
    original::{
        Extended, Original, original, restore_attributes, restore_directory, restore_file,
        restore_link_owner, share_blocks,
    },
    prediction::{LeftAt, Occupancy, Predicted, Prediction, UNKNOWN},
    private_folder::PrivateFolder,
    remembering::{DigestMemory, NoDigests, Stamp, digest_once, now},
    remove::{remove, remove_tree},
    staging::Staging,
    temporary::{is_temporary_name, sweep},
    trust::{is_among_others, is_ours, refuse_planted},
    write::{
        Candidate, Refusal, TempFile, draft_among_others, replace, replace_among_others, replace_unsynced,
    },
};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
