//! What is at a path, and what the wish comes down to on this machine.

use std::path::Path;

use rustix::process::geteuid;

use super::{
    Ensure, Properties,
    contents::contents,
    editing::{self, Edited},
    purge,
    state::{FileState, Found, Metadata, Target, special},
    wanted_content::{WantedContent, checksum},
};
use crate::{
    host::files::{self, Attributes, Digested, Entry, FileError, FileKind, Predicted, Problem, UNKNOWN},
    resource::{Context, Error},
    types::{
        disk::{blame, stop},
        ownership::Ownership,
    },
};

/// What is at the path, and what the wish comes down to on this machine.
pub(super) fn inspect(want: &Properties, cx: &Context) -> Result<FileState, Error> {
    let content = WantedContent::of(want, cx);
    let mut digested = look(want, content.as_ref().ok().and_then(WantedContent::size), cx)?;
    let target = content.and_then(|content| target(want, &content, digested.as_ref(), cx));
    if let (Some(found), Ok(Target { edited: Some(Edited { old, .. }), .. })) = (&mut digested, &target) {
        found.sha256 = Some(checksum(old));
    }
    let mut metadata =
        Metadata { name: want.name.to_string(), provider: "posix".to_owned(), ..Metadata::default() };
    let Some(Digested { entry, sha256 }) = digested else {
        return Ok(FileState { metadata, found: Found::Nothing, entry: None, target });
    };
    metadata.describe(&entry, cx);
    metadata.checksum = sha256;
    let found = match &entry.kind {
        FileKind::File => Found::File,
        FileKind::Directory => Found::Directory { contents: contents(want, cx)? },
        FileKind::Symlink { target } => Found::Symlink { target: target.clone() },
        other => Found::Special(special(other)),
    };
    Ok(FileState { metadata, found, entry: Some(entry), target })
}

/// Whether looking at a file takes nothing but reading it and its source: no server is asked, and it does not matter what
/// else the manifest has.
pub(super) fn is_read_ahead(want: &Properties) -> bool {
    want.remote().is_none() && !want.is_edited() && want.purge.is_off()
}

/// What is at the path. The content is read only where it matters, no further than it takes to tell whether it has the
/// wanted size, and may turn out not to be readable.
fn look(want: &Properties, size: Option<u64>, cx: &Context) -> Result<Option<Digested>, Error> {
    let mut changed = None;
    let path = want.name.as_path();
    if let Some(predicted) = cx.prediction.borrow().files.inspect(path).map_err(|error| blame(error, cx))? {
        let maker = if matches!(predicted, Predicted::Perhaps) {
            Some("an earlier resource".to_owned())
        } else {
            command(cx)
        };
        match foreseen_as(predicted, want, cx) {
            Some(digested) if digested.is_as_on_disk() => changed = Some(digested),
            other => return Ok(other.or_else(|| perhaps_made(want, &maker?, cx))),
        }
    }
    let path = &cx.prediction.borrow().files.place_on_disk(path);
    let digested = if want.checksum_matters() {
        match files::digest(path, size, cx.digests(), &mut || stop(cx)) {
            Err(FileError { problem: Problem::Denied { .. }, .. }) => inspected(path)?,
            digested => digested.map_err(|error| blame(error, cx))?,
        }
    } else {
        inspected(path)?
    };
    Ok(match (changed, digested) {
        (Some(mut predicted), Some(Digested { entry, sha256 })) => {
            predicted.entry.size = entry.size;
            Some(Digested { sha256, ..predicted })
        }
        (_, digested) => digested.or_else(|| perhaps_made(want, &command(cx)?, cx)),
    })
}

/// Returns the earlier resources of a dry run that could create any file, for messages.
fn command(cx: &Context) -> Option<String> {
    let prediction = cx.prediction.borrow();
    prediction.may_differ_on_disk().then(|| prediction.path_suspects())
}

