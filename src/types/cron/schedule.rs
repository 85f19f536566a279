//! When cron runs an entry.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Words for common schedules.
const WORDS: [&str; 6] = ["@reboot", "@hourly", "@daily", "@weekly", "@monthly", "@yearly"];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A field of a schedule: its name, its range, and names for its values, of which the first is `first`.
struct Field {
    name: &'static str,
    first: u32,
    last: u32,
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", first: 0, last: 59, words: &[] },
    Field { name: "hour", first: 0, last: 23, words: &[] },
    Field { name: "day of the month", first: 1, last: 31, words: &[] },
    Field { name: "month", first: 1, last: 12, words: &MONTHS },
    // 0 and 7 are Sunday.
    Field { name: "day of the week", first: 0, last: 7, words: &DAYS },
];

/// Five fields, as in `crontab(5)`, or a word such as `@daily`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub(crate) struct Schedule(String);

impl Schedule {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Schedule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.contains(|c: char| c.is_control() && c != '\t') {
            return Err("a schedule is one line, without control characters".to_owned());
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [word] = words[..]
            && word.starts_with('@')
        {
            return match word {
                word if WORDS.contains(&word) => Ok(Self(word.to_owned())),
                "@annually" => Ok(Self("@yearly".to_owned())),
                "@midnight" => Ok(Self("@daily".to_owned())),
                _ => Err(format!(
                    "\"{word}\" is not a schedule: use five fields, or one of {}",
                    WORDS.join(", ")
                )),
            };
        }
        if words.len() != FIELDS.len() {
            return Err(format!(
                "the schedule \"{}\" has {} fields instead of five: minute, hour, day of the month, month, day of the week",
                text.trim(),
                words.len()
            ));
        }
        for (field, word) in FIELDS.iter().zip(&words) {
            field.check(word)?;
        }
        Ok(Self(words.join(" ")))
    }
}

impl From<Schedule> for String {
    fn from(schedule: Schedule) -> Self {
        schedule.0
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Field {
    /// Checks a list of values, ranges and steps.
    fn check(&self, text: &str) -> Result<(), String> {
        text.split(',').try_for_each(|part| self.check_part(part, text))
    }

    fn check_part(&self, part: &str, text: &str) -> Result<(), String> {
        let wrong = |reason: String| Err(format!("{} \"{text}\": {reason}", self.name));
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        if let Some(Ok(0) | Err(_)) = step.map(str::parse::<u32>) {
            return wrong(format!("\"{}\" is not a step", step.unwrap_or_default()));
        }
        if range == "*" {
            return Ok(());
        }
        match range.split_once('-') {
            Some((from, to)) => match (self.value(from)?, self.value(to)?) {
                (from, to) if from > to => wrong(format!("the range {range} is empty")),
                _ => Ok(()),
            },
            None if step.is_some() => {
                wrong(format!("a step needs a range, such as */{}", step.unwrap_or_default()))
            }
            None => self.value(range).map(drop),
        }
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let Self { name, first, last, words } = self;
        let number = text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        let word = words.iter().zip(*first..).find(|(word, _)| word.eq_ignore_ascii_case(text));
        let value = number.or(word.map(|(_, value)| value)).filter(|value| (first..=last).contains(&value));
        value.ok_or_else(|| match words {
            [] => format!("{name} \"{text}\": use a number from {first} to {last}"),
            [one, ..] => {
                format!("{name} \"{text}\": use a number from {first} to {last}, or a name such as {one}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_cron_accepts_are_accepted_with_one_space_between_fields() {
        for (text, normalized) in [
            ("0 3 * * *", "0 3 * * *"),
            ("  */5\t*  * * * ", "*/5 * * * *"),
            ("0,15,30-45/5 1-3 1,15 jan-Mar,12 Mon-Fri", "0,15,30-45/5 1-3 1,15 jan-Mar,12 Mon-Fri"),
            ("59 23 31 12 7", "59 23 31 12 7"),
            ("@daily", "@daily"),
            ("@midnight", "@daily"),
        ] {
            assert_eq!(Schedule::try_from(text.to_owned()).unwrap().as_str(), normalized);
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (text, message) in [
            ("61 * * * *", "minute \"61\": use a number from 0 to 59"),
            ("* 24 * * *", "hour \"24\": use a number from 0 to 23"),
            ("* * 0 * *", "day of the month \"0\": use a number from 1 to 31"),
            ("* * * foo *", "month \"foo\": use a number from 1 to 12, or a name such as jan"),
            ("* * * * 8", "day of the week \"8\": use a number from 0 to 7, or a name such as sun"),
            ("30-10 * * * *", "minute \"30-10\": the range 30-10 is empty"),
            ("*/0 * * * *", "minute \"*/0\": \"0\" is not a step"),
            ("5/10 * * * *", "minute \"5/10\": a step needs a range, such as */10"),
            ("+1 * * * *", "minute \"+1\": use a number from 0 to 59"),
            ("1,,2 * * * *", "minute \"\": use a number from 0 to 59"),
            ("* * * *", "the schedule \"* * * *\" has 4 fields instead of five"),
            ("* * * * * *", "has 6 fields instead of five"),
            ("@often", "\"@often\" is not a schedule: use five fields, or one of @reboot"),
            ("0 3 * * *\n* * * * *", "a schedule is one line"),
            ("", "has 0 fields"),
        ] {
            let error = Schedule::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
