//! Layouts of moments, written the way the reference moment would be: `2006-01-02T15:04:05Z07:00`.

use std::fmt::Write;

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// What a layout can hold; the first that fits is taken, so longer ones stand first.
const ELEMENTS: &[&str] = &[
    "January", "Jan", "Monday", "Mon", "MST", "2006", "-07:00", "-0700", "-07", "Z07:00", "Z0700", "Z07",
    "_2", "01", "02", "03", "04", "05", "06", "15", "PM", "pm", "1", "2", "3", "4", "5",
];

enum Piece<'a> {
    Text(&'a str),
    Element(&'static str),
    /// Digits of a second: how many, and whether zeros at the end are left out.
    Fraction {
        digits: usize,
        trimmed: bool,
    },
}

/// Splits the next piece off a layout.
fn piece(layout: &str) -> (Piece<'_>, &str) {
    if let Some((fraction, length)) = fraction(layout) {
        return (fraction, &layout[length..]);
    }
    for element in ELEMENTS {
        let after = layout.strip_prefix(element);
        // "Jan" begins "January" but not "Janet".
        let word = matches!(*element, "Jan" | "Mon");
        if let Some(rest) =
            after.filter(|rest| !(word && rest.starts_with(|next: char| next.is_ascii_lowercase())))
        {
            return (Piece::Element(element), rest);
        }
    }
    let first = layout.chars().next().map_or(0, char::len_utf8);
    (Piece::Text(&layout[..first]), &layout[first..])
}

/// `.000` or `,999`, not followed by another digit.
fn fraction(layout: &str) -> Option<(Piece<'_>, usize)> {
    let rest = layout.strip_prefix(['.', ','])?;
    let digit = rest.chars().next().filter(|digit| matches!(digit, '0' | '9'))?;
    let digits = rest.len() - rest.trim_start_matches(digit).len();
    let ends = !rest[digits..].starts_with(|next: char| next.is_ascii_digit());
    (ends && digits <= 9).then_some((Piece::Fraction { digits, trimmed: digit == '9' }, 1 + digits))
}

pub(super) fn format(time: &Zoned, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    while !rest.is_empty() {
        let (piece, after) = piece(rest);
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Element(element) => out.push_str(&element_text(time, element)),
            Piece::Fraction { digits, trimmed } => {
                let all = format!("{:09}", time.subsec_nanosecond());
                let kept = if trimmed { all[..digits].trim_end_matches('0') } else { &all[..digits] };
                if !kept.is_empty() {
                    out.push_str(&rest[..1]);
                    out.push_str(kept);
                }
            }
        }
        rest = after;
    }
    out
}

fn element_text(time: &Zoned, element: &str) -> String {
    let month = usize::try_from(time.month() - 1).unwrap_or(0);
    let day = usize::try_from(time.weekday().to_monday_zero_offset()).unwrap_or(0);
    let hour12 = (time.hour() + 11) % 12 + 1;
    match element {
        "January" => MONTHS[month].to_owned(),
        "Jan" => MONTHS[month][..3].to_owned(),
        "Monday" => DAYS[day].to_owned(),
        "Mon" => DAYS[day][..3].to_owned(),
        "MST" => time.time_zone().to_offset_info(time.timestamp()).abbreviation().to_owned(),
        "2006" => format!("{:04}", time.year()),
        "06" => format!("{:02}", time.year().rem_euclid(100)),
        "01" => format!("{:02}", time.month()),
        "1" => time.month().to_string(),
        "02" => format!("{:02}", time.day()),
        "_2" => format!("{:2}", time.day()),
        "2" => time.day().to_string(),
        "15" => format!("{:02}", time.hour()),
        "03" => format!("{hour12:02}"),
        "3" => hour12.to_string(),
        "04" => format!("{:02}", time.minute()),
        "4" => time.minute().to_string(),
        "05" => format!("{:02}", time.second()),
        "5" => time.second().to_string(),
        "PM" => if time.hour() >= 12 { "PM" } else { "AM" }.to_owned(),
        "pm" => if time.hour() >= 12 { "pm" } else { "am" }.to_owned(),
        zone => offset_text(time.offset(), zone),
    }
}

fn offset_text(offset: Offset, element: &str) -> String {
    let seconds = offset.seconds();
    if element.starts_with('Z') && seconds == 0 {
        return "Z".to_owned();
    }
    let size = seconds.unsigned_abs();
    let colon = if element.contains(':') { ":" } else { "" };
    let parts = [size / 3600, size / 60 % 60, size % 60];
    let count = element.bytes().filter(u8::is_ascii_digit).count() / 2;
    let mut out = String::from(if seconds < 0 { "-" } else { "+" });
    for (index, part) in parts.iter().take(count).enumerate() {
        let separator = if index > 0 { colon } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(out, "{separator}{part:02}");
    }
    out
}

/// What has been read of a moment so far.
struct Reading {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
    afternoon: Option<bool>,
    offset: Option<Offset>,
}

