//! The provider for any Linux file system: it acts.

use std::{
    io::{self, Write},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    Action, Ensure, Properties, decision, editing,
    effects::{is_replaced, unknown_attributes},
    inspection::{inspect, inspected},
    remote::Downloads,
    source,
    staging::publish_draft,
    state::{FileState, Target},
};
use crate::{
    host::files::{self, Attributes, Batch, CHUNK, InTheWay, Parents, Refusal, TempFile},
    resource::{Context, Error},
    types::{
        disk::{blame, note_parent, note_parents, stop},
        validation,
    },
};

/// How many files in a row that need no new content are passed over in search of one that does: each is looked at twice.
const PATIENCE: usize = 16;

/// A file that will be stored when its turn comes.
struct Plan<'w> {
    path: &'w Path,
    content: &'w [u8],
    action: Action,
    attributes: Attributes,
    sha256: String,
}

/// Files through system calls.
#[derive(Default)]
pub(crate) struct Posix {
    batch: Mutex<Batch>,
    downloads: Downloads,
}

impl Posix {
    /// Notes that the turn of a resource has come.
    pub(super) fn turn(&self, want: &Properties, cx: &Context) {
        if let Err(error) = self.batch().turn(want.name.as_path()) {
            cx.warn(format!(
                "{error}; files that were written there before may be gone after a power failure"
            ));
        }
    }

    /// Makes the files that come after this one, so that they reach the disk together. What is wrong with one of them
    /// is told when its turn comes.
    pub(super) fn prepare(&self, next: &mut dyn Iterator<Item = &Properties>, cx: &Context) {
        let mut batch = self.batch();
        if !batch.is_empty() {
            return;
        }
        let (room, mut patience) = (Batch::room(), PATIENCE);
        let mut plans = Vec::new();
        while patience > 0
            && plans.len() < room
            && let Some(next) = next.next()
        {
            match plan(next, cx) {
                Some(plan) => {
                    plans.push(plan);
                    patience = PATIENCE;
                }
                None => patience -= 1,
            }
        }
        if plans.len() < Batch::WORTHWHILE {
            return;
        }
        for Plan { path, content, action, attributes, sha256 } in plans {
            note(path, action, cx);
            if cx.tick().is_err() || batch.prepare(path, attributes, content, sha256).is_err() {
                break;
            }
        }
        batch.sync();
    }

    pub(super) fn enact(
        &self,
        want: &Properties,
        have: &FileState,
        action: Action,
        cx: &Context,
    ) -> Result<(), Error> {
        let path = want.name.as_path();
        note(path, action, cx);
        let done = match (action, have.attributes_wanted(), &have.entry) {
            (Action::RemoveDirectory | Action::RemoveTree(_), ..) if want.force => {
                files::remove_tree(path, &mut || stop(cx))
            }
            (Action::RemoveFile | Action::RemoveDirectory | Action::RemoveTree(_), ..) => files::remove(path),
            (action, ..) if action.links() => {
                let target = want.target.as_deref().unwrap_or_default();
                let in_the_way = if want.force { InTheWay::Goes } else { InTheWay::Stays };
                files::make_link(path, Path::new(target), in_the_way, &mut || stop(cx))
            }
            (action, Some(attributes), _) if action.stores() => {
                if let Some(drafts) = cx.validated().filter(|_| want.is_validated(action)) {
                    return publish_draft(drafts, want, have, attributes, cx);
                }
                if want.is_validated(action) {
                    return self
                        .store(want, attributes, cx, |draft| publish_validated(draft, want, attributes, cx));
                }
                let sha256 = have.checksum_wanted().map_or("", String::as_str);
                let prepared = self.batch().publish(path, attributes, sha256);
                return prepared.map_or_else(
                    || self.replace(want, attributes, cx),
                    |done| done.map_err(|error| blame(error, cx)),
                );
            }
            // What is in the file by now need not be what was seen in it.
            (Action::SetFileAttributes, Some(attributes), Some(entry))
                if want.manages_content() && is_replaced(want, attributes, entry) =>
            {
                return self.replace(want, attributes, cx);
            }
            (Action::CreateDirectory, Some(attributes), _) => {
                files::make_directory(path, attributes, Parents::Make)
            }
            (Action::ReplaceFileWithDirectory, Some(attributes), _) => {
                files::replace_file_with_directory(path, attributes)
            }
            (Action::Purge, Some(attributes), Some(entry)) => {
                for gone in have.unmanaged() {
                    files::remove_tree(&path.join(gone), &mut || stop(cx))
                        .map_err(|error| blame(error, cx))?;
                }
                files::set_attributes(path, entry, attributes, &mut || stop(cx))
            }
            (Action::SetFileAttributes | Action::SetDirectoryAttributes, Some(attributes), Some(entry)) => {
                files::set_attributes(path, entry, attributes, &mut || stop(cx))
            }
            _ => return Err(unknown_attributes()),
        };
        done.map_err(|error| blame(error, cx))
    }

