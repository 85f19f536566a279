//! Extracts an archive and publishes its files.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    Properties,
    creation::{self, Creation},
    error::ArchiveError,
    state::{below, blame},
    verification::is_untouched,
};
use crate::{
    download::local,
    host::{
        files::{self, Attributes, Staging},
        unpack::{self, ArchiveFormat, Compression, Extracted, Rules, UnpackError, What},
    },
    resource::{Context, Error},
    state::{Fetched, Unpacking},
    types::disk::stop,
    vocabulary::AbsolutePath,
};

/// An extracted and verified archive that is not yet visible.
pub(super) struct Unpacked {
    staging: Staging,
    files: Vec<Extracted>,
}

/// An extracted archive without conflicts.
pub(super) struct Ready {
    unpacked: Unpacked,
    obsolete: Obsolete,
}

/// Paths of earlier versions that are not in this version, or not as the same kind of file. After an interrupted
/// upgrade, a path can be that of either version.
type Obsolete = BTreeMap<PathBuf, Vec<What>>;

/// Target and owner of an extraction.
pub(super) struct Extraction<'a, 'c> {
    unpacking: Unpacking<'a>,
    creates: Option<&'a AbsolutePath>,
    /// Owner and mode of the target directory, if ccm creates it.
    root: Attributes,
    rules: Rules,
    cx: &'a Context<'c>,
}

