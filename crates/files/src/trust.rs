//! Whose hands a path passes through, and what may be done at its end.
//!
//! The rules stand apart from the walk because a dry run asks them about directories that do not exist yet.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::{
    attributes::{self, Attributes},
    entry::Entry,
    error::{FileError, LinkRisk, Operation, Problem},
    walk,
};

pub(super) const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITE: u32 = 0o020;
const ANYBODY_READS: u32 = 0o444;
pub(super) const GROUP_OR_OTHERS_WRITE: u32 = GROUP_WRITE | OTHERS_WRITE;

/// Whose directories were passed on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    strangers: Vec<Stranger>,
    open_to_all: Option<PathBuf>,
    /// Owner and mode of the last directory.
    pub(super) owner: u32,
    pub(super) mode: u32,
}

#[derive(Clone, Debug)]
struct Stranger {
    component: PathBuf,
    owner: u32,
}

/// Whether files of this user can be relied on: root's, and those of the user running the program.
pub fn is_ours(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// Whether somebody could have a file open for writing who may not write to it once it has these attributes. Rights are
/// checked when a file is opened and never again: a descriptor outlasts every change of owner and mode.
pub(super) fn outlasts(found: &Entry, wanted: Attributes) -> bool {
    let others = OTHERS_WRITE & wanted.mode != 0;
    let owner = !is_ours(found.uid) && found.uid != wanted.uid;
    // An access list shows as the rights of the group, whoever it names.
    let group = found.mode & GROUP_WRITE != 0 && (wanted.mode & GROUP_WRITE == 0 || found.gid != wanted.gid);
    let anybody = found.mode & OTHERS_WRITE != 0;
    !others && (owner || group || anybody)
}

/// Whether the directory of a path, or one above it, belongs to a stranger other than `owner`.
pub fn is_among_others(path: &Path, owner: u32) -> bool {
    let refusal = walk::reach(path).and_then(|(place, _)| place.permits(owner));
    matches!(refusal, Err(Problem::UnsafeComponent { .. }))
}

/// Refuses to write the content of a file anew with attributes that let more people read it, where somebody could have
/// moved another file to its name for just that.
pub fn refuse_planted(path: &Path, found: &Entry, wanted: Attributes) -> Result<(), FileError> {
    let attempt = || {
        let (place, name) = walk::reach(path)?;
        let trust = place.trust();
        if !trust.others_can_write() && !trust.is_below_a_stranger() {
            return Ok(());
        }
        attributes::refuse_hard_links(&place, &name, found)?;
        let is_widened = (found.uid, found.gid) != (wanted.uid, wanted.gid)
            || wanted.mode & !found.mode & ANYBODY_READS != 0;
        // What the owner of the directory has in it is his; nobody moves what is in a sticky directory of ours.
        let is_his = found.uid == trust.owner && (!is_ours(trust.owner) || trust.is_sticky());
        if is_widened && !is_his {
            return Err(Problem::Planted { at: place.at(&name), directory: place.path().to_owned() });
        }
        Ok(())
    };
    attempt().map_err(|problem| FileError::new(Operation::Write, path, problem))
}

impl Trust {
    /// Notes what a directory means for everything below it.
    pub(super) fn pass(&mut self, component: &Path, owner: u32, mode: u32) {
        if !is_ours(owner) {
            self.strangers.push(Stranger { component: component.to_owned(), owner });
        }
        if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 && self.open_to_all.is_none() {
            self.open_to_all = Some(component.to_owned());
        }
        (self.owner, self.mode) = (owner, mode);
    }

    /// Why a link in the last directory is not to be followed.
    pub(super) fn risk_of_link(&self, directory: &Path, owner: u32, names: u64) -> Option<LinkRisk> {
        if let Some(stranger) = self.strangers.first() {
            let Stranger { component, owner } = stranger.clone();
            Some(LinkRisk::Below { component, owner: owner.into() })
        } else if let Some(component) = &self.open_to_all {
            Some(LinkRisk::Directory { directory: component.clone() })
        } else if !is_ours(owner) {
            Some(LinkRisk::Owner)
        } else if self.mode & GROUP_OR_OTHERS_WRITE == 0 {
            None
        } else if !self.is_sticky() {
            Some(LinkRisk::Directory { directory: directory.to_owned() })
        } else if names > 1 {
            // Where fs.protected_hardlinks is off, a link of root's can be given a second name in /tmp.
            Some(LinkRisk::HardLinked)
        } else {
            None
        }
    }

    /// Whether a whole file may be put into the last directory, whoever it is to belong to.
    ///
    /// Nothing of what a stranger controls is followed for that: the directory is held by its descriptor, no link led to
    /// it but ours, and what has the name there is replaced and neither read, given away nor written to.
    pub(super) fn permits_whole_file(&self) -> Result<(), Problem> {
        match &self.open_to_all {
            Some(component) => Err(Problem::OpenToAll { component: component.clone() }),
            None => Ok(()),
        }
    }

    /// Whether something that is to belong to `owner` may be made or changed in the last directory.
    pub(super) fn permits(&self, owner: u32) -> Result<(), Problem> {
        self.permits_whole_file()?;
        match self.strangers.iter().find(|stranger| stranger.owner != owner).cloned() {
            None => Ok(()),
            Some(Stranger { component, owner: stranger }) => {
                Err(Problem::UnsafeComponent { component, owner: stranger.into(), wanted: owner.into() })
            }
        }
    }

    /// Whether a stranger's directory was passed.
    pub(super) fn is_below_a_stranger(&self) -> bool {
        !self.strangers.is_empty()
    }

    /// Whether somebody who is not us can put names into the last directory.
    pub(super) fn others_can_write(&self) -> bool {
        !is_ours(self.owner) || self.mode & GROUP_OR_OTHERS_WRITE != 0
    }

    pub(super) fn is_sticky(&self) -> bool {
        self.mode & STICKY != 0
    }
}
