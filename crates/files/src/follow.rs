//! Reading a file that the user named, through links that can be trusted.

use std::{fs::File, path::Path};

use rustix::io::Errno;

use super::{
    attributes,
    entry::{Entry, FileKind},
    error::{FileError, Operation, Problem},
    opening, walk,
};

/// Opens a regular file to copy from; `None` when nothing is there.
///
/// Links are followed by the rules of the walk, the last one too: whoever may put a link on the way decides which of
/// root's files is copied. Nothing that is no regular file is opened, and no file with several names where others could
/// have given it this one.
pub fn open_followed(path: &Path) -> Result<Option<(File, Entry)>, FileError> {
    match open(path) {
        Err(Problem::ParentMissing { .. } | Problem::DanglingLink { .. }) => Ok(None),
        opened => opened.map_err(|problem| FileError::new(Operation::Read, path, problem)),
    }
}

fn open(path: &Path) -> Result<Option<(File, Entry)>, Problem> {
    let mut path = path.to_owned();
    for _ in 0..=walk::MOST_LINKS {
        let Some(name) = path.file_name() else { return Err(Problem::IsADirectory { at: path }) };
        let (place, name) = (walk::reach_directory(path.parent().unwrap_or(&path))?, name.to_owned());
        let Some(seen) = place.entry(&name)? else { return Ok(None) };
        let at = place.at(&name);
        match seen.kind {
            FileKind::Symlink { target } => {
                if let Some(risk) = place.trust().risk_of_link(place.path(), seen.uid, seen.nlink) {
                    return Err(Problem::UnsafeLink { link: at, target, owner: seen.uid.into(), risk });
                }
                path = place.path().join(target);
            }
            FileKind::File => {
                let opened = place.open(&name, opening::READ).map_err(|errno| match errno {
                    Errno::NOENT | Errno::LOOP => Problem::Changed { at: at.clone() },
                    // It was seen a moment ago, so a refusal is the file's own and not its directory's.
                    errno => Problem::from_errno(errno, &at),
                })?;
                let entry = Entry::of(&opened, &at)?;
                if entry.kind != FileKind::File {
                    return Err(Problem::Changed { at });
                }
                attributes::refuse_hard_links(&place, &name, &entry)?;
                return Ok(Some((opened.into(), entry)));
            }
            FileKind::Directory => return Err(Problem::IsADirectory { at }),
            _ => return Err(Problem::Special { at }),
        }
    }
    Err(Problem::LinkLoop { link: path })
}
