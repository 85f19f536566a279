//! The state of a push at the bottom of a terminal: a line for each host, or for as many as there is room for.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::{cli::progress::Progress, push::Outcome, visible::visible_line};

/// Interval of drawing. A push that ends before the first draws nothing.
const INTERVAL: Duration = Duration::from_millis(500);

/// Lines of the terminal that stay free for other output.
const FREE: usize = 4;

/// Draws the hosts of a push.
pub(super) struct Live(Arc<Mutex<Rows>>);

#[derive(Default)]
struct Rows {
    total: usize,
    hosts: Vec<Row>,
    is_over: bool,
}

struct Row {
    host: String,
    /// Resources so far.
    resources: usize,
    last: String,
    result: Option<Outcome>,
}

impl Live {
    /// Begins to draw, if standard error is a terminal.
    pub(super) fn begin(total: usize, progress: &Arc<Progress>) -> Self {
        let rows = Arc::new(Mutex::new(Rows { total, ..Rows::default() }));
        if progress.shows_lines() {
            let (shared, progress) = (Arc::clone(&rows), Arc::clone(progress));
            let draw = move || {
                loop {
                    thread::sleep(INTERVAL);
                    let rows = lock(&shared);
                    if rows.is_over {
                        return;
                    }
                    let (columns, lines) = Progress::size();
                    progress.lines(&rows.drawn(columns, lines.saturating_sub(FREE).max(1)));
                }
            };
            // Without the thread, nothing is drawn.
            let _ = thread::Builder::new().spawn(draw);
        }
        Self(rows)
    }

    pub(super) fn started(&self, host: &str) {
        let row = Row { host: host.to_owned(), resources: 0, last: "connecting".to_owned(), result: None };
        lock(&self.0).hosts.push(row);
    }

    /// Notes that a resource of a host is finished.
    pub(super) fn resource(&self, host: &str, resource: &str) {
        let mut rows = lock(&self.0);
        if let Some(row) = rows.hosts.iter_mut().rev().find(|row| row.host == host) {
            row.resources += 1;
            resource.clone_into(&mut row.last);
        }
    }

    pub(super) fn finished(&self, host: &str, outcome: Outcome) {
        let mut rows = lock(&self.0);
        if let Some(row) = rows.hosts.iter_mut().rev().find(|row| row.host == host) {
            row.result = Some(outcome);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        lock(&self.0).is_over = true;
    }
}

fn lock(rows: &Mutex<Rows>) -> MutexGuard<'_, Rows> {
    rows.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rows {
    /// Returns the lines for a terminal of this size.
    fn drawn(&self, columns: usize, lines: usize) -> Vec<String> {
        let width = self.hosts.iter().map(|row| row.host.chars().count()).max().unwrap_or(0).min(columns / 2);
        let line = |row: &Row| {
            let state = match row.result {
                Some(outcome) => outcome.name().to_owned(),
                None if row.resources == 0 => row.last.clone(),
                None => format!("{} done, {}", row.resources, row.last),
            };
            let text = format!("{:width$}  {state}", row.host);
            visible_line(&text).chars().take(columns.saturating_sub(1)).collect()
        };
        if self.hosts.len() <= lines {
            return self.hosts.iter().map(line).collect();
        }
        let running: Vec<&Row> = self.hosts.iter().filter(|row| row.result.is_none()).collect();
        let mut shown: Vec<String> = running.iter().take(lines - 1).map(|row| line(row)).collect();
        shown.push(self.summary(running.len()));
        shown
    }

    fn summary(&self, running: usize) -> String {
        let count = |outcome| self.hosts.iter().filter(|row| row.result == Some(outcome)).count();
        let counts = Outcome::ALL.into_iter().map(|outcome| (count(outcome), outcome.name()));
        let counts: Vec<String> =
            counts.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
        let done = self.hosts.len() - running;
        let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
        format!("{running} in progress, {done} of {} done{counts}", self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_have_no_line_are_counted() {
        let row = |number: usize, result| Row {
            host: format!("web{number}"),
            resources: number,
            last: "file#/etc/motd".to_owned(),
            result,
        };
        let mut rows = Rows { total: 9, hosts: vec![row(0, None), row(1, None)], is_over: false };
        rows.hosts[0].last = "connecting".to_owned();
        assert_eq!(rows.drawn(80, 2), ["web0  connecting", "web1  1 done, file#/etc/motd"]);
        rows.hosts.push(row(2, Some(Outcome::Ok)));
        assert_eq!(rows.drawn(80, 2), ["web0  connecting", "2 in progress, 1 of 9 done: 1 ok"]);
        assert_eq!(rows.drawn(10, 3)[1], "web1  1 d", "no line is broken");
    }
}
