//! References to resources.

use std::{fmt, str::FromStr};

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// Resource as `type#name`, where the name can be an alias.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "reference", "pattern" = "^[a-z]+#.+$"))]
pub(crate) struct Reference {
    /// Name of the type.
    pub(crate) kind: String,
    /// Name or alias of the resource.
    pub(crate) name: String,
}

impl Reference {
    /// Returns whether the name can be a pattern of names. A resource can also have a name with `*`.
    pub(crate) fn is_pattern(&self) -> bool {
        self.name.contains(['*', '?'])
    }

    /// Returns the predicate for the references that this pattern matches: of the same type, with a matching name.
    pub(crate) fn matcher(&self) -> impl Fn(&Self) -> bool {
        let (kind, names) = (self.kind.clone(), wildcards(&self.name));
        move |other| other.kind == kind && names.as_ref().is_ok_and(|names| names.is_match(&other.name))
    }
}

/// Returns the expression for a pattern in which `*` stands for any text, and `?` for any character.
pub(crate) fn wildcards(pattern: &str) -> Result<Regex, regex::Error> {
    let pattern = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("(?s)^(?:{pattern})$"))
}

impl FromStr for Reference {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        match text.split_once('#') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            _ => Err(NotAWord(format!(
                "\"{text}\" is not a reference: write it as type#name, such as file#/etc/motd"
            ))),
        }
    }
}

impl TryFrom<String> for Reference {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        text.parse()
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_split_at_the_first_hash() {
        let reference: Reference = "file#/etc/a#b".parse().unwrap();
        assert_eq!((reference.kind.as_str(), reference.name.as_str()), ("file", "/etc/a#b"));
        assert_eq!(reference.to_string(), "file#/etc/a#b");
    }

    #[test]
    fn pattern_matches_names_of_its_type() {
        for (pattern, reference, matches) in [
            ("file#/etc/nginx/*", "file#/etc/nginx/a", true),
            ("file#/etc/nginx/*", "file#/etc/nginx/sites/a", true),
            ("file#/etc/nginx/*", "file#/etc/nginx", false),
            ("file#/etc/nginx/*", "edit#/etc/nginx/a", false),
            ("file#/etc/?", "file#/etc/a", true),
            ("file#/etc/?", "file#/etc/ab", false),
            ("exec#a.*", "exec#ab", false),
            ("exec#*", "exec#first\nsecond", true),
        ] {
            let (pattern, reference): (Reference, Reference) =
                (pattern.parse().unwrap(), reference.parse().unwrap());
            assert!(pattern.is_pattern() && !reference.is_pattern());
            assert_eq!(pattern.matcher()(&reference), matches, "{pattern} on {reference}");
        }
    }

    #[test]
    fn half_a_reference_is_refused() {
        for text in ["", "file", "file#", "#x"] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
