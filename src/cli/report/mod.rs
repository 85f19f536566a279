//! Prints a run: a line for each resource that changed or failed, and the summary.

mod aside;
mod line;
mod looked_at;
pub(super) mod plugin;
mod summary;

use std::{collections::HashMap, time::Duration};

use anstyle::{AnsiColor, Style};
use clap::{ArgAction, Args};

pub(super) use self::{aside::Aside, line::pending};
use self::{
    line::{Line, Mark, unmet},
    summary::Failed,
};
use super::{
    failure::{waiting, warn},
    output::Output,
    progress::Count,
};
use crate::{
    checks::{CheckResult, CheckState},
    engine::{Finished, Observer, Reason, Report, RunMode},
    resource::{Error, Resource},
    session::{Event, Summary},
    visible::visible_line,
};

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
}

impl Format {
    /// Returns the format that `--json` selects.
    pub(super) fn of(is_json: bool) -> Self {
        if is_json { Self::Json } else { Self::Text }
    }
}

/// Amount of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verbosity {
    /// Only failures.
    Quiet,
    /// Changes and failures.
    Normal,
    /// Every resource, with its provider and duration.
    Verbose,
    /// Also the observed state and the reason for each change.
    Everything,
}

/// How much to print.
#[derive(Args)]
pub(super) struct VerbosityFlags {
    /// Also show unchanged resources, provider and duration; twice: state and reason
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Show only failures
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    #[arg(from_global)]
    debug: bool,
    #[arg(from_global)]
    info: bool,
}

impl VerbosityFlags {
    pub(super) fn level(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 2..) => Verbosity::Everything,
            _ if self.debug => Verbosity::Everything,
            (false, 1) => Verbosity::Verbose,
            _ if self.info => Verbosity::Verbose,
            (false, 0) => Verbosity::Normal,
        }
    }
}

/// How unchanged resources are reported at normal verbosity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unchanged {
    /// The summary counts them.
    Counted,
    /// Each has a line, because there is no summary.
    Shown,
    /// No resource has a line. One line reports the state of all.
    Unsaid,
}

/// Width of lines that are wrapped or shortened without a terminal.
const USUAL_WIDTH: usize = 80;

/// Indentation of lines about a resource.
const BELOW: usize = 6;

const ADDED: Style = AnsiColor::Green.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const REMOVED: Style = AnsiColor::Red.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();

/// How a run is printed.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) format: Format,
    pub(super) verbosity: Verbosity,
    pub(super) unchanged: Unchanged,
    pub(super) mode: RunMode,
    /// Whether a controller prints the events and needs their messages.
    pub(super) is_pushed: bool,
}

