//! Debian's versions, as deb-version(7) and dpkg have them.

use std::cmp::Ordering;

use super::{order_epochs, order_numbers, split, split_epoch};

/// A version taken apart.
pub(super) struct Parts<'a> {
    pub(super) epoch: Option<&'a str>,
    upstream: &'a str,
    pub(super) revision: Option<&'a str>,
}

/// Takes a version apart: the epoch ends at the first colon, the revision begins behind the last hyphen.
pub(super) fn parts(version: &str) -> Parts<'_> {
    let (epoch, rest) = split_epoch(version);
    match rest.rsplit_once('-') {
        Some((upstream, revision)) => Parts { epoch, upstream, revision: Some(revision) },
        None => Parts { epoch, upstream: rest, revision: None },
    }
}

/// Says why a text is not a version, as dpkg would.
pub(super) fn fault(version: &str) -> Option<&'static str> {
    let Parts { epoch, upstream, revision } = parts(version);
    let letters = |text: &str, signs: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || signs.as_bytes().contains(&byte))
    };
    match epoch {
        Some(epoch) if epoch.parse::<i32>().is_err() || !epoch.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some("its epoch, in front of the colon, is not a number")
        }
        _ if !upstream.starts_with(|first: char| first.is_ascii_digit()) => {
            Some("it does not begin with a digit")
        }
        _ if !letters(upstream, if epoch.is_some() { ".+-~:" } else { ".+-~" }) => {
            Some("only letters, digits and . + - ~ can be in it")
        }
        _ => match revision {
            Some("") => Some("nothing follows its last hyphen"),
            Some(revision) if !letters(revision, ".+~") => {
                Some("only letters, digits and . + ~ can follow its last hyphen")
            }
            _ => None,
        },
    }
}

/// Orders two versions by epoch, upstream version and revision; no revision is the same as `0`.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    order_epochs(a.epoch, b.epoch)
        .then_with(|| order_texts(a.upstream.as_bytes(), b.upstream.as_bytes()))
        .then_with(|| {
            let (a, b) = (a.revision.unwrap_or_default(), b.revision.unwrap_or_default());
            order_texts(a.as_bytes(), b.as_bytes())
        })
}

/// Orders texts by turns: a stretch of anything but digits by its signs, then a stretch of digits by its value.
fn order_texts(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let ((signs_a, rest_a), (signs_b, rest_b)) = (split(a, is_sign), split(b, is_sign));
        let length = signs_a.len().max(signs_b.len());
        let weights_a = (0..length).map(|at| weight(signs_a.get(at)));
        let weights_b = (0..length).map(|at| weight(signs_b.get(at)));
        let ((digits_a, rest_a), (digits_b, rest_b)) =
            (split(rest_a, |byte| byte.is_ascii_digit()), split(rest_b, |byte| byte.is_ascii_digit()));
        match weights_a.cmp(weights_b).then_with(|| order_numbers(digits_a, digits_b)) {
            Ordering::Equal => (a, b) = (rest_a, rest_b),
            decided => return decided,
        }
    }
    Ordering::Equal
}

fn is_sign(byte: u8) -> bool {
    !byte.is_ascii_digit()
}

/// What a sign weighs against another: a tilde less than the end, letters less than all other signs.
fn weight(sign: Option<&u8>) -> i32 {
    match sign.copied() {
        Some(b'~') => -1,
        None => 0,
        Some(letter) if letter.is_ascii_alphabetic() => i32::from(letter),
        Some(other) => i32::from(other) + 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_the_manual_of_dpkg_says() {
        let ascending = [
            "~~",
            "~~a",
            "~",
            "",
            "1.0~~",
            "1.0~~a",
            "1.0~",
            "1.0~rc1",
            "1.0~rc1-1",
            "1.0",
            "1.0-1",
            "1.0-1+b1",
            "1.0a",
            "1.0.1",
            "1.2",
            "1.10",
            "1.10+dfsg",
            "9",
            "010a",
            "a",
            "a+",
            "1:0",
            "1:0.9",
            "2:0.1",
            "10:0",
        ];
        for (at, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(order(a, b), at.cmp(&other), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn zeros_and_what_is_left_out_make_no_difference() {
        for (a, b) in
            [("1.0", "1.00"), ("1.0", "1.0-0"), ("1.0", "0:1.0"), ("1.0-1", "1.0-01"), ("1a", "1a0")]
        {
            assert_eq!(order(a, b), Ordering::Equal, "{a} {b}");
        }
        assert_eq!(order(&"9".repeat(100), &format!("1{}", "0".repeat(100))), Ordering::Less);
    }

    #[test]
    fn only_versions_are_versions() {
        for version in
            ["1", "1.0-1", "1:1.24.0-2ubuntu7~22.04.1", "2024a-0+deb12u1", "1:1:2-3", "0~git20200101.abc"]
        {
            assert_eq!(fault(version), None, "{version}");
        }
        for (version, said) in [
            ("x1", "begin with a digit"),
            ("", "begin with a digit"),
            ("a:1", "epoch"),
            ("-1:1", "epoch"),
            ("99999999999:1", "epoch"),
            ("1.0-", "hyphen"),
            ("1^1", "only letters"),
            ("1_0", "only letters"),
            ("1.0-1_2", "hyphen"),
        ] {
            assert!(
                fault(version).is_some_and(|fault| fault.contains(said)),
                "{version}: {:?}",
                fault(version)
            );
        }
    }
}
