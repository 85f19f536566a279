//! Whether what was unpacked is still as it was unpacked.

use std::path::Path;

use super::{
    Properties,
    state::{ArchiveState, blame},
};
use crate::{
    host::{
        files::{self, Attributes, Digested, Entry, FileKind},
        unpack::{Extracted, What},
    },
    resource::{Context, Error},
    types::disk::stop,
};

/// As many tampered files are named.
const MOST_NAMED: usize = 10;

impl ArchiveState {
    /// Compares what was unpacked with what is there.
    pub(super) fn verify(&mut self, want: &Properties, cx: &Context) -> Result<(), Error> {
        let (Some(target), Some(owner)) = (&want.extract_parent, self.target) else { return Ok(()) };
        let Some(record) = &self.extraction else {
            if let Some(creates) = want.creates.as_ref().filter(|_| self.metadata.creates_exists) {
                cx.warn(format!(
                    "what was unpacked into {target} is not known, so it cannot be verified; remove {creates} to have it \
                     unpacked again"
                ));
            }
            return Ok(());
        };
        match cx.state.directory.extracted(record) {
            Ok(list) => self.metadata.tampered = tampered(target.as_path(), &list, owner, cx)?,
            Err(error) => {
                cx.warn(format!(
                    "{error}; it is unpacked again, because nothing else tells what belongs there"
                ));
                self.is_list_lost = true;
            }
        }
        Ok(())
    }
}

/// Returns the first few of the unpacked files that are missing or differ.
fn tampered(
    target: &Path,
    list: &[Extracted],
    owner: Attributes,
    cx: &Context,
) -> Result<Vec<String>, Error> {
    let mut tampered = Vec::new();
    for Extracted { path, what } in list {
        let path = target.join(path);
        let found = look(&path, what, cx)?;
        if !found
            .is_some_and(|found| is_as_unpacked(&found, what) && has_attributes(&found.entry, what, owner))
        {
            tampered.push(path.display().to_string());
            if tampered.len() == MOST_NAMED {
                break;
            }
        }
    }
    Ok(tampered)
}

/// Returns whether nobody has changed what something is and holds.
pub(super) fn is_untouched(path: &Path, what: &What, cx: &Context) -> Result<bool, Error> {
    Ok(look(path, what, cx)?.is_some_and(|found| is_as_unpacked(&found, what)))
}

fn look(path: &Path, what: &What, cx: &Context) -> Result<Option<Digested>, Error> {
    let found = match what {
        What::File { .. } => files::digest(path, None, &cx.state.digests, &mut || stop(cx)),
        _ => files::inspect(path).map(|entry| entry.map(|entry| Digested { entry, sha256: None })),
    };
    found.map_err(|error| blame(error, cx))
}

fn is_as_unpacked(found: &Digested, what: &What) -> bool {
    match (what, &found.entry.kind) {
        (What::File { sha256, .. }, FileKind::File) => found.sha256 == Some(files::hex(sha256)),
        (What::Link { target }, FileKind::Symlink { target: found }) => target == found,
        (What::Directory, FileKind::Directory) => true,
        _ => false,
    }
}

/// Returns whether something belongs to whom it was unpacked for, with the mode that it was given. A directory may have
/// been there before, and then kept its own.
fn has_attributes(found: &Entry, what: &What, owner: Attributes) -> bool {
    let is_owned = (found.uid, found.gid) == (owner.uid, owner.gid);
    match what {
        What::Directory => true,
        What::File { mode, .. } => is_owned && found.mode == *mode,
        What::Link { .. } => is_owned,
    }
}
