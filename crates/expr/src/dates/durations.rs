//! Lengths of time as text: `1h30m`, `250ms`.

/// The units, largest first, with their length in nanoseconds.
const UNITS: &[(&str, i64)] = &[
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ns", 1),
];

/// Reads `-1h2.5m3s`; nanoseconds, or nothing when it is not a duration or too long.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|digit: char| !digit.is_ascii_digit() && digit != '.').unwrap_or(rest.len());
        let (count, after) = rest.split_at(end);
        let (unit, length) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        total = total.checked_add(part(count, *length)?)?;
        rest = &after[unit.len()..];
    }
    i64::try_from(sign * total).ok()
}

/// So many of a unit, exactly.
fn part(count: &str, length: i64) -> Option<i128> {
    let (whole, fraction) = count.split_once('.').unwrap_or((count, ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || whole.len() > 19 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let length = i128::from(length);
    let wholes = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? };
    // More digits than nanoseconds need cannot change the result.
    let fraction = &fraction[..fraction.len().min(15)];
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? };
    Some(wholes * length + parts * length / scale)
}

/// Writes `1h2m3.5s`, and lengths below a second in the unit that suits them.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    let size = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let text = match size {
        0 => return "0s".to_owned(),
        1..1_000 => format!("{size}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", decimal(size, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(size, 1_000_000)),
        _ => {
            let minutes = size / 60_000_000_000;
            let seconds = decimal(size % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

fn decimal(count: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", count / unit, count % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{duration, duration_text};

    #[test]
    fn a_duration_reads_back_as_it_was_written() {
        for text in [
            "0s",
            "1ns",
            "1.5\u{b5}s",
            "250ms",
            "1s",
            "1.5s",
            "1m0s",
            "1h0m0s",
            "26h3m4.000000005s",
            "-1m30s",
        ] {
            assert_eq!(duration_text(duration(text).unwrap()), text);
        }
        assert_eq!(duration("1.5h"), duration("1h30m"));
        assert_eq!(duration("0"), Some(0));
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in ["", "1", "h", "1x", "-", "1h 2m", ".s", "1.2.3s", "9999999999h", "1d"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
