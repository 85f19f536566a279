//! The change of a file's content: what is on disk, and what is wanted.

use super::{Action, Properties, editing::Edited, source, state::FileState};
use crate::{
    resource::{Context, Error},
    types::content_diff::{LARGEST, Old, between, read_small},
};

/// Returns the unified diff between what is on disk and what is wanted.
pub(super) fn preview(want: &Properties, action: Action, cx: &Context) -> Result<Option<String>, Error> {
    let old = match action {
        Action::CreateFile | Action::ReplaceLink => Old::Absent,
        Action::UpdateFile => match Old::read(want.name.as_path())? {
            // It was there when it was looked at.
            Old::Absent => Old::Bytes(Vec::new()),
            old => old,
        },
        _ => return Ok(None),
    };
    let new = match (&want.content, &want.source) {
        _ if matches!(old, Old::Unreadable) => None,
        (Some(content), _) => (content.len() as u64 <= LARGEST).then(|| content.clone().into_bytes()),
        (None, Some(source)) => read_small(source::open(source, cx)?)
            .map_err(|error| Error::new(error.to_string()).on("source"))?,
        (None, None) => return Ok(None),
    };
    Ok(between(&want.name.to_string(), &old, new.as_deref()))
}

/// Returns the unified diff between a text and what `edit` makes of it.
pub(super) fn of_edit(want: &Properties, have: &FileState, action: Action) -> Option<String> {
    let Edited { old, new } = have.edited()?;
    let is_small = |text: &String| text.len() as u64 <= LARGEST;
    let before = match action {
        Action::UpdateFile if is_small(old) => Old::Bytes(old.clone().into_bytes()),
        Action::UpdateFile => Old::TooLarge,
        _ => Old::Absent,
    };
    between(&want.name.to_string(), &before, Some(new.as_bytes()).filter(|_| is_small(new)))
}
