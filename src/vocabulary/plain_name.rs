//! Names that are passed to other programs as arguments.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotAWord;

/// Name of letters, digits and `.` `_` `+` `:` `~` `-` that does not begin with `-`, so that no program mistakes it for
/// an option, a path or a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-type" = "name", "pattern" = "^[A-Za-z0-9._+:~][A-Za-z0-9._+:~-]*$"))]
pub(crate) struct PlainName(String);

impl PlainName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PlainName {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._+:~-".contains(c);
        match text.chars().find(|&c| !allowed(c)) {
            _ if text.is_empty() => Err(NotAWord("a name cannot be empty".to_owned())),
            _ if text.starts_with('-') => Err(NotAWord(format!("the name {text:?} begins with '-'"))),
            Some(c) => Err(NotAWord(format!(
                "the name {text:?} contains {c:?}: only letters, digits and . _ + : ~ - are allowed"
            ))),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<String> for PlainName {
    type Error = NotAWord;

    fn try_from(text: String) -> Result<Self, NotAWord> {
        text.parse()
    }
}

impl From<PlainName> for String {
    fn from(name: PlainName) -> Self {
        name.0
    }
}

impl fmt::Display for PlainName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_digits_and_a_few_signs_make_a_name() {
        for name in ["httpd", "nginx.service", "my-app_v2", "libstdc++6", "a:amd64", "~x", "9p"] {
            assert_eq!(name.parse::<PlainName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn the_sign_that_makes_it_no_name_is_said() {
        for (text, said) in [
            ("app@instance", "'@'"),
            ("app; rm -rf /", "';'"),
            ("a|b", "'|'"),
            ("a&b", "'&'"),
            ("a b", "' '"),
            ("a\tb", "'\\t'"),
            ("../etc", "'/'"),
            ("a*", "'*'"),
            ("a[1]", "'['"),
            ("$HOME", "'$'"),
            ("a\nb", "'\\n'"),
            ("a\\x2d", "'\\\\'"),
            ("dämon", "'ä'"),
        ] {
            let message = text.parse::<PlainName>().unwrap_err().to_string();
            assert!(message.contains(&format!("contains {said}:")), "{message}");
        }
    }

    #[test]
    fn a_name_is_never_an_option_and_never_empty() {
        for text in ["-f", "--force", "-"] {
            assert!(text.parse::<PlainName>().unwrap_err().to_string().contains("begins with '-'"), "{text}");
        }
        assert!("".parse::<PlainName>().is_err());
    }
}