    /// Replaces the file by one with the wanted content.
    fn replace(&self, want: &Properties, attributes: Attributes, cx: &Context) -> Result<(), Error> {
        let replaced = match want.remote() {
            Some(url) => {
                let publish = |draft: TempFile| draft.publish(attributes).map_err(|error| blame(error, cx));
                return self.downloads.fetch(want, &url, attributes, cx, publish);
            }
            None => {
                files::replace_among_others(want.name.as_path(), attributes, content(want, attributes, cx)?)
            }
        };
        replaced.map_err(|error| blame(error, cx))
    }

    /// Makes a file with the wanted content, and has it published.
    pub(super) fn store(
        &self,
        want: &Properties,
        attributes: Attributes,
        cx: &Context,
        publish: impl FnOnce(TempFile) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match want.remote() {
            Some(url) => self.downloads.fetch(want, &url, attributes, cx, publish),
            None => {
                let content = content(want, attributes, cx)?;
                let draft = files::draft_among_others(want.name.as_path(), attributes.uid, content);
                publish(draft.map_err(|error| blame(error, cx))?)
            }
        }
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What storing a file will come down to; `None` if it will not come to that.
fn plan<'w>(want: &'w Properties, cx: &Context) -> Option<Plan<'w>> {
    let content = want.content.as_ref().filter(|_| want.ensure == Ensure::Present)?.as_bytes();
    if content.len() > Batch::LARGEST || want.validate.is_some() {
        return None;
    }
    let have = inspect(want, cx).ok()?;
    let action = decision::compare(want, &have).ok()??.action;
    let Target { attributes, checksum, .. } = have.target.ok()?;
    action.stores().then_some(Plan {
        path: want.name.as_path(),
        content,
        action,
        attributes: attributes?,
        sha256: checksum?,
    })
}

/// Notes every directory in which the action makes something under a temporary name.
fn note(path: &Path, action: Action, cx: &Context) {
    if matches!(
        action,
        Action::RemoveFile
            | Action::RemoveDirectory
            | Action::RemoveTree(_)
            | Action::SetDirectoryAttributes
            | Action::Purge
    ) {
        return;
    }
    if action == Action::CreateDirectory {
        note_parents(path, cx);
    } else {
        note_parent(path, cx);
    }
}

/// Puts a complete file at its place, if it is found to be valid.
fn publish_validated(
    draft: TempFile,
    want: &Properties,
    attributes: Attributes,
    cx: &Context,
) -> Result<(), Error> {
    let validated = draft.publish_validated(attributes, |candidate| match &want.validate {
        Some(validate) => validation::validate(validate, want.name.as_path(), candidate, cx),
        None => Ok(()),
    });
    validated.map_err(|refusal| match refusal {
        Refusal::File(error) => blame(error, cx),
        Refusal::Judge(error) => error,
    })
}

/// Opens the source or makes the edit, and returns the function that writes the content.
fn content<'w>(
    want: &'w Properties,
    attributes: Attributes,
    cx: &'w Context,
) -> Result<impl FnOnce(&mut dyn Write) -> io::Result<()> + 'w, Error> {
    let source = want.source.as_ref().map(|source| source::open(source, cx)).transpose()?;
    let edited = if want.is_edited() { Some(edit_now(want, attributes, cx)?) } else { None };
    Ok(move |out: &mut dyn Write| match (edited.as_ref().or(want.content.as_ref()), source) {
        (Some(content), _) => content.as_bytes().chunks(CHUNK).try_for_each(|piece| write(out, piece, cx)),
        (None, Some(mut file)) => {
            files::pieces(&mut file, &mut || stop(cx), |piece| out.write_all(piece)).map(drop)
        }
        (None, None) => Ok(()),
    })
}

/// The text that an edit makes of what the file holds by now, so that nothing is lost of what somebody else has written
/// to it since it was looked at.
fn edit_now(want: &Properties, attributes: Attributes, cx: &Context) -> Result<String, Error> {
    let found = inspected(want.name.as_path())?;
    if let Some(found) = &found {
        files::refuse_planted(want.name.as_path(), &found.entry, attributes)
            .map_err(|error| blame(error, cx))?;
    }
    let edited = editing::edited(want, found.as_ref(), cx)?;
    edited.map(|edited| edited.new).ok_or_else(|| {
        Error::new(format!("{} was changed by somebody else in the meantime", want.name)).on("edit")
    })
}

fn write(out: &mut dyn Write, piece: &[u8], cx: &Context) -> io::Result<()> {
    stop(cx).map_err(io::Error::other)?;
    out.write_all(piece)
}
