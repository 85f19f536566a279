//! Which values of a document are encrypted.

use regex::Regex;

/// The suffix of keys that stay in plain text if a document does not select otherwise.
const DEFAULT_SUFFIX: &str = "_unencrypted";

/// Names of the selection rules in documents and in `.sops.yaml`.
pub(crate) const RULES: [&str; 6] = [
    "unencrypted_suffix",
    "encrypted_suffix",
    "unencrypted_regex",
    "encrypted_regex",
    "unencrypted_comment_regex",
    "encrypted_comment_regex",
];

/// A selection rule, with its name and text as in the document.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    regex: Option<Regex>,
}

/// A regular expression is not valid.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is not a valid regular expression")]
pub(crate) struct InvalidRule {
    name: &'static str,
}

impl Default for Selection {
    fn default() -> Self {
        Self { name: RULES[0], text: DEFAULT_SUFFIX.to_owned(), regex: None }
    }
}

impl PartialEq for Selection {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text == other.text
    }
}

impl Selection {
    pub(crate) fn new(name: &'static str, text: &str) -> Result<Self, InvalidRule> {
        let is_regex = name.ends_with("_regex");
        let regex = is_regex.then(|| Regex::new(text)).transpose().map_err(|_| InvalidRule { name })?;
        Ok(Self { name, text: text.to_owned(), regex })
    }

    /// Returns whether the rule is about comments.
    pub(crate) fn needs_comments(&self) -> bool {
        self.name.ends_with("_comment_regex")
    }

    /// Returns whether a key decides about the values below it: they are encrypted, or stay in plain text.
    pub(crate) fn matches_key(&self, key: &str) -> bool {
        match &self.regex {
            Some(_) if self.needs_comments() => false,
            Some(regex) => regex.is_match(key),
            None => key.ends_with(&self.text),
        }
    }

    /// Returns whether a comment decides about the values after it.
    pub(crate) fn matches_comment(&self, comment: &str) -> bool {
        self.needs_comments() && self.regex.as_ref().is_some_and(|regex| regex.is_match(comment))
    }

    /// Returns whether a value is encrypted, below a key or comment that matches or not.
    pub(crate) fn encrypts(&self, is_matched: bool) -> bool {
        is_matched != self.name.starts_with("un")
    }
}
