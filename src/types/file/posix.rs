//! The provider for any Linux file system.

use std::{
    io::{self, Write},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::{
    Action, Ensure, Properties,
    contents::contents,
    decision,
    editing::{self, Edited},
    purge,
    remote::{self, Downloads},
    source,
    state::{FileState, Found, Metadata, Target, special},
};
use crate::{
    host::files::{
        self, Attributes, Batch, CHUNK, CopyInterrupted, Digested, Entry, FileError, FileKind, InTheWay,
        Intent, Parents, Predicted, Problem, UNKNOWN,
    },
    resource::{AccountKind, Content, Context, Effects, Error, PathEffect, RunMode},
    vocabulary::Url,
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

/// What is at the path. The content is read only where it matters, no further than it takes to tell whether it has the
/// wanted size, and may turn out not to be readable.
fn look(want: &Properties, size: Option<u64>, cx: &Context) -> Result<Option<Digested>, Error> {
    let mut changed = None;
    let path = want.name.as_path();
    if let Some(predicted) = cx.prediction.borrow().files.inspect(path).map_err(|error| blame(error, cx))? {
        match foreseen_as(predicted, want, cx) {
            Some(digested) if digested.is_as_on_disk() => changed = Some(digested),
            other => return Ok(other.or_else(|| perhaps_made(want, cx))),
        }
    }
    let path = &cx.prediction.borrow().files.place_on_disk(path);
    let digested = if want.checksum_matters() {
        match files::digest(path, size, &mut || stop(cx)) {
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
        (_, digested) => digested.or_else(|| perhaps_made(want, cx)),
    })
}

/// What would be at a path by now; nothing where nobody knows.
pub(super) fn entry(path: &Path, cx: &Context) -> Result<Option<Entry>, Error> {
    let prediction = &cx.prediction.borrow().files;
    Ok(match prediction.inspect(path)? {
        None => files::inspect(&prediction.place_on_disk(path))?,
        Some(predicted) => predicted.entry(FileKind::File).map(|digested| digested.entry),
    })
}

/// What stands in for a file that is to be edited and that an earlier command of a dry run may make.
fn perhaps_made(want: &Properties, cx: &Context) -> Option<Digested> {
    if !want.is_edited() || want.create || !cx.prediction.borrow().may_differ_on_disk() {
        return None;
    }
    let path = &want.name;
    cx.warn(format!("{path} does not exist; an earlier command of this run may make it"));
    let Attributes { uid, gid, .. } = Attributes::own(0o644);
    Predicted::Something { uid, gid }.entry(FileKind::File)
}

fn checksum(text: &str) -> String {
    files::hex(&Sha256::digest(text.as_bytes()))
}

/// What is predicted at the path; what nobody knows is taken for what is wanted.
fn foreseen_as(predicted: Predicted, want: &Properties, cx: &Context) -> Option<Digested> {
    if matches!(predicted, Predicted::Something { .. }) {
        cx.warn("an earlier resource of this run makes it, and what it makes is not known: this is a guess");
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

/// The content that a file is to have.
enum WantedContent<'w> {
    NotManaged,
    Text(&'w str),
    /// What the steps make of the text that is there.
    Edited,
    /// A download.
    Remote(Url),
    /// A copy, with the size of the original where that is certain.
    Copy {
        source: &'w str,
        size: Option<u64>,
    },
}

impl<'w> WantedContent<'w> {
    fn of(want: &'w Properties, cx: &Context) -> Result<Self, Error> {
        match (&want.content, &want.source) {
            _ if want.ensure != Ensure::Present => Ok(Self::NotManaged),
            (Some(content), _) => Ok(Self::Text(content)),
            (None, Some(source)) => match want.remote() {
                Some(url) => Ok(Self::Remote(url)),
                None => Ok(Self::Copy { source, size: source::size(source, cx)? }),
            },
            (None, None) if want.is_edited() => Ok(Self::Edited),
            (None, None) => Ok(Self::NotManaged),
        }
    }

    fn size(&self) -> Option<u64> {
        match self {
            Self::NotManaged | Self::Edited | Self::Remote(_) => None,
            Self::Text(content) => Some(content.len() as u64),
            Self::Copy { size, .. } => *size,
        }
    }

    /// Works out the checksum, unless what was found cannot have it. A dry run needs it for those who come after.
    fn checksum(
        &self,
        want: &Properties,
        found: Option<&Digested>,
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        let may_fit = |size: u64| {
            let fits = |found: &Digested| found.entry.kind == FileKind::File && found.entry.size == size;
            cx.mode() == RunMode::Noop || found.is_some_and(fits)
        };
        match self {
            Self::NotManaged | Self::Edited => Ok(None),
            Self::Remote(url) => remote::checksum(want, url, found, cx).map(Some),
            Self::Text(content) => Ok(Some(checksum(content))),
            Self::Copy { size: Some(size), .. } if !may_fit(*size) => Ok(None),
            Self::Copy { source, .. } => source::checksum(source, cx).map(Some),
        }
    }
}

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
                let sha256 = have.checksum_wanted().map_or("", String::as_str);
                let prepared = self.batch().publish(path, attributes, sha256);
                return prepared.map_or_else(
                    || self.store(want, attributes, cx),
                    |done| done.map_err(|error| blame(error, cx)),
                );
            }
            // What is in the file by now need not be what was seen in it.
            (Action::SetFileAttributes, Some(attributes), Some(entry))
                if want.manages_content() && is_replaced(want, attributes, entry) =>
            {
                return self.store(want, attributes, cx);
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

    /// Puts the wanted content at the path.
    fn store(&self, want: &Properties, attributes: Attributes, cx: &Context) -> Result<(), Error> {
        match want.remote() {
            Some(url) => self.downloads.fetch(want, &url, attributes, cx),
            None => store(want, attributes, cx),
        }
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What storing a file will come down to; `None` if it will not come to that.
fn plan<'w>(want: &'w Properties, cx: &Context) -> Option<Plan<'w>> {
    let content = want.content.as_ref().filter(|_| want.ensure == Ensure::Present)?.as_bytes();
    if content.len() > Batch::LARGEST {
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
    let makes_parents = action == Action::CreateDirectory;
    for above in path.ancestors().skip(1) {
        cx.memory.write_journal.note(above, cx.interrupt());
        if !makes_parents || matches!(files::inspect(above), Ok(Some(_))) {
            break;
        }
    }
}

/// Whether a file gets its attributes as a new file. Where a stranger could have put another file of ours in its place,
/// only one whose content is known can be given them, and that is written anew.
fn is_replaced(want: &Properties, wanted: Attributes, found: &Entry) -> bool {
    let among_others = files::is_among_others(want.name.as_path(), wanted.uid);
    if among_others { want.manages_content() } else { wanted.need_a_new_file(found) }
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

fn unknown_attributes() -> Error {
    Error::new("owner, group and mode are not known")
}

/// Owner, group and mode as numbers; `None` when not all are given, as when only looking.
fn attributes(want: &Properties, file: Option<&Entry>, cx: &Context) -> Result<Option<Attributes>, Error> {
    if want.ensure == Ensure::Link {
        return Ok(None);
    }
    let kept = file.filter(|_| want.is_edited());
    let uid = want.owner.as_ref().map(|owner| {
        cx.user_id(owner).ok_or_else(|| Error::unknown_account(AccountKind::User, owner).on("owner"))
    });
    let gid = want.group.as_ref().map(|group| {
        cx.group_id(group).ok_or_else(|| Error::unknown_account(AccountKind::Group, group).on("group"))
    });
    let uid = uid.transpose()?.or(kept.map(|kept| kept.uid));
    let gid = gid.transpose()?.or(kept.map(|kept| kept.gid));
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

fn inspected(path: &Path) -> Result<Option<Digested>, Error> {
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

/// Writes the wanted content.
fn store(want: &Properties, attributes: Attributes, cx: &Context) -> Result<(), Error> {
    let source = want.source.as_ref().map(|source| source::open(source, cx)).transpose()?;
    let edited = if want.is_edited() { Some(edit_now(want, attributes, cx)?) } else { None };
    let content = edited.as_ref().or(want.content.as_ref());
    let stored =
        files::replace_among_others(want.name.as_path(), attributes, |out| match (content, source) {
            (Some(content), _) => {
                content.as_bytes().chunks(CHUNK).try_for_each(|piece| write(out, piece, cx))
            }
            (None, Some(mut file)) => {
                files::pieces(&mut file, &mut || stop(cx), |piece| out.write_all(piece)).map(drop)
            }
            (None, None) => Ok(()),
        });
    stored.map_err(|error| blame(error, cx))
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

pub(super) fn stop(cx: &Context) -> Result<(), CopyInterrupted> {
    cx.tick().map_err(|_| CopyInterrupted)
}

/// The error of a file operation, or why the operation was stopped.
fn blame(error: FileError, cx: &Context) -> Error {
    cx.tick().err().unwrap_or_else(|| error.naming(&cx.host.users).into())
}
