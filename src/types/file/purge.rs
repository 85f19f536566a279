//! What purging a directory removes.

use std::path::PathBuf;

use super::{Ensure, Properties};
use crate::{
    resource::{Context, Error},
    types::{
        purge::refuse_files_of_packages,
        unmanaged::{Search, dearness},
    },
};

/// Returns what purging the directory removes, as paths below it, in order.
pub(super) fn unmanaged(want: &Properties, cx: &Context) -> Result<Vec<PathBuf>, Error> {
    if want.purge.is_off() || want.ensure != Ensure::Directory {
        return Ok(Vec::new());
    }
    let directory = want.name.as_path();
    if !want.force
        && let Some(what) = dearness(directory, cx)?
    {
        let message = format!("{} is {what}, which is not purged without being sure", want.name);
        return Err(Error::new(message).on("purge").with_help("set `force: true` if that is what you mean"));
    }
    let found = Search { directory, managed: &cx.managed_paths(), ignored: &want.ignore, cx }.find()?;
    refuse_files_of_packages(want.purge, directory, &found, cx)?;
    Ok(found)
}
