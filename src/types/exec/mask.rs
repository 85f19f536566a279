//! Secrets in what a command prints.

use std::borrow::Cow;

use super::Properties;
use crate::vocabulary::Secret;

/// Shorter texts are not hidden: they turn up in any output, and whoever reads it would learn nothing but could not
/// read on.
const SHORTEST: usize = 6;

/// The secrets of a resource, to be hidden line by line.
pub(super) struct Mask<'a>(Vec<&'a str>);

impl<'a> Mask<'a> {
    pub(super) fn of(want: &'a Properties) -> Self {
        let values = want.environment.iter().map(|variable| &variable.value).chain(&want.stdin);
        let lines = values.flat_map(|value| value.reveal().lines()).map(str::trim);
        let mut secrets: Vec<&str> = lines.filter(|line| line.chars().count() >= SHORTEST).collect();
        // One may be part of another: the longer one goes first, so that no rest of it stays.
        secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    /// The line without the secrets.
    pub(super) fn apply<'t>(&self, line: &'t str) -> Cow<'t, str> {
        self.0.iter().fold(Cow::Borrowed(line), |line, secret| {
            if line.contains(secret) { Cow::Owned(line.replace(secret, Secret::MASK)) } else { line }
        })
    }
}
