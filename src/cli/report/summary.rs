//! The sum of a run, and its failures once more.

use std::fmt::Write;

use super::{
    DIM, ERROR,
    line::{self, length, shortened, shortened_in_the_middle},
    runtime,
};
use crate::{
    engine::RunMode,
    session::{Event, Summary},
    state::Pending,
    visible::visible_line,
};

/// Returns the summary in a line, which is broken where a terminal is too narrow for it. Each resource counts once, and counters
/// of zero are left out.
pub(super) fn sum(summary: &Summary, mode: RunMode, assumptions: usize, width: Option<usize>) -> String {
    let count = summary.unique_resources;
    let noun = if count == 1 { "resource" } else { "resources" };
    let mut text = format!("{count} {noun} in {}", runtime(summary.total_duration));
    let mut column = length(&text);
    let end = match (mode, assumptions) {
        (RunMode::Real, _) => String::new(),
        (RunMode::Noop, 0) => " (dry run)".to_owned(),
        (RunMode::Noop, 1) => " (dry run, 1 assumption)".to_owned(),
        (RunMode::Noop, many) => format!(" (dry run, {many} assumptions)"),
    };
    let parts = parts(summary);
    for (at, part) in parts.iter().enumerate() {
        let before = if at == 0 { ":" } else { "," };
        let part = format!("{part}{}", if at + 1 == parts.len() { &*end } else { "" });
        text.push_str(before);
        column += 1;
        if width.is_some_and(|width| column + 2 + length(&part) > width) {
            text.push_str("\n ");
            column = 1;
        }
        column += 1 + length(&part);
        text.extend([" ", &part]);
    }
    if parts.is_empty() {
        text.push_str(&end);
    }
    text
}

/// Returns the counts of a summary.
fn parts(summary: &Summary) -> Vec<String> {
    let of_these = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!(" ({count} {what})"),
    };
    let parts = [
        (summary.changed_resources, "changed", of_these(summary.refreshed_count, "refreshed")),
        (summary.stable_resources, "unchanged", String::new()),
        (summary.failed_resources, "failed", String::new()),
        (summary.skipped_resources, "skipped", of_these(summary.requirements_unmet_count, "after a failure")),
        (summary.health_checked_count, "checked", String::new()),
    ];
    let counted = parts.into_iter().filter(|(count, ..)| *count > 0);
    counted.map(|(count, what, of_these)| format!("{count} {what}{of_these}")).collect()
}

/// Returns the refreshes that the run leaves pending, one in a line.
pub(super) fn pending_refreshes(pending: &[Pending]) -> String {
    let mut text = "\npending refreshes, which the next run performs:".to_owned();
    for refresh in pending {
        let _ = write!(text, "\n  {}  {DIM}{}{DIM:#}", visible_line(&refresh.to), line::pending(refresh));
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
            sum(&summary, RunMode::Noop, 2, Some(80)),
            "3000 resources in 1.50s: 12 changed (1 refreshed), 2971 unchanged, 2 failed,\n  15 skipped (1 after a failure) (dry run, 2 assumptions)"
        );
        assert_eq!(sum(&Summary::default(), RunMode::Noop, 0, None), "0 resources in 0µs (dry run)");
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
