//! Ranges of versions: `>1.0.0 <2.0.0 || >3`.

use std::{cmp::Ordering, str::FromStr};

/// Alternatives, each a list of conditions that hold together.
#[derive(Clone, Debug)]
pub(crate) struct Constraint(Vec<Vec<Condition>>);

#[derive(Clone, Debug)]
struct Condition {
    relation: Relation,
    version: Version,
    /// How many numbers were written: `1.2` has two.
    written: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    NotEqual,
    Greater,
    AtLeast,
    Less,
    AtMost,
    /// As far as the numbers were written, but the last of them may be larger.
    Tilde,
    /// The first number that is not zero is the same.
    Caret,
}

/// A version of semver.org, in which numbers at the end may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    numbers: [u64; 3],
    /// The parts of a pre-release, which comes before the version itself.
    pre: Vec<String>,
}

const OPERATORS: [(&str, Relation); 11] = [
    (">=", Relation::AtLeast),
    ("=>", Relation::AtLeast),
    ("<=", Relation::AtMost),
    ("=<", Relation::AtMost),
    ("!=", Relation::NotEqual),
    ("==", Relation::Equal),
    ("=", Relation::Equal),
    (">", Relation::Greater),
    ("<", Relation::Less),
    ("~", Relation::Tilde),
    ("^", Relation::Caret),
];

impl FromStr for Constraint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split("||").map(alternative).collect::<Result<_, _>>().map(Self)
    }
}

fn alternative(text: &str) -> Result<Vec<Condition>, String> {
    let mut conditions = Vec::new();
    let mut operator = None;
    for word in text.split_whitespace() {
        let found = OPERATORS.iter().find(|(sign, _)| word.starts_with(sign));
        let (relation, version) = match (operator.take(), found) {
            (Some(relation), None) => (relation, word),
            (None, Some((sign, relation))) if word.len() == sign.len() => {
                operator = Some(*relation);
                continue;
            }
            (None, Some((sign, relation))) => (*relation, &word[sign.len()..]),
            (None, None) => (Relation::Equal, word),
            (Some(_), Some(_)) => return Err(format!("\"{text}\" has two operators in a row")),
        };
        let (version, written) = read(version).ok_or_else(|| format!("\"{version}\" is not a version"))?;
        conditions.push(Condition { relation, version, written });
    }
    if conditions.is_empty() || operator.is_some() {
        return Err(format!("\"{text}\" is not a range of versions: write it like \">=1.2 <2\""));
    }
    Ok(conditions)
}

/// Reads a version, and says how many of its numbers were written. `x` and `*` stand for any number.
fn read(text: &str) -> Option<(Version, usize)> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let text = text.split_once('+').map_or(text, |(version, _build)| version);
    let (numbers, pre) = text.split_once('-').map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
    let parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    let written = parts.iter().take_while(|part| !matches!(**part, "x" | "X" | "*")).count();
    let mut all = [0; 3];
    for (number, part) in all.iter_mut().zip(&parts[..written]) {
        *number = part.parse().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()))?;
    }
    if !parts[written..].iter().all(|part| matches!(*part, "x" | "X" | "*")) {
        return None;
    }
    let pre = pre.map(|pre| pre.split('.').map(str::to_owned).collect()).unwrap_or_default();
    Some((Version { numbers: all, pre }, written))
}

impl Constraint {
    /// Returns whether a version is in the range; `None` if the text is no version.
    pub(super) fn holds(&self, version: &str) -> Option<bool> {
        let (version, _) = read(version.trim())?;
        Some(self.0.iter().any(|all| all.iter().all(|condition| condition.holds(&version))))
    }
}

impl Condition {
    fn holds(&self, version: &Version) -> bool {
        let order = version.order(&self.version);
        let same = |count: usize| version.numbers[..count] == self.version.numbers[..count];
        match self.relation {
            Relation::Equal if self.written < 3 => same(self.written),
            Relation::NotEqual if self.written < 3 => !same(self.written),
            Relation::Equal => order.is_eq(),
            Relation::NotEqual => order.is_ne(),
            Relation::Greater => order.is_gt(),
            Relation::AtLeast => order.is_ge(),
            Relation::Less => order.is_lt(),
            Relation::AtMost => order.is_le(),
            Relation::Tilde => order.is_ge() && same(self.written.saturating_sub(1).clamp(1, 2)),
            Relation::Caret => {
                let zeros = self.version.numbers.iter().take_while(|number| **number == 0).count();
                order.is_ge() && same((zeros + 1).min(3))
            }
        }
    }
}

impl Version {
    fn order(&self, other: &Self) -> Ordering {
        let pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => order_parts(&self.pre, &other.pre),
        };
        self.numbers.cmp(&other.numbers).then_with(pre)
    }
}

/// Orders pre-releases: numbers by their value and before words, and what is longer after.
fn order_parts(a: &[String], b: &[String]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        };
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_ranges_or_not() {
        for (range, inside, outside) in [
            (
                ">1.0.0 <2.0.0 || >3",
                &["1.0.1", "1.9", "3.0.1", "v4"][..],
                &["1.0.0", "2.0.0", "3", "0.1"][..],
            ),
            ("1.2", &["1.2.0", "1.2.9"], &["1.3.0"]),
            ("1.x", &["1.0.0", "1.9.9"], &["2.0.0"]),
            ("!=1.2.3", &["1.2.4"], &["1.2.3"]),
            (">= 1.2", &["1.2.0", "2"], &["1.1.9"]),
            ("~1.2.3", &["1.2.3", "1.2.9"], &["1.3.0", "1.2.2"]),
            ("^1.2", &["1.2.0", "1.9"], &["2.0.0", "1.1"]),
            ("^0.2.1", &["0.2.5"], &["0.3.0"]),
            (">=1.0.0", &["1.0.0"], &["1.0.0-rc.1"]),
            (">1.0.0-rc.1", &["1.0.0-rc.2", "1.0.0"], &["1.0.0-beta"]),
        ] {
            let constraint: Constraint = range.parse().unwrap();
            for version in inside {
                assert_eq!(constraint.holds(version), Some(true), "{range}: {version}");
            }
            for version in outside {
                assert_eq!(constraint.holds(version), Some(false), "{range}: {version}");
            }
        }
        assert_eq!("1".parse::<Constraint>().unwrap().holds("abc"), None);
        for text in ["", ">", "> > 1", "x.y", "1.2.3.4", "1 ||"] {
            assert!(text.parse::<Constraint>().is_err(), "{text}");
        }
    }
}
