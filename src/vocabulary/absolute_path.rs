//! Absolute paths in normalized form.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// Absolute path without `.`, `..`, doubled or trailing slashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "path", "pattern" = "^/"))]
pub(crate) struct AbsolutePath(String);

impl AbsolutePath {
    /// Returns the path.
    pub(crate) fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl TryFrom<String> for AbsolutePath {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        if text.contains('\0') {
            return Err(NotAWord(format!("path {text:?} contains a null byte")));
        }
        if !text.starts_with('/') {
            return Err(NotAWord(format!("path \"{text}\" must be absolute: start it with /")));
        }
        let clean = clean(Path::new(&text));
        if clean.as_os_str() != text.as_str() {
            return Err(NotAWord(format!(
                "path \"{text}\" must be absolute and clean: write \"{}\"",
                clean.display()
            )));
        }
        Ok(Self(text))
    }
}

/// Removes `.`, `..` and redundant slashes without reading the file system.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

impl From<AbsolutePath> for String {
    fn from(path: AbsolutePath) -> Self {
        path.0
    }
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AbsolutePath, String> {
        AbsolutePath::try_from(text.to_owned()).map_err(|error| error.to_string())
    }

    #[test]
    fn clean_absolute_paths_are_taken_as_they_are() {
        for text in ["/", "/etc/motd", "/a b/ü", "/...", "/.hidden", "/a#b", "/-x"] {
            assert_eq!(parse(text).map(|path| path.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn other_paths_are_refused_and_the_clean_one_is_named() {
        for (text, part) in [
            ("", "must be absolute"),
            ("etc/motd", "must be absolute"),
            ("~/x", "must be absolute"),
            ("/etc/", "write \"/etc\""),
            ("//etc", "write \"/etc\""),
            ("/etc/./motd", "write \"/etc/motd\""),
            ("/etc/../motd", "write \"/motd\""),
            ("/..", "write \"/\""),
            ("/a\0b", "null byte"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
