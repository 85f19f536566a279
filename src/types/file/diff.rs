//! The change of a file's content for people to read.

use std::{borrow::Cow, fs::File, io::Read, path::Path, time::Duration};

use similar::{Algorithm, TextDiff};

use super::{Action, Properties, editing::Edited, source, state::FileState};
use crate::{
    host::files::{self, Entry, FileError, Problem},
    resource::{Context, Error},
};

/// Files beyond this are not compared line by line.
const LARGEST: u64 = 1 << 20;
/// A diff that takes longer to minimise than this is shown as it is by then.
const PATIENCE: Duration = Duration::from_millis(500);

/// The unified diff between what is on disk and what is wanted.
pub(super) fn preview(want: &Properties, action: Action, cx: &Context) -> Result<Option<String>, Error> {
    let old = match action {
        Action::CreateFile | Action::ReplaceLink => Some(Vec::new()),
        Action::UpdateFile => match files::open_regular(want.name.as_path()) {
            Err(FileError { problem: Problem::Denied { .. }, .. }) => {
                let path = &want.name;
                return Ok(Some(format!(
                    "--- {path}\n+++ {path}\nthe files differ; the old one cannot be read\n"
                )));
            }
            opened => read_old(opened?, want.name.as_path())?,
        },
        _ => return Ok(None),
    };
    let new = match (&want.content, &want.source) {
        (Some(content), _) => (content.len() as u64 <= LARGEST).then(|| content.clone().into_bytes()),
        (None, Some(source)) => read_small(source::open(source, cx)?)
            .map_err(|error| Error::new(error.to_string()).on("source"))?,
        (None, None) => return Ok(None),
    };
    Ok(compared(want, action, old, new))
}

/// Returns the unified diff between a text and what `edit` makes of it.
pub(super) fn of_edit(want: &Properties, have: &FileState, action: Action) -> Option<String> {
    let Edited { old, new } = have.edited()?;
    let small = |text: &String| (text.len() as u64 <= LARGEST).then(|| text.clone().into_bytes());
    compared(want, action, small(old), small(new))
}

/// Returns the diff between two contents; `None` stands for one that is too large.
fn compared(want: &Properties, action: Action, old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> Option<String> {
    let path = want.name.to_string();
    let from = if action == Action::UpdateFile { path.as_str() } else { "/dev/null" };
    let (Some(old), Some(new)) = (old, new) else {
        return Some(format!("--- {from}\n+++ {path}\nthe files differ; too large to show\n"));
    };
    let (Ok(old), Ok(new)) = (text(&old), text(&new)) else {
        return Some(format!("--- {from}\n+++ {path}\nthe files differ; not text\n"));
    };
    (old != new).then(|| unified(old, new, from, &path))
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

fn read_old(opened: Option<(Option<File>, Entry)>, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match opened {
        Some((Some(file), _)) => {
            read_small(file).map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))
        }
        _ => Ok(Some(Vec::new())),
    }
}

/// The bytes of a file, unless there are too many.
fn read_small(file: impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
}

fn text(bytes: &[u8]) -> Result<&str, ()> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(())
}
