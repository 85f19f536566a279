//! Unpacking an archive and putting its files in place.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    Properties,
    state::{below, blame, is_untouched, stop},
};
use crate::{
    host::{
        files::{self, Attributes, Staging},
        unpack::{self, Compression, Extracted, Kind, Rules, UnpackError, What},
    },
    resource::{Context, Error, Retry},
    state::{ArchiveRecord, StateError},
};

/// An archive that is unpacked and checked, and not yet visible.
pub(super) struct Unpacked {
    staging: Staging,
    files: Vec<Extracted>,
}

/// Where and for whom an archive is unpacked.
pub(super) struct Extraction<'a, 'c> {
    want: &'a Properties,
    target: &'a Path,
    /// What the target gets when it is made.
    root: Attributes,
    rules: Rules,
    cx: &'a Context<'c>,
}

impl<'a, 'c> Extraction<'a, 'c> {
    pub(super) fn new(want: &'a Properties, archive: Attributes, cx: &'a Context<'c>) -> Result<Self, Error> {
        let target =
            want.extract_parent.as_ref().ok_or_else(|| Error::new("there is no `extract_parent`"))?.as_path();
        let rules = Rules {
            uid: archive.uid,
            gid: archive.gid,
            strip_components: want
                .strip_components
                .map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX)),
            limits: want.limits(),
        };
        Ok(Self { want, target, root: Attributes { mode: 0o755, ..archive }, rules, cx })
    }

    /// Unpacks a tar archive while it arrives.
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

    /// Unpacks an archive that is there.
    pub(super) fn of_file(&self, archive: &File, kind: Kind) -> Result<Unpacked, UnpackError> {
        let mut staging = self.stage()?;
        let files = unpack::unpack_file(archive, kind, &mut staging, &self.rules, &mut || stop(self.cx))?;
        Ok(Unpacked { staging, files })
    }

    fn stage(&self) -> Result<Staging, UnpackError> {
        for above in self.target.ancestors() {
            self.cx.host.unfinished.note(above);
            if matches!(files::inspect(above), Ok(Some(_))) {
                break;
            }
        }
        Ok(Staging::new(self.target, self.root)?)
    }

    /// The refusal of an archive as the user sees it.
    pub(super) fn refusal(&self, error: UnpackError) -> Error {
        if let Err(stopped) = self.cx.tick() {
            return stopped;
        }
        let help = error.hint();
        match error {
            UnpackError::Files(error) => error.into(),
            error => Error {
                help,
                retry: Retry::Pointless,
                ..Error::new(format!("cannot unpack {}: {error}", self.want.name)).on("extract_parent")
            },
        }
    }

    /// Puts the files in place and remembers them. From here on a kill leaves work for the next run, never a wrong state.
    pub(super) fn publish(&self, unpacked: Unpacked, record: ArchiveRecord) -> Result<(), Error> {
        let Unpacked { staging, files } = unpacked;
        let (state, archive) = (&self.cx.host.state, self.want.name.as_path());
        let obsolete = self.obsolete(&files);
        let yields = |path: &Path| {
            obsolete
                .get(path)
                .is_some_and(|old| is_untouched(&self.target.join(path), old, self.cx).unwrap_or(false))
        };
        staging.survey(self.root.uid, &yields)?;
        let record = state
            .begin_extraction(archive, record, self.target, &files)
            .map_err(|error| unrecorded(&error))?;
        let last = self.want.creates.as_ref().and_then(|creates| below(creates.as_path(), self.target));
        staging.publish(self.root, last.as_deref(), &yields).map_err(|error| blame(error, self.cx))?;
        let kept: Vec<&Path> = files.iter().map(|extracted| extracted.path.as_path()).collect();
        self.remove_obsolete(&obsolete, &kept)?;
        state.finish_extraction(archive, record).map_err(|error| unrecorded(&error))
    }

    /// What earlier versions unpacked here, apart from what is the same kind of thing again.
    fn obsolete(&self, files: &[Extracted]) -> BTreeMap<PathBuf, Extracted> {
        let earlier =
            self.cx.host.state.extracted_at(self.want.name.as_path(), self.target).unwrap_or_else(|error| {
                self.cx.warn(format!("{error}; files that the archive no longer has are not known and stay"));
                Vec::new()
            });
        let mut obsolete: BTreeMap<PathBuf, Extracted> =
            earlier.into_iter().map(|extracted| (extracted.path.clone(), extracted)).collect();
        for extracted in files {
            let is_directory = |what: &What| *what == What::Directory;
            let same = |old: &Extracted| is_directory(&old.what) == is_directory(&extracted.what);
            if obsolete.get(&extracted.path).is_some_and(same) {
                obsolete.remove(&extracted.path);
            }
        }
        obsolete
    }

    /// Removes what the new version no longer has, the deepest first: a directory goes when it has become empty.
    fn remove_obsolete(&self, obsolete: &BTreeMap<PathBuf, Extracted>, kept: &[&Path]) -> Result<(), Error> {
        for (relative, extracted) in obsolete.iter().rev() {
            self.cx.tick()?;
            let path = self.target.join(relative);
            if kept.binary_search(&relative.as_path()).is_ok() || files::inspect(&path)?.is_none() {
                continue;
            }
            if extracted.what == What::Directory {
                if files::names(&path).is_ok_and(|names| names.is_empty()) {
                    files::remove(&path)?;
                }
            } else if is_untouched(&path, extracted, self.cx)? {
                files::remove(&path)?;
            } else {
                self.cx.warn(format!(
                    "{} is no longer in the archive, but was changed since: it stays",
                    path.display()
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn unrecorded(error: &StateError) -> Error {
    Error::new(format!("cannot record what is unpacked: {error}"))
        .with_help("make room in the state directory or name another with --state-dir")
}
