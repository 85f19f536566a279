//! Makes the directory what the tree says.

use super::{
    Ensure, Properties, post, staging,
    state::{Folder, ScaffoldState, TreeAttributes, Write},
};
use crate::{
    host::files::{self, Attributes, Batch, Parents},
    resource::{Context, Drafts, Error},
    types::disk::{blame, note_parent, note_parents, stop},
};

/// Writes and removes what has to be.
pub(super) fn enact(want: &Properties, have: &ScaffoldState, cx: &Context) -> Result<(), Error> {
    let plan = &have.plan;
    let own = staging::alone(want, have, cx)?;
    let drafts = cx.validated().or(own.as_ref());
    if let Some(TreeAttributes { folders, .. }) = plan.attributes {
        for folder in plan.folders.iter().filter(|folder| !folder.is_right) {
            make(folder, folders, cx)?;
        }
        let room = Batch::room().max(1);
        plan.write.chunks(room).try_for_each(|group| write(want, group, drafts, cx))?;
    }
    for path in &plan.remove {
        let removed = match want.ensure {
            Ensure::Present => files::remove_tree(path, &mut || stop(cx)),
            Ensure::Absent => files::remove(path),
        };
        removed.map_err(|error| blame(error, cx))?;
    }
    for path in &plan.emptied {
        // Somebody may have put something there since.
        if files::names(path).map_err(|error| blame(error, cx))?.is_empty() {
            files::remove(path).map_err(|error| blame(error, cx))?;
        }
    }
    Ok(())
}

fn make(folder: &Folder, wanted: Attributes, cx: &Context) -> Result<(), Error> {
    let made = match &folder.have {
        Some(entry) => files::set_attributes(&folder.path, entry, wanted, &mut || stop(cx)),
        None => {
            note_parents(&folder.path, cx);
            files::make_directory(&folder.path, wanted, Parents::Make)
        }
    };
    made.map_err(|error| blame(error, cx))
}

/// Writes files that reach the disk together, except those that were prepared as drafts.
fn write(want: &Properties, group: &[Write], drafts: Option<&Drafts>, cx: &Context) -> Result<(), Error> {
    let mut batch = Batch::default();
    if group.len() >= Batch::WORTHWHILE && drafts.is_none() {
        for Write { path, bytes, sha256, attributes, .. } in
            group.iter().filter(|file| file.bytes.len() <= Batch::LARGEST)
        {
            let Some(wanted) = *attributes else { continue };
            note_parent(path, cx);
            if cx.tick().is_err() || batch.prepare(path, wanted, bytes, sha256.clone()).is_err() {
                // Whoever fails again in its turn says why.
                break;
            }
        }
        batch.sync();
    }
    for file in group {
        cx.tick()?;
        let Write { path, bytes, sha256, attributes, .. } = file;
        let Some(wanted) = *attributes else { continue };
        note_parent(path, cx);
        if let Some(drafts) = drafts {
            publish(want, file, drafts, cx)?;
            continue;
        }
        batch.turn(path).map_err(|error| blame(error, cx))?;
        let written = batch.publish(path, wanted, sha256);
        written
            .unwrap_or_else(|| files::replace_among_others(path, wanted, |out| out.write_all(bytes)))
            .map_err(|error| blame(error, cx))?;
    }
    Ok(())
}

/// Publishes a file that was prepared as a draft.
fn publish(want: &Properties, file: &Write, drafts: &Drafts, cx: &Context) -> Result<(), Error> {
    let changed = || Error::new(format!("{} was changed since it was validated", file.path.display()));
    if drafts.find(&file.path).is_none() && cx.validated().is_none() {
        staging::stage_file(want, file, drafts, cx)?;
    }
    let draft = drafts.find(&file.path).ok_or_else(changed)?;
    let attributes =
        Attributes { mode: want.mode_of(&file.place).unwrap_or(draft.attributes.mode), ..draft.attributes };
    files::replace_among_others(&file.path, attributes, |out| draft.pour(out, &mut || stop(cx)))
        .map_err(|error| blame(error, cx))?;
    post::keep(want, file, &draft, cx)
}
