//! Makes bundles: the same folder gives the same bytes, whoever packs it and when.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use super::{
    LABEL_FILE, Label,
    contents::{Contents, Rules},
};
use crate::{
    host::{
        files::{self, Attributes, FileError, FileKind},
        input::{self, UnreadableInput},
        look,
    },
    manifest::{DATA_FILE, IN_A_FOLDER},
};

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("{} holds no {IN_A_FOLDER}", .0.display())]
    NoManifest(PathBuf),
    #[error("{} is neither a file nor a folder: a bundle holds nothing else", .0.display())]
    Special(PathBuf),
    #[error("the name {} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    #[error("{}: {error}", path.display())]
    Ignore { path: PathBuf, error: ignore::Error },
    #[error(
        "{} looks like {what}, and a bundle is not encrypted: encrypt it, name it in .ccmignore, or pass \
         `--allow-secrets {}`", path.display(), path.display()
    )]
    Secret { path: PathBuf, what: &'static str },
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    Unreadable(#[from] UnreadableInput),
}

/// What goes into a bundle.
pub(super) struct Member {
    /// Its name in the bundle; a folder's ends with a slash.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) kind: FileKind,
}

/// Packs a folder into a bundle, the label first and everything else in the order of its name. Owners and dates are left
/// out, and of modes only whether a file can be executed stays. `.git` is not packed.
pub(crate) fn build(folder: &Path, label: &Label, to: &Path, rules: &Rules) -> Result<(), BuildError> {
    if !look::is_file(&folder.join(IN_A_FOLDER)) {
        return Err(BuildError::NoManifest(folder.to_owned()));
    }
    let mut members = Vec::new();
    Contents::new(folder, to, rules)?.collect(folder, "", &mut members)?;
    members.sort_by(|one, other| one.name.cmp(&other.name));
    files::replace(to, Attributes::own(0o644), |out| pack(&members, label, out))?;
    Ok(())
}

/// Packs a file with data into a bundle.
pub(crate) fn build_data(file: &Path, label: &Label, to: &Path) -> Result<(), BuildError> {
    input::open_file(file).map_err(|error| UnreadableInput { path: file.to_owned(), error })?;
    let data =
        Member { name: DATA_FILE.to_owned(), path: file.to_owned(), mode: 0o644, kind: FileKind::File };
    files::replace(to, Attributes::own(0o644), |out| pack(&[data], label, out))?;
    Ok(())
}

fn pack(members: &[Member], label: &Label, out: &mut dyn Write) -> io::Result<()> {
    // The header says nothing of when and where it was made.
    let packed = GzBuilder::new().mtime(0).operating_system(255).write(out, Compression::best());
    let mut archive = tar::Builder::new(packed);
    let label = serde_json::to_vec_pretty(label)?;
    let mut header = header(EntryType::Regular, 0o644, label.len() as u64);
    archive.append_data(&mut header, LABEL_FILE, label.as_slice())?;
    for member in members {
        match member.kind {
            FileKind::Directory => {
                let mut header = self::header(EntryType::Directory, member.mode, 0);
                archive.append_data(&mut header, &member.name, io::empty())?;
            }
            _ => {
                let file = input::open_file(&member.path).map_err(|error| {
                    io::Error::other(UnreadableInput { path: member.path.clone(), error })
                })?;
                let size = file.metadata()?.len();
                let mut header = self::header(EntryType::Regular, member.mode, size);
                // A file that grows meanwhile must not write over its neighbour.
                archive.append_data(&mut header, &member.name, io::Read::take(file, size))?;
            }
        }
    }
    archive.into_inner()?.finish()?.flush()
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}