/// Prints a run as it happens.
pub(super) struct Printer<'a> {
    output: &'a mut Output,
    how: Manner,
    /// Number of resources.
    total: usize,
    /// Number of resources that were begun.
    begun: usize,
    /// Number of unchanged resources so far.
    stable: usize,
    failed: Vec<Failed>,
    /// Number of assumptions of a dry run so far.
    assumptions: usize,
    /// Results of health checks, each with its resource.
    checks: Vec<(String, CheckResult)>,
    /// Whether a blank line separates the summary from earlier output.
    is_begun: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(output: &'a mut Output, how: Manner, total: usize) -> Self {
        Self {
            output,
            how,
            total,
            begun: 0,
            stable: 0,
            failed: Vec::new(),
            assumptions: 0,
            checks: Vec::new(),
            is_begun: false,
        }
    }

    /// Prints the summary of the run.
    pub(super) fn summary(&mut self, finished: &Finished) {
        let cut_short = finished.stopped.as_ref().map(|stopped| {
            let why = match &stopped.reason {
                Reason::Failure => "after a failure, as fail_on_error asks".to_owned(),
                Reason::Stale => "because the machine differs from the plan".to_owned(),
                Reason::Signal(signal) => format!("by {signal}"),
            };
            let noun = if stopped.remaining == 1 { "resource was" } else { "resources were" };
            format!("stopped {why}: {} {noun} not attempted", stopped.remaining)
        });
        match (self.how.format, cut_short) {
            (Format::Text, Some(line)) => self.print(&line),
            (Format::Json, Some(line)) => warn(&line),
            (_, None) => {}
        }
        if self.how.format == Format::Json {
            for refresh in &finished.pending {
                let reason = pending(refresh);
                warn(&format!("{}: refresh {reason}; the next run performs it", visible_line(&refresh.to)));
            }
            return json(&finished.summary, self.output);
        }
        if self.how.verbosity > Verbosity::Quiet {
            let apart = if self.is_begun { "\n" } else { "" };
            let width = self.output.width();
            let sum = summary::sum(&finished.summary, self.how.mode, self.assumptions, width);
            self.output.styled(&format!("{apart}{sum}"));
            if !finished.pending.is_empty() {
                self.output.styled(&summary::pending_refreshes(&finished.pending));
            }
            if !self.failed.is_empty() {
                self.output.styled(&summary::failures(&self.failed, width));
            }
        }
        self.output.flush();
    }

    /// Prints the result of all checks as a Nagios plugin does, and returns the worst state.
    pub(super) fn plugin_line(&mut self) -> CheckState {
        let (state, line) = plugin::line(&self.checks, self.failed.len());
        self.output.line(&line);
        self.output.flush();
        state
    }

    fn print(&mut self, text: &str) {
        self.output.styled(text);
        self.is_begun = true;
    }

    fn is_shown(&self, report: &Report) -> bool {
        let event = &report.event;
        if self.how.unchanged == Unchanged::Unsaid {
            return false;
        }
        if event.health_check_only && self.how.verbosity > Verbosity::Quiet {
            let is_reached = event.unmet_requirements.is_empty();
            return event.failed || !is_reached || !event.health_check.is_empty();
        }
        let is_well = !event.failed && event.unmet_requirements.is_empty();
        match self.how.verbosity {
            Verbosity::Quiet => !is_well,
            Verbosity::Normal => {
                let is_news = event.changed || !report.warnings.is_empty();
                !is_well || is_news || self.how.unchanged == Unchanged::Shown
            }
            Verbosity::Verbose | Verbosity::Everything => true,
        }
    }

    fn resource(&mut self, report: &Report) {
        let event = &report.event;
        let position = report.errors.first().map(|error| place(report, error));
        let mut line = Line::of(report)
            .with_position(position)
            .with_fact("alias", event.alias.as_deref().unwrap_or_default());
        if self.how.verbosity >= Verbosity::Verbose {
            line = line
                .with_fact("provider", &event.provider)
                .with_fact("ensure", ensure(event))
                .with_fact("runtime", &runtime(event.duration));
        }
        // Resources of an included manifest are indented.
        let margin = 2 * report.depth;
        let width = self.output.width().map(|width| width.saturating_sub(margin));
        self.print(&format!("{:margin$}{}", "", line.laid_out(width)));
        if self.how.verbosity == Verbosity::Everything {
            let width = width.unwrap_or(USUAL_WIDTH).saturating_sub(BELOW);
            for line in looked_at::explained(report, self.how.mode, width) {
                self.print(&format!("{:BELOW$}{DIM}{line}{DIM:#}", ""));
            }
        }
    }

    fn details(&mut self, report: &Report) {
        let below = BELOW + 2 * report.depth;
        for warning in &report.warnings {
            self.output.styled(&format!("{:below$}{WARN}warning:{WARN:#} {}", "", indented(warning, below)));
        }
        let shown = report.errors.first().map(|error| place(report, error));
        for error in &report.errors {
            self.print(&format!("{:below$}{}", "", indented(&error.message, below)));
            let place = place(report, error);
            if shown.as_ref() != Some(&place) {
                self.print(&format!("{:below$}  {DIM}-->{DIM:#} {place}", ""));
            }
            if let Some(help) = &error.help {
                self.output.styled(&format!("{:below$}help: {}", "", indented(help, below)));
            }
        }
        if self.how.verbosity >= Verbosity::Verbose || report.event.health_check_only {
            for check in report.event.health_check.iter().filter(|check| !check.is_failed) {
                let line = format!("health check {}", check.complaint());
                self.output.styled(&format!("{:below$}{DIM}{}{DIM:#}", "", indented(&line, below)));
            }
        }
        for line in report.event.diff.as_deref().unwrap_or_default().split_terminator('\n') {
            self.output.styled(&format!("{:below$}{}", "", diff_line(line)));
        }
    }
}

