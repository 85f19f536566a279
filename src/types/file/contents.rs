//! What is in a directory that is to be removed.

use std::path::Path;

use super::{
    Ensure, Properties,
    state::{Amount, Contents},
};
use crate::{
    host::files::{self, FileKind, Occupancy},
    resource::{Context, Error},
    vocabulary::RunMode,
};

/// Returns whether anything is in the directory, which matters only to who wants it gone, and how much a dry run would
/// remove.
pub(super) fn contents(want: &Properties, cx: &Context) -> Result<Contents, Error> {
    if want.ensure != Ensure::Absent {
        return Ok(Contents::NotAsked);
    }
    let path = want.name.as_path();
    let occupancy = cx.prediction.borrow().files.occupancy(path);
    match occupancy {
        // Without the right to list it, an empty one can be removed.
        Err(_) if want.force => Ok(Contents::NotAsked),
        Err(error) => Err(error.into()),
        Ok(Occupancy::Empty) => Ok(Contents::None),
        Ok(Occupancy::Unknown) if !want.force => {
            cx.assume(
                "an earlier resource creates it with unknown content; assuming it is empty: \
                 otherwise a real run fails without `force: true`",
            );
            Ok(Contents::None)
        }
        Ok(_) if want.force && cx.mode() == RunMode::Noop => {
            Ok(amount(path, cx)?.map_or(Contents::Some, Contents::Counted))
        }
        Ok(_) => Ok(Contents::Some),
    }
}

/// Returns how much is in a directory by what a dry run knows; `None` where that is nothing for certain.
fn amount(path: &Path, cx: &Context) -> Result<Option<Amount>, Error> {
    let mut amount = Amount::default();
    let mut rest = vec![path.to_owned()];
    while let Some(directory) = rest.pop() {
        cx.tick()?;
        let prediction = &cx.prediction.borrow().files;
        // What may not be listed is not counted; that it cannot be removed either is told elsewhere.
        for name in prediction.names(&directory).unwrap_or_default() {
            let path = directory.join(name);
            let kind = match prediction.inspect(&path)? {
                Some(predicted) => predicted.entry(FileKind::File).map(|found| found.entry.kind),
                None => files::inspect(&path)?.map(|entry| entry.kind),
            };
            match kind {
                Some(FileKind::Directory) => {
                    amount.directories += 1;
                    rest.push(path);
                }
                Some(_) => amount.files += 1,
                None => {}
            }
        }
    }
    Ok((amount != Amount::default()).then_some(amount))
}
