//! What the commands that apply something have in common: their flags, the run, and how it ends.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Arg, ArgMatches, Command, builder::NonEmptyStringValueParser};
use serde_json::Value;

use super::{
    Exit,
    failure::{Failure, warn},
    output::Output,
    report::{Format, Manner, Printer, Unchanged, Verbosity},
    switch,
};
use crate::{
    engine::{Detail, Diffs, Engine, Exclusion, Finished, Registrations, RunMode, Selected, Settings, Task},
    host::files::{self, Attributes},
    resource::{Manifest, flattened},
    run::{Machine, Notices, Run},
    session::{Event, Session, metrics},
    state::Patience,
};

/// Adds the flags of every command that applies something.
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(switch("noop", "Change nothing and show what would be done").short('n').visible_alias("dry-run"))
        .arg(switch("diff", "Show changes of content (default with --noop)").overrides_with("no-diff"))
        .arg(switch("no-diff", "Do not show changes of content").overrides_with("diff"))
        .args(Verbosity::arguments())
        .arg(switch("json", "Print events as JSON, one per line, and the summary last"))
        .arg(switch(
            "no-wait",
            "Give up at once when another run is in progress, instead of waiting for its end",
        ))
        .arg(
            Arg::new("metrics-file")
                .long("metrics-file")
                .value_name("FILE")
                .value_parser(NonEmptyStringValueParser::new())
                .help("A file to write the results of health checks to, for Prometheus"),
        )
        .arg(switch("detailed-exitcode", "Exit with 3 instead of 0 when something changed or would change"))
}

/// What the flags say.
pub(super) struct RunFlags {
    pub(super) mode: RunMode,
    pub(super) diffs: Diffs,
    pub(super) format: Format,
    pub(super) verbosity: Verbosity,
    pub(super) patience: Patience,
    pub(super) task: Task,
    /// A file that tells a monitoring system what came of health checks.
    metrics_file: Option<PathBuf>,
    /// Whether the exit code tells that something changed.
    detailed_exitcode: bool,
}

impl RunFlags {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        let noop = matches.get_flag("noop");
        let diffs = matches.get_flag("diff") || noop && !matches.get_flag("no-diff");
        Self {
            mode: if noop { RunMode::Noop } else { RunMode::Real },
            diffs: if diffs { Diffs::Wanted } else { Diffs::Unwanted },
            format: Format::from_matches(matches),
            verbosity: Verbosity::from_matches(matches),
            patience: if matches.get_flag("no-wait") { Patience::GiveUp } else { Patience::Wait },
            task: Task::Apply,
            metrics_file: matches.get_one::<String>("metrics-file").map(PathBuf::from),
            detailed_exitcode: matches.get_flag("detailed-exitcode"),
        }
    }

    /// Returns how the program ends after a run.
    pub(super) fn exit(&self, finished: &Finished) -> Exit {
        let summary = &finished.summary;
        if let Some(error) = &finished.unrecorded {
            warn(&error.to_string());
            return Exit::Failed;
        }
        if finished.is_kept_out {
            return Exit::NotAttempted;
        }
        if self.task == Task::Monitor && summary.health_checked_count == 0 && summary.failed_resources == 0 {
            warn("nothing was checked: no resource that was reached has health checks");
            return Exit::NotAttempted;
        }
        if summary.failed_resources > 0 || summary.requirements_unmet_count > 0 || finished.stopped.is_some()
        {
            Exit::Failed
        } else if summary.changed_resources > 0 && self.detailed_exitcode {
            Exit::Changed
        } else {
            Exit::Success
        }
    }
}

impl RunFlags {
    /// Returns an engine that works as the flags say.
    pub(super) fn engine<'m>(
        &self,
        machine: &'m Machine,
        exclusion: Exclusion,
        session: Session,
    ) -> Engine<'m> {
        let is_read =
            self.format == Format::Json || self.verbosity == Verbosity::Everything || session.is_kept();
        let settings = Settings {
            mode: self.mode,
            diffs: self.diffs,
            detail: if is_read { Detail::Whole } else { Detail::Outline },
            exclusion,
            read_ahead: machine.environment.read_ahead(),
            registrations: Registrations::Unwanted,
            task: self.task,
            ignores_failures: false,
        };
        Engine::new(&machine.host, &machine.state, settings, session)
    }

    /// Performs a run that has begun: prints it as it happens, and writes the metrics file.
    pub(super) fn perform<'o>(
        &self,
        mut run: Run,
        manifests: &[(&Manifest, &Selected)],
        unchanged: Unchanged,
        output: &'o mut Output,
    ) -> (Finished, Printer<'o>) {
        let progress = Arc::clone(&output.progress);
        let manner = Manner { format: self.format, verbosity: self.verbosity, unchanged, mode: self.mode };
        let total = manifests.iter().map(|(manifest, _)| flattened(&manifest.resources).len()).sum();
        let mut printer = Printer::new(output, manner, total);
        let before = run.session().events().len();
        let finished = run.apply(manifests, &mut printer);
        progress.end();
        if let Some(file) = &self.metrics_file {
            write_metrics(file, &run.session().events()[before..]);
        }
        run.finish();
        (finished, printer)
    }
}

/// Shows messages of a run on standard error.
pub(super) struct StderrNotices;

impl Notices for StderrNotices {
    fn waiting(&self, holder: &str) {
        waiting(holder);
    }

    fn warning(&self, text: &str) {
        warn(text);
    }
}

/// Replaces a file by the metrics of these events. A run is none the worse for it where that cannot be done.
fn write_metrics(file: &Path, events: &[Event]) {
    let text = metrics(events);
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let written = files::replace(&path, Attributes::own(0o644), |out| out.write_all(text.as_bytes()));
    if let Err(error) = written {
        warn(&format!("the metrics are not written: {error}"));
    }
}

/// Says for whom the run waits.
pub(super) fn waiting(holder: &str) {
    warn(&format!("waiting for {holder} to finish"));
}

/// A document as YAML, or as JSON where that was asked for.
pub(super) fn to_text(document: &Value, format: Format) -> Result<String, Failure> {
    match format {
        Format::Json => serde_json::to_string_pretty(document).map_err(|error| error.to_string()),
        Format::Text => serde_saphyr::to_string(document).map_err(|error| error.to_string()),
    }
    .map(|text| text.trim_end().to_owned() + "\n")
    .map_err(Failure::new)
}
