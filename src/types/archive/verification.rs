//! Compares extracted files with the record of the extraction.

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

/// Maximum number of modified files in a message.
const MOST_NAMED: usize = 10;

impl ArchiveState {
    /// Compares the extracted files with the record.
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

/// Returns the first extracted files that are missing or different.
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

/// Returns whether an entry is unmodified since the extraction.
pub(super) fn is_untouched(path: &Path, what: &What, cx: &Context) -> Result<bool, Error> {
    Ok(look(path, what, cx)?.is_some_and(|found| is_as_unpacked(&found, what)))
}

fn look(path: &Path, what: &What, cx: &Context) -> Result<Option<Digested>, Error> {
    let found = match what {
        What::File { .. } => files::digest(path, None, cx.digests(), &mut || stop(cx)),
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

/// Returns whether an entry has the owner and mode of its extraction. A directory might have existed before and kept
/// its own.
fn has_attributes(found: &Entry, what: &What, owner: Attributes) -> bool {
    let is_owned = (found.uid, found.gid) == (owner.uid, owner.gid);
    match what {
        What::Directory => true,
        What::File { mode, .. } => is_owned && found.mode == *mode,
        What::Link { .. } => is_owned,
    }
}
