//! Durations.

use std::{fmt, str::FromStr, time};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotAWord, Raw};

/// Duration such as `500ms`, `30s`, `5m`, `1h30m`, `2d` or `1w`; `M` is 30 days, `y` 365 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline, with = "String", extend("x-type" = "duration", "pattern" = "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h|d|w|M|y))+$"))]
pub(crate) struct Duration(time::Duration);

/// Units, largest first, with their length in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// Units that are accepted but never printed: two approximate ones, and three smaller than a millisecond.
const READ_ONLY_UNITS: [(&str, u64); 5] = [
    ("y", 365 * 86_400_000_000_000),
    ("M", 30 * 86_400_000_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
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
        parse(text).map_err(|fault| {
            NotAWord(match fault {
                Fault::TooLong => format!("\"{text}\" is too long: a duration is at most {LONGEST}"),
                Fault::Form if is_number(text) => {
                    format!("\"{text}\" is not a duration: give it a unit, such as \"{text}s\"")
                }
                Fault::Form => {
                    format!("\"{text}\" is not a duration: write it like 500ms, 30s, 5m, 1h30m, 2d or 1w")
                }
            })
        })
    }
}

/// Reason why a string is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Form,
    TooLong,
}

/// Number of weeks that fit into 64 bits of nanoseconds.
const LONGEST: &str = "30500w";

fn parse(text: &str) -> Result<Duration, Fault> {
    let mut rest = text;
    let mut total = 0_u128;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|&at| at > 0);
        let (number, tail) = rest.split_at(digits.ok_or(Fault::Form)?);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let unit = UNITS.iter().chain(&READ_ONLY_UNITS).find(|(unit, _)| *unit == &tail[..end]);
        let (_, nanoseconds) = unit.ok_or(Fault::Form)?;
        total = total.saturating_add(amount(number, *nanoseconds)?);
        rest = &tail[end..];
    }
    if text.is_empty() {
        return Err(Fault::Form);
    }
    let total = u64::try_from(total).map_err(|_| Fault::TooLong)?;
    Ok(Duration(time::Duration::from_nanos(total)))
}

/// Returns the exact number of nanoseconds in `number` units, without rounding through a float.
fn amount(number: &str, unit: u64) -> Result<u128, Fault> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if ![whole, fraction].into_iter().all(is_number) || fraction.len() > 9 {
        return Err(Fault::Form);
    }
    // Of digits alone, nothing can be wrong but that there are too many.
    let units = |digits: &str| digits.parse::<u64>().map_err(|_| Fault::TooLong);
    let scale = (0..fraction.len()).fold(1, |scale, _| scale * 10);
    let unit = u128::from(unit);
    Ok(u128::from(units(whole)?) * unit + u128::from(units(fraction)?) * unit / scale)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl TryFrom<Raw> for Duration {
    type Error = NotAWord;

    fn try_from(raw: Raw) -> Result<Self, NotAWord> {
        raw.0.parse()
    }
}

/// Time limit: a [`Duration`] greater than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline, with = "Duration")]
pub(crate) struct TimeLimit(Duration);

impl TimeLimit {
    pub(crate) fn as_std(self) -> time::Duration {
        self.0.as_std()
    }
}

impl TryFrom<Raw> for TimeLimit {
    type Error = NotAWord;

    fn try_from(raw: Raw) -> Result<Self, NotAWord> {
        raw.0.parse()
    }
}

impl FromStr for TimeLimit {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let limit: Duration = text.parse()?;
        if limit.as_std() < time::Duration::from_millis(1) {
            return Err(NotAWord(format!(
                "\"{text}\" leaves no time for anything: give at least 1ms, or nothing for no limit"
            )));
        }
        Ok(Self(limit))
    }
}

impl From<TimeLimit> for String {
    fn from(limit: TimeLimit) -> Self {
        limit.0.into()
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
            ("30500w", 18_446_400_000_000, "30500w"),
            ("1M", 2_592_000_000, "4w2d"),
            ("1y", 31_536_000_000, "52w1d"),
            ("2000us", 2, "2ms"),
            ("3000µs", 3, "3ms"),
            ("5000000ns", 5, "5ms"),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.as_std(), time::Duration::from_millis(milliseconds), "{text}");
            assert_eq!(duration.to_string(), printed);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "30", "s", "-1s", "1 h", "1Y", "1h 30m", "1.5.5s", "1.s", ".5s", "1hm", "ms"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
        assert!("30".parse::<Duration>().unwrap_err().to_string().contains("30s"));
    }

    #[test]
    fn what_is_too_long_is_called_so() {
        for text in ["30501w", "9999999w", "30500w30500w", "99999999999999999999999s"] {
            let error = text.parse::<Duration>().unwrap_err().to_string();
            assert_eq!(error, format!("\"{text}\" is too long: a duration is at most 30500w"));
        }
    }

    #[test]
    fn a_time_limit_leaves_some_time() {
        for text in ["0s", "0ms", "0.0001s", "0w"] {
            let error = TimeLimit::try_from(Raw(text.to_owned())).unwrap_err().to_string();
            assert!(error.starts_with(&format!("\"{text}\" leaves no time")), "{error}");
        }
        assert!(TimeLimit::try_from(Raw("1ms".to_owned())).is_ok());
    }
}
