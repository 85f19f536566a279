//! Which hosts get their turn together.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;

/// A number, or a share of all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Number(usize),
    Percent(usize),
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a number or a percentage such as `10%`");
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.parse().ok().filter(|percent| *percent <= 100).ok_or_else(wrong)?;
                Ok(Self::Percent(percent))
            }
            None => text.parse().map(Self::Number).map_err(|_| wrong()),
        }
    }
}

impl Amount {
    /// Returns the size of a batch: at least one host.
    fn size(self, total: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => (total * percent).div_ceil(100),
        }
        .max(1)
    }

    /// Returns the number of hosts that a limit permits.
    pub(crate) fn limit(self, total: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => total * percent / 100,
        }
    }
}

/// Divides hosts into batches. The last size repeats. Hosts with the same value in `spread` are never all in one batch, unless
/// there is only one.
pub(crate) fn batches(total: usize, sizes: &[Amount], spread: Option<&[String]>) -> Vec<Vec<usize>> {
    if sizes.is_empty() && spread.is_none() {
        return if total == 0 { Vec::new() } else { vec![(0..total).collect()] };
    }
    let mut members: HashMap<&str, usize> = HashMap::new();
    for value in spread.into_iter().flatten() {
        *members.entry(value).or_default() += 1;
    }
    let mut left: VecDeque<usize> = (0..total).collect();
    let mut batches = Vec::new();
    while !left.is_empty() {
        let size = sizes.get(batches.len()).or(sizes.last()).map_or(total, |size| size.size(total));
        let (mut batch, mut held): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        while batch.len() < size
            && let Some(host) = left.pop_front()
        {
            let completes = spread.is_some_and(|values| {
                let value = values[host].as_str();
                let here = batch.iter().filter(|other| values[**other] == value).count();
                members[value] > 1 && here + 1 == members[value]
            });
            if completes { held.push(host) } else { batch.push(host) }
        }
        for host in held.into_iter().rev() {
            left.push_front(host);
        }
        batches.push(batch);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(text: &str) -> Vec<Amount> {
        text.split(',').map(|amount| amount.parse().unwrap()).collect()
    }

    #[test]
    fn last_size_repeats_and_percentages_are_rounded_up() {
        for (total, sizes, expected) in [
            (10, "1,10%,50%", vec![1, 1, 5, 3]),
            (25, "10%", vec![3, 3, 3, 3, 3, 3, 3, 3, 1]),
            (3, "5", vec![3]),
            (2, "0%", vec![1, 1]),
        ] {
            let sizes: Vec<usize> = batches(total, &amounts(sizes), None).iter().map(Vec::len).collect();
            assert_eq!(sizes, expected);
        }
        assert_eq!(batches(3, &[], None), [[0, 1, 2]]);
    }

    #[test]
    fn limits_are_rounded_down() {
        assert_eq!("5%".parse::<Amount>().unwrap().limit(39), 1);
        assert_eq!("2".parse::<Amount>().unwrap().limit(1), 2);
        assert!("101%".parse::<Amount>().is_err() && "-1".parse::<Amount>().is_err());
    }

    #[test]
    fn hosts_with_one_value_are_not_all_in_one_batch() {
        let values: Vec<String> = "a a b b c".split(' ').map(str::to_owned).collect();
        let found = batches(5, &amounts("2"), Some(&values));
        for value in ["a", "b"] {
            let with = found.iter().filter(|batch| batch.iter().any(|host| values[*host] == value)).count();
            assert_eq!(with, 2, "{value}: {found:?}");
        }
        let all = batches(5, &[], Some(&values));
        assert_eq!(all, [vec![0, 2, 4], vec![1, 3]], "a batch is added");
    }
}
