//! Permissions of a file.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotAWord, raw::Digits};

/// Permission bits, at most `0777`, without setuid, setgid and sticky.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Digits", into = "String")]
#[schemars(inline, extend("x-type" = "mode", "pattern" = "^(0[oO])?[0-7]{1,5}$"))]
pub(crate) struct Mode(u32);

impl Mode {
    /// Returns the bits for system calls.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// Returns the bits for a directory, with search permission wherever there is read or write permission.
    pub(crate) fn directory_bits(self) -> u32 {
        let used = (self.0 >> 2 | self.0 >> 1) & 0o111;
        self.0 | used
    }
}

impl FromStr for Mode {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let digits = text.strip_prefix("0o").or_else(|| text.strip_prefix("0O")).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit)) {
            return Err(NotAWord(format!(
                "\"{text}\" is not a mode: write it in octal digits (0 to 7), such as \"0644\""
            )));
        }
        match u32::from_str_radix(digits, 8) {
            Ok(bits @ 0..=0o777) => Ok(Self(bits)),
            _ => Err(NotAWord(format!(
                "mode \"{text}\" is more than 0777: the other bits of a file are `setuid: true`, `setgid: true` and `sticky: true`"
            ))),
        }
    }
}

impl TryFrom<Digits> for Mode {
    type Error = NotAWord;

    fn try_from(digits: Digits) -> Result<Self, NotAWord> {
        digits.0.parse()
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        mode.to_string()
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_mode_is_the_same_mode() {
        for text in ["0644", "644", "0o644", "0O644", "00644"] {
            assert_eq!(text.parse(), Ok(Mode(0o644)), "{text}");
        }
        assert_eq!(Mode(0o7).to_string(), "0007");
    }

    #[test]
    fn what_is_not_octal_or_too_large_is_refused() {
        for text in
            ["", "0999", "rw-r--r--", "0x1a4", "-644", "+644", "0o", "6 44", "1777", "4755", "77777777777777"]
        {
            assert!(text.parse::<Mode>().is_err(), "{text}");
        }
    }
}