impl Observer for Printer<'_> {
    fn begun(&mut self, resource: &Resource) {
        if self.how.format == Format::Text && self.how.verbosity > Verbosity::Quiet {
            let count = Count { done: self.begun, total: self.total, stable: self.stable };
            self.output.progress.turn(&visible_line(&resource.to_string()), count);
        }
        self.begun += 1;
    }

    fn waiting(&mut self, holder: &str) {
        self.output.progress.hide();
        waiting(holder);
    }

    fn output(&mut self, resource: &Resource, line: &str) {
        if self.how.format == Format::Json || self.how.unchanged == Unchanged::Unsaid {
            return Aside(&self.output.progress).output(resource, line);
        }
        if self.how.verbosity == Verbosity::Quiet {
            return;
        }
        let name = resource.to_string();
        self.print(&format!("{:BELOW$}{DIM}{}:{DIM:#} {}", "", visible_line(&name), visible_line(line)));
        self.output.flush();
        self.output.progress.resume();
    }

    fn finished(&mut self, report: &Report) {
        if self.how.format == Format::Json {
            Aside(&self.output.progress).warnings(report);
            if self.how.is_pushed {
                pushed(report, self.output);
            } else {
                json(&report.event, self.output);
            }
            return;
        }
        self.assumptions += report.assumptions;
        let event = &report.event;
        let own = event.health_check.iter().map(|check| (report.resource.to_string(), check.clone()));
        self.checks.extend(own.filter(|_| self.how.unchanged == Unchanged::Unsaid));
        if event.failed {
            let about = report.errors.first().map(|error| place(report, error));
            self.failed.push(Failed { name: report.resource.to_string(), about: about.unwrap_or_default() });
        } else if !event.changed && !event.skipped {
            self.stable += 1;
        }
        if self.is_shown(report) {
            self.resource(report);
            self.details(report);
            self.output.flush();
        }
    }
}

/// Returns the position of the declaration or property that failed.
fn place(report: &Report, error: &Error) -> String {
    // No text declares the resources of an undo.
    if report.source.text.is_empty() {
        return visible_line(&report.source.name).into_owned();
    }
    let (line, column) = report.source.line_column(report.resource.place_of(error).start);
    let property = error.property.map(|property| format!(" ({property})")).unwrap_or_default();
    format!("{}:{line}:{column}{property}", visible_line(&report.source.name))
}

/// Returns the final state, unless it would mislead: the state `absent` of a command that succeeded only means that no file
/// of `creates` exists, and an archive file can be removed after extraction.
fn ensure(event: &Event) -> &str {
    let is_misleading = !event.failed && event.final_ensure == "absent" && event.requested_ensure != "absent";
    if is_misleading { "" } else { &event.final_ensure }
}

/// Prints an event with the message of its line.
fn pushed(report: &Report, output: &mut Output) {
    let mut event = serde_json::to_value(&report.event).unwrap_or_default();
    event["message"] = Line::of(report).message().into();
    json(&event, output);
}

/// Returns a line of a diff with its color.
pub(super) fn diff_line(line: &str) -> String {
    let style = match line.as_bytes().first() {
        Some(b'+') => ADDED,
        Some(b'-') => REMOVED,
        Some(b'@') => HUNK,
        _ => PLAIN,
    };
    format!("{style}{}{style:#}", visible_line(line))
}

