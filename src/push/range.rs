//! Range notation: `web[01-27,30].example.com` for many names.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

/// Returns names in range notation, separated by commas. The last number in a name is the one that varies.
pub(crate) fn ranges(names: &[String]) -> String {
    let mut numbered: BTreeMap<(&str, &str, usize), Vec<u64>> = BTreeMap::new();
    let mut order: Vec<Part> = Vec::new();
    // `08` and `10` have one width; `9` and `10` have none.
    let parts: Vec<Part> = names.iter().map(|name| Part::of(name)).collect();
    let padded: HashSet<(&str, &str, usize)> =
        parts.iter().filter(|part| part.is_padded()).filter_map(Part::key).collect();
    for mut part in parts {
        let key = part.key();
        if let Part::Numbered { width, .. } = &mut part
            && !key.is_some_and(|key| padded.contains(&key))
        {
            *width = 0;
        }
        if let Part::Numbered { before, after, width, number } = part {
            let numbers = numbered.entry((before, after, width)).or_default();
            if numbers.is_empty() {
                order.push(part);
            }
            numbers.push(number);
        } else {
            order.push(part);
        }
    }
    let mut text = String::new();
    for part in order {
        if !text.is_empty() {
            text.push(',');
        }
        match part {
            Part::Plain(name) => text.push_str(name),
            Part::Numbered { before, after, width, .. } => {
                let numbers = numbered.remove(&(before, after, width)).unwrap_or_default();
                let _ = write!(text, "{before}{}{after}", bracketed(numbers, width));
            }
        }
    }
    text
}

#[derive(Clone, Copy)]
enum Part<'n> {
    Plain(&'n str),
    /// `width` is the number of digits, or 0 if numbers of any length are written without zeros in front.
    Numbered {
        before: &'n str,
        after: &'n str,
        width: usize,
        number: u64,
    },
}

impl<'n> Part<'n> {
    /// Returns whether the number begins with a zero.
    fn is_padded(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Numbered { width, number, .. } => *width > number.to_string().len(),
        }
    }

    /// Returns what names of one range have in common.
    fn key(&self) -> Option<(&'n str, &'n str, usize)> {
        match *self {
            Self::Plain(_) => None,
            Self::Numbered { before, after, width, .. } => Some((before, after, width)),
        }
    }

    fn of(name: &'n str) -> Self {
        let is_digit = |c: char| c.is_ascii_digit();
        // An address has many numbers; its last one varies, too.
        let Some(last) = name.rfind(is_digit) else { return Self::Plain(name) };
        let (rest, after) = name.split_at(last + 1);
        let before = rest.trim_end_matches(is_digit);
        let digits = &rest[before.len()..];
        let Ok(number) = digits.parse::<u64>() else { return Self::Plain(name) };
        Self::Numbered { before, after, width: digits.len(), number }
    }
}

fn bracketed(mut numbers: Vec<u64>, width: usize) -> String {
    numbers.sort_unstable();
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last == number || last.checked_add(1) == Some(number) => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let shown: Vec<String> = spans
        .iter()
        .map(|(first, last)| match last - first {
            0 => format!("{first:0width$}"),
            1 => format!("{first:0width$},{last:0width$}"),
            _ => format!("{first:0width$}-{last:0width$}"),
        })
        .collect();
    match spans.as_slice() {
        [(first, last)] if first == last => shown.concat(),
        _ => format!("[{}]", shown.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_to_ranges() {
        for (names, expected) in [
            ("", ""),
            ("web1", "web1"),
            ("web1 web2 web3", "web[1-3]"),
            ("web01 web02 web03 web09 web10", "web[01-03,09,10]"),
            ("db web1 web2", "db,web[1,2]"),
            ("web2.a web1.a web1.b", "web[1,2].a,web1.b"),
            ("10.0.0.1 10.0.0.2 10.0.0.3", "10.0.0.[1-3]"),
            ("web9 web10 web11", "web[9-11]"),
            ("web08 web09 web10 web100", "web[08-10],web100"),
            ("x99999999999999999999999", "x99999999999999999999999"),
        ] {
            let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
            assert_eq!(ranges(&names), expected);
        }
    }
}
