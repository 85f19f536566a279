//! Lines of the files in `sysctl.d`.

use std::path::{Path, PathBuf};

use super::key::Key;
use crate::host::{look, system_file};

/// Directories of these files. Of files with the same name, that in the first directory counts.
const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
/// `sysctl --system` reads this file last.
const LAST: &str = "/etc/sysctl.conf";

/// A line that sets a key.
struct Entry<'a> {
    key: Key,
    value: &'a str,
    /// Whether errors are ignored, as a `-` before the key says.
    is_optional: bool,
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    let key = key.trim_end();
    let bare = key.strip_prefix('-');
    let key = Key::parse(bare.unwrap_or(key).trim_start())?;
    Some(Entry { key, value: value.trim(), is_optional: bare.is_some() })
}

/// Returns a value with one space for each white space in it, as the kernel compares lists of numbers.
pub(super) fn normalized(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value that a file stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) value: String,
    pub(super) is_optional: bool,
}

/// Returns the value that a text gives a key. The last line counts.
pub(super) fn stored(text: &str, key: &Key) -> Option<Stored> {
    let found = text.lines().filter_map(entry).rfind(|entry| entry.key == *key)?;
    Some(Stored { value: normalized(found.value), is_optional: found.is_optional })
}

/// Returns the text with this value for a key. The last line of the key is replaced, or a line is added.
pub(super) fn with_value(text: &str, key: &Key, value: &str, is_optional: bool) -> String {
    let dash = if is_optional { "-" } else { "" };
    let line = format!("{dash}{key} = {value}\n");
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let is_own = |text: &String| entry(text).is_some_and(|entry| entry.key == *key);
    match lines.iter().rposition(is_own) {
        Some(at) => lines[at] = line,
        None => {
            if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
                last.push('\n');
            }
            lines.push(line);
        }
    }
    lines.concat()
}

/// Returns the text without the lines of a key; `None` if nothing else is in it.
pub(super) fn without(text: &str, key: &Key) -> Option<String> {
    let is_own = |line: &str| entry(line).is_some_and(|entry| entry.key == *key);
    let rest: String = text.split_inclusive('\n').filter(|line| !is_own(line)).collect();
    (!rest.trim().is_empty()).then_some(rest)
}

/// A line of another file that gives the key another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Override {
    pub(super) path: PathBuf,
    pub(super) line: usize,
    pub(super) value: String,
}

/// Returns the line that wins over `file` at boot with another value.
pub(super) fn overridden(file: &Path, key: &Key, value: &str) -> Option<Override> {
    let mut later = files_after(file);
    later.reverse();
    for path in later {
        let Ok(text) = system_file::read(&path.to_string_lossy()) else { continue };
        let lines = text.lines().enumerate().filter_map(|(at, line)| Some((at, entry(line)?)));
        let Some((at, found)) = lines.filter(|(_, entry)| entry.key == *key).last() else { continue };
        let found = normalized(found.value);
        return (found != value).then_some(Override { path, line: at + 1, value: found });
    }
    None
}

/// Returns the files that are read after this one, in order.
fn files_after(file: &Path) -> Vec<PathBuf> {
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for directory in DIRECTORIES.map(Path::new) {
        for name in look::names(directory) {
            if Path::new(&name).extension().is_some_and(|end| end == "conf")
                && files.iter().all(|(known, _)| *known != name)
            {
                files.push((name.clone(), directory.join(name)));
            }
        }
    }
    files.sort();
    let last = (String::new(), PathBuf::from(LAST));
    let all = files.into_iter().chain([last]).map(|(_, path)| path);
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_last = file == Path::new(LAST);
    all.filter(|path| {
        let other = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_later = path == Path::new(LAST) || other > name;
        !is_last && is_later && !is_same(path, file)
    })
    .collect()
}

/// Whether two paths lead to one file: `99-sysctl.conf` is often a link to `/etc/sysctl.conf`.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((look::real(one), look::real(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::parse("vm.swappiness").unwrap()
    }

    #[test]
    fn the_last_line_of_a_key_counts() {
        for (text, value) in [
            ("", None),
            ("# vm.swappiness = 1\n; vm.swappiness=2\n", None),
            ("vm.swappiness=1", Some(("1", false))),
            ("vm.swappiness = 1\n  vm/swappiness\t=  2  \n", Some(("2", false))),
            ("-vm.swappiness = 3\n", Some(("3", true))),
            ("vm.swappiness\n", None),
            ("kernel.printk = 4\t4  1 7\n", None),
        ] {
            let found = stored(text, &key());
            let expected = value.map(|(value, is_optional)| Stored { value: value.to_owned(), is_optional });
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn only_lines_of_the_key_change() {
        for (text, with, without_it) in [
            ("", "vm.swappiness = 5\n", None),
            ("# a\nx.y = 1", "# a\nx.y = 1\nvm.swappiness = 5\n", Some("# a\nx.y = 1")),
            ("vm.swappiness=1\n# end\n", "vm.swappiness = 5\n# end\n", Some("# end\n")),
            (
                "vm.swappiness=1\nvm.swappiness=2\nx.y=1\n",
                "vm.swappiness=1\nvm.swappiness = 5\nx.y=1\n",
                Some("x.y=1\n"),
            ),
            ("vm.swappiness=1\n\n", "vm.swappiness = 5\n\n", None),
        ] {
            assert_eq!(with_value(text, &key(), "5", false), with, "{text}");
            assert_eq!(without(text, &key()).as_deref(), without_it, "{text}");
        }
    }
}
