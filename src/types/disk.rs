//! What every type that works on files needs: when to stop, whom to blame, and what a dry run would find at a path.

use std::path::Path;

use crate::{
    host::files::{self, CopyInterrupted, Entry, FileError, FileKind},
    resource::{Context, Error},
};

/// Says between two pieces of a long operation whether to go on.
pub(super) fn stop(cx: &Context) -> Result<(), CopyInterrupted> {
    cx.tick().map_err(|_| CopyInterrupted)
}

/// Returns the error of a file operation, or why the operation was stopped.
pub(super) fn blame(error: FileError, cx: &Context) -> Error {
    cx.tick().err().unwrap_or_else(|| error.naming(|uid| cx.host.users.known_name(uid)).into())
}

/// Returns what would be at a path by now; nothing where nobody knows.
pub(super) fn entry(path: &Path, cx: &Context) -> Result<Option<Entry>, Error> {
    let prediction = &cx.prediction.borrow().files;
    Ok(match prediction.inspect(path)? {
        None => files::inspect(&prediction.place_on_disk(path))?,
        Some(predicted) => predicted.entry(FileKind::File).map(|digested| digested.entry),
    })
}

/// Returns when the content was last changed, in RFC 3339.
pub(super) fn modified(entry: &Entry) -> Option<String> {
    let nanoseconds = i32::try_from(entry.modified.nanoseconds).ok()?;
    jiff::Timestamp::new(entry.modified.seconds, nanoseconds).ok().map(|time| time.to_string())
}

/// Notes the directory in which a path is made under a temporary name, for the run that has to sweep there.
pub(super) fn note_parent(path: &Path, cx: &Context) {
    if let Some(parent) = path.parent() {
        cx.state.write_journal.note(parent, cx.interrupt());
    }
}

/// As [`note_parent`], for a directory that is made with its parents.
pub(super) fn note_parents(path: &Path, cx: &Context) {
    for above in path.ancestors().skip(1) {
        cx.state.write_journal.note(above, cx.interrupt());
        if matches!(files::inspect(above), Ok(Some(_))) {
            break;
        }
    }
}
