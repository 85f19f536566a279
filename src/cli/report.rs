//! One line per resource as it finishes, and the sum at the end.

use std::{fmt::Write as _, io::Write as _, time::Duration};

use anstyle::{AnsiColor, Style};
use clap::ArgMatches;

use super::{failure::warn, output::Output, progress::Progress, run::waiting};
use crate::{
    engine::{Finished, Observer, Reason, Report, RunMode, Site},
    resource::{Difference, Resource},
    session::{Event, Summary},
    visible::visible_line,
};

/// What a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
}

impl Format {
    /// Reads `--json`.
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        if matches.get_flag("json") { Self::Json } else { Self::Text }
    }
}

/// Columns that are wider than this are not aligned.
const WIDEST: usize = 48;

const INFO: Style = AnsiColor::Green.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const REMOVED: Style = AnsiColor::Red.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();

/// Prints a run as it happens.
pub(super) struct Printer<'a> {
    output: &'a mut Output,
    format: Format,
    mode: RunMode,
    /// How many resources there are.
    total: usize,
    /// How many turns have come.
    begun: usize,
    /// Width of the resources' column; nothing is aligned when nobody looks at it.
    width: usize,
}

impl<'a> Printer<'a> {
    pub(super) fn new(output: &'a mut Output, format: Format, sites: &[Site], mode: RunMode) -> Self {
        let resources = || sites.iter().flat_map(|site| site.resources);
        let widest = || resources().map(|resource| resource.to_string().chars().count()).max().unwrap_or(0);
        let width = if output.is_terminal() { widest().min(WIDEST) } else { 0 };
        Self { output, format, mode, total: resources().count(), begun: 0, width }
    }

    /// The sum of the run.
    pub(super) fn summary(&mut self, finished: &Finished) {
        let summary = &finished.summary;
        let cut_short = finished.stopped.as_ref().map(|stopped| {
            let why = match &stopped.reason {
                Reason::Failure => "after a failure, as fail_on_error asks".to_owned(),
                Reason::Signal(signal) => format!("by {signal}"),
            };
            let noun = if stopped.remaining == 1 { "resource was" } else { "resources were" };
            format!("stopped {why}: {} {noun} not attempted", stopped.remaining)
        });
        match (self.format, cut_short) {
            (Format::Text, Some(line)) => self.output.styled(&line),
            (Format::Json, Some(line)) => warn(&line),
            (_, None) => {}
        }
        if self.format == Format::Json {
            return json(summary, self.output);
        }
        self.output.styled(&format!("\n{}", sum(summary, self.mode)));
        self.output.flush();
    }

    fn resource(&mut self, report: &Report) {
        let event = &report.event;
        let (style, level) = level(event);
        let name = visible_line(&report.resource.to_string()).into_owned();
        let what = what_happened(report);
        let mut facts = String::new();
        for (key, value) in [
            ("alias", event.alias.as_deref().unwrap_or_default()),
            ("ensure", event.final_ensure.as_str()),
            ("runtime", &runtime(event.duration)),
            ("provider", event.provider.as_str()),
        ] {
            if !value.is_empty() {
                let _ = write!(facts, " {key}={}", visible_line(value));
            }
        }
        let width = self.width;
        self.output.styled(&format!(
            "{style}{level:5}{style:#} {name:width$} {} {DIM}{}{DIM:#}",
            visible_line(&what),
            facts.trim_start()
        ));
    }

    fn details(&mut self, report: &Report) {
        for warning in &report.warnings {
            self.output.styled(&format!("      {WARN}warning:{WARN:#} {}", indented(warning)));
        }
        for error in &report.errors {
            self.output.styled(&format!("      {}", indented(&error.message)));
            let (line, column) = report.source.line_column(report.resource.place_of(error).start);
            let property = error.property.map(|property| format!(" ({property})")).unwrap_or_default();
            self.output.styled(&format!(
                "        {DIM}-->{DIM:#} {}:{line}:{column}{property}",
                visible_line(&report.source.name)
            ));
            if let Some(help) = &error.help {
                self.output.styled(&format!("      help: {}", indented(help)));
            }
        }
        for line in report.event.diff.as_deref().unwrap_or_default().split_terminator('\n') {
            let style = match line.as_bytes().first() {
                Some(b'+') => INFO,
                Some(b'-') => REMOVED,
                Some(b'@') => HUNK,
                _ => PLAIN,
            };
            self.output.styled(&format!("{style}{}{style:#}", visible_line(line)));
        }
    }
}

impl Observer for Printer<'_> {
    fn begun(&mut self, resource: &Resource) {
        if self.format == Format::Text {
            self.output.progress.turn(&visible_line(&resource.to_string()), self.begun, self.total);
        }
        self.begun += 1;
    }

    fn waiting(&mut self, holder: &str) {
        self.output.progress.hide();
        waiting(holder);
    }

    fn output(&mut self, resource: &Resource, line: &str) {
        if self.format == Format::Json {
            return Aside(&self.output.progress).output(resource, line);
        }
        let name = resource.to_string();
        self.output.styled(&format!("      {DIM}{}:{DIM:#} {}", visible_line(&name), visible_line(line)));
        self.output.flush();
        self.output.progress.resume();
    }

    fn finished(&mut self, report: &Report) {
        match self.format {
            Format::Json => {
                Aside(&self.output.progress).warnings(report);
                json(&report.event, self.output);
            }
            Format::Text => {
                self.resource(report);
                self.details(report);
                self.output.flush();
            }
        }
    }
}

