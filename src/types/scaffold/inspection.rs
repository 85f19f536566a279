//! Compares the directory with the tree.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use rustix::process::{getegid, geteuid};
use sha2::{Digest, Sha256};

use super::{
    Ensure, Properties,
    post::{self, Post},
    state::{Folder, Metadata, Plan, ScaffoldState, TreeAttributes, Write},
    tree::{self, Rendered},
};
use crate::{
    host::files::{self, Attributes, Digested, Entry, FileError, FileKind, Problem},
    resource::{Context, Error, Managed},
    state::Processed,
    types::{
        disk::{self, blame, stop},
        ownership::Ownership,
        purge::refuse_files_of_packages,
        unmanaged::{Search, dearness},
    },
    vocabulary::Mode,
};

/// The mode of files when none is given.
const FILE_MODE: u32 = 0o644;

pub(super) fn inspect(want: &Properties, cx: &Context) -> Result<ScaffoldState, Error> {
    let root = want.name.as_path();
    let mut metadata =
        Metadata { name: want.name.to_string(), provider: "posix".to_owned(), ..Metadata::default() };
    let directory = disk::entry(root, cx)?.filter(|entry| entry.kind == FileKind::Directory);
    let (Some(scope), Some(_)) = (cx.scope(), &want.source) else {
        // Who only looks has no tree to compare with.
        return Ok(ScaffoldState { metadata, plan: Plan::default(), is_there: directory.is_some() });
    };
    let (rendered, is_secret) = tree::render(want, &cx.resolve(""), scope)?;
    if is_secret {
        cx.mark_secret();
    }
    let own: BTreeSet<PathBuf> = rendered.keys().map(|place| root.join(place)).collect();
    let attributes = attributes(want, cx)?;
    let mut plan = Plan { folders: folders(want, &own, attributes, cx)?, attributes, ..Plan::default() };
    if directory.is_some() {
        strangers(want, &own, &mut plan, &mut metadata, cx)?;
    }
    let is_there = compare(want, rendered, &mut plan, &mut metadata, cx)?;
    if want.ensure == Ensure::Absent {
        plan.emptied = emptied(&plan, cx)?;
    }
    Ok(ScaffoldState { metadata, plan, is_there })
}

/// Compares each file, and returns whether any is there.
fn compare(
    want: &Properties,
    rendered: Rendered,
    plan: &mut Plan,
    metadata: &mut Metadata,
    cx: &Context,
) -> Result<bool, Error> {
    let mut is_there = false;
    for (place, bytes) in rendered {
        cx.tick()?;
        let path = want.name.as_path().join(&place);
        let shown = path.display().to_string();
        let commands = post::commands(want, &place);
        // What commands have made of a file can be of any size.
        let size = commands.is_empty().then_some(bytes.len() as u64);
        let have = look(&path, size, cx)?;
        let is_ours = have.as_ref().is_some_and(|have| have.entry.kind != FileKind::Directory);
        is_there |= is_ours;
        if want.ensure == Ensure::Absent {
            if is_ours {
                metadata.changed.push(shown);
                plan.remove.push(path);
            }
            continue;
        }
        let sha256 = files::hex(&Sha256::digest(&bytes));
        let of_mode = want.mode_of(&place);
        let attributes = plan
            .attributes
            .map(|TreeAttributes { files, .. }| Attributes { mode: of_mode.unwrap_or(files.mode), ..files });
        let differs = match (&have, attributes) {
            (None, _) => vec!["content"],
            (Some(have), Some(wanted)) => {
                in_the_way(&path, &have.entry)?;
                let (content, mode) = compared(&path, have, &sha256, &commands, wanted.mode, cx);
                differs(have, content, Attributes { mode: of_mode.unwrap_or(mode), ..wanted })
            }
            (Some(_), None) => Vec::new(),
        };
        if differs.is_empty() {
            metadata.stable.push(shown);
        } else {
            metadata.changed.push(shown);
            let is_processed = !commands.is_empty();
            plan.write.push(Write { place, path, bytes, sha256, attributes, is_processed, differs });
        }
    }
    Ok(is_there)
}

