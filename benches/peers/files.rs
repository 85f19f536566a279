//! The files that every program has to bring about.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use crate::Result;

/// Size of each file.
pub(crate) const SIZE: usize = 400;

/// Not what a new file has by default, so that a program that forgets it is noticed.
pub(crate) const MODE: u32 = 0o640;

/// A folder of files, all different.
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
    pub(crate) count: usize,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Files {
    /// An empty folder for so many files.
    pub(crate) fn new(folder: PathBuf, count: usize) -> io::Result<Self> {
        empty(&folder)?;
        let metadata = fs::metadata(&folder)?;
        Ok(Self { folder, count, uid: metadata.uid(), gid: metadata.gid() })
    }

    /// Path and content of every file.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (PathBuf, String)> {
        (0..self.count).map(|index| (self.path(index), content(index)))
    }

    fn path(&self, index: usize) -> PathBuf {
        self.folder.join(format!("{index:05}.conf"))
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        empty(&self.folder)
    }

    /// Writes the files, unless they are all there.
    pub(crate) fn complete(&self) -> io::Result<()> {
        if self.check().is_ok() {
            return Ok(());
        }
        self.remove()?;
        for (path, content) in self.wanted() {
            fs::write(&path, content)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(MODE))?;
        }
        Ok(())
    }

    /// Gives one of the files another content of the same length.
    pub(crate) fn spoil_one(&self) -> io::Result<()> {
        fs::write(self.path(self.count / 2), content(self.count))
    }

    /// Says what is not as it should be.
    pub(crate) fn check(&self) -> Result<()> {
        for (path, content) in self.wanted() {
            let shown = path.display();
            let metadata = fs::symlink_metadata(&path).map_err(|error| format!("{shown}: {error}"))?;
            if !metadata.is_file() || fs::read(&path)? != content.as_bytes() {
                return Err(format!("{shown} has the wrong content").into());
            }
            let (have, want) = ((metadata.uid(), metadata.gid()), (self.uid, self.gid));
            if have != want {
                return Err(format!("{shown} belongs to {have:?}, not to {want:?}").into());
            }
            let mode = metadata.mode() & 0o7777;
            if mode != MODE {
                return Err(format!("{shown} has mode {mode:04o}, not {MODE:04o}").into());
            }
        }
        let found = fs::read_dir(&self.folder)?.count();
        if found != self.count {
            return Err(format!("{} holds {found} files, not {}", self.folder.display(), self.count).into());
        }
        Ok(())
    }
}

/// Text that needs no quoting in any of the languages that it is written in.
fn content(index: usize) -> String {
    format!("{:39}\n", format!("this line belongs to file {index}")).repeat(SIZE / 40)
}

/// Makes a folder with nothing in it.
pub(crate) fn empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(folder)
}
