//! What must not be seen of what a command prints.

use super::Properties;

/// Shorter texts are not hidden: they turn up in any output, and whoever reads it would learn nothing but could not
/// read on.
const SHORTEST: usize = 4;

/// The secrets of a resource: each line by itself, because programs print them that way, and a text that has lines too
/// short for that also as a whole.
pub(super) fn of(want: &Properties) -> Vec<&str> {
    let values = want.environment.iter().map(|variable| &variable.value).chain(&want.stdin);
    let values = values.map(|value| value.reveal().trim());
    values.flat_map(parts).filter(|part| !is_short(part)).collect()
}

fn parts(value: &str) -> impl Iterator<Item = &str> {
    let whole = value.lines().any(|line| is_short(line.trim())).then_some(value);
    value.lines().map(str::trim).chain(whole)
}

fn is_short(text: &str) -> bool {
    text.chars().count() < SHORTEST
}
