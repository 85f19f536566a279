//! Home directories of users that already exist: a new user's is made by `useradd`.

use std::path::Path;

use crate::{
    host::{
        files::{self, Attributes, FileError, FileKind, Parents},
        system_file,
    },
    resource::Error,
};

/// What new homes are filled with.
const SKELETON: &str = "/etc/skel";

/// Makes a home directory with what the skeleton holds, all of it the user's.
pub(super) fn make(home: &Path, uid: u32, gid: u32) -> Result<(), Error> {
    files::make_directory(home, Attributes { uid, gid, mode: mode() }, Parents::Make)?;
    fill(Path::new(SKELETON), home, uid, gid).map_err(Error::from)
}

fn fill(from: &Path, to: &Path, uid: u32, gid: u32) -> Result<(), FileError> {
    let Ok(names) = files::names(from) else { return Ok(()) };
    for name in names {
        let (source, target) = (from.join(&name), to.join(&name));
        match files::inspect(&source)? {
            Some(entry) if entry.kind == FileKind::Directory => {
                let attributes = Attributes { uid, gid, mode: entry.mode & 0o777 };
                files::make_directory(&target, attributes, Parents::Expect)?;
                fill(&source, &target, uid, gid)?;
            }
            Some(entry) if entry.kind == FileKind::File => {
                let attributes = Attributes { uid, gid, mode: entry.mode & 0o777 };
                if let Some((Some(mut file), _)) = files::open_regular(&source)? {
                    files::replace(&target, attributes, |out| std::io::copy(&mut file, out).map(drop))?;
                }
            }
            // Links and devices in a skeleton are left to whoever put them there.
            _ => {}
        }
    }
    Ok(())
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
