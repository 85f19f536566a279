//! What an action leaves at a path, and what a dry run can tell of it.

use super::{Action, Properties, state::FileState, wanted_content::checksum};
use crate::{
    host::files::{self, Attributes, Entry, FileKind, Intent, Parents, Predicted, UNKNOWN},
    resource::{Content, Context, Effects, Error, PathEffect},
};

/// Fails where it is not known what the action would have to make. What stands in its way, its effects tell.
pub(super) fn simulate(want: &Properties, have: &FileState, action: Action) -> Result<(), Error> {
    intent(want, have, action).map(drop).ok_or_else(unknown_attributes)
}

/// What the action leaves at the path.
pub(super) fn effects(want: &Properties, have: &FileState, action: Action, cx: &Context) -> Effects {
    let Some(intent) = intent(want, have, action) else { return Effects::default() };
    let sha256 = if action == Action::CreateFile && !want.manages_content() {
        Some(checksum(""))
    } else {
        have.checksum_wanted().or(have.metadata.checksum.as_ref()).cloned()
    };
    let content = match (&want.content, &want.source) {
        _ if !action.stores() => Content::Kept,
        (Some(content), _) => Content::Text(content.clone()),
        (None, Some(_)) if want.remote().is_some() => Content::Unknown,
        (None, Some(source)) => Content::CopyOf(cx.resolve(source)),
        (None, None) if want.is_edited() => {
            have.edited().map_or(Content::Unknown, |edited| Content::Text(edited.new.clone()))
        }
        (None, None) => Content::Text(String::new()),
    };
    let path = want.name.as_path().to_owned();
    let gone = have.unmanaged().iter().map(|gone| PathEffect::Operation {
        path: path.join(gone),
        intent: Intent::RemoveTree,
        sha256: None,
        content: Content::Kept,
    });
    let purged = gone.filter(|_| action == Action::Purge).collect();
    let own = PathEffect::Operation { path: path.clone(), intent, sha256, content };
    Effects { paths: [purged, vec![own]].concat(), ..Effects::default() }
}

/// Whether what would be compared exists only in the prediction of a dry run.
pub(super) fn only_foresees(want: &Properties, have: &FileState, cx: &Context) -> bool {
    if have.checksum_wanted().is_some_and(|sum| sum == UNKNOWN) {
        return true;
    }
    let prediction = &cx.prediction.borrow().files;
    let old = prediction.inspect(want.name.as_path());
    let source = want.copied().map(|source| prediction.follow(&cx.resolve(source)));
    // What is only perhaps at the path is taken not to be, but a source is needed.
    matches!(old, Ok(Some(Predicted::Entry(_) | Predicted::Something { .. })))
        || matches!(source, Some(Ok(Some(_))))
}

fn intent(want: &Properties, have: &FileState, action: Action) -> Option<Intent> {
    let attributes = have.attributes_wanted();
    match action {
        Action::RemoveFile => Some(Intent::Remove),
        // Whether it has to be empty was decided on what is predicted in it.
        Action::RemoveDirectory | Action::RemoveTree(_) => Some(Intent::RemoveTree),
        Action::CreateFile | Action::UpdateFile | Action::ReplaceLink => attributes.map(Intent::Write),
        Action::SetFileAttributes | Action::SetDirectoryAttributes | Action::Purge => {
            let found = have.entry.as_ref().filter(|entry| entry.kind == FileKind::File);
            attributes.map(|wanted| match found {
                Some(found) if is_replaced(want, wanted, found) => Intent::Write(wanted),
                _ => Intent::SetAttributes(wanted),
            })
        }
        Action::CreateLink
        | Action::UpdateLink
        | Action::ReplaceFileWithLink
        | Action::ReplaceDirectoryWithLink => {
            want.target.as_ref().map(|target| Intent::MakeLink(target.into()))
        }
        Action::CreateDirectory | Action::ReplaceFileWithDirectory => {
            attributes.map(|attributes| Intent::MakeDirectory(attributes, Parents::Make))
        }
    }
}

/// Whether a file gets its attributes as a new file. Where a stranger could have put another file of ours in its place,
/// only one whose content is known can be given them, and that is written anew.
pub(super) fn is_replaced(want: &Properties, wanted: Attributes, found: &Entry) -> bool {
    let among_others = files::is_among_others(want.name.as_path(), wanted.uid);
    if among_others { want.manages_content() } else { wanted.need_a_new_file(found) }
}

pub(super) fn unknown_attributes() -> Error {
    Error::new("owner, group and mode are not known")
}
