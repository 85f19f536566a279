//! What is observed of a scaffold.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    host::files::{Attributes, Entry},
    resource::State,
};

/// The files of a directory, compared with those of its tree.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ScaffoldState {
    /// The files, by what is to happen to them, or did.
    pub(super) metadata: Metadata,
    #[serde(skip)]
    pub(super) plan: Plan,
    /// Whether a file of the tree is there; of a tree that is not known, whether the directory is.
    #[serde(skip)]
    pub(super) is_there: bool,
}

/// The files, by what is to happen to them, or did.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// The directory.
    pub(super) name: String,
    /// The provider that looked.
    pub(super) provider: String,
    /// Files that differ from the tree, or with `absent` are there; after a run, those that were changed.
    pub(super) changed: Vec<String>,
    /// Files that are as the tree has them.
    pub(super) stable: Vec<String>,
    /// What the tree does not have and `purge` removes.
    pub(super) purged: Vec<String>,
    /// What the tree does not have and stays.
    pub(super) foreign: Vec<String>,
}

/// What has to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) write: Vec<Write>,
    pub(super) remove: Vec<PathBuf>,
    /// All folders of the tree, the outer ones first.
    pub(super) folders: Vec<Folder>,
    /// With `absent`, the folders that are empty then, the inner ones first.
    pub(super) emptied: Vec<PathBuf>,
    pub(super) attributes: Option<TreeAttributes>,
}

/// Owner, group and mode of all files and of all folders.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeAttributes {
    pub(super) files: Attributes,
    pub(super) folders: Attributes,
}

/// A file to write.
#[derive(Debug, Default)]
pub(super) struct Write {
    /// Its place in the tree.
    pub(super) place: PathBuf,
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
    /// Owner, group and mode, before the commands.
    pub(super) attributes: Option<Attributes>,
    /// Whether commands process it.
    pub(super) is_processed: bool,
    /// What differs, of content, owner, group and mode.
    pub(super) differs: Vec<&'static str>,
}

/// A folder of the tree.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) have: Option<Entry>,
    /// Whether it is there, with its owner and mode where those are asked for.
    pub(super) is_right: bool,
}

impl ScaffoldState {
    /// The state after an action, which tells what was done.
    pub(super) fn after(mut self, before: &Self) -> Self {
        if self.plan.write.is_empty() && self.plan.remove.is_empty() {
            self.metadata.changed.clone_from(&before.metadata.changed);
            self.metadata.purged.clone_from(&before.metadata.purged);
            let stable = &before.metadata.stable;
            self.metadata.stable.retain(|path| stable.binary_search(path).is_ok());
        }
        self
    }
}

impl State for ScaffoldState {
    fn ensure(&self) -> String {
        if self.is_there { "present" } else { "absent" }.to_owned()
    }

    fn redact(&mut self) {
        let Metadata { changed, stable, purged, foreign, .. } = &mut self.metadata;
        // Names are templates too.
        [changed, stable, purged, foreign].into_iter().for_each(Vec::clear);
    }
}