/// Compares the content of a file with the desired content, and returns the desired mode. Commands decide about both.
fn compared(
    path: &Path,
    have: &Digested,
    sha256: &str,
    commands: &[&Post],
    mode: u32,
    cx: &Context,
) -> (Sameness, u32) {
    let found = have.sha256.as_deref();
    let (is_same, mode) = if commands.is_empty() {
        (found == Some(sha256), mode)
    } else {
        let processed = cx.state.directory.processed(path).unwrap_or_else(|error| {
            cx.warn(format!("{error}; the commands of `post` are run again"));
            None
        });
        let stored = |digest: String| cx.stored_digest(digest).unwrap_or_default();
        let fingerprint = stored(post::fingerprint(sha256, commands));
        let left = found.map(|found| stored(found.to_owned()));
        let is_current =
            |processed: &Processed| processed.is_of(&fingerprint) && left.as_ref() == Some(&processed.left);
        match processed {
            Some(processed) => match processed.mode(mode).filter(|_| is_current(&processed)) {
                Some(left) => (true, left),
                None => (false, mode),
            },
            // Without a record, execute bits are taken to be the work of a command.
            None if found == Some(sha256) && is_with_execute_bits(have.entry.mode, mode) => {
                (true, have.entry.mode)
            }
            None => (false, mode),
        }
    };
    let is_same = is_same && have.entry.kind == FileKind::File;
    (if is_same { Sameness::Same } else { Sameness::Different }, mode)
}

/// Returns whether a mode is another one with execute bits added.
fn is_with_execute_bits(found: u32, mode: u32) -> bool {
    found != mode && found & mode == mode && found & !mode & !0o111 == 0
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sameness {
    Same,
    Different,
}

fn differs(have: &Digested, content: Sameness, wanted: Attributes) -> Vec<&'static str> {
    let Entry { uid, gid, mode, .. } = have.entry;
    let properties = [
        ("content", content == Sameness::Different),
        ("owner", uid != wanted.uid),
        ("group", gid != wanted.gid),
        ("mode", mode != wanted.mode),
    ];
    properties.into_iter().filter(|(_, differs)| *differs).map(|(property, _)| property).collect()
}

/// What is neither a file nor a link is not replaced.
fn in_the_way(path: &Path, found: &Entry) -> Result<(), Error> {
    let what = match found.kind {
        FileKind::File | FileKind::Symlink { .. } => return Ok(()),
        FileKind::Directory => "a directory",
        _ => "a device, fifo or socket",
    };
    let message = format!("{what} is in the way at {}: there is to be a file", path.display());
    Err(Error::new(message).with_help("move it away, or remove it"))
}

/// What is at the path of a file, as it is or as a dry run foresees it. Of a file that is not of the wanted size no more is
/// read than it takes to know that.
fn look(path: &Path, size: Option<u64>, cx: &Context) -> Result<Option<Digested>, Error> {
    let mut predicted = None;
    let found = cx.prediction.borrow().files.inspect(path).map_err(|error| blame(error, cx))?;
    if let Some(found) = found {
        match found.entry(FileKind::File) {
            Some(digested) if digested.is_as_on_disk() => predicted = Some(digested.entry),
            other => return Ok(other),
        }
    }
    let on_disk = cx.prediction.borrow().files.place_on_disk(path);
    let digested = match files::digest(&on_disk, size, cx.digests(), &mut || stop(cx)) {
        Err(FileError { problem: Problem::Denied { .. }, .. }) => {
            files::inspect(&on_disk)?.map(|entry| Digested { entry, sha256: None })
        }
        digested => digested.map_err(|error| blame(error, cx))?,
    };
    Ok(digested.map(|Digested { entry, sha256 }| Digested { entry: predicted.unwrap_or(entry), sha256 }))
}

