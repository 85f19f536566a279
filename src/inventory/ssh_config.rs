//! `ssh:GLOB`: hosts that the user's ssh configuration names.

use std::path::{Path, PathBuf};

use indexmap::IndexSet;
use regex::Regex;

use super::{error::InventoryError, pattern, shell_words};
use crate::host::input::{self, Kind};

/// ssh refuses deeper includes.
const MOST_NESTED: usize = 16;
const LARGEST: u64 = 4 << 20;

/// Returns the names on `Host` lines of `~/.ssh/config` and the files it includes that match a shell pattern, without those
/// that are patterns themselves. Like ssh, ccm finds the file in the home directory of the account, not in `$HOME`.
pub(crate) fn hosts(home: &Path, glob: &str) -> Result<Vec<String>, InventoryError> {
    let regex = Regex::new(&pattern::translate(glob))
        .map_err(|_| InventoryError::pattern(glob, "not a valid pattern of names"))?;
    let directory = home.join(".ssh");
    let mut reader = Reader { home, directory: &directory, names: IndexSet::new() };
    reader.read(&directory.join("config"), 0)?;
    Ok(reader.names.into_iter().filter(|name| regex.is_match(name)).collect())
}

struct Reader<'a> {
    home: &'a Path,
    directory: &'a Path,
    names: IndexSet<String>,
}

impl Reader<'_> {
    fn read(&mut self, path: &Path, depth: usize) -> Result<(), InventoryError> {
        if depth > MOST_NESTED || input::kind(path).is_none_or(|kind| kind == Kind::Directory) {
            return Ok(());
        }
        let bytes =
            input::read_file(path, LARGEST).map_err(|error| InventoryError::unreadable(path, error))?;
        for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            let line = line.trim();
            let (keyword, rest) = line.split_once([' ', '\t', '=']).unwrap_or((line, ""));
            let rest = rest.trim_start_matches([' ', '\t', '=']);
            let is_host = keyword.eq_ignore_ascii_case("host");
            if !is_host && !keyword.eq_ignore_ascii_case("include") {
                continue;
            }
            let words =
                shell_words::split(rest).map_err(|reason| InventoryError::line(path, number + 1, reason))?;
            if is_host {
                self.names.extend(words.into_iter().filter(|word| !word.contains(['*', '?', '!'])));
            } else {
                let files: Vec<_> = words.iter().flat_map(|word| self.included(word)).collect();
                for file in files {
                    self.read(&file, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the files of an `Include` line in the order of their names.
    fn included(&self, word: &str) -> Vec<PathBuf> {
        let path = match word.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None => self.directory.join(word),
        };
        let mut found = vec![PathBuf::from("/")];
        for part in path.components().skip(1) {
            let part = part.as_os_str().to_string_lossy();
            if !part.contains(['*', '?', '[']) {
                for path in &mut found {
                    path.push(part.as_ref());
                }
                continue;
            }
            let Ok(regex) = Regex::new(&pattern::translate(&part)) else { return Vec::new() };
            let is_hidden = |name: &str| name.starts_with('.') && !part.starts_with('.');
            let entries = |path: PathBuf| {
                let names = input::names_in(&path).unwrap_or_default();
                let names = names.into_iter().filter(|name| regex.is_match(name) && !is_hidden(name));
                names.map(|name| path.join(name)).collect::<Vec<_>>()
            };
            found = found.into_iter().flat_map(entries).collect();
        }
        found
    }
}