pub(super) fn parse(text: &str, layout: &str, zone: TimeZone) -> Option<Zoned> {
    let mut reading = Reading {
        year: 0,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        nanosecond: 0,
        afternoon: None,
        offset: None,
    };
    let mut text = text;
    let mut layout = layout;
    while !layout.is_empty() {
        let (piece, after) = piece(layout);
        layout = after;
        text = match piece {
            Piece::Text(expected) => text.strip_prefix(expected)?,
            Piece::Fraction { digits, trimmed } => {
                // What layouts leave out when it is zero may be missing.
                if trimmed && !text.starts_with(['.', ',']) {
                    text
                } else {
                    reading.fraction(text, if trimmed { None } else { Some(digits) })?
                }
            }
            Piece::Element(element) => {
                let rest = reading.element(element, text)?;
                // Seconds may have a fraction that the layout does not mention.
                let seconds = matches!(element, "5" | "05") && fraction(layout).is_none();
                let digit = |rest: &str| rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
                if seconds && rest.starts_with(['.', ',']) && digit(rest) {
                    reading.fraction(rest, None)?
                } else {
                    rest
                }
            }
        };
    }
    text.is_empty().then(|| reading.zoned(zone)).flatten()
}

/// Splits off a number of at least `least` and at most `most` digits.
fn digits(text: &str, least: usize, most: usize) -> Option<(i32, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (count >= least).then_some(())?;
    let (number, rest) = text.split_at(count);
    Some((number.parse().ok()?, rest))
}

fn word<'a>(text: &'a str, words: &[&str], length: Option<usize>) -> Option<(usize, &'a str)> {
    words.iter().enumerate().find_map(|(index, word)| {
        let word = &word[..length.unwrap_or(word.len())];
        let start = text.get(..word.len())?;
        start.eq_ignore_ascii_case(word).then(|| (index, &text[word.len()..]))
    })
}

impl Reading {
    fn element<'a>(&mut self, element: &str, text: &'a str) -> Option<&'a str> {
        let short = |least, most, field: &mut i8| {
            let (number, rest) = digits(text, least, most)?;
            *field = i8::try_from(number).ok()?;
            Some(rest)
        };
        match element {
            "01" => short(2, 2, &mut self.month),
            "1" => short(1, 2, &mut self.month),
            "02" => short(2, 2, &mut self.day),
            "2" => short(1, 2, &mut self.day),
            "15" | "03" => short(2, 2, &mut self.hour),
            "3" => short(1, 2, &mut self.hour),
            "04" => short(2, 2, &mut self.minute),
            "4" => short(1, 2, &mut self.minute),
            "05" => short(2, 2, &mut self.second),
            "5" => short(1, 2, &mut self.second),
            "_2" => {
                let (number, rest) = digits(text.trim_start_matches(' '), 1, 2)?;
                self.day = i8::try_from(number).ok()?;
                Some(rest)
            }
            "2006" => {
                let (number, rest) = digits(text, 4, 4)?;
                self.year = i16::try_from(number).ok()?;
                Some(rest)
            }
            "06" => {
                let (number, rest) = digits(text, 2, 2)?;
                self.year = i16::try_from(if number >= 69 { 1900 + number } else { 2000 + number }).ok()?;
                Some(rest)
            }
            _ => self.words(element, text),
        }
    }

    fn words<'a>(&mut self, element: &str, text: &'a str) -> Option<&'a str> {
        match element {
            "January" | "Jan" => {
                let (index, rest) = word(text, &MONTHS, (element == "Jan").then_some(3))?;
                self.month = i8::try_from(index + 1).ok()?;
                Some(rest)
            }
            "Monday" | "Mon" => word(text, &DAYS, (element == "Mon").then_some(3)).map(|(_, rest)| rest),
            "PM" | "pm" => {
                let (index, rest) = word(text, &["AM", "PM"], None)?;
                self.afternoon = Some(index == 1);
                Some(rest)
            }
            "MST" => {
                let length = text.bytes().take_while(u8::is_ascii_uppercase).count();
                // An abbreviation other than UTC does not say which zone it is, so it is read but not believed.
                if matches!(&text[..length], "UTC" | "GMT") {
                    self.offset = Some(Offset::UTC);
                }
                (length >= 3).then(|| &text[length..])
            }
            zone => self.read_offset(zone, text),
        }
    }

    fn read_offset<'a>(&mut self, element: &str, text: &'a str) -> Option<&'a str> {
        if let Some(rest) = text.strip_prefix('Z').filter(|_| element.starts_with('Z')) {
            self.offset = Some(Offset::UTC);
            return Some(rest);
        }
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let mut rest = text.strip_prefix(['+', '-'])?;
        let mut seconds = 0;
        let count = element.bytes().filter(u8::is_ascii_digit).count() / 2;
        for (index, unit) in [3600, 60, 1].into_iter().take(count).enumerate() {
            if index > 0 && element.contains(':') {
                rest = rest.strip_prefix(':')?;
            }
            let (number, after) = digits(rest, 2, 2)?;
            seconds += number * unit;
            rest = after;
        }
        self.offset = Some(Offset::from_seconds(sign * seconds).ok()?);
        Some(rest)
    }

    fn fraction<'a>(&mut self, text: &'a str, exactly: Option<usize>) -> Option<&'a str> {
        let rest = text.strip_prefix(['.', ','])?;
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        (count > 0 && exactly.is_none_or(|wanted| wanted == count)).then_some(())?;
        let nanoseconds: String = rest[..count].chars().chain("000000000".chars()).take(9).collect();
        self.nanosecond = nanoseconds.parse().ok()?;
        Some(&rest[count..])
    }

    fn zoned(&self, zone: TimeZone) -> Option<Zoned> {
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let time = Time::new(hour, self.minute, self.second, self.nanosecond).ok()?;
        let date = Date::new(self.year, self.month, self.day).ok()?;
        let zone = match self.offset {
            Some(Offset::UTC) => TimeZone::UTC,
            Some(offset) => TimeZone::fixed(offset),
            None => zone,
        };
        DateTime::from_parts(date, time).to_zoned(zone).ok()
    }
}