/// The folders of the tree, the outer ones first, and whether each is as it is to be.
fn folders(
    want: &Properties,
    own: &BTreeSet<PathBuf>,
    attributes: Option<TreeAttributes>,
    cx: &Context,
) -> Result<Vec<Folder>, Error> {
    let root = want.name.as_path();
    let mut all = BTreeSet::from([root.to_owned()]);
    for path in own {
        all.extend(path.ancestors().skip(1).take_while(|above| above.starts_with(root)).map(Path::to_owned));
    }
    let mut folders = Vec::new();
    for path in all {
        let have = disk::entry(&path, cx)?;
        let is_directory = have.as_ref().is_some_and(|entry| entry.kind == FileKind::Directory);
        match (want.ensure, &have) {
            (Ensure::Present, Some(_)) if !is_directory => {
                let message = format!("{} is in the way: there is to be a directory", path.display());
                return Err(Error::new(message).with_help("move it away, or remove it"));
            }
            (Ensure::Absent, _) if !is_directory => continue,
            _ => {}
        }
        let is_right = match (&have, attributes.filter(|_| want.directory_mode.is_some())) {
            (Some(Entry { uid, gid, mode, .. }), Some(TreeAttributes { folders: wanted, .. })) => {
                (*uid, *gid, *mode) == (wanted.uid, wanted.gid, wanted.mode)
            }
            (have, _) => have.is_some(),
        };
        folders.push(Folder { path, have, is_right });
    }
    Ok(folders)
}

/// Finds what the tree does not have and no other resource manages.
fn strangers(
    want: &Properties,
    own: &BTreeSet<PathBuf>,
    plan: &mut Plan,
    metadata: &mut Metadata,
    cx: &Context,
) -> Result<(), Error> {
    let directory = want.name.as_path();
    let is_purged = want.purge.is_wanted() && want.ensure == Ensure::Present;
    if is_purged && let Some(what) = dearness(directory, cx)? {
        let message = format!("{} is {what}, which is not purged", want.name);
        return Err(Error::new(message).on("purge").with_help("make a directory in it from the tree"));
    }
    let own = own.iter().map(|path| Managed::Path(path.clone()));
    let managed = cx.managed_besides(&want.managed(), own);
    let found = Search { directory, managed: &managed, ignored: &[], cx }.find()?;
    if is_purged {
        refuse_files_of_packages(want.purge, directory, &found, cx)?;
    }
    for path in found.into_iter().map(|path| directory.join(path)) {
        let shown = path.display().to_string();
        if is_purged {
            metadata.purged.push(shown);
            plan.remove.push(path);
        } else {
            metadata.foreign.push(shown);
        }
    }
    Ok(())
}

/// Returns the folders in which nothing is left once the files are removed, the inner ones first.
fn emptied(plan: &Plan, cx: &Context) -> Result<Vec<PathBuf>, Error> {
    let mut gone: BTreeSet<PathBuf> = plan.remove.iter().cloned().collect();
    let mut emptied = Vec::new();
    for Folder { path, .. } in plan.folders.iter().rev() {
        let names = cx.prediction.borrow().files.names(path)?;
        if names.iter().all(|name| gone.contains(&path.join(name))) {
            gone.insert(path.clone());
            emptied.push(path.clone());
        }
    }
    Ok(emptied)
}

/// Owner, group and modes as numbers; `None` with `absent`.
fn attributes(want: &Properties, cx: &Context) -> Result<Option<TreeAttributes>, Error> {
    if want.ensure == Ensure::Absent {
        return Ok(None);
    }
    let (uid, gid) = Ownership::of(want.owner.as_ref(), want.group.as_ref()).ids(cx)?;
    let (uid, gid) = (uid.unwrap_or(geteuid().as_raw()), gid.unwrap_or(getegid().as_raw()));
    let mode = want.mode.map_or(FILE_MODE, Mode::bits);
    let of_folders = want.directory_mode.or(want.mode).map_or(0o755, Mode::directory_bits);
    let files = Attributes { uid, gid, mode };
    Ok(Some(TreeAttributes { files, folders: Attributes { mode: of_folders, ..files } }))
}