fn json(value: &impl serde::Serialize, output: &mut Output) {
    // Events and summaries can always be serialized.
    output.line(&serde_json::to_string(value).unwrap_or_default());
    output.flush();
}

/// Prints the summary and the failures of a session. Its commands printed the events when they happened.
pub(super) fn session(
    events: &[Event],
    summary: &Summary,
    format: Format,
    verbosity: Verbosity,
    output: &mut Output,
) {
    if format == Format::Json {
        for event in events {
            json(event, output);
        }
        return json(summary, output);
    }
    if verbosity >= Verbosity::Verbose {
        for event in events {
            recorded(event, events, output);
        }
        output.styled("");
    }
    // A session with real changes is not a dry run.
    let predicted = !events.is_empty() && events.iter().all(|event| event.noop);
    let mode = if predicted { RunMode::Noop } else { RunMode::Real };
    let width = output.width();
    if verbosity > Verbosity::Quiet {
        output.styled(&summary::sum(summary, mode, 0, width));
    }
    let failed: Vec<_> = last_of_each(events).filter(|event| event.failed).map(Failed::of).collect();
    if !failed.is_empty() {
        output.styled(&summary::failures(&failed, width));
    }
}

/// Returns the event of each resource that counts.
fn last_of_each(events: &[Event]) -> impl Iterator<Item = &Event> {
    let last: HashMap<_, _> =
        events.iter().enumerate().map(|(at, event)| ((&event.kind, &event.name), at)).collect();
    events
        .iter()
        .enumerate()
        .filter(move |(at, event)| last[&(&event.kind, &event.name)] == *at)
        .map(|(_, event)| event)
}

/// Prints a recorded event.
fn recorded(event: &Event, events: &[Event], output: &mut Output) {
    let what = match &event.noop_message {
        _ if event.failed => "failed",
        _ if !event.unmet_requirements.is_empty() => &unmet(&unmet_reasons(event, events)),
        Some(message) => message,
        None if event.skipped => "skipped",
        None if event.changed => "changed",
        None => "unchanged",
    };
    let line = Line::new(Mark::of(event, None), &format!("{}#{}", event.kind, event.name), what);
    output.styled(&line.laid_out(output.width()));
    for error in &event.error {
        output.styled(&format!("{:BELOW$}{}", "", indented(error, BELOW)));
    }
}

/// Returns the failed requirements of a skipped resource, each with the reason.
fn unmet_reasons(event: &Event, events: &[Event]) -> Vec<String> {
    let is_skipped = |name: &String| {
        let is_it = |event: &&Event| {
            let names = [Some(&event.name), event.alias.as_ref()];
            names.into_iter().flatten().any(|known| format!("{}#{known}", event.kind) == *name)
        };
        let last = events.iter().rev().find(is_it);
        last.is_some_and(|event| !event.failed && !event.unmet_requirements.is_empty())
    };
    let reason = |name| format!("{name} {}", if is_skipped(name) { "was skipped" } else { "failed" });
    event.unmet_requirements.iter().map(reason).collect()
}

/// Returns a duration for people.
fn runtime(nanoseconds: u64) -> String {
    let duration = Duration::from_nanos(nanoseconds);
    match duration.as_secs_f64() {
        seconds if seconds < 0.001 => format!("{}µs", duration.as_micros()),
        seconds if seconds < 1.0 => format!("{:.1}ms", seconds * 1e3),
        seconds if seconds < 60.0 => format!("{seconds:.2}s"),
        _ => crate::vocabulary::Duration::from(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

/// Returns a string of several lines, all but the first indented by this many columns.
fn indented(text: &str, columns: usize) -> String {
    text.lines().map(visible_line).collect::<Vec<_>>().join(&format!("\n{:columns$}", ""))
}
