//! Sizes in bytes.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotAWord, Raw};

/// Size in bytes such as `500MiB`, `20GiB` or `1073741824`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline, extend("x-type" = "size", "pattern" = "^[0-9]+(KiB|MiB|GiB|TiB)?$"))]
pub(crate) struct Size(u64);

/// Units, largest first.
const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl Size {
    pub(crate) const fn mebibytes(count: u64) -> Self {
        Self(count << 20)
    }

    pub(crate) const fn gibibytes(count: u64) -> Self {
        Self(count << 30)
    }

    pub(crate) fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
        let (digits, bytes) = unit.unwrap_or((text, 1));
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let size =
            digits.parse::<u64>().ok().filter(|_| is_number).and_then(|count| count.checked_mul(bytes));
        size.map(Self).ok_or_else(|| {
            NotAWord(format!("\"{text}\" is not a size: write it in bytes, or like 500MiB or 20GiB"))
        })
    }
}

impl TryFrom<Raw> for Size {
    type Error = NotAWord;

    fn try_from(raw: Raw) -> Result<Self, NotAWord> {
        raw.0.parse()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match UNITS.iter().find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes)) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_print_the_same() {
        for (text, bytes, printed) in [
            ("0", 0, "0"),
            ("1000", 1000, "1000"),
            ("1024", 1024, "1KiB"),
            ("20GiB", 20 << 30, "20GiB"),
            ("3TiB", 3 << 40, "3TiB"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, printed));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "GiB", "-1", "1.5GiB", "10GB", "10 GiB", "99999999999TiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
