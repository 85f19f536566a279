//! Lengths of time.

use std::{fmt, str::FromStr, time};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotAWord, Raw};

/// A length of time such as `500ms`, `30s`, `5m`, `1h30m`, `2d` or `1w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline, with = "String", extend("pattern" = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d|w))+$"))]
pub(crate) struct Duration(time::Duration);

/// The units, largest first, with their length in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

impl Duration {
    pub(crate) const fn from_secs(seconds: u64) -> Self {
        Self(time::Duration::from_secs(seconds))
    }

    pub(crate) fn as_std(self) -> time::Duration {
        self.0
    }
}

impl FromStr for Duration {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        parse(text).ok_or_else(|| {
            let unit = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
                format!(": give it a unit, such as \"{text}s\"")
            } else {
                ": write it like 500ms, 30s, 5m, 1h30m, 2d or 1w".to_owned()
            };
            NotAWord(format!("\"{text}\" is not a duration{unit}"))
        })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = time::Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|&at| at > 0)?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (_, nanoseconds) = UNITS.iter().find(|(unit, _)| *unit == &tail[..end])?;
        total = total.checked_add(amount(number, *nanoseconds)?)?;
        rest = &tail[end..];
    }
    (!text.is_empty()).then_some(Duration(total))
}

/// `number` units, exactly: the digits after the point are not rounded through a float.
fn amount(number: &str, unit: u64) -> Option<time::Duration> {
    let (whole, fraction) =
        number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut nanoseconds = u128::from(whole.parse::<u64>().ok()?) * u128::from(unit);
    if let Some(fraction) = fraction {
        if fraction.is_empty() || fraction.len() > 9 || fraction.contains('.') {
            return None;
        }
        let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        nanoseconds += u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / scale;
    }
    u64::try_from(nanoseconds).ok().map(time::Duration::from_nanos)
}

impl TryFrom<Raw> for Duration {
    type Error = NotAWord;

    fn try_from(raw: Raw) -> Result<Self, NotAWord> {
        raw.0.parse()
    }
}

impl From<time::Duration> for Duration {
    fn from(duration: time::Duration) -> Self {
        Self(duration)
    }
}

impl From<Duration> for String {
    fn from(duration: Duration) -> Self {
        duration.to_string()
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut rest = self.0.as_nanos();
        if rest < 1_000_000 {
            return f.write_str("0s");
        }
        for (unit, nanoseconds) in UNITS {
            let count = rest / u128::from(nanoseconds);
            if count > 0 {
                write!(f, "{count}{unit}")?;
                rest %= u128::from(nanoseconds);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_the_same() {
        for (text, milliseconds, printed) in [
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("5m", 300_000, "5m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("2d", 172_800_000, "2d"),
            ("1w", 604_800_000, "1w"),
            ("90s", 90_000, "1m30s"),
            ("1.5h", 5_400_000, "1h30m"),
            ("0s", 0, "0s"),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.as_std(), time::Duration::from_millis(milliseconds), "{text}");
            assert_eq!(duration.to_string(), printed);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "30",
            "s",
            "-1s",
            "1 h",
            "1y",
            "1h 30m",
            "1.5.5s",
            "1.s",
            ".5s",
            "99999999999999w",
            "1hm",
            "ms",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
        assert!("30".parse::<Duration>().unwrap_err().to_string().contains("30s"));
    }
}
