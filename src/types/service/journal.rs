//! What a service said before it failed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::unit::unit_name;
use crate::{
    host::process::Command,
    resource::{Context, Error},
};

/// How long to look for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many of its last lines are shown.
const LINES: usize = 5;

/// The last lines of a unit's journal, as far as they can be had: to name the true cause of a failure is worth an
/// attempt, not another failure.
pub(super) struct LastLines(Vec<String>);

impl LastLines {
    /// Returns what the unit said since a moment.
    pub(super) fn of(name: &str, since: SystemTime, cx: &Context) -> Self {
        if cx.sensitive {
            return Self(Vec::new());
        }
        let said = said(name, since, cx).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines.len().saturating_sub(LINES);
        Self(lines[last..].iter().map(|&line| line.to_owned()).collect())
    }

    /// Returns whether systemd says that it did not start the unit because a condition is not met. It remembers that in
    /// no other way: a unit that does not run and that nobody refers to is forgotten.
    pub(super) fn tell_of_a_condition(&self) -> bool {
        self.0
            .iter()
            .any(|line| line.contains("unmet condition check") || line.contains("Condition check resulted"))
    }

    pub(super) fn add_to(&self, mut error: Error) -> Error {
        if !self.0.is_empty() {
            error.message.push_str("\nlast lines of its journal:");
        }
        for line in &self.0 {
            error.message.push_str("\n  ");
            error.message.push_str(line);
        }
        error
    }
}

/// Returns everything that the unit said since a moment, or the end of it.
fn said(name: &str, since: SystemTime, cx: &Context) -> Option<String> {
    let journalctl = |arguments: &[&str]| {
        let command = Command::new("journalctl").arguments(arguments).timeout(PATIENCE);
        command.run(&cx.host.runner, cx.interrupt()).ok()
    };
    // What the service wrote last may still be on its way.
    let _ = journalctl(&["--sync"]);
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = format!("--since=@{}.{:06}", since.as_secs(), since.subsec_micros());
    let unit = format!("--unit={}", unit_name(name));
    // With `--lines`, some versions of systemd give the first lines since then, not the last.
    let finished = journalctl(&[&unit, &since, "--no-pager", "--quiet", "--output=cat"])?;
    Some(finished.stdout.text().trim_end().to_owned())
}
