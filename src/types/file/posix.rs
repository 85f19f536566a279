//! The provider for any Linux file system.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{fs::OFlags, process::geteuid};
use sha2::{Digest, Sha256};

use super::{
    Action, Ensure, Properties, decision,
    state::{Contents, FileState, Found, Metadata, Target, special},
};
use crate::{
    host::files::{
        self, Attributes, Batch, Digested, FileError, Foreseen, Foresight, Intent, Kind, Parents, Problem,
        Stopped,
    },
    resource::{Context, Error},
};

/// Content is read and written in pieces of this size, with a look at the clock in between.
const CHUNK: usize = 128 * 1024;

/// How many files that need no new content are passed over in search of some that do.
const PATIENCE: usize = 8;

/// A file that will be stored when its turn comes.
struct Plan<'w> {
    path: &'w Path,
    content: &'w [u8],
    action: Action,
    attributes: Attributes,
    sha256: String,
}

/// Files through system calls; in a dry run also the files as earlier resources would have left them.
#[derive(Default)]
pub(crate) struct Posix {
    foresight: Mutex<Foresight>,
    batch: Mutex<Batch>,
}

impl Posix {
    /// What is at the path, and what the wish comes down to on this machine.
    pub(super) fn inspect(&self, want: &Properties, cx: &Context) -> Result<FileState, Error> {
        let target = self.target(want, cx);
        let mut metadata =
            Metadata { name: want.name.to_string(), provider: "posix".to_owned(), ..Metadata::default() };
        let Some(Digested { entry, sha256 }) = self.look(want, cx)? else {
            return Ok(FileState { metadata, found: Found::Nothing, entry: None, target });
        };
        metadata.describe(&entry, &cx.host.users);
        metadata.checksum = sha256;
        let found = match &entry.kind {
            Kind::File => Found::File,
            Kind::Directory => Found::Directory { contents: self.contents(want)? },
            Kind::Symlink { target } => Found::Symlink { target: target.clone() },
            other => Found::Special(special(other)),
        };
        Ok(FileState { metadata, found, entry: Some(entry), target })
    }

    /// What is at the path. The content is read only where it matters, and may turn out not to be readable.
    fn look(&self, want: &Properties, cx: &Context) -> Result<Option<Digested>, Error> {
        let path = want.name.as_path();
        let foreseen = match self.foresight().inspect(path)? {
            Some(Foreseen::Nothing) => return Ok(None),
            Some(Foreseen::Entry(digested)) if !digested.is_as_on_disk() => return Ok(Some(digested)),
            Some(Foreseen::Entry(digested)) => Some(digested),
            None => None,
        };
        let digested = if want.content_matters() {
            match files::digest(path, &mut || stop(cx)) {
                Err(FileError { problem: Problem::Denied { .. }, .. }) => inspected(path)?,
                digested => digested.map_err(|error| blame(error, cx))?,
            }
        } else {
            inspected(path)?
        };
        Ok(match (foreseen, digested) {
            (Some(foreseen), Some(Digested { sha256, .. })) => Some(Digested { sha256, ..foreseen }),
            (_, digested) => digested,
        })
    }

    /// Whether anything is in the directory, which matters only to who wants it gone.
    fn contents(&self, want: &Properties) -> Result<Contents, Error> {
        if want.ensure != Ensure::Absent || want.force {
            return Ok(Contents::NotAsked);
        }
        let names = self.foresight().names(want.name.as_path())?;
        Ok(if names.is_empty() { Contents::None } else { Contents::Some })
    }

    fn target(&self, want: &Properties, cx: &Context) -> Result<Target, Error> {
        if want.ensure == Ensure::Absent {
            return Ok(Target::default());
        }
        let attributes = attributes(want, cx)?;
        if let Some(attributes) = attributes.filter(|_| want.manages_content()) {
            must_be_readable(attributes)?;
        }
        Ok(Target { attributes, checksum: self.wanted_checksum(want, cx)? })
    }

    fn wanted_checksum(&self, want: &Properties, cx: &Context) -> Result<Option<String>, Error> {
        match (&want.content, &want.source) {
            (Some(content), _) => Ok(Some(files::hex(&Sha256::digest(content.as_bytes())))),
            (None, Some(source)) => {
                match self.foresight().source(&cx.resolve(source))? {
                    None => {}
                    Some(Foreseen::Entry(digested)) if digested.is_as_on_disk() => {}
                    Some(Foreseen::Entry(Digested { sha256: Some(sha256), .. })) => return Ok(Some(sha256)),
                    Some(Foreseen::Nothing) => {
                        return Err(source_error(&io::ErrorKind::NotFound.into(), source, cx));
                    }
                    Some(Foreseen::Entry(_)) => return Err(source_error(&not_regular(), source, cx)),
                }
                let mut hash = Sha256::new();
                copy(source_file(source, cx)?, cx, |piece| {
                    hash.update(piece);
                    Ok(())
                })
                .map_err(|error| source_error(&error, source, cx))?;
                Ok(Some(files::hex(&hash.finalize())))
            }
            (None, None) => Ok(None),
        }
    }

