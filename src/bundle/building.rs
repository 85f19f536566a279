//! Makes bundles: the same folder gives the same bytes, whoever packs it and when.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use super::{LABEL_FILE, Label};
use crate::{
    host::{
        files::{self, Attributes, FileError, FileKind},
        input::{self, UnreadableInput},
        look,
    },
    manifest::IN_A_FOLDER,
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
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    Unreadable(#[from] UnreadableInput),
}

/// What goes into a bundle.
struct Member {
    /// Its name in the bundle; a folder's ends with a slash.
    name: String,
    path: PathBuf,
    mode: u32,
    kind: FileKind,
}

/// Packs a folder into a bundle, the label first and everything else in the order of its name. Owners and dates are left
/// out, and of modes only whether a file can be executed stays. `.git` is not packed.
pub(crate) fn build(folder: &Path, label: &Label, to: &Path) -> Result<(), BuildError> {
    if !look::is_file(&folder.join(IN_A_FOLDER)) {
        return Err(BuildError::NoManifest(folder.to_owned()));
    }
    let mut members = Vec::new();
    collect(folder, "", to, &mut members)?;
    members.sort_by(|one, other| one.name.cmp(&other.name));
    files::replace(to, Attributes::own(0o644), |out| pack(&members, label, out))?;
    Ok(())
}

fn collect(folder: &Path, prefix: &str, to: &Path, members: &mut Vec<Member>) -> Result<(), BuildError> {
    for name in files::names(folder)? {
        let path = folder.join(&name);
        let text = name.into_string().map_err(|_| BuildError::NotText(path.clone()))?;
        let is_left_out = prefix.is_empty() && [".git", LABEL_FILE].contains(&text.as_str());
        if is_left_out || path == to || files::is_temporary_name(text.as_ref()) {
            continue;
        }
        let Some(entry) = files::inspect(&path)? else { continue };
        let name = format!("{prefix}{text}");
        match entry.kind {
            FileKind::Directory => {
                let name = format!("{name}/");
                collect(&path, &name, to, members)?;
                members.push(Member { name, path, mode: 0o755, kind: FileKind::Directory });
            }
            FileKind::File => {
                let mode = if entry.mode & 0o111 == 0 { 0o644 } else { 0o755 };
                members.push(Member { name, path, mode, kind: FileKind::File });
            }
            _ => return Err(BuildError::Special(path)),
        }
    }
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