/// Says on standard error what has no place among JSON on standard output.
pub(super) struct Aside<'a>(pub(super) &'a Progress);

impl Aside<'_> {
    /// A line that a resource shows while it is being worked on.
    pub(super) fn output(&self, resource: &Resource, line: &str) {
        self.0.hide();
        let name = resource.to_string();
        let _ = writeln!(anstream::stderr().lock(), "{}: {}", visible_line(&name), visible_line(line));
    }

    /// What a person should know although the resource did not fail.
    pub(super) fn warnings(&self, report: &Report) {
        for warning in &report.warnings {
            self.0.hide();
            warn(&format!("{}: {}", visible_line(&report.resource.to_string()), indented(warning)));
        }
    }
}

fn json(value: &impl serde::Serialize, output: &mut Output) {
    // Events and summaries hold nothing that JSON cannot.
    output.line(&serde_json::to_string(value).unwrap_or_default());
    output.flush();
}

/// A summary in a line.
fn sum(summary: &Summary, mode: RunMode) -> String {
    let count = summary.unique_resources;
    let mut line = format!(
        "{count} {} in {}: {} changed, {} stable, {} failed, {} skipped",
        if count == 1 { "resource" } else { "resources" },
        runtime(summary.total_duration),
        summary.changed_resources,
        summary.stable_resources,
        summary.failed_resources,
        summary.skipped_resources,
    );
    for (count, what) in [
        (summary.refreshed_count, "refreshed"),
        (summary.requirements_unmet_count, "with unmet requirements"),
    ] {
        if count > 0 {
            let _ = write!(line, ", {count} {what}");
        }
    }
    if mode == RunMode::Noop {
        line.push_str(" (dry run)");
    }
    line
}

/// A session that is over: its events and their sum.
pub(super) fn session(events: &[Event], summary: &Summary, format: Format, output: &mut Output) {
    if format == Format::Json {
        for event in events {
            json(event, output);
        }
        return json(summary, output);
    }
    for event in events {
        let (style, level) = level(event);
        let what = match &event.noop_message {
            _ if event.failed => "failed",
            _ if !event.unmet_requirements.is_empty() => &unmet(event),
            Some(message) => message,
            None if event.skipped => "skipped",
            None if event.changed => "changed",
            None => "stable",
        };
        let name = format!("{}#{}", event.kind, event.name);
        output.styled(&format!("{style}{level:5}{style:#} {} {}", visible_line(&name), visible_line(what)));
        for error in &event.error {
            output.styled(&format!("      {}", indented(error)));
        }
    }
    // Of a session in which something did happen, it is not said that it would.
    let predicted = !events.is_empty() && events.iter().all(|event| event.noop);
    let mode = if predicted { RunMode::Noop } else { RunMode::Real };
    output.styled(&format!("\n{}", sum(summary, mode)));
}

fn level(event: &Event) -> (Style, &'static str) {
    match () {
        () if event.failed => (ERROR, "ERROR"),
        () if !event.unmet_requirements.is_empty() => (WARN, "WARN"),
        () => (INFO, "INFO"),
    }
}

fn what_happened(report: &Report) -> String {
    let event = &report.event;
    if event.failed {
        return "failed".to_owned();
    }
    if let Some(reason) = report.excluded {
        return format!("skipped: {reason}");
    }
    if !event.unmet_requirements.is_empty() {
        return unmet(event);
    }
    let Some(summary) = &report.summary else { return "stable".to_owned() };
    let what = event.noop_message.clone().unwrap_or_else(|| summary.replace(". ", ", "));
    match report.differences.as_slice() {
        [] => what,
        differences => {
            let sensitive = report.resource.common.sensitive;
            let shown: Vec<_> = differences.iter().map(|difference| shown(difference, sensitive)).collect();
            format!("{what} ({})", shown.join(", "))
        }
    }
}

fn unmet(event: &Event) -> String {
    format!("skipped: unmet requirements: {}", event.unmet_requirements.join(", "))
}

fn shown(difference: &Difference, sensitive: bool) -> String {
    match &difference.values {
        Some(values) if !sensitive => format!("{} {} -> {}", difference.property, values.have, values.want),
        _ => difference.property.to_owned(),
    }
}

/// A length of time for people.
fn runtime(nanoseconds: u64) -> String {
    let duration = Duration::from_nanos(nanoseconds);
    match duration.as_secs_f64() {
        seconds if seconds < 0.001 => format!("{}µs", duration.as_micros()),
        seconds if seconds < 1.0 => format!("{:.1}ms", seconds * 1e3),
        seconds if seconds < 60.0 => format!("{seconds:.2}s"),
        _ => crate::vocabulary::Duration::from(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

/// A text of several lines below an indented first one.
fn indented(text: &str) -> String {
    text.lines().map(visible_line).collect::<Vec<_>>().join("\n      ")
}
