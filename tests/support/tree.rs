//! A tree of files as it is at one moment, to compare with another.

use std::{
    collections::BTreeMap,
    fmt, fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Everything below a folder, the folder itself included, by path relative to it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<PathBuf, Item>);

/// What is at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The content of a file, the target of a link, else the kind.
    pub(crate) what: What,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mode: u32,
    /// Tells a file that was replaced by an equal one.
    pub(crate) inode: u64,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum What {
    File(Vec<u8>),
    Link(PathBuf),
    Directory,
    Other,
}

impl Tree {
    pub(crate) fn of(folder: &Path) -> Self {
        let mut items = BTreeMap::new();
        collect(folder, Path::new(""), &mut items);
        Self(items)
    }

    /// The names below the folder, without the folder itself.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().map(|path| path.display().to_string()).filter(|name| !name.is_empty()).collect()
    }

    pub(crate) fn item(&self, name: &str) -> Option<&Item> {
        self.0.get(Path::new(name))
    }

    /// What was left half-done.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.contains(".ccm-")).collect()
    }
}

impl Item {
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let kind = found.file_type();
        let what = if kind.is_symlink() {
            What::Link(fs::read_link(path).expect("a link"))
        } else if kind.is_dir() {
            What::Directory
        } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
            What::Other
        } else {
            // Without the right to read, that it cannot be read is all that can be compared.
            What::File(fs::read(path).unwrap_or_default())
        };
        let (uid, gid, mode, inode) = (found.uid(), found.gid(), found.mode() & 0o7777, found.ino());
        Some(Self { what, uid, gid, mode, inode })
    }

    /// The content of a file.
    pub(crate) fn content(&self) -> Option<&[u8]> {
        if let What::File(content) = &self.what { Some(content) } else { None }
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.what == What::Directory
    }
}

fn collect(folder: &Path, name: &Path, items: &mut BTreeMap<PathBuf, Item>) {
    let path = folder.join(name);
    let Some(item) = Item::at(&path) else { return };
    let is_directory = item.is_directory();
    items.insert(name.to_owned(), item);
    if is_directory {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            collect(folder, &name.join(entry.file_name()), items);
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f)?;
        for (path, item) in &self.0 {
            writeln!(f, "{} {item:?}", path.display())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { what, uid, gid, mode, inode } = self;
        write!(f, "{mode:04o} {uid}:{gid} #{inode} ")?;
        match what {
            What::File(content) if content.len() > 200 => write!(f, "{} bytes", content.len()),
            What::File(content) => write!(f, "{:?}", String::from_utf8_lossy(content)),
            What::Link(target) => write!(f, "-> {}", target.display()),
            What::Directory => f.write_str("directory"),
            What::Other => f.write_str("special"),
        }
    }
}
