//! Private copies of new files, until the files are published.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::process::{Pid, test_kill_process};
use sha2::{Digest, Sha256};

use super::{Content, Error};
use crate::{
    host::files::{self, Attributes, PrivateFolder},
    state::StateDirectory,
};

/// Directory in the state directory.
const FOLDER: &str = "validating";

/// Private copies of new files. They are removed when this is dropped.
pub(crate) struct Drafts {
    folder: PrivateFolder,
    /// The directory of each copy, and its name in it.
    made: RefCell<Vec<(String, OsString)>>,
    /// The new files, by the path at which they will be published.
    by_path: RefCell<BTreeMap<PathBuf, Draft>>,
}

/// A new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Path of the private copy.
    pub(crate) copy: PathBuf,
    /// SHA-256 in hex.
    pub(crate) sha256: String,
    /// Owner, group and mode that the file will have.
    pub(crate) attributes: Attributes,
}

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

impl Drafts {
    /// Creates an empty directory for copies, and removes the directories of killed runs.
    pub(crate) fn new(state: &StateDirectory) -> Result<Self, Error> {
        let unusable = |error: &dyn std::fmt::Display| {
            Error::new(format!("cannot create a private copy of the new content: {error}"))
        };
        let outer = state.make_folder(FOLDER).map_err(|error| unusable(&error))?;
        sweep(&outer);
        let number = NUMBER.replace(NUMBER.get() + 1);
        let name = format!("{}-{number}", std::process::id());
        let folder = outer.make_folder(&name).map_err(|error| unusable(&error))?;
        Ok(Self { folder, made: RefCell::default(), by_path: RefCell::default() })
    }

    /// Creates a copy with the base name of the path at which the file will be.
    pub(crate) fn copy(
        &self,
        path: &Path,
        attributes: Attributes,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Draft, Error> {
        let name = path.file_name().unwrap_or_default().to_owned();
        let number = self.made.borrow().len().to_string();
        let folder = self.folder.make_folder(&number)?;
        let copy = folder.path().join(&name);
        self.made.borrow_mut().push((number, name));
        let mut hash = Sha256::new();
        files::replace_unsynced(&copy, attributes, |out| fill(&mut Hashing { out, hash: &mut hash }))?;
        Ok(Draft { copy, sha256: files::hex(&hash.finalize()), attributes })
    }

    /// Creates a copy with this content; `None` if the content is not known.
    pub(crate) fn copy_of(
        &self,
        content: &Content,
        path: &Path,
        attributes: Attributes,
    ) -> Result<Option<Draft>, Error> {
        let draft = match content {
            Content::Text(text) => self.copy(path, attributes, |out| out.write_all(text.as_bytes()))?,
            Content::CopyOf(source) => {
                let Some((mut file, _)) = files::open_followed(source)? else { return Ok(None) };
                self.copy(path, attributes, |out| {
                    files::pieces(&mut file, &mut || Ok(()), |piece| out.write_all(piece)).map(drop)
                })?
            }
            Content::Kept | Content::Unknown => return Ok(None),
        };
        Ok(Some(draft))
    }

    /// Prepares the new file for a path.
    pub(crate) fn add(
        &self,
        path: &Path,
        attributes: Attributes,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Draft, Error> {
        let draft = self.copy(path, attributes, fill)?;
        self.replace(path, draft.clone());
        Ok(draft)
    }

    /// Records the new file for a path, after its copy was changed.
    pub(crate) fn replace(&self, path: &Path, draft: Draft) {
        self.by_path.borrow_mut().insert(path.to_owned(), draft);
    }

    /// Reads the copy for a path again, after a command changed it. Returns nothing if it is gone.
    pub(crate) fn read_again(&self, path: &Path) -> Result<Option<Draft>, Error> {
        let Some(draft) = self.find(path) else { return Ok(None) };
        let Some((Some(mut file), entry)) = files::open_regular(&draft.copy)? else { return Ok(None) };
        let mut hash = Sha256::new();
        let read = files::pieces(&mut file, &mut || Ok(()), |piece| {
            hash.update(piece);
            Ok(())
        });
        read.map_err(|error| Error::new(format!("cannot read {}: {error}", draft.copy.display())))?;
        let attributes = Attributes { mode: entry.mode, ..draft.attributes };
        let draft = Draft { sha256: files::hex(&hash.finalize()), attributes, ..draft };
        self.replace(path, draft.clone());
        Ok(Some(draft))
    }

    /// Returns the new file for a path.
    pub(crate) fn find(&self, path: &Path) -> Option<Draft> {
        self.by_path.borrow().get(path).cloned()
    }
}

impl Draft {
    /// Writes the content, unless the copy was changed.
    pub(crate) fn pour(
        &self,
        out: &mut dyn Write,
        tick: &mut dyn FnMut() -> Result<(), files::CopyInterrupted>,
    ) -> io::Result<()> {
        let opened = files::open_regular(&self.copy).map_err(io::Error::other)?;
        let Some((Some(mut file), _)) = opened else {
            return Err(io::Error::other("the private copy is gone"));
        };
        let mut hash = Sha256::new();
        files::pieces(&mut file, tick, |piece| {
            hash.update(piece);
            out.write_all(piece)
        })?;
        if files::hex(&hash.finalize()) == self.sha256 {
            return Ok(());
        }
        Err(io::Error::other("the private copy was changed"))
    }
}

/// A writer that hashes what it passes on.
struct Hashing<'a> {
    out: &'a mut dyn Write,
    hash: &'a mut Sha256,
}

impl Write for Hashing<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buffer)?;
        self.hash.update(&buffer[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        for (folder, name) in self.made.borrow_mut().drain(..) {
            if let Ok(Some(folder)) = self.folder.folder(&folder) {
                let _ = folder.remove(&name);
                let _ = folder.remove_self();
            }
        }
        // The next run removes the rest.
        let _ = self.folder.remove_self();
    }
}

/// Removes the directories of processes that no longer exist.
fn sweep(outer: &PrivateFolder) {
    for name in outer.names().unwrap_or_default() {
        let pid = name.to_str().and_then(|name| name.split('-').next()?.parse().ok()).and_then(Pid::from_raw);
        if pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH)) {
            let _ = files::remove_tree(&outer.path().join(name), &mut || Ok(()));
        }
    }
}
