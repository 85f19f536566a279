//! The change of a file's content for people to read.

use std::{borrow::Cow, fs::File, io::Read, path::Path, time::Duration};

use similar::{Algorithm, TextDiff};

use crate::{
    host::files::{self, FileError, Problem},
    resource::Error,
};

/// Files beyond this are not compared line by line.
pub(super) const LARGEST: u64 = 1 << 20;
/// A diff that takes longer to minimise than this is shown as it is by then.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a file held before.
pub(super) enum Old {
    /// There was none.
    Absent,
    Bytes(Vec<u8>),
    TooLarge,
    Unreadable,
}

impl Old {
    /// Reads what a file holds now. What is no regular file holds nothing.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let file = match files::open_regular(path) {
            Err(FileError { problem: Problem::Denied { .. }, .. }) => return Ok(Self::Unreadable),
            opened => opened?.and_then(|(file, _)| file),
        };
        let Some(file) = file else { return Ok(Self::Absent) };
        Self::read_from(file).map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))
    }

    fn read_from(file: File) -> std::io::Result<Self> {
        if file.metadata()?.len() > LARGEST {
            return Ok(Self::TooLarge);
        }
        Ok(read_small(file)?.map_or(Self::TooLarge, Self::Bytes))
    }
}

/// Returns the unified diff of a new file.
pub(crate) fn of_new(path: &str, content: &[u8]) -> Option<String> {
    between(path, &Old::Absent, Some(content))
}

/// Returns the unified diff between two contents; `None` in place of the new one stands for one that is too large.
pub(super) fn between(path: &str, old: &Old, new: Option<&[u8]>) -> Option<String> {
    let from = if matches!(old, Old::Absent) { "/dev/null" } else { path };
    let head = format!("--- {from}\n+++ {path}\n");
    let old: &[u8] = match old {
        Old::Absent => &[],
        Old::Bytes(bytes) => bytes,
        Old::TooLarge => return Some(head + "the files differ; too large to show\n"),
        Old::Unreadable => return Some(head + "the files differ; the old one cannot be read\n"),
    };
    let Some(new) = new else { return Some(head + "the files differ; too large to show\n") };
    let (Some(old), Some(new)) = (text(old), text(new)) else {
        return Some(head + "the files differ; not text\n");
    };
    (old != new).then(|| unified(old, new, from, path))
}

fn unified(old: &str, new: &str, from: &str, to: &str) -> String {
    let (old, new) = (lines(old), lines(new));
    let old: Vec<&str> = old.iter().map(AsRef::as_ref).collect();
    let new: Vec<&str> = new.iter().map(AsRef::as_ref).collect();
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_slices(&old, &new);
    diff.unified_diff().context_radius(3).header(from, to).to_string()
}

/// The lines of a text. Only a line feed ends one: a carriage return is part of it and may be all that differs.
fn lines(text: &str) -> Vec<Cow<'_, str>> {
    let whole = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => Cow::Borrowed(line),
        None => Cow::Owned(format!("{line}\n\\ No newline at end of file")),
    });
    whole.collect()
}

/// The bytes of a file, unless there are too many.
pub(super) fn read_small(file: impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
