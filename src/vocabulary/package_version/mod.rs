//! Versions of packages: how they are written and which of two is the newer one, on each system.

mod debian;
mod rpm;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

/// How a package system writes and orders versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// `[EPOCH:]UPSTREAM[-REVISION]`, as dpkg has it.
    Debian,
    /// `[EPOCH:]VERSION[-RELEASE]`, as rpm has it.
    Rpm,
}

impl Scheme {
    /// Returns the scheme of the versions that a provider of packages reports.
    pub(crate) fn of_provider(provider: &str) -> Self {
        if provider == "apt" { Self::Debian } else { Self::Rpm }
    }

    /// Says why a text cannot be a version on this system, or nothing when it can.
    pub(crate) fn fault(self, version: &str) -> Option<&'static str> {
        match self {
            Self::Debian => debian::fault(version),
            Self::Rpm => rpm::fault(version),
        }
    }

    /// Orders two complete versions as the system itself does.
    pub(crate) fn order(self, a: &str, b: &str) -> Ordering {
        match self {
            Self::Debian => debian::order(a, b),
            Self::Rpm => rpm::order(a, b),
        }
    }

    /// Orders a complete version against one that a user wrote. What rpm users leave out, the epoch or the release, is
    /// not looked at.
    pub(crate) fn order_to_wanted(self, version: &str, wanted: &str) -> Ordering {
        match self {
            Self::Debian => debian::order(version, wanted),
            Self::Rpm => rpm::order_to_wanted(version, wanted),
        }
    }

    /// Returns a complete version as people know it: rpm's without the epoch.
    pub(crate) fn shown(self, version: &str) -> &str {
        match self {
            Self::Debian => version,
            Self::Rpm => rpm::parts(version).without_epoch,
        }
    }

    /// Returns the epoch of a version, if it is written.
    pub(crate) fn epoch(self, version: &str) -> Option<&str> {
        match self {
            Self::Debian => debian::parts(version).epoch,
            Self::Rpm => rpm::parts(version).epoch,
        }
    }

    /// Returns what stands behind the version proper: Debian's revision, rpm's release.
    pub(crate) fn release(self, version: &str) -> Option<&str> {
        match self {
            Self::Debian => debian::parts(version).revision,
            Self::Rpm => rpm::parts(version).release,
        }
    }
}

/// Orders two runs of digits of any length by their value.
fn order_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let significant = |digits: &[u8]| digits.iter().skip_while(|digit| **digit == b'0').count();
    let (a, b) = (&a[a.len() - significant(a)..], &b[b.len() - significant(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Splits off the bytes at the beginning that a test holds for.
fn split(text: &[u8], holds: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| holds(**byte)).count())
}

/// Splits off an epoch: digits in front of the first colon.
fn split_epoch(version: &str) -> (Option<&str>, &str) {
    match version.split_once(':') {
        Some((epoch, rest)) => (Some(epoch), rest),
        None => (None, version),
    }
}

/// Orders epochs; none is 0.
fn order_epochs(a: Option<&str>, b: Option<&str>) -> Ordering {
    order_numbers(a.unwrap_or_default().as_bytes(), b.unwrap_or_default().as_bytes())
}
