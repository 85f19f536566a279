//! Times of allowed signers, in seconds since 1970.

use jiff::{Timestamp, civil, tz::TimeZone};

/// Reads `YYYYMMDD[HHMM[SS]]`, with `Z` or `UTC` at the end if it is not local time. Like `timegm` and `mktime`, this
/// normalizes days that the month does not have. A time before 1970 is invalid.
pub(super) fn parse(text: &[u8], zone: &TimeZone) -> Option<i64> {
    let (digits, is_utc) = without_zone(text);
    if ![8, 12, 14].contains(&digits.len()) {
        return None;
    }
    let part = |start: usize, width: usize, least: i16, most: i16| match digits.get(start..start + width) {
        Some(part) => number(part).filter(|number| (least..=most).contains(number)),
        None => Some(0),
    };
    let (year, month, day) = (part(0, 4, 0, 9999)?, part(4, 2, 1, 12)?, part(6, 2, 1, 31)?);
    let (hours, minutes, seconds) = (part(8, 2, 0, 23)?, part(10, 2, 0, 59)?, part(12, 2, 0, 61)?);
    let start = civil::Date::new(year, i8::try_from(month).ok()?, 1).ok()?;
    let days = start.duration_since(civil::date(1970, 1, 1)).as_hours() / 24 + i64::from(day) - 1;
    let read = ((days * 24 + i64::from(hours)) * 60 + i64::from(minutes)) * 60 + i64::from(seconds);
    let read = if is_utc { read } else { read - standard_offset(read, zone) };
    (read > 0).then_some(read)
}

fn without_zone(text: &[u8]) -> (&[u8], bool) {
    for zone in ["Z", "UTC"] {
        if let Some((digits, end)) = text.len().checked_sub(zone.len()).map(|at| text.split_at(at))
            && !digits.is_empty()
            && end.eq_ignore_ascii_case(zone.as_bytes())
        {
            return (digits, true);
        }
    }
    (text, false)
}

/// Reads a number as `strptime` does: spaces can come first.
fn number(part: &[u8]) -> Option<i16> {
    let digits = part.trim_ascii_start();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

/// Returns the offset of a local time from UTC, read as standard time in summer, too: ssh-keygen does not ask for daylight
/// saving time.
fn standard_offset(local: i64, zone: &TimeZone) -> i64 {
    let at = |second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    let moment = at(local - i64::from(zone.to_offset(at(local)).seconds()));
    let usual = zone.to_offset_info(moment);
    if !usual.dst().is_dst() {
        return usual.offset().seconds().into();
    }
    let mut standard = zone.preceding(moment).filter(|transition| !transition.dst().is_dst());
    standard.next().map_or_else(|| usual.offset(), |standard| standard.offset()).seconds().into()
}
