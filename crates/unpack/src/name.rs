//! Checks the names of entries.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use super::error::Offence;
use ccm_files::is_temporary_name;

/// Maximum depth of entries: each directory on the way takes a descriptor.
pub(super) const DEEPEST: usize = 128;
/// As the kernel has it.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4095;

/// Returns the path of an entry below the target, without its first components; empty when nothing is left of it.
pub(super) fn locate(raw: &[u8], strip_components: usize) -> Result<PathBuf, Offence> {
    if raw.contains(&0) {
        return Err(Offence::NullByte);
    }
    if raw.is_empty() {
        return Err(Offence::Nameless);
    }
    if raw.len() > LONGEST_PATH {
        return Err(Offence::LongName);
    }
    let mut names = Vec::new();
    for component in Path::new(OsStr::from_bytes(raw)).components() {
        match component {
            Component::Normal(name) if name.len() > LONGEST_NAME => return Err(Offence::LongName),
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(Offence::Upwards),
            Component::RootDir | Component::Prefix(_) => return Err(Offence::Absolute),
        }
    }
    let names = names.get(strip_components..).unwrap_or_default();
    if names.len() > DEEPEST {
        return Err(Offence::Deep { limit: DEEPEST });
    }
    if names.iter().any(|name| is_temporary_name(name)) {
        return Err(Offence::Reserved);
    }
    Ok(names.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths_below_the_target() {
        for (raw, strip, path) in [
            ("a/b", 0, "a/b"),
            ("./a//b/", 0, "a/b"),
            ("./", 0, ""),
            ("top/a/b", 1, "a/b"),
            ("./top/a", 1, "a"),
            ("top/", 1, ""),
            ("a/...", 0, "a/..."),
        ] {
            assert_eq!(locate(raw.as_bytes(), strip), Ok(PathBuf::from(path)), "{raw}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_or_are_no_names_are_refused() {
        let long = "x".repeat(256);
        let endless = "x/".repeat(3000);
        let deep = "x/".repeat(129);
        for (raw, offence) in [
            ("../a", Offence::Upwards),
            ("a/../../b", Offence::Upwards),
            ("a/..", Offence::Upwards),
            ("/etc/passwd", Offence::Absolute),
            ("//x", Offence::Absolute),
            ("", Offence::Nameless),
            ("a\0b", Offence::NullByte),
            (long.as_str(), Offence::LongName),
            (endless.as_str(), Offence::LongName),
            (deep.as_str(), Offence::Deep { limit: 128 }),
            ("a/.ccm-abcdefghijkl.tmp", Offence::Reserved),
        ] {
            assert_eq!(locate(raw.as_bytes(), 0), Err(offence), "{raw}");
            assert!(locate(raw.as_bytes(), 1) != Ok(PathBuf::from("etc/passwd")));
        }
    }
}
