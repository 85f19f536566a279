//! Time to live of an entry.

use std::{fmt, str::FromStr, time};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::words::NotAnEntry;
use crate::vocabulary::{Duration, Raw};

/// Time to live of a published entry: a duration, or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(inline, with = "String")]
pub(crate) enum Ttl {
    Never,
    For(time::Duration),
}

impl Ttl {
    /// Returns the header value, unless the duration is shorter than the server supports.
    pub(super) fn header(self) -> Option<String> {
        match self {
            Self::For(time) if time < time::Duration::from_secs(1) => None,
            _ => Some(self.to_string()),
        }
    }

    /// Returns the duration, or `None` for `never`.
    pub(crate) fn length(self) -> Option<time::Duration> {
        match self {
            Self::Never => None,
            Self::For(time) => Some(time),
        }
    }
}

impl FromStr for Ttl {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Self, NotAnEntry> {
        if text == "never" {
            return Ok(Self::Never);
        }
        let time = text.parse::<Duration>().map_err(|error| NotAnEntry(format!("{error}, or `never`")))?;
        if time.as_std().is_zero() {
            return Err(NotAnEntry(format!("\"{text}\" is no time at all: leave ttl out, or write `never`")));
        }
        Ok(Self::For(time.as_std()))
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer)?.0.parse().map_err(de::Error::custom)
    }
}

impl From<Ttl> for String {
    fn from(ttl: Ttl) -> Self {
        ttl.to_string()
    }
}

/// Prints the duration as Go does: `24h0m0s`, `2m0s`, `1.5s`, `500ms`.
impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self::For(time) = self else { return f.write_str("never") };
        let nanoseconds = time.as_nanos();
        let (unit, name) = match nanoseconds {
            0 => return f.write_str("0s"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (mut whole, part) = (nanoseconds / unit, nanoseconds % unit);
        if name == "s" {
            let (hours, minutes) = (whole / 3600, whole / 60 % 60);
            if hours > 0 {
                write!(f, "{hours}h")?;
            }
            if whole >= 60 {
                write!(f, "{minutes}m")?;
            }
            whole %= 60;
        }
        write!(f, "{whole}")?;
        if part > 0 {
            let digits = unit.ilog10() as usize;
            write!(f, ".{}", format!("{part:0digits$}").trim_end_matches('0'))?;
        }
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_printed_as_go_does() {
        for (text, printed) in [
            ("24h", "24h0m0s"),
            ("2m", "2m0s"),
            ("1d", "24h0m0s"),
            ("30s", "30s"),
            ("1h1s", "1h0m1s"),
            ("1500ms", "1.5s"),
            ("61.05s", "1m1.05s"),
            ("500ms", "500ms"),
            ("never", "never"),
        ] {
            assert_eq!(text.parse::<Ttl>().unwrap().to_string(), printed, "{text}");
        }
        for text in ["", "30", "0s", "-1s", "Never"] {
            assert!(text.parse::<Ttl>().is_err(), "{text}");
        }
    }
}
