//! The paths as they are now.

use std::io::Read;

use schemars::JsonSchema;
use serde::Serialize;

use super::Properties;
use crate::{
    resource::{Context, Error, State},
    state::history::{Camera, Depth, Keeping, Objects, Secrecy, Snapshot, SnapshotKind},
    types::disk::{blame, stop},
};

/// Paths that are restored, as they are now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestoreState {
    /// Details of the paths.
    metadata: Metadata,
    #[serde(skip)]
    pub(super) paths: Vec<Snapshot>,
    /// Whether a removal of the path was interrupted.
    #[serde(skip)]
    pub(super) partly_removed: Vec<bool>,
    /// Why a path cannot be restored.
    #[serde(skip)]
    pub(super) missing: Vec<Option<String>>,
}

/// Details of the paths.
#[derive(Debug, Serialize, JsonSchema)]
struct Metadata {
    /// Name of the resource.
    name: String,
    /// The provider that inspected the paths.
    provider: String,
    /// Number of paths that do not have their earlier state.
    remaining: usize,
}

impl State for RestoreState {
    fn ensure(&self) -> String {
        if self.metadata.remaining == 0 { "restored" } else { "changed" }.to_owned()
    }
}

pub(super) fn inspect(want: &Properties, cx: &Context) -> Result<RestoreState, Error> {
    let objects = objects(want, cx)?;
    let tick = || stop(cx);
    let camera = Camera { objects: &objects, keeping: Keeping::Nothing, tick: &tick };
    let mut paths = Vec::new();
    for restored in &want.paths {
        let depth = match (&restored.before, &restored.after) {
            (before, after)
                if before.tree.is_some() || after.as_ref().is_some_and(|after| after.tree.is_some()) =>
            {
                Depth::Tree
            }
            (before, after)
                if before.digest.is_some() || after.as_ref().is_some_and(|after| after.digest.is_some()) =>
            {
                Depth::Content
            }
            (before, _) if before.kind == SnapshotKind::Absent => Depth::Content,
            _ => Depth::Attributes,
        };
        paths.push(camera.take(&restored.path(), depth).map_err(|error| blame(error, cx))?);
    }
    let partly_removed = want
        .paths
        .iter()
        .map(|restored| {
            let is_interrupted = restored.after.is_none() && restored.before.tree.is_some();
            is_interrupted && restored.before.is_partly_removed(&restored.path(), &objects)
        })
        .collect();
    let missing = want
        .paths
        .iter()
        .zip(&paths)
        .map(|(restored, now)| restored.before.not_kept(now, &objects))
        .collect();
    let remaining =
        want.paths.iter().zip(&paths).filter(|(restored, now)| !now.agrees_with(&restored.before)).count();
    let metadata = Metadata { name: want.name.clone(), provider: "history".to_owned(), remaining };
    Ok(RestoreState { metadata, paths, partly_removed, missing })
}

/// Opens the kept copies.
pub(super) fn objects(want: &Properties, cx: &Context) -> Result<Objects, Error> {
    let secrecy = if want.sensitive { Secrecy::Secret } else { Secrecy::Public };
    let store = cx.state.directory.make_history();
    store.and_then(|store| store.objects(secrecy)).map_err(|error| Error::new(error.to_string()))
}

/// Reads a kept content.
pub(super) fn content(before: &Snapshot, cx: &Context) -> Result<Option<Vec<u8>>, Error> {
    let Some(digest) = &before.digest else { return Ok(None) };
    let failed = |error: std::io::Error| Error::new(format!("cannot read the kept copy: {error}"));
    let store = cx.state.directory.make_history().and_then(|store| store.objects(Secrecy::Public));
    let store = store.map_err(|error| Error::new(error.to_string()))?;
    let Some(mut file) = store.open(digest).map_err(failed)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}
