//! rpm's versions, as rpm-version(7) and rpmvercmp have them.

use std::cmp::Ordering;

use super::{order_epochs, order_numbers, split, split_epoch};

/// A version taken apart.
pub(super) struct Parts<'a> {
    pub(super) epoch: Option<&'a str>,
    pub(super) without_epoch: &'a str,
    version: &'a str,
    pub(super) release: Option<&'a str>,
}

/// Takes a version apart: the epoch ends at the first colon, the release begins behind the last hyphen.
pub(super) fn parts(text: &str) -> Parts<'_> {
    let (epoch, without_epoch) = split_epoch(text);
    let (version, release) = match without_epoch.rsplit_once('-') {
        Some((version, release)) => (version, Some(release)),
        None => (without_epoch, None),
    };
    Parts { epoch, without_epoch, version, release }
}

/// Says why a text is not a version.
pub(super) fn fault(text: &str) -> Option<&'static str> {
    let Parts { epoch, version, release, .. } = parts(text);
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+~^".contains(&byte))
    };
    match epoch {
        Some(epoch) if epoch.parse::<u32>().is_err() || !epoch.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some("its epoch, in front of the colon, is not a number")
        }
        _ if !is_word(version) || release.is_some_and(|release| !is_word(release)) => {
            Some("it has to be VERSION or VERSION-RELEASE, each of letters, digits and . _ + ~ ^")
        }
        _ => None,
    }
}

/// Orders two complete versions by epoch, version and release.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    order_epochs(a.epoch, b.epoch)
        .then_with(|| order_texts(a.version, b.version))
        .then_with(|| order_texts(a.release.unwrap_or_default(), b.release.unwrap_or_default()))
}

/// Orders a complete version against one in which the epoch or the release may be left out.
pub(super) fn order_to_wanted(text: &str, wanted: &str) -> Ordering {
    let (have, want) = (parts(text), parts(wanted));
    let epochs = want.epoch.map_or(Ordering::Equal, |epoch| order_epochs(have.epoch, Some(epoch)));
    let releases = || {
        want.release.map_or(Ordering::Equal, |release| order_texts(have.release.unwrap_or_default(), release))
    };
    epochs.then_with(|| order_texts(have.version, want.version)).then_with(releases)
}

/// Orders texts segment by segment: digits by value, letters by the alphabet. Signs other than `~` and `^` only separate.
fn order_texts(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        (a, b) = (split(a, separates).1, split(b, separates).1);
        let rank = Rank::of(a);
        let decided = rank.cmp(&Rank::of(b)).then_with(|| {
            let ((segment_a, _), (segment_b, _)) = (rank.split(a), rank.split(b));
            if rank == Rank::Digits { order_numbers(segment_a, segment_b) } else { segment_a.cmp(segment_b) }
        });
        if decided.is_ne() || rank == Rank::End {
            return decided;
        }
        (a, b) = (rank.split(a).1, rank.split(b).1);
    }
}

/// What a text begins with, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Tilde,
    End,
    Caret,
    Letters,
    Digits,
}

impl Rank {
    fn of(text: &[u8]) -> Self {
        match text.first() {
            None => Self::End,
            Some(b'~') => Self::Tilde,
            Some(b'^') => Self::Caret,
            Some(first) if first.is_ascii_digit() => Self::Digits,
            Some(_) => Self::Letters,
        }
    }

    /// Splits off the segment that a text of this rank begins with.
    fn split(self, text: &[u8]) -> (&[u8], &[u8]) {
        match self {
            Self::End => (text, &[]),
            Self::Tilde | Self::Caret => text.split_at(1),
            Self::Letters => split(text, |byte| byte.is_ascii_alphabetic()),
            Self::Digits => split(text, |byte| byte.is_ascii_digit()),
        }
    }
}

fn separates(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && byte != b'~' && byte != b'^'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_the_manual_of_rpm_says() {
        let ascending = [
            "1.0~~",
            "1.0~rc1",
            "1.0~rc1^git1",
            "1.0~rc2",
            "1.0",
            "1.0^",
            "1.0^git1~x",
            "1.0^git1",
            "1.0a",
            "1.0.1",
            "1.2",
            "1.10",
            "2",
            "1:0.9",
        ];
        for (at, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(order(a, b), at.cmp(&other), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn signs_only_separate_and_zeros_make_no_difference() {
        for (a, b) in [("1.0", "1_0"), ("1.0", "1.00"), ("1.0", "0:1.0"), ("1.0-1", "1.0-01"), ("1+", "1.")] {
            assert_eq!(order(a, b), Ordering::Equal, "{a} {b}");
        }
    }

    #[test]
    fn what_is_not_asked_for_does_not_matter() {
        for (have, want, ordering) in [
            ("0:1.0-1.el9", "1.0", Ordering::Equal),
            ("0:1.0-2.el9", "1.0-1.el9", Ordering::Greater),
            ("1:1.0-1", "1.0", Ordering::Equal),
            ("1:1.0-1", "1:1.0", Ordering::Equal),
            ("1:1.0-1", "0:1.0", Ordering::Greater),
            ("0:1.5~rc1-1", "1.5", Ordering::Less),
        ] {
            assert_eq!(order_to_wanted(have, want), ordering, "{have} {want}");
        }
    }

    #[test]
    fn only_versions_are_versions() {
        for version in ["1", "1.0-1.el9", "1:1.0~rc1^git5-2.fc40", "r123", "1_2"] {
            assert_eq!(fault(version), None, "{version}");
        }
        for version in ["", "a:1", ":1", "1.0-", "-1", "1-2-3", "1:2:3", "99999999999:1"] {
            assert!(fault(version).is_some(), "{version}");
        }
    }
}
