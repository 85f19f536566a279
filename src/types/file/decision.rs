//! What has to happen to a path: the decision table, without looking at anything.

use super::{
    Action, Ensure, Properties,
    state::{Comparison, Contents, FileState, Found},
};
use crate::{
    resource::{Change, Difference, Error},
    types::ownership::Ownership,
};

/// The action that brings what was found to what is wanted, or why none can.
pub(super) fn compare(want: &Properties, have: &FileState) -> Result<Option<Change<Action>>, Error> {
    if let Err(error) = &have.target {
        return Err(error.clone());
    }
    let path = &want.name;
    let kind = |action| Ok(Some(Change { action, differences: Vec::new(), refreshes: false }));
    let in_the_way = |what: &str| in_the_way(want, what);
    match (want.ensure, &have.found) {
        (Ensure::Absent, Found::Nothing) => Ok(None),
        (Ensure::Absent, Found::Directory { contents: Contents::Some }) if !want.force => {
            Err(Error::new(format!("{path} is a directory that is not empty"))
                .on("ensure")
                .with_help("set `force: true` to remove it with everything in it"))
        }
        (Ensure::Absent, Found::Directory { contents: Contents::Some }) => kind(Action::RemoveTree(None)),
        (Ensure::Absent, Found::Directory { contents: Contents::Counted(amount) }) => {
            kind(Action::RemoveTree(Some(*amount)))
        }
        (Ensure::Absent, Found::Directory { .. }) => kind(Action::RemoveDirectory),
        (Ensure::Absent, _) => kind(Action::RemoveFile),

        (Ensure::Directory, Found::Nothing) => kind(Action::CreateDirectory),
        (Ensure::Directory, Found::File) if want.force => kind(Action::ReplaceFileWithDirectory),
        (Ensure::Directory, Found::File) => Err(Error::new(format!("a file is in the way at {path}"))
            .on("ensure")
            .with_help("set `force: true` to put the directory in its place, and lose the file")),
        (Ensure::Directory, Found::Directory { .. }) => {
            let attributes = attribute_differences(want, have);
            if have.unmanaged().is_empty() {
                return Ok(update(Action::SetDirectoryAttributes, attributes));
            }
            let gone = have.unmanaged().iter();
            let gone = gone.map(|path| Difference::between("purge", path.display(), "absent"));
            Ok(update(Action::Purge, attributes.into_iter().chain(gone).collect()))
        }
        (Ensure::Link, found) => link(want, found),
        (Ensure::Present, Found::Nothing) => kind(Action::CreateFile),
        (Ensure::Present, Found::File) => {
            let attributes = attribute_differences(want, have);
            let way = match want {
                Properties { source: Some(_), .. } => "source",
                Properties { content: Some(_), .. } => "content",
                _ => "edit",
            };
            let content = Difference::of(way);
            match have.content() {
                // Written anew it can be read; as it is to be, it would be written anew for ever.
                Comparison::Impossible if attributes.is_empty() => Err(unreadable(want)),
                Comparison::Different | Comparison::Impossible => {
                    Ok(update(Action::UpdateFile, [vec![content], attributes].concat()))
                }
                Comparison::Same | Comparison::NotAsked => Ok(update(Action::SetFileAttributes, attributes)),
            }
        }
        (Ensure::Present, Found::Directory { .. }) => Err(in_the_way(A_DIRECTORY)),
        (Ensure::Present, Found::Symlink { .. }) if want.holds_content() => kind(Action::ReplaceLink),

        (Ensure::Directory | Ensure::Present, Found::Symlink { target }) => {
            Err(in_the_way(&format!("a symbolic link to {}", target.display())))
        }
        (Ensure::Directory | Ensure::Present, Found::Special(what)) => Err(in_the_way(&format!("a {what}"))),
    }
}

const A_DIRECTORY: &str = "a directory";

fn in_the_way(want: &Properties, what: &str) -> Error {
    let path = &want.name;
    let force = if what == A_DIRECTORY { " (and --force if it is full)" } else { "" };
    let help = format!("move it away, or remove it with `ccm ensure file {path} absent`{force}");
    Error::new(format!("{what} is in the way at {path}")).on("ensure").with_help(help)
}

/// Decides what makes a link of what was found.
fn link(want: &Properties, found: &Found) -> Result<Option<Change<Action>>, Error> {
    let kind = |action| Ok(Some(Change { action, differences: Vec::new(), refreshes: false }));
    let wanted = want.target.as_deref().unwrap_or_default();
    let (what, action) = match found {
        Found::Nothing => return kind(Action::CreateLink),
        Found::Symlink { target } if target.as_os_str() == wanted => return Ok(None),
        Found::Symlink { target } => {
            let difference = Difference::between("target", target.display(), wanted);
            return Ok(update(Action::UpdateLink, vec![difference]));
        }
        Found::Special(what) => return Err(in_the_way(want, &format!("a {what}"))),
        Found::File => ("a file", Action::ReplaceFileWithLink),
        Found::Directory { .. } => (A_DIRECTORY, Action::ReplaceDirectoryWithLink),
    };
    if want.force {
        return kind(action);
    }
    let lost = if what == A_DIRECTORY { "the directory with everything in it" } else { "the file" };
    Err(Error::new(format!("{what} is in the way at {}", want.name))
        .on("ensure")
        .with_help(format!("set `force: true` to put the link in its place, and lose {lost}")))
}

fn unreadable(want: &Properties) -> Error {
    let message = format!("cannot read {}, and so not tell whether its content is right", want.name);
    Error::new(message).with_help("run ccm as a user who may read it")
}

fn update(action: Action, differences: Vec<Difference>) -> Option<Change<Action>> {
    (!differences.is_empty()).then_some(Change { action, differences, refreshes: false })
}

/// Returns owner, group and mode that differ.
fn attribute_differences(want: &Properties, have: &FileState) -> Vec<Difference> {
    let (Some(wanted), Some(entry)) = (have.attributes_wanted(), &have.entry) else { return Vec::new() };
    Ownership::of(want.owner.as_ref(), want.group.as_ref()).differences(
        entry,
        &have.metadata.permissions,
        wanted,
    )
}