    /// Fails as `enact` would, and remembers what it would have left.
    pub(super) fn rehearse(&self, want: &Properties, have: &FileState, action: Action) -> Result<(), Error> {
        let Some(intent) = intent(have, action) else { return Err(unknown_attributes()) };
        let sha256 = if action == Action::CreateFile && !want.manages_content() {
            Some(files::hex(&Sha256::digest(b"")))
        } else {
            have.checksum_wanted().or(have.metadata.checksum.as_ref()).cloned()
        };
        Ok(self.foresight().rehearse(want.name.as_path(), intent, sha256)?)
    }

    /// Whether what would be compared exists only in the prediction of a dry run.
    pub(super) fn only_foresees(&self, want: &Properties, cx: &Context) -> bool {
        let foresight = self.foresight();
        let source = want.source.as_ref().map(|source| foresight.source(&cx.resolve(source)));
        let old = foresight.inspect(want.name.as_path());
        [Some(old), source].into_iter().flatten().any(|found| matches!(found, Ok(Some(Foreseen::Entry(_)))))
    }

    /// The turn of a resource has come.
    pub(super) fn turn(&self, want: &Properties) -> Result<(), Error> {
        Ok(self.batch().turn(want.name.as_path())?)
    }

    /// Makes the files that come after this one, so that they reach the disk together. What is wrong with one of them
    /// is told when its turn comes.
    pub(super) fn prepare(
        &self,
        want: &Properties,
        next: &mut dyn Iterator<Item = &Properties>,
        cx: &Context,
    ) {
        let mut batch = self.batch();
        if batch.holds(want.name.as_path()) {
            return;
        }
        let mut patience = PATIENCE;
        let mut plans = Vec::new();
        while patience > 0
            && plans.len() < Batch::MOST
            && let Some(next) = next.next()
        {
            match self.plan(next, cx) {
                Some(plan) => plans.push(plan),
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

    /// What storing a file will come down to; `None` if it will not come to that.
    fn plan<'w>(&self, want: &'w Properties, cx: &Context) -> Option<Plan<'w>> {
        let content = want.content.as_ref().filter(|_| want.ensure == Ensure::Present)?.as_bytes();
        if content.len() > Batch::LARGEST {
            return None;
        }
        let have = self.inspect(want, cx).ok()?;
        let action = decision::compare(want, &have).ok()??.action;
        let Target { attributes, checksum } = have.target.ok()?;
        action.stores().then_some(Plan {
            path: want.name.as_path(),
            content,
            action,
            attributes: attributes?,
            sha256: checksum?,
        })
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
            (Action::RemoveDirectory, ..) if want.force => files::remove_tree(path, &mut || stop(cx)),
            (Action::RemoveFile | Action::RemoveDirectory, ..) => files::remove(path),
            (action, Some(attributes), _) if action.stores() => {
                let sha256 = have.checksum_wanted().map_or("", String::as_str);
                let prepared = self.batch().publish(path, attributes, sha256);
                return prepared.map_or_else(|| store(want, attributes, cx), |done| Ok(done?));
            }
            (Action::SetFileAttributes, Some(attributes), Some(entry)) => {
                // Owner and mode take two system calls: together they are set on a copy that then appears at once.
                let owner = (entry.uid, entry.gid) != (attributes.uid, attributes.gid);
                if owner && entry.mode != attributes.mode && entry.nlink == 1 {
                    return store_again(path, attributes, cx);
                }
                files::set_attributes(path, entry, attributes)
            }
            (Action::CreateDirectory, Some(attributes), _) => {
                files::make_directory(path, attributes, Parents::Make)
            }
            (Action::ReplaceFileWithDirectory, Some(attributes), _) => {
                files::replace_file_with_directory(path, attributes)
            }
            (Action::SetDirectoryAttributes, Some(attributes), Some(entry)) => {
                files::set_attributes(path, entry, attributes)
            }
            _ => return Err(unknown_attributes()),
        };
        done.map_err(|error| blame(error, cx))
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn foresight(&self) -> MutexGuard<'_, Foresight> {
        self.foresight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes every directory in which the action makes something under a temporary name.
fn note(path: &Path, action: Action, cx: &Context) {
    if matches!(action, Action::RemoveFile | Action::RemoveDirectory | Action::SetDirectoryAttributes) {
        return;
    }
    let makes_parents = action == Action::CreateDirectory;
    for above in path.ancestors().skip(1) {
        cx.host.unfinished.note(above);
        if !makes_parents || matches!(files::inspect(above), Ok(Some(_))) {
            break;
        }
    }
}

fn intent(have: &FileState, action: Action) -> Option<Intent> {
    let attributes = have.attributes_wanted();
    match action {
        Action::RemoveFile => Some(Intent::Remove),
        // Whether it has to be empty was decided on what is foreseen in it.
        Action::RemoveDirectory => Some(Intent::RemoveTree),
        Action::CreateFile | Action::UpdateFile | Action::ReplaceLink => attributes.map(Intent::Write),
        Action::SetFileAttributes | Action::SetDirectoryAttributes => attributes.map(Intent::SetAttributes),
        Action::CreateDirectory | Action::ReplaceFileWithDirectory => {
            attributes.map(|attributes| Intent::MakeDirectory(attributes, Parents::Make))
        }
    }
}

fn unknown_attributes() -> Error {
    Error::new("owner, group and mode are not known")
}

/// Owner, group and mode as numbers; `None` when not all are given, as when only looking.
fn attributes(want: &Properties, cx: &Context) -> Result<Option<Attributes>, Error> {
    let (Some(owner), Some(group), Some(mode)) = (&want.owner, &want.group, want.mode) else {
        return Ok(None);
    };
    let users = &cx.host.users;
    let missing = |what: &str, name: &str| {
        Error::new(format!("{what} \"{name}\" does not exist on this machine"))
            .with_help(format!("create the {what} first, or give a numeric id"))
    };
    let uid = users.user_id(owner).ok_or_else(|| missing("user", owner.as_str()).on("owner"))?;
    let gid = users.group_id(group).ok_or_else(|| missing("group", group.as_str()).on("group"))?;
    Ok(Some(Attributes { uid, gid, mode: mode.bits() }))
}

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
    let source = want.source.as_ref().map(|source| source_file(source, cx)).transpose()?;
    let stored = files::replace(want.name.as_path(), attributes, |out| match (&want.content, source) {
        (Some(content), _) => content.as_bytes().chunks(CHUNK).try_for_each(|piece| write(out, piece, cx)),
        (None, Some(file)) => copy(file, cx, |piece| out.write_all(piece)),
        (None, None) => Ok(()),
    });
    stored.map_err(|error| blame(error, cx))
}

/// Writes the content that is there once more, under new attributes.
fn store_again(path: &Path, attributes: Attributes, cx: &Context) -> Result<(), Error> {
    let Some((Some(file), _)) = files::open_regular(path)? else {
        return Err(Error::new(format!("{} was changed by somebody else meanwhile", path.display())));
    };
    files::replace(path, attributes, |out| copy(file, cx, |piece| out.write_all(piece)))
        .map_err(|error| blame(error, cx))
}

fn write(out: &mut dyn Write, piece: &[u8], cx: &Context) -> io::Result<()> {
    stop(cx).map_err(io::Error::other)?;
    out.write_all(piece)
}

fn copy(mut from: fs::File, cx: &Context, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        stop(cx).map_err(io::Error::other)?;
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens the file to copy from. It is the user's own choice, so links in its path are followed.
pub(super) fn source_file(source: &str, cx: &Context) -> Result<fs::File, Error> {
    let path = cx.resolve(source);
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let open = || {
        let file = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(&path)?;
        let regular = file.metadata()?.is_file();
        if regular { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
    };
    open().map_err(|error| source_error(&error, source, cx))
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

fn source_error(error: &io::Error, source: &str, cx: &Context) -> Error {
    if let Err(stopped) = cx.tick() {
        return stopped;
    }
    Error::new(format!("cannot read source {}: {}", cx.resolve(source).display(), reason(error))).on("source")
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn stop(cx: &Context) -> Result<(), Stopped> {
    cx.tick().map_err(|_| Stopped)
}

/// The error of a file operation, or why the operation was stopped.
fn blame(error: FileError, cx: &Context) -> Error {
    cx.tick().err().unwrap_or_else(|| error.into())
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        let help = error.hint();
        Self { help, ..Self::new(error.to_string()) }
    }
}
