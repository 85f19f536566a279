//! The sum of a run, and its failures once more.

use std::fmt::Write;

use super::{
    DIM, ERROR,
    line::{length, shortened, shortened_in_the_middle},
    runtime,
};
use crate::{
    engine::RunMode,
    session::{Event, Summary},
    visible::visible_line,
};

/// Returns a summary in a line, which is broken where a terminal is too narrow for it.
pub(super) fn sum(summary: &Summary, mode: RunMode, width: Option<usize>) -> String {
    let count = summary.unique_resources;
    let noun = if count == 1 { "resource" } else { "resources" };
    let mut text = format!("{count} {noun} in {}:", runtime(summary.total_duration));
    let always = [
        (summary.changed_resources, "changed"),
        (summary.stable_resources, "stable"),
        (summary.failed_resources, "failed"),
        (summary.skipped_resources, "skipped"),
    ];
    let sometimes = [
        (summary.refreshed_count, "refreshed"),
        (summary.requirements_unmet_count, "unmet"),
        (summary.health_checked_count, "checked"),
    ];
    let mut column = length(&text);
    let parts: Vec<_> =
        always.into_iter().chain(sometimes.into_iter().filter(|(count, _)| *count > 0)).collect();
    for (at, (count, what)) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let end = match (is_last, mode) {
            (false, _) => ",",
            (true, RunMode::Noop) => " (dry run)",
            (true, RunMode::Real) => "",
        };
        let part = format!(" {count} {what}{end}");
        if width.is_some_and(|width| column + length(&part) > width) {
            text.push_str("\n ");
            column = 1;
        }
        column += length(&part);
        text.push_str(&part);
    }
    text
}

/// A resource that failed, and where it is written or why it failed.
pub(super) struct Failed {
    pub(super) name: String,
    pub(super) about: String,
}

impl Failed {
    /// Returns what a session knows of a failure.
    pub(super) fn of(event: &Event) -> Self {
        let about = event.error.first().and_then(|error| error.lines().next()).unwrap_or_default();
        Self { name: format!("{}#{}", event.kind, event.name), about: about.to_owned() }
    }
}

/// Returns the failures once more, one in a line.
pub(super) fn failures(failed: &[Failed], width: Option<usize>) -> String {
    let mut text = format!("\n{ERROR}failed:{ERROR:#}");
    for Failed { name, about } in failed {
        let (mut name, mut about) = (visible_line(name).into_owned(), visible_line(about).into_owned());
        if let Some(width) = width {
            // The first two columns are empty, and so are two between name and place.
            let room = width.saturating_sub(4);
            name = shortened_in_the_middle(&name, room.saturating_sub(length(&about)).max(room / 2));
            about = shortened(&about, room.saturating_sub(length(&name)));
        }
        let _ = write!(text, "\n  {name}  {DIM}{about}{DIM:#}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_broken_where_it_does_not_fit() {
        let summary = Summary {
            unique_resources: 3000,
            total_duration: 1_500_000_000,
            changed_resources: 12,
            stable_resources: 2971,
            failed_resources: 2,
            skipped_resources: 15,
            refreshed_count: 1,
            requirements_unmet_count: 1,
            ..Summary::default()
        };
        assert_eq!(
            sum(&summary, RunMode::Noop, Some(80)),
            "3000 resources in 1.50s: 12 changed, 2971 stable, 2 failed, 15 skipped,\n  1 refreshed, 1 unmet (dry run)"
        );
    }

    #[test]
    fn failures_fit_into_their_line() {
        let failed = |name: &str, about: &str| Failed { name: name.to_owned(), about: about.to_owned() };
        let both =
            [failed("file#/etc/a", "site.yaml:1:2"), failed("exec#a long one", "site.yaml:10:3 (command)")];
        let text = anstream::adapter::strip_str(&failures(&both, Some(30))).to_string();
        assert_eq!(text, "\nfailed:\n  file#/etc/a  site.yaml:1:2\n  exec…long one  site.yaml:10…");
    }
}