/// What stands in for a file that is to be edited and that something earlier in a dry run may make: a command, or an
/// archive that is unpacked there.
fn perhaps_made(want: &Properties, maker: &str, cx: &Context) -> Option<Digested> {
    if !want.is_edited() || want.create {
        return None;
    }
    let path = &want.name;
    cx.assume(format!("{path} does not exist; assuming {maker} creates it"));
    let Attributes { uid, gid, .. } = Attributes::own(0o644);
    Predicted::Something { uid, gid }.entry(FileKind::File)
}

/// What is predicted at the path; what nobody knows is taken for what is wanted.
fn foreseen_as(predicted: Predicted, want: &Properties, cx: &Context) -> Option<Digested> {
    if matches!(predicted, Predicted::Something { .. }) {
        cx.assume("an earlier resource creates it with unknown content; assuming that it has to change");
    }
    predicted.entry(match (want.ensure, &want.target) {
        (Ensure::Directory, _) => FileKind::Directory,
        (Ensure::Link, Some(target)) => FileKind::Symlink { target: target.into() },
        _ => FileKind::File,
    })
}

fn target(
    want: &Properties,
    content: &WantedContent,
    found: Option<&Digested>,
    cx: &Context,
) -> Result<Target, Error> {
    if want.ensure == Ensure::Absent {
        return Ok(Target::default());
    }
    let file = found.map(|found| &found.entry).filter(|entry| entry.kind == FileKind::File);
    let attributes = attributes(want, file, cx)?;
    let is_directory = found.is_some_and(|found| found.entry.kind == FileKind::Directory);
    let unmanaged = if is_directory { purge::unmanaged(want, cx)? } else { Vec::new() };
    if let Some(attributes) = attributes.filter(|_| want.manages_content()) {
        must_be_readable(attributes)?;
    }
    let size = content.size();
    if !matches!(content, WantedContent::Edited) {
        let checksum = content.checksum(want, found, cx)?;
        return Ok(Target { attributes, size, checksum, unmanaged, edited: None });
    }
    let edited = editing::edited(want, found, cx)?;
    let checksum = edited.as_ref().map_or(UNKNOWN.to_owned(), |edited| checksum(&edited.new));
    Ok(Target { attributes, size, checksum: Some(checksum), unmanaged, edited })
}

/// Owner, group and mode as numbers; `None` when not all are given, as when only looking.
fn attributes(want: &Properties, file: Option<&Entry>, cx: &Context) -> Result<Option<Attributes>, Error> {
    if want.ensure == Ensure::Link {
        return Ok(None);
    }
    let kept = file.filter(|_| want.is_edited());
    let (uid, gid) = Ownership::of(want.owner.as_ref(), want.group.as_ref()).ids(cx)?;
    let (uid, gid) = (uid.or(kept.map(|kept| kept.uid)), gid.or(kept.map(|kept| kept.gid)));
    let (Some(uid), Some(gid), Some(mode)) = (uid, gid, mode(want, kept)) else { return Ok(None) };
    Ok(Some(Attributes { uid, gid, mode }))
}

/// The mode, with set-id and sticky bits: as given, and else as kept.
fn mode(want: &Properties, kept: Option<&Entry>) -> Option<u32> {
    let given = want.mode.map(|mode| match want.ensure {
        Ensure::Directory => mode.directory_bits(),
        _ => mode.bits(),
    });
    let permissions = given.or(kept.map(|kept| kept.mode & PERMISSIONS))?;
    let special = want.special_bits().or(kept.map(|kept| kept.mode & !PERMISSIONS))?;
    Some(permissions | special)
}

const PERMISSIONS: u32 = 0o777;

pub(super) fn inspected(path: &Path) -> Result<Option<Digested>, Error> {
    Ok(files::inspect(path)?.map(|entry| Digested { entry, sha256: None }))
}

/// Content that only root could read again could never be compared with what it is to be.
fn must_be_readable(Attributes { mode, .. }: Attributes) -> Result<(), Error> {
    if mode & OWNER_READS != 0 || geteuid().is_root() {
        return Ok(());
    }
    let message =
        format!("with mode {mode:04o} its owner could not read it, nor tell whether its content is right");
    Err(Error::new(message).on("mode").with_help("let the owner read it (0400), or run ccm as root"))
}

const OWNER_READS: u32 = 0o400;
