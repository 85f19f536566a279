//! Text files of the system that a resource shares with others: it reads them completely, changes its own lines, and keeps
//! everything else.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{
    content_diff::{Old, between},
    disk::{blame, entry, note_parents},
};
use crate::{
    host::files::{self, Attributes, FileError, Intent, Parents, Problem},
    resource::{Content, Context, Error, PathEffect},
    template::PredictedText,
};

/// A larger file is not one of the system's.
const LARGEST: u64 = 16 << 20;
/// Mode of directories that are created for a file.
const DIRECTORY_MODE: u32 = 0o755;

/// A text file as it is, or as a dry run predicts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedFile {
    pub(super) path: PathBuf,
    /// `None` if the file does not exist.
    pub(super) text: Option<String>,
    attributes: Attributes,
    /// Owner, group and mode that the file must have, if they differ from those that it has.
    wanted: Option<Attributes>,
    has_directory: bool,
}

impl SharedFile {
    /// Reads a file. If it does not exist, it will be created with this mode.
    pub(super) fn read(path: &Path, mode: u32, cx: &Context) -> Result<Self, Error> {
        // An error other than that is reported when the file is opened.
        let has_directory = path.parent().is_none_or(|directory| matches!(entry(directory, cx), Ok(Some(_))));
        let missing = Self {
            path: path.to_owned(),
            text: None,
            attributes: Attributes::own(mode),
            wanted: None,
            has_directory,
        };
        let (predicted, mut place) = {
            let prediction = cx.prediction.borrow();
            (prediction.text(path), prediction.files.place_on_disk(path))
        };
        match predicted {
            Some(PredictedText::Text(text)) => return Ok(Self { text: Some(text), ..missing }),
            Some(PredictedText::Nothing) => return Ok(missing),
            Some(PredictedText::CopyOf(source)) => place = source,
            Some(PredictedText::Unknown) => cx.assume(format!(
                "the content of {} is not known yet; assuming that an earlier resource does not change it",
                path.display()
            )),
            None => {}
        }
        let (file, entry) = match files::open_regular(&place) {
            Ok(None) | Err(FileError { problem: Problem::ParentMissing { .. }, .. }) => return Ok(missing),
            Ok(Some((Some(file), entry))) => (file, entry),
            Ok(Some((None, _))) => {
                return Err(Error::new(format!("{} is not a regular file", path.display())));
            }
            Err(error) => return Err(blame(error, cx)),
        };
        let failed = |reason: String| Error::new(format!("cannot read {}: {reason}", path.display()));
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
        if bytes.len() as u64 > LARGEST {
            return Err(failed(format!("it is larger than {} MiB", LARGEST >> 20)));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            failed(format!("it is not UTF-8 text, from byte {} on", error.utf8_error().valid_up_to()))
        })?;
        let attributes = Attributes { uid: entry.uid, gid: entry.gid, mode: entry.mode };
        Ok(Self { text: Some(text), attributes, ..missing })
    }

    /// Requires an owner, a group and a mode, which a file that exists can lack.
    pub(super) fn requiring(mut self, attributes: Attributes) -> Self {
        self.wanted = Some(attributes).filter(|wanted| self.text.is_none() || *wanted != self.attributes);
        self
    }

    /// Whether owner, group or mode of the file are wrong.
    pub(super) fn has_wrong_attributes(&self) -> bool {
        self.text.is_some() && self.wanted.is_some()
    }

    /// Returns the text; the empty one if the file does not exist.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns what leaves the file with this text, or removes it; `None` if that is how it is.
    pub(super) fn become_text(&self, new: Option<String>) -> Option<Rewrite> {
        let is_wrong = new.is_some() && self.has_wrong_attributes();
        (new != self.text || is_wrong).then(|| Rewrite {
            path: self.path.clone(),
            old: self.text.clone(),
            new,
            attributes: self.wanted.unwrap_or(self.attributes),
            creates_directory: !self.has_directory,
        })
    }
}

/// A change of the text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    pub(super) path: PathBuf,
    old: Option<String>,
    /// `None` if the file is removed.
    new: Option<String>,
    attributes: Attributes,
    creates_directory: bool,
}

impl Rewrite {
    /// Says what it does, as in "Would have updated /etc/fstab".
    pub(super) fn deed(&self) -> String {
        let verb = match (&self.old, &self.new) {
            (_, None) => "removed",
            (None, Some(_)) => "created",
            (Some(_), Some(_)) => "updated",
        };
        format!("{verb} {}", self.path.display())
    }

    pub(super) fn effects(&self) -> Vec<PathEffect> {
        let effect = |path: &Path, intent, sha256, content| PathEffect::Operation {
            path: path.to_owned(),
            intent,
            sha256,
            content,
        };
        let Some(new) = &self.new else {
            return vec![effect(&self.path, Intent::Remove, None, Content::Kept)];
        };
        let digest = files::hex(&Sha256::digest(new.as_bytes()));
        let text = Content::Text(new.clone());
        let write = effect(&self.path, Intent::Write(self.attributes), Some(digest), text);
        let directory = self.path.parent().filter(|_| self.creates_directory);
        let make = Intent::MakeDirectory(Attributes::own(DIRECTORY_MODE), Parents::Make);
        let directory = directory.map(|directory| effect(directory, make, None, Content::Kept));
        directory.into_iter().chain([write]).collect()
    }

    /// Returns the change as a unified diff.
    pub(super) fn diff(&self) -> Option<String> {
        let old = self.old.as_ref().map_or(Old::Absent, |old| Old::Bytes(old.clone().into_bytes()));
        between(&self.path.to_string_lossy(), &old, Some(self.new.as_deref().unwrap_or_default().as_bytes()))
    }

    /// Makes the change. The file appears complete, or not at all.
    pub(super) fn make(&self, cx: &Context) -> Result<(), Error> {
        let attempt = || {
            let Some(new) = &self.new else { return files::remove(&self.path) };
            note_parents(&self.path, cx);
            if let Some(directory) = self.path.parent()
                && self.creates_directory
            {
                files::make_directory(directory, Attributes::own(DIRECTORY_MODE), Parents::Make)?;
            }
            files::replace(&self.path, self.attributes, |out| out.write_all(new.as_bytes()))
        };
        attempt().map_err(|error| blame(error, cx))
    }
}
