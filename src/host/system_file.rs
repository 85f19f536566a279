//! Text files that the system itself keeps: `/proc`, and settings in `/etc`.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// Reads a file that only root or the kernel writes. What is not UTF-8 in it is replaced.
pub(crate) fn read(path: &str) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Counts the names in a folder of the system.
pub(crate) fn count(path: &str) -> usize {
    std::fs::read_dir(path).map(Iterator::count).unwrap_or_default()
}

/// Changes a setting of the kernel, which has no temporary file and is never created.
pub(crate) fn set(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(format!("{value}\n").as_bytes())
}
