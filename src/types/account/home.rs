//! Home directories, each of which is there whole or not at all.
//!
//! `useradd`, `usermod` and `userdel` first write the account down and then make, move or remove the home. One that is killed
//! in between leaves a home that nobody finishes: the next run finds the account as it should be. So the home is dealt with
//! here, and in an order that the next run can take up.

use std::path::Path;

use crate::{
    host::{
        files::{self, Attributes, FileError, FileKind, Moved, Staging},
        system_file,
    },
    resource::{Context, Error},
    types::disk::{blame, note_parents, stop},
};

/// What new homes are filled with.
const SKELETON: &str = "/etc/skel";

/// Makes a home directory with what the skeleton holds, all of it the user's. It appears with one rename.
pub(super) fn make(home: &Path, uid: u32, gid: u32, cx: &Context) -> Result<(), Error> {
    note_parents(home, cx);
    let root = Attributes { uid, gid, mode: mode() };
    let make = || {
        let mut staging = Staging::new(home, root)?;
        fill(&mut staging, Path::new(""), root)?;
        staging.publish(root, None, &|_| false)
    };
    make().map_err(|error| blame(error, cx).on("home"))
}

fn fill(staging: &mut Staging, folder: &Path, root: Attributes) -> Result<(), FileError> {
    let Ok(names) = files::names(&Path::new(SKELETON).join(folder)) else { return Ok(()) };
    for name in names {
        let path = folder.join(&name);
        let source = Path::new(SKELETON).join(&path);
        let Some(entry) = files::inspect(&source)? else { continue };
        let attributes = Attributes { mode: entry.mode & 0o777, ..root };
        match entry.kind {
            FileKind::Directory => {
                staging.make_directory(&path)?;
                fill(staging, &path, root)?;
                staging.dress_directory(&path, attributes)?;
            }
            FileKind::File => {
                if let Some((Some(mut file), _)) = files::open_regular(&source)? {
                    staging.copy_file(&path, &mut file, attributes)?;
                }
            }
            FileKind::Symlink { target } => staging.make_symlink(&path, &target, root)?,
            // Devices and pipes in a skeleton are left to whoever put them there.
            _ => {}
        }
    }
    Ok(())
}

/// Moves a home directory, if both places are on one file system.
pub(super) fn relocate(from: &Path, to: &Path, uid: u32, cx: &Context) -> Result<Moved, Error> {
    note_parents(to, cx);
    files::move_directory(from, to, uid).map_err(|error| blame(error, cx).on("home"))
}

/// Removes a home directory with everything in it.
pub(super) fn remove(home: &Path, cx: &Context) -> Result<(), Error> {
    files::remove_tree(home, &mut || stop(cx)).map_err(|error| blame(error, cx).on("home"))
}

/// Returns the mode that `/etc/login.defs` gives to new homes.
fn mode() -> u32 {
    let text = system_file::read("/etc/login.defs").unwrap_or_default();
    let octal = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key))?;
        u32::from_str_radix(line.trim(), 8).ok()
    };
    octal("HOME_MODE").or_else(|| octal("UMASK").map(|mask| 0o777 & !mask)).unwrap_or(0o755)
}
