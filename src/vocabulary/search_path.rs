//! Directories in which programs are searched.

use std::{fmt, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// Absolute directories, separated by colons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "list of directories", "pattern" = "^/[^:]*(:/[^:]*)*$"))]
pub(crate) struct SearchPath(String);

impl SearchPath {
    /// Returns the value as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SearchPath {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        if text.contains('\0') {
            return Err(NotAWord(format!("search path {text:?} contains a null byte")));
        }
        // A relative or empty entry means another directory for every command.
        match text.split(':').find(|directory| !Path::new(directory).is_absolute()) {
            None => Ok(Self(text)),
            Some("") => Err(NotAWord(format!(
                "\"{text}\" has an empty entry: write absolute directories with one colon between them"
            ))),
            Some(relative) => Err(NotAWord(format!(
                "\"{relative}\" is not an absolute directory: write directories like /usr/bin:/bin"
            ))),
        }
    }
}

impl From<SearchPath> for String {
    fn from(path: SearchPath) -> Self {
        path.0
    }
}

impl fmt::Display for SearchPath {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_directories_are_a_search_path() {
        for text in ["/bin", "/usr/local/bin:/usr/bin:/bin", "/opt/my tools/bin"] {
            assert_eq!(
                SearchPath::try_from(text.to_owned()).map(|path| path.to_string()),
                Ok(text.to_owned())
            );
        }
        for (text, part) in [
            ("", "empty entry"),
            ("/bin:", "empty entry"),
            ("/bin::/usr/bin", "empty entry"),
            ("bin", "\"bin\" is not an absolute directory"),
            ("/bin:.:/usr/bin", "\".\" is not an absolute directory"),
            ("/bin:~/bin", "\"~/bin\" is not an absolute directory"),
            ("/bin\0", "null byte"),
        ] {
            let error = SearchPath::try_from(text.to_owned()).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
