//! Last log lines of a failed service.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::unit::unit_name;
use crate::{
    host::process::Command,
    resource::{Context, Error},
};

/// Time limit of the query.
const PATIENCE: Duration = Duration::from_secs(5);

/// Number of lines that are shown.
const LINES: usize = 5;

/// Last lines of a unit's journal, if available. An error while reading them is ignored, because they only explain
/// another failure.
pub(super) struct LastLines(Vec<String>);

impl LastLines {
    /// Returns the log lines of a unit since a time.
    pub(super) fn of(name: &str, since: SystemTime, cx: &Context) -> Self {
        if cx.is_sensitive() {
            return Self(Vec::new());
        }
        let said = said(name, since, cx).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines.len().saturating_sub(LINES);
        Self(lines[last..].iter().map(|&line| line.to_owned()).collect())
    }

    /// Returns whether systemd did not start the unit because of a failed condition. The journal is the only record of
    /// it, because systemd unloads a unit that does not run and is not referenced.
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

/// Returns the log of a unit since a time, or its end.
fn said(name: &str, since: SystemTime, cx: &Context) -> Option<String> {
    let journalctl = |arguments: &[&str]| {
        let command = Command::new("journalctl").arguments(arguments).timeout(PATIENCE);
        command.run(&cx.host.runner, cx.interrupt()).ok()
    };
    // The last lines of the service might not be in the journal yet.
    let _ = journalctl(&["--sync"]);
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = format!("--since=@{}.{:06}", since.as_secs(), since.subsec_micros());
    let unit = format!("--unit={}", unit_name(name));
    // With `--lines`, some versions of systemd print the first lines instead of the last.
    let finished = journalctl(&[&unit, &since, "--no-pager", "--quiet", "--output=cat"])?;
    Some(finished.stdout.text().trim_end().to_owned())
}