impl<'a, 'c> Extraction<'a, 'c> {
    /// Prepares the extraction of an archive; `None` if it is not extracted.
    pub(super) fn new(want: &'a Properties, archive: Attributes, cx: &'a Context<'c>) -> Option<Self> {
        let unpacking = want.unpacking()?;
        let rules = Rules {
            uid: archive.uid,
            gid: archive.gid,
            strip_components: want
                .strip_components
                .map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX)),
            limits: want.limits(),
        };
        let root = Attributes { mode: 0o755, ..archive };
        Some(Self { unpacking, creates: want.creates.as_ref(), root, rules, cx })
    }

    /// Extracts a tar archive while it is downloaded.
    pub(super) fn of_stream(
        &self,
        archive: &mut dyn Read,
        compression: Compression,
    ) -> Result<Unpacked, UnpackError> {
        let mut staging = self.stage()?;
        let files =
            unpack::unpack_tar(archive, compression, &mut staging, &self.rules, &mut || stop(self.cx))?;
        Ok(Unpacked { staging, files })
    }

    /// Extracts an archive file.
    pub(super) fn of_file(&self, archive: &File, kind: ArchiveFormat) -> Result<Unpacked, UnpackError> {
        let mut staging = self.stage()?;
        let files = unpack::unpack_file(archive, kind, &mut staging, &self.rules, &mut || stop(self.cx))?;
        Ok(Unpacked { staging, files })
    }

    fn stage(&self) -> Result<Staging, UnpackError> {
        for above in self.unpacking.target.ancestors() {
            self.cx.state.write_journal.note(above, self.cx.interrupt());
            if matches!(files::inspect(above), Ok(Some(_))) {
                break;
            }
        }
        Ok(Staging::new(self.unpacking.target, self.root)?)
    }

    /// Returns the error for a rejected archive.
    pub(super) fn refusal(&self, error: UnpackError) -> Error {
        if let Err(stopped) = self.cx.tick() {
            return stopped;
        }
        match error {
            UnpackError::Files(error) => local(error),
            error => ArchiveError::Unpack { archive: self.unpacking.archive.to_owned(), error }.into(),
        }
    }

    /// Finds conflicts before anything is changed.
    pub(super) fn survey(&self, unpacked: Unpacked) -> Result<Ready, Error> {
        let obsolete = self.obsolete(&unpacked.files);
        self.expect_creation(&unpacked.files, &obsolete)?;
        let yields = |path: &Path| self.yields(&obsolete, path);
        unpacked.staging.survey(self.root.uid, &yields).map_err(|error| blame(error, self.cx))?;
        Ok(Ready { unpacked, obsolete })
    }

    /// Fails if the path in `creates` would not exist after the extraction.
    fn expect_creation(&self, files: &[Extracted], obsolete: &Obsolete) -> Result<(), Error> {
        let Some(creates) = self.creates else { return Ok(()) };
        let Some(relative) = below(creates.as_path(), self.unpacking.target) else { return Ok(()) };
        let target = self.unpacking.target;
        let stays = |path: &Path| !obsolete.contains_key(path) || !self.yields(obsolete, path);
        let look = |path: &Path| match find(files, path) {
            Some(file) => creation::Found::from(&file.what),
            None if stays(path) => creation::Found::on_disk(&target.join(path)),
            None => creation::Found::Nothing,
        };
        match creation::predict(&relative, target, &look) {
            Creation::Certain | Creation::Unknown => Ok(()),
            Creation::Impossible => Err(ArchiveError::Uncreated { creates: creates.clone() }.into()),
        }
    }

    /// Publishes and records the files. If the program is killed from here on, the next run completes the work.
    pub(super) fn publish(&self, ready: Ready, fetched: Fetched) -> Result<(), Error> {
        let Ready { unpacked: Unpacked { staging, files }, obsolete } = ready;
        let state = &self.cx.state.directory;
        let record =
            state.begin_extraction(self.unpacking, fetched, &files).map_err(ArchiveError::Unrecorded)?;
        let last = self.unpacking.creates.and_then(|creates| below(creates, self.unpacking.target));
        let yields = |path: &Path| self.yields(&obsolete, path);
        staging.publish(self.root, last.as_deref(), &yields).map_err(|error| blame(error, self.cx))?;
        self.remove_obsolete(&obsolete, &files)?;
        state.finish_extraction(self.unpacking, record).map_err(ArchiveError::Unrecorded)?;
        Ok(())
    }

    /// Returns whether an entry of another kind can be replaced: an earlier version extracted it, and it was not
    /// modified or filled since.
    fn yields(&self, obsolete: &Obsolete, path: &Path) -> bool {
        let Some(versions) = obsolete.get(path) else { return false };
        let at = self.unpacking.target.join(path);
        let is_empty_of_others = || {
            files::names(&at)
                .is_ok_and(|names| names.iter().all(|name| self.yields(obsolete, &path.join(name))))
        };
        versions.iter().any(|what| {
            is_untouched(&at, what, self.cx).unwrap_or(false)
                && (*what != What::Directory || is_empty_of_others())
        })
    }

    /// Returns the entries of earlier versions, except those of the same kind in this version.
    fn obsolete(&self, files: &[Extracted]) -> Obsolete {
        let earlier = self.cx.state.directory.extracted_before(self.unpacking).unwrap_or_else(|error| {
            self.cx.warn(format!("{error}; files that the archive no longer has are not known and stay"));
            Vec::new()
        });
        let is_directory = |what: &What| *what == What::Directory;
        let is_same_again = |old: &Extracted| {
            find(files, &old.path).is_some_and(|new| is_directory(&new.what) == is_directory(&old.what))
        };
        let mut obsolete = Obsolete::new();
        for Extracted { path, what } in earlier.into_iter().filter(|old| !is_same_again(old)) {
            obsolete.entry(path).or_default().push(what);
        }
        obsolete
    }

    /// Removes entries that the new version no longer has, the deepest first, and directories that became empty.
    fn remove_obsolete(&self, obsolete: &Obsolete, files: &[Extracted]) -> Result<(), Error> {
        for (relative, versions) in obsolete.iter().rev().filter(|(path, _)| find(files, path).is_none()) {
            self.cx.tick()?;
            let path = self.unpacking.target.join(relative);
            if !self.lies_in_directories(relative) {
                continue;
            }
            let Some(found) = files::inspect(&path).map_err(local)? else { continue };
            let is_directory = found.kind == files::FileKind::Directory;
            let mut is_ours = is_directory && versions.contains(&What::Directory);
            for what in versions.iter().filter(|_| !is_directory) {
                is_ours = is_ours || is_untouched(&path, what, self.cx)?;
            }
            if !is_ours {
                self.cx.warn(format!(
                    "{} is no longer in the archive, but was changed since: it stays",
                    path.display()
                ));
            } else if !is_directory || files::names(&path).is_ok_and(|names| names.is_empty()) {
                files::remove(&path).map_err(local)?;
            }
        }
        Ok(())
    }

    /// Returns whether all parents of a path in the target are directories. Entries after a link were never extracted
    /// by ccm.
    fn lies_in_directories(&self, relative: &Path) -> bool {
        let is_directory = |above: &Path| {
            let found = files::inspect(&self.unpacking.target.join(above));
            matches!(found, Ok(Some(entry)) if entry.kind == files::FileKind::Directory)
        };
        relative.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).all(is_directory)
    }
}

/// Returns the entry at a path of an archive, whose entries are sorted by path.
fn find<'f>(files: &'f [Extracted], path: &Path) -> Option<&'f Extracted> {
    files.binary_search_by(|file| file.path.as_path().cmp(path)).ok().map(|at| &files[at])
}
